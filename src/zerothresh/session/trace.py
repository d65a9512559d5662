"""The history of a run, with one row per step."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices


class Trace:
    """The history of a run: one row per step, with the columns ``step, nfev, nht, fun, support``.

    A support is stored only where it changes, so that the trace of a long run stays small. Rows that an earlier session
    wrote into a run folder are read only when they are needed.

    Attributes
    ----------
    remarks: what the method found and chose, as pairs of the number of calls made by then and a sentence.
    support_changes: the number of changes of the support; -1 before the first step.

    >>> trace = Trace()
    >>> trace.append(step=1, nfev=11, nht=1, fun=0.5, support=np.array([2, 7]))
    >>> trace.fun
    array([0.5])
    """

    def __init__(self) -> None:
        self.remarks: list[tuple[int, str]] = []
        self._rows: list[tuple[int, int, int, float]] = []
        self._supports: list[tuple[int, Indices]] = []  # (the first row that has it, the support)
        self._earlier: Callable[[], str] | None = None  # reads the rows of earlier sessions
        self._count = 0  # the number of rows, including those in the file
        self.support_changes = -1  # the support of the first step does not count as a change
        self._last = b"?"  # the bytes of the last support

    def append(self, *, step: int, nfev: int, nht: int, fun: float | None, support: Indices) -> None:
        """Add a row.

        Arguments
        ---------
        step: the number of the step, from 1.
        nfev: the number of calls of f_i so far.
        nht: the number of hard thresholdings so far.
        fun: F at the iterate, or None if it is not known.
        support: the non-zero coordinates of the iterate.
        """
        content = support.tobytes()
        if content != self._last:
            self._last = content
            self._supports.append((len(self._rows), support))
            self.support_changes += 1
        self._rows.append((step, nfev, nht, np.nan if fun is None else fun))
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        if not self._count:
            return "<trace: no steps>"
        return f"<trace: {len(self)} steps, {max(0, self.support_changes)} support changes>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace) or len(self) != len(other):
            return False
        same = all(np.array_equal(getattr(self, c), getattr(other, c), equal_nan=True) for c in ("nfev", "nht", "fun"))
        return same and all(np.array_equal(a, b) for a, b in zip(self.support, other.support, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _column(self, place: int, dtype: type) -> NDArray[Any]:
        """Return a column as an array."""
        self._load()
        return np.array([row[place] for row in self._rows], dtype=dtype)

    @property
    def step(self) -> Indices:
        """The number of each step, from 1."""
        return self._column(0, np.int64)

    @property
    def nfev(self) -> Indices:
        """The number of calls of f_i (#IZO) up to each step."""
        return self._column(1, np.int64)

    @property
    def nht(self) -> Indices:
        """The number of hard thresholdings (#NHT) up to each step."""
        return self._column(2, np.int64)

    @property
    def fun(self) -> Array:
        """F at the iterate of each step, NaN where it is not known."""
        return self._column(3, np.float64)

    @property
    def support(self) -> list[Indices]:
        """The non-zero coordinates of the iterate of each step."""
        self._load()
        out: list[Indices] = []
        for place, (row, support) in enumerate(self._supports):
            end = self._supports[place + 1][0] if place + 1 < len(self._supports) else len(self._rows)
            out.extend([support] * (end - row))
        return out

    def to_records(self) -> np.recarray[Any, Any]:
        """Return the trace as a NumPy record array, in which the column ``support`` holds arrays."""
        dtype = [("step", "i8"), ("nfev", "i8"), ("nht", "i8"), ("fun", "f8"), ("support", "O")]
        supports = self.support
        rows = [(*row, support) for row, support in zip(self._rows, supports, strict=True)]
        return np.array(rows, dtype=dtype).view(np.recarray)

    def to_frame(self) -> Any:
        """Return the trace as a pandas data frame (pandas comes with the extra ``zerothresh[plot]``)."""
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "converting a trace to a data frame needs pandas: pip install 'zerothresh[plot]'"
            ) from None
        frame = pandas.DataFrame({name: getattr(self, name) for name in ("step", "nfev", "nht", "fun")})
        frame["support"] = self.support
        return frame

    def to_csv(self) -> str:
        """Return the trace as comma-separated values; a support is written as indices with spaces between them."""
        supports = self.support
        return _csv(zip(self._rows, supports, strict=True), header=True)

    # For run folders: rows are written to a file, and read from it again.

    def flush_text(self, since: int) -> str:
        """Return the rows from number ``since`` on as text for the file; a support that has not changed is left out."""
        skipped = self._count - len(self._rows)
        begins = {row + skipped: support for row, support in self._supports}
        rows = self._rows[since - skipped :]
        return _csv(((row, begins.get(since + place)) for place, row in enumerate(rows)), header=False)

    @property
    def last_support(self) -> Indices:
        """The non-zero coordinates of the iterate of the last step."""
        return np.frombuffer(self._last, np.int64) if self._count else np.empty(0, np.int64)

    def resume(self, read: Callable[[], str], rows: int, changes: int, support: Indices) -> None:
        """Continue a trace whose earlier rows are kept elsewhere.

        Arguments
        ---------
        read: function that returns the earlier rows as `flush_text` wrote them; called when somebody looks at them.
        rows: int, the number of earlier rows.
        changes: int, the number of changes of the support in them.
        support: int64 array, the support of the last of them.
        """
        self._earlier = read if rows else None
        self._count, self.support_changes = rows, changes
        self._last = support.tobytes() if rows else b"?"

    def _load(self) -> None:
        """Read the rows of earlier sessions, unless that has been done."""
        if self._earlier is None:
            return
        try:
            earlier = list(csv.reader(io.StringIO(self._earlier())))
            rows = [(int(s), int(f), int(h), float(v) if v else np.nan) for s, f, h, v, _ in earlier]
            supports = [(at, _indices(row[4])) for at, row in enumerate(earlier) if row[4]]
        except (csv.Error, ValueError, OverflowError) as error:
            raise ValueError(f"the rows of earlier sessions cannot be read ({error}): they were changed") from None
        self._earlier = None
        self._supports = supports + [(at + len(rows), support) for at, support in self._supports]
        self._rows = rows + self._rows


def _csv(rows: Any, *, header: bool) -> str:
    """Format rows as comma-separated values; a support of None is left out, and an empty one is a dash."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(["step", "nfev", "nht", "fun", "support"])
    for (step, nfev, nht, fun), support in rows:
        text = "" if support is None else " ".join(map(str, support.tolist())) or "-"
        writer.writerow([step, nfev, nht, "" if np.isnan(fun) else repr(float(fun)), text])
    return out.getvalue()


def _indices(text: str) -> Indices:
    """Read a support from its text."""
    return np.array([] if text == "-" else text.split(), dtype=np.int64)

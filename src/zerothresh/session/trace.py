"""The history of a run, a row a step."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Trace:
    """Columns ``step, nfev, nht, fun, support``; ``fun`` is NaN where F was not known.

    Supports are kept only where they change, so that a long run stays small. The rows of a run folder
    that were written by an earlier session are read only when they are looked at.

    >>> trace = Trace()
    >>> trace.append(step=1, nfev=11, nht=1, fun=0.5, support=np.array([2, 7]))
    >>> trace.fun
    array([0.5])
    """

    def __init__(self) -> None:
        self.remarks: list[tuple[int, str]] = []  # what the method found and chose, with the calls made by then
        self._rows: list[tuple[int, int, int, float]] = []
        self._supports: list[tuple[int, Indices]] = []  # (row where it begins, support)
        self._earlier: tuple[Path, int] | None = None  # rows in a file: its path, their bytes
        self._count = 0  # rows, those of the file too
        self.support_changes = -1  # how often the support changed; the first one is not a change
        self._last = b"?"

    def append(self, *, step: int, nfev: int, nht: int, fun: float | None, support: Indices) -> None:
        """Add a step."""
        name = support.tobytes()
        if name != self._last:
            self._last = name
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
        self._load()
        return np.array([row[place] for row in self._rows], dtype=dtype)

    @property
    def step(self) -> Indices:
        """The number of the step, from 1."""
        return self._column(0, np.int64)

    @property
    def nfev(self) -> Indices:
        """Calls of f_i so far (#IZO)."""
        return self._column(1, np.int64)

    @property
    def nht(self) -> Indices:
        """Hard thresholdings so far (#NHT)."""
        return self._column(2, np.int64)

    @property
    def fun(self) -> Array:
        """F at the iterate, NaN where it was not known."""
        return self._column(3, np.float64)

    @property
    def support(self) -> list[Indices]:
        """The coordinates that are not zero, of each step."""
        self._load()
        out: list[Indices] = []
        for place, (row, support) in enumerate(self._supports):
            end = self._supports[place + 1][0] if place + 1 < len(self._supports) else len(self._rows)
            out.extend([support] * (end - row))
        return out

    def to_records(self) -> np.recarray[Any, Any]:
        """A NumPy record array; ``support`` is a column of arrays."""
        dtype = [("step", "i8"), ("nfev", "i8"), ("nht", "i8"), ("fun", "f8"), ("support", "O")]
        supports = self.support
        rows = [(*row, support) for row, support in zip(self._rows, supports, strict=True)]
        return np.array(rows, dtype=dtype).view(np.recarray)

    def to_frame(self) -> Any:
        """A pandas data frame (needs pandas: the extra ``zerothresh[plot]``)."""
        try:
            import pandas
        except ImportError:
            raise ImportError("a trace becomes a data frame with pandas: pip install 'zerothresh[plot]'") from None
        frame = pandas.DataFrame({name: getattr(self, name) for name in ("step", "nfev", "nht", "fun")})
        frame["support"] = self.support
        return frame

    def to_csv(self) -> str:
        """Comma-separated values; the support as indices with blanks between."""
        supports = self.support
        return _csv(zip(self._rows, supports, strict=True), header=True)

    # Run folders: rows go to a file, and come back from it.

    def flush_text(self, since: int) -> str:
        """The rows from number ``since`` on, for the file; a support that has not changed is left out."""
        skipped = self._count - len(self._rows)
        begins = {row + skipped: support for row, support in self._supports}
        rows = self._rows[since - skipped :]
        return _csv(((row, begins.get(since + place)) for place, row in enumerate(rows)), header=False)

    @property
    def last_support(self) -> Indices:
        """The support of the last row."""
        return np.frombuffer(self._last, np.int64) if self._count else np.empty(0, np.int64)

    def resume(self, path: Path, size: int, rows: int, changes: int, support: Indices) -> None:
        """Go on after ``rows`` rows that are in the first ``size`` bytes of a file."""
        self._earlier = (path.absolute(), size) if rows else None
        self._count, self.support_changes = rows, changes
        self._last = support.tobytes() if rows else b"?"

    def _load(self) -> None:
        """Read the rows of earlier sessions, once."""
        if self._earlier is None:
            return
        path, size = self._earlier
        with open(path, encoding="ascii", newline="") as file:
            earlier = list(csv.reader(io.StringIO(file.read(size))))
        self._earlier = None
        new, begun = self._rows, self._supports
        self._rows = [(int(s), int(f), int(h), float(v) if v else np.nan) for s, f, h, v, _ in earlier] + new
        self._supports = [(at, _indices(row[4])) for at, row in enumerate(earlier) if row[4]]
        self._supports += [(at + len(earlier), support) for at, support in begun]


def _csv(rows: Any, *, header: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(["step", "nfev", "nht", "fun", "support"])
    for (step, nfev, nht, fun), support in rows:
        text = "" if support is None else " ".join(map(str, support.tolist())) or "-"
        writer.writerow([step, nfev, nht, "" if np.isnan(fun) else repr(float(fun)), text])
    return out.getvalue()


def _indices(text: str) -> Indices:
    return np.array([] if text == "-" else text.split(), dtype=np.int64)

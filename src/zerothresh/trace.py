"""The history of a run, a row a step."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Trace:
    """Columns ``step, nfev, nht, fun, support``; ``fun`` is NaN where F was not known.

    Supports are kept only where they change, so that a long run stays small.

    >>> trace = Trace()
    >>> trace.append(step=1, nfev=11, nht=1, fun=0.5, support=np.array([2, 7]))
    >>> trace.fun
    array([0.5])
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, float]] = []
        self._supports: list[tuple[int, Indices]] = []  # (row where it begins, support)

    def append(self, *, step: int, nfev: int, nht: int, fun: float | None, support: Indices) -> None:
        """Add a step."""
        if not self._supports or self._supports[-1][1].tobytes() != support.tobytes():
            self._supports.append((len(self._rows), support))
        self._rows.append((step, nfev, nht, np.nan if fun is None else fun))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        if not self._rows:
            return "<trace: no steps>"
        return f"<trace: {len(self)} steps, {self._rows[-1][1]} calls, {self.support_changes} support changes>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace) or len(self) != len(other):
            return False
        same = all(np.array_equal(getattr(self, c), getattr(other, c), equal_nan=True) for c in ("nfev", "nht", "fun"))
        return same and all(np.array_equal(a, b) for a, b in zip(self.support, other.support, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _column(self, place: int, dtype: type) -> NDArray[Any]:
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
        out: list[Indices] = []
        for place, (row, support) in enumerate(self._supports):
            end = self._supports[place + 1][0] if place + 1 < len(self._supports) else len(self._rows)
            out.extend([support] * (end - row))
        return out

    @property
    def support_changes(self) -> int:
        """How often the support changed."""
        return max(0, len(self._supports) - 1)

    def to_records(self) -> np.recarray[Any, Any]:
        """A NumPy record array; ``support`` is a column of arrays."""
        dtype = [("step", "i8"), ("nfev", "i8"), ("nht", "i8"), ("fun", "f8"), ("support", "O")]
        rows = [(*row, support) for row, support in zip(self._rows, self.support, strict=True)]
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
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["step", "nfev", "nht", "fun", "support"])
        for row, support in zip(self._rows, self.support, strict=True):
            fun = "" if np.isnan(row[3]) else repr(float(row[3]))
            writer.writerow([*row[:3], fun, " ".join(map(str, support.tolist()))])
        return out.getvalue()

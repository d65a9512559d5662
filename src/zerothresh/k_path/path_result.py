"""What a path has found: a result per k, the criteria to choose one, a table and a picture."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any

import numpy as np

from zerothresh.api.result import Result
from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.session.status import Status

MOST_LISTED = 6  # coordinates of a support in the table
LISTED = re.compile(r"k = (\d+(?:, \d+)*)")  # what `listed` writes


def listed(ks: Sequence[int]) -> str:
    """Return values of k as a message names them."""
    return f"k = {', '.join(map(str, ks))}"


@dataclass(repr=False)
class PathResult:
    """The results of a path over k.

    ``path[5]`` is the result for k = 5; a loop over a path gives its results in the order of k.

    Attributes
    ----------
    ks: tuple of int, in increasing order.
    results: list of Result, one per k. Their ``nfev`` are the calls that were made for this k alone.
    fun: array, F for each k; it does not rise with k. NaN where it is not known.
    held_out, held_out_error: arrays, with ``cv``: the mean over the folds of F on the components left out, and its
        standard error; otherwise None.
    aic, bic: arrays, with ``likelihood``: the criteria, up to a constant that is the same for all k; otherwise None.
    best_k: int, by the one-standard-error rule with ``cv``, by the lowest BIC with ``likelihood`` alone, or None.
    nfev, budget: int, the calls that the path has made, and the most that it may make.
    success, status, message: whether and why it ended, as in a `Result`.
    failure: the call that failed, or None.
    seed: int.
    names: tuple of str, the names of the coordinates, or None.
    """

    ks: tuple[int, ...]
    results: list[Result]
    fun: Array
    nfev: int
    budget: int
    success: bool
    status: Status
    message: str
    seed: int
    failure: Any = None
    held_out: Array | None = None
    held_out_error: Array | None = None
    aic: Array | None = None
    bic: Array | None = None
    best_k: int | None = None
    chosen_by: str = ""
    names: tuple[str, ...] | None = None
    remarks: list[str] = field(default_factory=list)

    def __getitem__(self, k: int) -> Result:
        number = check.whole(k)
        if number is None or number not in self.ks:
            raise KeyError(f"the path has no k = {k}: it has {', '.join(map(str, self.ks))}")
        return self.results[self.ks.index(number)]

    def __len__(self) -> int:
        return len(self.ks)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    @property
    def best(self) -> Result | None:
        """The result for ``best_k``; None if nothing was given to choose by."""
        return None if self.best_k is None else self[self.best_k]

    def shifted(self, by: int) -> PathResult:
        """Return the same with every k changed by a number, for coordinates that are always there and not counted."""
        best_k = None if self.best_k is None else self.best_k + by
        message = LISTED.sub(lambda found: listed([int(k) + by for k in found[1].split(", ")]), self.message)
        return replace(self, ks=tuple(k + by for k in self.ks), best_k=best_k, message=message)

    def columns(self) -> dict[str, list[Any]]:
        """Return the table: the names of its columns, and an entry for each k."""
        table: dict[str, list[Any]] = {"k": list(self.ks), "fun": self.fun.tolist()}
        optional = {"held_out": self.held_out, "held_out_error": self.held_out_error, "aic": self.aic, "bic": self.bic}
        table |= {name: column.tolist() for name, column in optional.items() if column is not None}
        table["nonzeros"] = [int(result.support.size) for result in self.results]
        table["nfev"] = [int(result.nfev) for result in self.results]
        table["proven"] = [bool(result.certified) for result in self.results]
        table["support"] = [self._labels(result) for result in self.results]
        return table

    def _labels(self, result: Result) -> list[Any]:
        """Return the support of a result, by names if there are any."""
        support: list[int] = result.support.tolist()
        return support if self.names is None else [self.names[j] for j in support]

    def frame(self) -> Any:
        """Return the table as a pandas data frame, with k as its index (pandas comes with ``zerothresh[plot]``)."""
        try:
            import pandas
        except ImportError:
            raise ImportError("a data frame needs pandas: pip install 'zerothresh[plot]'") from None
        return pandas.DataFrame(self.columns()).set_index("k")

    def plot(self, *, axes: Any = None, title: str = "") -> Any:
        """Draw F, and held-out F with its standard errors, against k; returns the matplotlib figure.

        Arguments
        ---------
        axes: matplotlib axes to draw on; default: a new figure.
        title: str, default none.
        """
        from zerothresh.k_path.path_plot import draw

        return draw(self, axes=axes, title=title)

    def text(self, *, width: int = 80) -> str:
        """Return the table as text, with lines of at most ``width`` characters."""
        heads, rows = self._cells()
        widths = [max(len(row[c]) for row in [heads, *rows]) for c in range(len(heads) - 1)]
        room = max(10, width - sum(widths) - 2 * len(widths))
        lines = wrap(f"{self.nfev:,} of {self.budget:,} calls for {len(self.ks)} values of k; {self.message}", width)
        for row in [heads, *rows]:
            cells = [cell.rjust(w) for cell, w in zip(row, widths, strict=False)]
            last = row[-1] if len(row[-1]) <= room else row[-1][: room - 3] + "..."
            lines.append("  ".join([*cells, last]).rstrip())
        if self.best_k is not None:
            lines.append(f"* k = {self.best_k}, {self.chosen_by}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        heads, rows = self._cells()
        top = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows)
        chosen = "" if self.best_k is None else f"<p>* k = {self.best_k}, {html.escape(self.chosen_by)}</p>"
        calls = f"{self.nfev:,} of {self.budget:,} calls; {html.escape(self.message)}"
        return f"<p>{calls}</p><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{chosen}"

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the cells of the table, as text."""
        heads = ["k", "F"]
        heads += [] if self.held_out is None else ["held-out F"]
        heads += [] if self.aic is None or self.bic is None else ["AIC", "BIC"]
        heads += ["calls", "support"]
        rows = []
        for place, (k, result) in enumerate(zip(self.ks, self.results, strict=True)):
            row = [("*" if k == self.best_k else "") + str(k), _number(self.fun[place])]
            if self.held_out is not None and self.held_out_error is not None:
                known = not np.isnan(self.held_out[place])
                row.append(_number(self.held_out[place]) + (f" +- {self.held_out_error[place]:.2g}" if known else ""))
            if self.aic is not None and self.bic is not None:
                row += [f"{self.aic[place]:,.1f}", f"{self.bic[place]:,.1f}"]
            labels = [str(label) for label in self._labels(result)]
            more = " ..." if len(labels) > MOST_LISTED else ""
            rows.append([*row, f"{result.nfev:,}", " ".join(labels[:MOST_LISTED]) + more])
        return heads, rows


def _number(value: float) -> str:
    return "not known" if np.isnan(value) else f"{value:.6g}"

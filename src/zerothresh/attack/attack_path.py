"""What an attack for several k has found: success against k, and the smallest perturbation that fools all images."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zerothresh.attack.attacked import Attacked
from zerothresh.basics import check


@dataclass(frozen=True, repr=False)
class AttackPath:
    """The perturbations for several k; the share of images that they fool does not fall with k.

    ``path[5]`` is the `Attacked` for k = 5; a loop over a path gives them in the order of k.

    Attributes
    ----------
    results: tuple of Attacked, one per k, in increasing order. Their ``queries`` are those of the whole path.
    """

    results: tuple[Attacked, ...]

    def __getitem__(self, k: int) -> Attacked:
        number = check.whole(k)
        if number is None or number not in self.ks:
            raise KeyError(f"the path has no k = {k}: it has {', '.join(map(str, self.ks))}")
        return self.results[self.ks.index(number)]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Attacked]:
        return iter(self.results)

    @property
    def ks(self) -> tuple[int, ...]:
        """The values of k, in increasing order."""
        return tuple(result.k for result in self.results)

    @property
    def success_rates(self) -> list[float]:
        """The share of the attacked images that are fooled, for each k; NaN if no image was attacked."""
        return [result.success_rate for result in self.results]

    @property
    def smallest(self) -> Attacked | None:
        """The result for the smallest k whose perturbation fools all attacked images; None if there is none."""
        return next((result for result in self.results if result.success_rate == 1.0), None)

    @property
    def best(self) -> Attacked:
        """`smallest`, or if nothing fools all images, the result for the largest k."""
        return self.smallest or self.results[-1]

    @property
    def queries(self) -> int:
        """Images shown to the classifier for the whole path, in all sessions and processes."""
        return self.results[0].queries

    @property
    def budget(self) -> int:
        """The most queries of the whole path."""
        return self.results[0].budget

    @property
    def complete(self) -> bool:
        """Whether the search ended normally; if not, `ended` says why, and few fooled images prove little."""
        return self.results[0].complete

    @property
    def ended(self) -> str:
        """Why the search ended."""
        if self.ks[0] == self.best.k and self.smallest is not None:
            return "all attacked images are fooled with the smallest k"
        if self.results[0].search is None or not self.complete:
            return self.results[0].ended
        return "the budget is spent"

    def promises(self) -> dict[str, bool]:
        """The promises of all results, each checked on the numbers themselves."""
        return {promise: kept for result in self.results for promise, kept in result.promises().items()}

    def columns(self) -> dict[str, list[Any]]:
        """Return the table: the names of its columns, and an entry for each k."""
        return {
            "k": list(self.ks),
            "fooled": [int(result.fooled.sum()) for result in self.results],
            "attacked": [int(result.attacked.sum()) for result in self.results],
            "success_rate": self.success_rates,
            "pixels": [result.pixels for result in self.results],
            "channels": [result.channels for result in self.results],
            "l2": [result.l2 for result in self.results],
        }

    def frame(self) -> Any:
        """Return the table as a pandas data frame, with k as its index (pandas comes with ``zerothresh[plot]``)."""
        try:
            import pandas
        except ImportError:
            raise ImportError("a data frame needs pandas: pip install 'zerothresh[plot]'") from None
        return pandas.DataFrame(self.columns()).set_index("k")

    def plot(self, *, axes: Any = None) -> Any:
        """Draw the share of fooled images against k; returns the matplotlib figure.

        Arguments
        ---------
        axes: matplotlib axes to draw on; default: a new figure.
        """
        from zerothresh.attack.attack_path_plot import draw_rates

        return draw_rates(self, axes=axes)

    @property
    def summary(self) -> str:
        """What was found, in one sentence."""
        best, unit = self.best, f"{self.results[0].granularity}s"
        if self.smallest is not None:
            said = f"{best.k} {unit} fool all {int(best.attacked.sum())} images"
        else:
            said = f"{best.k} {unit} fool {int(best.fooled.sum())} of {int(best.attacked.sum())} images"
        return f"{said}; {self.queries:,} of {self.budget:,} queries; {self.ended}"

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the cells of the table, as text; * marks the smallest k that fools all images."""
        heads = ["k", "fooled", "success rate", "pixels", "channels", "l2"]
        rows = []
        for result in self.results:
            mark = "*" if result is self.smallest else ""
            fooled = f"{int(result.fooled.sum())} of {int(result.attacked.sum())}"
            rate = f"{result.success_rate:.3f}" if result.attacked.any() else "-"
            rows.append(
                [f"{mark}{result.k}", fooled, rate, str(result.pixels), str(result.channels), f"{result.l2:.3g}"]
            )
        return heads, rows

    def __repr__(self) -> str:
        heads, rows = self.cells()
        widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [heads, *rows]
        ]
        return "\n".join([self.summary, *lines])

    def _repr_html_(self) -> str:
        heads, rows = self.cells()
        top = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<p>{html.escape(self.summary)}</p><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"

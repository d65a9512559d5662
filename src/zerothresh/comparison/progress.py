"""The live display of a comparison: how many runs are done, the best value so far, and the time left."""

from __future__ import annotations

from typing import Any

from zerothresh.comparison.cell import Cell, Outcome


class ComparisonProgress:
    """A progress bar on the standard error; use it as a context.

    Arguments
    ---------
    cells: how many runs there are in all.
    progress: True for a bar, False for none, None for one if the standard error is a terminal.
    """

    def __init__(self, cells: int, progress: bool | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.cells, self.count = cells, 0
        self.best: dict[str, tuple[float, str]] = {}  # by label: the lowest F so far, and the method that reached it
        console = Console(stderr=True)
        self.bar: Any = None
        if progress is True or (progress is None and console.is_terminal):
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("runs"),
            )
            self.bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
            self.task = self.bar.add_task("starting", total=cells)

    def __enter__(self) -> ComparisonProgress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def done(self, cell: Cell, outcome: Outcome, ran: bool = True) -> None:
        """Count a run that is done, and show the best value so far."""
        self.count += 1
        if self.bar is not None:
            known = self.best.get(cell.label)
            if known is None or outcome.end < known[0]:
                self.best[cell.label] = outcome.end, repr(cell.method)
            value, method = min(self.best.values())
            self.bar.update(self.task, completed=self.count, description=f"best F = {value:.6g} by {method:.40s}")

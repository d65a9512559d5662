"""A live display for long comparisons: how much is done, the best so far, the time left."""

from __future__ import annotations

from typing import Any

from zerothresh.comparison.cell import Cell, Outcome


class Live:
    """A bar on a terminal, plain lines elsewhere if they are asked for."""

    def __init__(self, cells: int, progress: bool | None = None, words: str = "runs") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.cells, self.count = cells, 0
        self.best: dict[str, tuple[float, str]] = {}
        console = Console(stderr=True)
        self.bar: Any = None
        if progress is True or (progress is None and console.is_terminal):
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(words))
            self.bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
            self.task = self.bar.add_task("starting", total=cells)

    def __enter__(self) -> Live:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def done(self, cell: Cell, outcome: Outcome, ran: bool = True) -> None:
        """Take note of a run."""
        self.count += 1
        if self.bar is not None:
            known = self.best.get(cell.label)
            if known is None or outcome.end < known[0]:
                self.best[cell.label] = outcome.end, repr(cell.method)
            value, method = min(self.best.values())
            self.bar.update(self.task, completed=self.count, description=f"best F = {value:.6g} by {method:.40s}")

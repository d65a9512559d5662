"""The line on the terminal that shows the progress of a run."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from zerothresh.basics import check

if TYPE_CHECKING:
    from zerothresh.api.optimizer import Optimizer

_INTERVAL = 0.1  # seconds between two updates


class Display:
    """A progress bar with the best value, #IZO out of the budget, #NHT, the support changes and the time left.

    Arguments
    ---------
    optimizer: the optimizer whose progress is shown.
    show: whether to show the bar; None means only if the standard error stream is a terminal.
    """

    def __init__(self, optimizer: Optimizer, show: bool | None) -> None:
        self.optimizer = optimizer
        self._bar: Any = None
        self._task: Any = None
        self._due = 0.0
        if show is None:
            import sys

            show = sys.stderr.isatty()
        if check.flag("progress", show):
            self._bar = _bar()
            self._task = self._bar.add_task("", total=optimizer.task.budget, **_fields(optimizer))

    def __enter__(self) -> Display:
        if self._bar is not None:
            self._bar.start()
        return self

    def update(self) -> None:
        """Show the present progress, at most ten times per second."""
        if self._bar is None:
            return
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _INTERVAL
            self._show()

    def _show(self) -> None:
        """Redraw the bar."""
        self._bar.update(self._task, completed=self.optimizer.nfev, **_fields(self.optimizer))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._show()
            self._bar.stop()


def _bar() -> Any:
    """Make the progress bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.fields[best]}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed}/{task.total} IZO"),
        TextColumn("{task.fields[nht]} NHT"),
        TextColumn("{task.fields[changes]} support changes"),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        expand=True,
    )


def _fields(optimizer: Optimizer) -> dict[str, str]:
    """Return the texts that the bar shows."""
    standing = optimizer.session.standing
    if standing.best_fun is not None:
        best = f"F {standing.best_fun:.5g}"
    elif standing.recent is not None:
        best = f"F ~{standing.recent:.4g}"  # a running mean of component values
    else:
        best = "F ?"
    return {"best": best, "nht": str(standing.nht), "changes": str(max(0, optimizer.trace.support_changes))}

"""What people see of a run while it goes on: a line on the terminal, or a log where there is none."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from zerothresh.api.pace import Pace
from zerothresh.api.run_log import RunLog
from zerothresh.api.run_status import GAP, LONGEST_BAR, RunStatus
from zerothresh.basics import check
from zerothresh.basics.foreign_text import printable
from zerothresh.methods.registry import name_of

if TYPE_CHECKING:
    from zerothresh.api.optimizer import Optimizer
    from zerothresh.rounds.search import Stage

_INTERVAL = 0.1  # seconds between two looks at the run, however many values arrive
_REFRESHES = 4  # per second, also while no value arrives, so that the time goes on
_PLAIN = ("dumb", "unknown")  # values of TERM for terminals whose cursor cannot be moved


class Display:
    """Shows the best F, calls out of the budget, the stage, busy workers, calls per second and the time left.

    On a terminal this is a line that is drawn again four times per second by a thread of its own, so that it keeps
    alive while long calls are in progress. Elsewhere it is a `RunLog`.

    Arguments
    ---------
    optimizer: the optimizer whose progress is shown.
    show: None for the line on a terminal and the logger elsewhere; True for log lines on the standard error stream
        where there is neither a terminal nor a configured logger; False for nothing.
    evaluator: the evaluator, whose busy workers are shown; None (the default) if there is none.
    max_time: the seconds after which the run ends; None (the default) if there is no such limit.
    time_now: the clock, in seconds.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        show: bool | None,
        evaluator: Any = None,
        max_time: float | None = None,
        time_now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.optimizer, self._evaluator, self._max_time, self._now = optimizer, evaluator, max_time, time_now
        wanted = None if show is None else check.flag("progress", show)
        self._begun_at = optimizer.nfev
        self._pace = Pace(time_now(), self._begun_at)
        self._lock = threading.Lock()  # for the pace: the thread that draws and the one that drives the run both look
        self._due = 0.0
        self._live: Any = None
        self._log: RunLog | None = None
        if wanted is False:
            return
        if _draws(bool(wanted)):
            self._live = _live(self)
        else:
            log = RunLog(self.status, self._stages, bool(wanted))
            self._log = log if log.active else None

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        elif self._log is not None:
            self._log.begin(self._opening())
        return self

    def update(self) -> None:
        """Take note of the present progress, at most ten times per second."""
        if self._live is None and self._log is None:
            return
        now = self._now()
        if now >= self._due:
            self._due = now + _INTERVAL
            if self._log is not None:
                self._log.look()
            else:
                self.status()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._log is not None:
            session = self.optimizer.session
            left = "the run was left" if kind is None else f"{kind.__name__} was raised"
            self._log.end(session.closing_message if session.done else left)

    def status(self) -> RunStatus:
        """Return where the run is now."""
        optimizer = self.optimizer
        calls, budget, standing = optimizer.nfev, optimizer.task.budget, optimizer.session.standing
        stages = self._stages()
        stage = printable(stages[-1][1]) if stages else ""
        pace = self._pace
        if self._lock.acquire(blocking=False):  # a signal handler that prints may draw in the middle of this
            try:
                pace.note(self._now(), calls, stage)
            finally:
                self._lock.release()
        elapsed, rate, left = pace.elapsed, pace.rate, pace.left(max(0, budget - calls))
        if left is not None and self._max_time is not None:
            left = min(left, max(0.0, self._max_time - elapsed))
        if standing.best_fun is not None:
            best = f"F {standing.best_fun:.5g}"
        else:
            best = "F ?" if standing.recent is None else f"F ~{standing.recent:.4g}"  # a mean of component values
        workers = getattr(self._evaluator, "width", 1)
        per_call = max(1, getattr(self._evaluator, "chunk", 1))
        outstanding = 0 if self._evaluator is None else self._evaluator.outstanding
        return RunStatus(
            best=best,
            calls=calls,
            budget=budget,
            elapsed=elapsed,
            stage=stage,
            busy=min(workers, -(-outstanding // per_call)),
            workers=workers,
            rate=rate,
            left=None if optimizer.done else left,
            steps=standing.nht,
            changes=max(0, optimizer.trace.support_changes),
        )

    def _stages(self) -> Sequence[Stage]:
        """Return what calls have been made for so far."""
        return self.optimizer.session.standing.search.stages

    def _opening(self) -> str:
        """Return the first line of the log."""
        task, workers = self.optimizer.task, getattr(self._evaluator, "width", 1)
        verb = f"goes on after {self._begun_at:,} calls" if self._begun_at else "starts"
        many = f", {workers} workers" if workers > 1 else ""
        size = f"{task.d:,} coordinates, at most {task.constraint.k:,} non-zeros"
        headline = getattr(task.method, "headline", None)  # of a path, whose runs have smaller k
        if headline is not None:
            size = f"{task.d:,} coordinates"
        return (
            f"{headline or name_of(task.method)} {verb}: {size}, budget {task.budget:,} calls{many}, seed {task.seed}"
        )

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Draw the line, as wide as the terminal; this is what rich calls."""
        from rich.text import Text

        status, width = self.status(), options.max_width
        fields = status.fields(width)
        used = sum(map(len, fields)) + GAP * (len(fields) - 1)
        line = Text(no_wrap=True, overflow="crop")
        for number, field in enumerate(fields):
            line.append(" " * GAP if number else "")
            if field:
                line.append(field)
            else:  # the place of the bar
                length = min(LONGEST_BAR, width - used)
                full = round(length * min(1.0, status.calls / max(1, status.budget)))
                mark = "-" if options.ascii_only else "━"
                line.append(mark * full, style="bar.complete").append(mark * (length - full), style="bar.back")
        yield line


def _draws(wanted: bool) -> bool:
    """Return whether there is something that a live line can be drawn on: a terminal, or a notebook if ``wanted``."""
    try:
        terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no standard error stream, or it is closed
        terminal = False
    if terminal:
        return os.environ.get("TERM", "").lower() not in _PLAIN
    if not wanted:
        return False
    from rich.console import Console

    return Console(stderr=True).is_jupyter


def _live(display: Display) -> Any:
    """Return what draws the display again and again, on the standard error stream."""
    from rich.console import Console
    from rich.live import Live

    return Live(display, console=Console(stderr=True), refresh_per_second=_REFRESHES)

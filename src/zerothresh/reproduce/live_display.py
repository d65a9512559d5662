"""Live displays of an experiment: a table of panels and methods with the time left, or a progress bar."""

from __future__ import annotations

import sys
import time
from typing import Any

from zerothresh.comparison.cell import Cell, Outcome
from zerothresh.reproduce.ridge.protocol import Experiment, Place

_REFRESH = 0.25  # seconds between two updates of a table on a terminal
_LINE_EVERY = 15  # seconds between two plain lines, where there is no terminal
_ENOUGH_RUNS = 10  # runs before the time left is estimated
_ENOUGH_SECONDS = 5  # seconds before the time left is estimated by queries


class GridDisplay:
    """A table of panels and methods on a terminal; a plain line now and then elsewhere.

    Each field shows the best learning rate so far and how many of its runs are done. Use it as a context.
    """

    def __init__(self, experiment: Experiment) -> None:
        from rich.console import Console

        self.experiment = experiment
        self.total, self.count = experiment.runs, 0
        self.ran, self.spent, self.last = 0, 0.0, time.monotonic()
        self.calls = sum(experiment.runs_of(race) * experiment.budget_of(race) for race in experiment.races)
        self.called, self.timed = 0, 0  # the calls of all runs that are done, and of those of this session
        self.shown = self.last
        self.wanted: dict[str, int] = {}
        self.choose: dict[str, set[Place]] = {}  # the runs that choose the learning rate, by entry
        for race in experiment.races:
            name = experiment.label_of(race)
            self.choose.setdefault(name, set(race.protocol.choose))
            self.wanted[name] = self.wanted.get(name, 0) + experiment.runs_of(race)
        self.done_by: dict[str, int] = dict.fromkeys(self.wanted, 0)
        self.ends: dict[str, dict[float, list[float]]] = {name: {} for name in self.wanted}
        self.console = Console(stderr=True)
        self.live: Any = None

    def __enter__(self) -> GridDisplay:
        if self.console.is_terminal:
            from rich.live import Live

            self.live = Live(self._table(), console=self.console, transient=True, refresh_per_second=4)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def done(self, cell: Cell, outcome: Outcome, ran: bool = True) -> None:
        """Count a run that is done; a run of an earlier session does not enter the estimate of the time left."""
        self.count, self.called = self.count + 1, self.called + cell.budget
        now = time.monotonic()
        if ran:
            self.ran, self.spent, self.timed = self.ran + 1, self.spent + now - self.last, self.timed + cell.budget
        self.last = now
        self.done_by[cell.label] += 1
        if (cell.subject, cell.seed) in self.choose[cell.label]:
            eta = float(getattr(cell.method, "eta", float("nan")))
            self.ends[cell.label].setdefault(eta, []).append(outcome.end)
        if self.live is not None:
            if now - self.shown > _REFRESH or self.count == self.total:
                self.shown = now
                self.live.update(self._table())
        elif now - self.shown > _LINE_EVERY or self.count == self.total:
            self.shown = now
            print(
                f"{self.experiment.name}: {self.count} of {self.total} runs{self._left()}", file=sys.stderr, flush=True
            )

    def _left(self) -> str:
        """Return the estimated time left, or nothing while it is not known."""
        if self.ran < _ENOUGH_RUNS or self.count == self.total:
            return ""
        seconds = self.spent / self.timed * (self.calls - self.called)
        return f", about {seconds / 60:.0f} min left" if seconds > 90 else f", about {seconds:.0f} s left"

    def _field(self, name: str) -> str:
        """Return the field of an entry."""
        if name not in self.wanted:
            return ""
        done, wanted = self.done_by[name], self.wanted[name]
        if not self.ends[name]:
            return "·"
        means = {eta: sum(ends) / len(ends) for eta, ends in self.ends[name].items()}
        best = f"{min(means, key=lambda eta: means[eta]):g}"
        return best if done == wanted else f"{best} {100 * done // wanted}%"

    def _table(self) -> Any:
        """Return the table, a bar and the time left, for rich."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        plain = [race.entry for race in self.experiment.races if not race.entry.switch]
        labels = list(dict.fromkeys(entry.label for entry in plain))
        table = Table(box=None, pad_edge=False, title=f"{self.experiment.title}: best η so far", title_justify="left")
        table.add_column("panel", no_wrap=True)
        for label in labels:
            table.add_column(label.removesuffix("-SZHT"), justify="right", no_wrap=True)
        for panel in dict.fromkeys(entry.panel for entry in plain):
            table.add_row(str(panel), *(self._field(f"{panel} {label}") for label in labels))
        switched = [name for name in self.wanted if name not in {f"{e.panel} {e.name}" for e in plain}]
        rest = sum(self.done_by[name] for name in switched)
        if switched:
            table.add_row("switches", f"{rest} of {sum(self.wanted[name] for name in switched)}")
        bar = ProgressBar(total=self.total, completed=self.count, width=40)
        return Group(table, bar, Text(f"{self.count} of {self.total} runs{self._left()}"))


class BarDisplay:
    """A progress bar over runs of different budgets, measured by queries; a plain line now and then elsewhere.

    Arguments
    ---------
    title: what is shown before the bar.
    runs: how many runs there are.
    queries: the sum of their budgets.
    """

    def __init__(self, title: str, runs: int, queries: int) -> None:
        from rich.console import Console

        self.title, self.runs, self.queries = title, runs, queries
        self.count = self.past = self.ran = 0
        self.begun = self.shown = time.monotonic()
        self.console = Console(stderr=True)
        self.live: Any = None

    def __enter__(self) -> BarDisplay:
        if self.console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}")
            self.live = Progress(*columns, console=self.console, transient=True)
            self.task = self.live.add_task(self.title, total=self.queries, status="")
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def done(self, cell: Cell, outcome: Outcome, ran: bool = True) -> None:
        """Count a run that is done; a run of an earlier session does not enter the estimate of the time left."""
        self.count += 1
        self.past += cell.budget
        self.ran += cell.budget if ran else 0
        now, status = time.monotonic(), f"{self.count} of {self.runs} runs{self._left()}"
        if self.live is not None:
            self.live.update(self.task, completed=self.past, status=status)
        elif now - self.shown > _LINE_EVERY or self.count == self.runs:
            self.shown = now
            print(f"{self.title}: {status}", file=sys.stderr, flush=True)

    def _left(self) -> str:
        """Return the estimated time left, or nothing while it is not known."""
        seconds = time.monotonic() - self.begun
        if not self.ran or seconds < _ENOUGH_SECONDS or self.count == self.runs:
            return ""
        left = seconds / self.ran * (self.queries - self.past)
        return f", about {left / 60:.0f} min left" if left > 90 else f", about {left:.0f} s left"

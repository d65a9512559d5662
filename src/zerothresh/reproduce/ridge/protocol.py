"""What an experiment of the paper consists of: panels, entries, and which runs choose and judge a learning rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from zerothresh.basics import check
from zerothresh.problems import Ridge
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method


@dataclass(frozen=True)
class Panel:
    """One panel of the paper's figures: k non-zero coordinates and q directions per estimate."""

    k: int
    q: int

    def __str__(self) -> str:
        return f"k={self.k}, q={self.q}"


@dataclass(frozen=True)
class Entry:
    """A method in a panel whose learning rate is to be chosen.

    Attributes
    ----------
    label: the name of the method.
    panel: the panel.
    make: returns the method with a given learning rate.
    estimator: how gradients are estimated.
    switch: in what the entry differs from the paper's own settings; empty if it does not.
    tuned: whether the method has a learning rate to choose.
    """

    label: str
    panel: Panel
    make: Callable[[float], Method]
    estimator: Estimator
    switch: str = ""
    tuned: bool = True

    @property
    def name(self) -> str:
        """The label, with the switch if there is one."""
        return f"{self.label}, {self.switch}" if self.switch else self.label


Place = tuple[str, int]  # the problem of a run, by its key, and the seed


@dataclass(frozen=True)
class Protocol:
    """Which runs choose the learning rate, and which fresh runs judge the chosen one.

    Without fresh runs, the runs that choose a learning rate judge it too, as in the paper.
    """

    name: str
    choose: tuple[Place, ...]
    judge: tuple[Place, ...]


# What the best learning rate is best at, over the runs that choose it.
LOWEST_MEAN = "the lowest mean of F at the end"  # the paper's rule
# Where the question is whether some learning rate converges; the errors are shares of F(0) - F*.
LOWEST_OWN = "the lowest median of the own-support error at the end"


@dataclass(frozen=True)
class Race:
    """An entry under a protocol.

    Attributes
    ----------
    protocol: which runs choose the learning rate and which judge it.
    entry: what is run.
    decades: the budget is the experiment's times 10 to this power.
    etas: the learning rates that are tried; None for the experiment's.
    rule: what the best learning rate is best at.
    """

    protocol: Protocol
    entry: Entry
    decades: int = 0
    etas: tuple[float, ...] | None = None
    rule: str = LOWEST_MEAN


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, before anything has been run.

    Attributes
    ----------
    name, title: what it is called in commands and files, and in the report.
    description: paragraphs for the report.
    etas: the learning rates that are tried.
    budget: the largest number of calls (#IZO) per run.
    panels: the panels of the paper's figures.
    problems: the problems by key.
    races: the entries, each with its protocol. The races of a ladder are those with an entry whose budgets are
        decades apart, and show whether its error goes on falling.
    seed: where all problems and runs come from.
    quick: whether it is a shortened version of the paper's experiment.
    paper_budget: the paper's own budget.
    """

    name: str
    title: str
    description: tuple[str, ...]
    etas: tuple[float, ...]
    budget: int
    panels: tuple[Panel, ...]
    problems: dict[str, Ridge]
    races: tuple[Race, ...]
    seed: int
    quick: bool = False
    paper_budget: int = 0

    @property
    def n(self) -> int:
        """The number of components."""
        return int(next(iter(self.problems.values())).n)

    @property
    def d(self) -> int:
        """The number of coordinates."""
        return int(next(iter(self.problems.values())).d)

    @property
    def runs(self) -> int:
        """The number of runs of the whole experiment."""
        return sum(self.runs_of(race) for race in self.races)

    def etas_of(self, race: Race) -> tuple[float, ...]:
        """Return the learning rates that are tried in a race; NaN stands for none."""
        if not race.entry.tuned:
            return (float("nan"),)
        return self.etas if race.etas is None else race.etas

    def budget_of(self, race: Race) -> int:
        """Return the budget of each run of a race."""
        return round(self.budget * 10.0**race.decades)

    def label_of(self, race: Race) -> str:
        """Return the name of a race in the display and in files; the same name means the same runs."""
        length = f", {self.budget_of(race):,} calls" if race.decades else ""
        return f"{race.entry.panel} {race.entry.name}{length}"

    def runs_of(self, race: Race) -> int:
        """Return the number of runs of one race."""
        return len(race.protocol.choose) * len(self.etas_of(race)) + len(race.protocol.judge)

    def with_budget(self, budget: int) -> Experiment:
        """Return the same experiment with another budget."""
        return replace(self, budget=check.count("budget", budget))

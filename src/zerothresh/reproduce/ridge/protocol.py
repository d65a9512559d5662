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


@dataclass(frozen=True)
class Race:
    """An entry under a protocol."""

    protocol: Protocol
    entry: Entry


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
    races: the entries, each with its protocol.
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

    def etas_of(self, entry: Entry) -> tuple[float, ...]:
        """Return the learning rates that are tried for an entry; NaN stands for none."""
        return self.etas if entry.tuned else (float("nan"),)

    def runs_of(self, race: Race) -> int:
        """Return the number of runs of one race."""
        return len(race.protocol.choose) * len(self.etas_of(race.entry)) + len(race.protocol.judge)

    def with_budget(self, budget: int) -> Experiment:
        """Return the same experiment with another budget."""
        return replace(self, budget=check.count("budget", budget))

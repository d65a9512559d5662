"""What an experiment of the paper is: panels, entries, and who chooses and who judges a learning rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from zerothresh.basics import check
from zerothresh.problems import Ridge
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method


@dataclass(frozen=True)
class Panel:
    """A picture of the paper: so many non-zeros, so many directions."""

    k: int
    q: int

    def __str__(self) -> str:
        return f"k={self.k}, q={self.q}"


@dataclass(frozen=True)
class Entry:
    """A method in a panel, whose learning rate is to be chosen; ``switch`` says in what it is not the paper's own."""

    label: str
    panel: Panel
    make: Callable[[float], Method]
    estimator: Estimator
    switch: str = ""
    tuned: bool = True  # whether it has a learning rate to choose

    @property
    def name(self) -> str:
        """With the switch."""
        return f"{self.label}, {self.switch}" if self.switch else self.label


Place = tuple[str, int]  # the problem (by key) and the seed of a run


@dataclass(frozen=True)
class Protocol:
    """Which runs choose the learning rate, and which fresh ones judge the chosen one (none: the same ones do)."""

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
    """All of one experiment: nothing in it has been run."""

    name: str
    title: str
    words: tuple[str, ...]
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
        """Components."""
        return int(next(iter(self.problems.values())).n)

    @property
    def d(self) -> int:
        """Coordinates."""
        return int(next(iter(self.problems.values())).d)

    @property
    def runs(self) -> int:
        """How many runs it takes."""
        return sum(self.runs_of(race) for race in self.races)

    def etas_of(self, entry: Entry) -> tuple[float, ...]:
        """The learning rates that are tried."""
        return self.etas if entry.tuned else (float("nan"),)

    def runs_of(self, race: Race) -> int:
        """How many runs a race takes."""
        return len(race.protocol.choose) * len(self.etas_of(race.entry)) + len(race.protocol.judge)

    def with_budget(self, budget: int) -> Experiment:
        """The same with another budget, for a look."""
        return replace(self, budget=check.count("budget", budget))

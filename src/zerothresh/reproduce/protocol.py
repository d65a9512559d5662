"""What an experiment of the paper is: panels, entries, and who chooses and who judges a learning rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from zerothresh.methods import Method
from zerothresh.plan import Estimator
from zerothresh.problems import Ridge


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
    subject: str = ""  # another form of the problem

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
        return sum(len(race.protocol.choose) * len(self.etas) + len(race.protocol.judge) for race in self.races)

    def with_budget(self, budget: int) -> Experiment:
        """The same with another budget, for a look."""
        return replace(self, budget=budget)

"""Experiments that have been run: each entry with its grid, its chosen learning rate, and what that gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.comparison.cell import Cell, Outcome, Subject
from zerothresh.comparison.compare import Trial, best_of
from zerothresh.comparison.work import Done, run_cells
from zerothresh.reproduce.protocol import Experiment, Panel, Place, Race

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Raced:
    """A race that has been run."""

    race: Race
    trials: tuple[Trial, ...]  # one for each learning rate, by the runs that choose
    eta: float  # the chosen one
    judged: tuple[Outcome, ...]  # the fresh runs of the chosen one; empty if there are none
    study: Study

    @property
    def chosen(self) -> tuple[Outcome, ...]:
        """The runs that chose it."""
        return best_of(self.trials).runs

    def measures(self, fresh: bool) -> Measures:
        """Of the fresh runs, or of those that chose."""
        protocol = self.race.protocol
        places, runs = (protocol.judge, self.judged) if fresh else (protocol.choose, self.chosen)
        return Measures(self.study, self.race.entry.panel.k, places, runs)


@dataclass(frozen=True)
class Measures:
    """Numbers of several runs, held against the optimum of each one's problem."""

    study: Study
    k: int
    places: tuple[Place, ...]
    runs: tuple[Outcome, ...]

    @cached_property
    def gap(self) -> Array:
        """F - F* at the end."""
        return np.array(
            [r.end - self.study.optimum(p, self.k)[1] for (p, _), r in zip(self.places, self.runs, strict=True)]
        )

    @cached_property
    def own(self) -> Array:
        """F less its minimum on the final support."""
        return np.array([run.own for run in self.runs])

    @cached_property
    def start(self) -> Array:
        """F(0) - F*: the scale of the problem."""
        return np.array([self.study.start(p, self.k) for p, _ in self.places])

    @property
    def right(self) -> int:
        """Runs that end with the best support."""
        best = [np.flatnonzero(self.study.optimum(p, self.k)[0]) for p, _ in self.places]
        return sum(np.array_equal(b, run.support) for b, run in zip(best, self.runs, strict=True))

    @property
    def diverged(self) -> int:
        """Runs that did."""
        return sum(not run.success for run in self.runs)

    def calls_to(self, level: float) -> Array:
        """#IZO until the own-support error is at most so much of F(0) - F*; infinite if never."""
        out = []
        for run, start in zip(self.runs, self.start, strict=True):
            there = np.flatnonzero(run.trace.own <= level * start)
            out.append(float(run.trace.nfev[there[0]]) if there.size else np.inf)
        return np.array(out)


class Study:
    """An experiment and its outcomes."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.raced: list[Raced] = []
        self._optima: dict[tuple[str, int], tuple[Array, float]] = {}

    def optimum(self, problem: str, k: int) -> tuple[Array, float]:
        """The best k-sparse point, by trying every support, and F there."""
        if (problem, k) not in self._optima:
            self._optima[problem, k] = self.experiment.problems[problem].optimum(k)
        return self._optima[problem, k]

    def start(self, problem: str, k: int) -> float:
        """F(0) - F*."""
        made = self.experiment.problems[problem]
        return made.F(np.zeros(made.d)) - self.optimum(problem, k)[1]

    def find(self, label: str, panel: Panel, *, switch: str = "", fresh: bool = True) -> Raced | None:
        """The race of an entry; with fresh runs, or as in the paper."""
        for raced in self.raced:
            entry = raced.race.entry
            if (entry.label, entry.panel, entry.switch) == (label, panel, switch) and bool(raced.judged) >= fresh:
                return raced
        return None

    def measures(self, label: str, panel: Panel, *, switch: str = "", fresh: bool = True) -> Measures | None:
        """Of an entry."""
        raced = self.find(label, panel, switch=switch, fresh=fresh)
        return None if raced is None else raced.measures(fresh)

    def labels(self) -> list[str]:
        """The methods, in the paper's order."""
        return list(dict.fromkeys(raced.race.entry.label for raced in self.raced if not raced.race.entry.switch))


def run(experiment: Experiment, *, jobs: int = 1, folder: Path | None = None, done: Done | None = None) -> Study:
    """Run an experiment: first the runs that choose the learning rates, then the fresh ones."""
    subjects = {name: Subject.of(problem) for name, problem in experiment.problems.items()}

    def outcomes(cells: Sequence[Cell]) -> Any:
        return iter(run_cells(subjects, cells, jobs=jobs, folder=folder, done=done))

    def cells(race: Race, eta: float, places: Sequence[Place]) -> list[Cell]:
        entry = race.entry
        label = f"{entry.panel} {entry.name}"
        made = entry.make(eta)
        return [Cell(label, made, entry.estimator, entry.panel.k, experiment.budget, key, seed) for key, seed in places]

    study = Study(experiment)
    first = outcomes(
        [c for race in experiment.races for eta in experiment.etas for c in cells(race, eta, race.protocol.choose)]
    )
    found: list[tuple[Race, tuple[Trial, ...], float]] = []
    for race in experiment.races:
        trials = tuple(
            Trial(race.entry.make(eta), tuple(next(first) for _ in race.protocol.choose)) for eta in experiment.etas
        )
        found.append((race, trials, experiment.etas[trials.index(best_of(trials))]))
    later = outcomes([cell for race, _, eta in found for cell in cells(race, eta, race.protocol.judge)])
    for race, trials, eta in found:
        study.raced.append(Raced(race, trials, eta, tuple(next(later) for _ in race.protocol.judge), study))
    return study

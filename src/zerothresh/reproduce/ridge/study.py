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
from zerothresh.comparison.comparing import Trial, best_of
from zerothresh.comparison.work import Done, run_cells
from zerothresh.reproduce.ridge.protocol import Entry, Experiment, Panel, Place, Race

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
        return Measures(self.study, self.race.entry.panel, places, runs)


@dataclass(frozen=True)
class Measures:
    """Numbers of several runs, held against the optimum of each one's problem.

    A run that ends above F(0), or breaks off, has diverged. It counts as one that ends at F(0), where
    one can always stay: else one run would be all there is in a mean.
    """

    study: Study
    panel: Panel
    places: tuple[Place, ...]
    runs: tuple[Outcome, ...]

    @cached_property
    def start(self) -> Array:
        """F(0) - F*: the scale of the problem."""
        return np.array([self.study.start(p, self.panel.k) for p, _ in self.places])

    @cached_property
    def best(self) -> Array:
        """F*."""
        return np.array([self.study.optimum(p, self.panel.k)[1] for p, _ in self.places])

    @cached_property
    def diverged(self) -> NDArray[np.bool_]:
        """Which runs did."""
        ends = np.array([run.end if run.success else np.inf for run in self.runs])
        return np.asarray(ends > self.start + self.best)

    @cached_property
    def end(self) -> Array:
        """F at the end."""
        return np.where(self.diverged, self.start + self.best, [run.end for run in self.runs])

    @cached_property
    def gap(self) -> Array:
        """F - F* at the end."""
        return np.asarray(self.end - self.best)

    @cached_property
    def own(self) -> Array:
        """F less its minimum on the final support."""
        return np.where(self.diverged, self.start, [run.own for run in self.runs])

    @cached_property
    def relative(self) -> Array:
        """The same as a share of F(0) - F*."""
        return np.asarray(self.own / self.start)

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Which runs end with the best support."""
        best = [np.flatnonzero(self.study.optimum(p, self.panel.k)[0]) for p, _ in self.places]
        return np.array([np.array_equal(b, run.support) for b, run in zip(best, self.runs, strict=True)])

    @cached_property
    def rises(self) -> Array:
        """The sum of all rises of F along the curve, as a share of F(0) - F*."""
        sums = [np.maximum(np.diff(run.trace.fun), 0.0).sum() for run in self.runs]
        return np.where(self.diverged, np.inf, np.array(sums) / self.start)

    def calls_to(self, level: float) -> Array:
        """#IZO until the own-support error is at most so much of F(0) - F*; infinite if never."""
        out = []
        for run, start in zip(self.runs, self.start, strict=True):
            there = np.flatnonzero(run.trace.own <= level * start)
            out.append(float(run.trace.nfev[there[0]]) if there.size else np.inf)
        return np.array(out)

    def on_best_support(self, place: int) -> Array:
        """For each row of a run's trace, 1 if its support is the best one: the minimum on it is F*."""
        trace = self.runs[place].trace
        floor = trace.fun - trace.own
        return np.asarray(np.abs(floor - self.best[place]) <= 1e-9 * self.start[place], float)


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


def cell_of(experiment: Experiment, entry: Entry, eta: float, place: Place) -> Cell:
    """A run of an entry."""
    problem, seed = place
    label = f"{entry.panel} {entry.name}"
    return Cell(label, entry.make(eta), entry.estimator, entry.panel.k, experiment.budget, problem, seed)


def run(experiment: Experiment, *, jobs: int = 1, folder: Path | None = None, done: Done | None = None) -> Study:
    """Run an experiment: first the runs that choose the learning rates, then the fresh ones."""
    subjects = {name: Subject.of(problem) for name, problem in experiment.problems.items()}

    def outcomes(cells: Sequence[Cell]) -> Any:
        return iter(run_cells(subjects, cells, jobs=jobs, folder=folder, done=done))

    def cells(race: Race, eta: float, places: Sequence[Place]) -> list[Cell]:
        return [cell_of(experiment, race.entry, eta, place) for place in places]

    study = Study(experiment)
    first = outcomes(
        [
            c
            for race in experiment.races
            for eta in experiment.etas_of(race.entry)
            for c in cells(race, eta, race.protocol.choose)
        ]
    )
    found: list[tuple[Race, tuple[Trial, ...], float]] = []
    for race in experiment.races:
        trials = tuple(
            Trial(race.entry.make(eta), tuple(next(first) for _ in race.protocol.choose))
            for eta in experiment.etas_of(race.entry)
        )
        found.append((race, trials, experiment.etas_of(race.entry)[trials.index(best_of(trials))]))
    later = outcomes([cell for race, _, eta in found for cell in cells(race, eta, race.protocol.judge)])
    for race, trials, eta in found:
        study.raced.append(Raced(race, trials, eta, tuple(next(later) for _ in race.protocol.judge), study))
    return study

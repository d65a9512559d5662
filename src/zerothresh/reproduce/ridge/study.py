"""Experiments that have been run: for each entry the search for its learning rate, and the runs of the chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zerothresh.comparison.cell import Cell, Outcome, Subject, check_cell
from zerothresh.comparison.comparing import Candidate, best_of
from zerothresh.comparison.work import Done, run_cells
from zerothresh.reproduce.ridge.protocol import (
    LOWEST_MEAN,
    LOWEST_OWN,
    Entry,
    Experiment,
    Panel,
    Place,
    Race,
)

Array = NDArray[np.float64]

_SAME_VALUE = 1e-9  # of F(0) - F*: two minima of F that are closer than this are taken for the same


@dataclass(frozen=True)
class RaceResult:
    """A race that has been run.

    Attributes
    ----------
    race: the entry and its protocol.
    candidates: the runs that choose, one candidate per learning rate.
    eta: the chosen learning rate.
    judged: the fresh runs of the chosen learning rate; empty if there are none.
    study: the study that it belongs to.
    """

    race: Race
    candidates: tuple[Candidate, ...]
    eta: float
    judged: tuple[Outcome, ...]
    study: Study

    @property
    def chosen(self) -> tuple[Outcome, ...]:
        """The runs of the chosen learning rate among those that chose it."""
        return best_by(self.race, self.candidates, self.study).runs

    def measures(self, fresh: bool) -> Measures:
        """Return the measures of the fresh runs, or of those that chose the learning rate."""
        protocol = self.race.protocol
        places, runs = (protocol.judge, self.judged) if fresh else (protocol.choose, self.chosen)
        return Measures(self.study, self.race.entry.panel, places, runs)


def best_by(race: Race, candidates: Sequence[Candidate], study: Study) -> Candidate:
    """Return the best candidate by the rule of a race; the first one if several are equal."""
    if race.rule == LOWEST_MEAN:
        return best_of(candidates)
    starts = np.array([study.start(problem, race.entry.panel.k) for problem, _ in race.protocol.choose])
    return min(candidates, key=lambda candidate: float(np.median([run.own for run in candidate.runs] / starts)))


@dataclass(frozen=True)
class Measures:
    """What is measured of several runs, relative to the optimum of each run's problem.

    A run that stops early with an error, or ends above F(0), has diverged. It counts as a run that ends
    at F(0), where one can always stay: otherwise a single such run would dominate every mean.
    """

    study: Study
    panel: Panel
    places: tuple[Place, ...]
    runs: tuple[Outcome, ...]

    @cached_property
    def start(self) -> Array:
        """F(0) - F*, the scale of each problem."""
        return np.array([self.study.start(p, self.panel.k) for p, _ in self.places])

    @cached_property
    def best(self) -> Array:
        """F* of each problem."""
        return np.array([self.study.optimum(p, self.panel.k)[1] for p, _ in self.places])

    @cached_property
    def diverged(self) -> NDArray[np.bool_]:
        """Which runs have diverged."""
        ends = np.array([run.end if run.success else np.inf for run in self.runs])
        return np.asarray(ends > self.start + self.best)

    @cached_property
    def end(self) -> Array:
        """F at the end of each run."""
        return np.where(self.diverged, self.start + self.best, [run.end for run in self.runs])

    @cached_property
    def gap(self) -> Array:
        """F - F* at the end of each run."""
        return np.asarray(self.end - self.best)

    @cached_property
    def own(self) -> Array:
        """The own-support error at the end of each run: F minus its minimum on the final support."""
        return np.where(self.diverged, self.start, [run.own for run in self.runs])

    @cached_property
    def relative(self) -> Array:
        """The own-support error as a share of F(0) - F*."""
        return np.asarray(self.own / self.start)

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Which runs end with the best support."""
        best = [np.flatnonzero(self.study.optimum(p, self.panel.k)[0]) for p, _ in self.places]
        return np.array([np.array_equal(b, run.support) for b, run in zip(best, self.runs, strict=True)])

    @cached_property
    def rises(self) -> Array:
        """The sum of all increases of F from step to step, from F(0) on, as a share of F(0) - F*."""
        first = [run.trace.fun[0] if run.trace.fun.size else -np.inf for run in self.runs]
        sums = np.array([run.rises for run in self.runs]) + np.maximum(first - (self.start + self.best), 0.0)
        return np.where(self.diverged, np.inf, sums / self.start)

    @cached_property
    def roughness(self) -> Array:
        """The increases of F per step: their sum depends on the number of steps, which more directions make smaller."""
        return np.asarray(self.rises / np.maximum(1, [run.nit for run in self.runs]))

    def calls_to(self, level: float) -> Array:
        """Return the #IZO of each run to an own-support error of at most ``level`` (F(0) - F*); infinite if never.

        A run that diverges later has reached the levels on its way.
        """
        pairs = zip(self.runs, self.start, strict=True)
        return np.array([run.records.calls_to(level * start) for run, start in pairs])

    def on_best_support(self, place: int) -> Array:
        """Return 1 for each row of a run's trace whose support is the best one, else 0.

        The support itself is not in the trace. It is the best one if the minimum of F on it is F*.
        """
        trace = self.runs[place].trace
        floor = trace.fun - trace.own
        return np.asarray(np.abs(floor - self.best[place]) <= _SAME_VALUE * self.start[place], float)


class Study:
    """An experiment together with the results of its races."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.results: list[RaceResult] = []
        self._optima: dict[tuple[str, int], tuple[Array, float]] = {}

    def optimum(self, problem: str, k: int) -> tuple[Array, float]:
        """Return the best k-sparse point of a problem, found by trying every support, and F there."""
        if (problem, k) not in self._optima:
            self._optima[problem, k] = self.experiment.problems[problem].optimum(k)
        return self._optima[problem, k]

    def start(self, problem: str, k: int) -> float:
        """Return F(0) - F* of a problem."""
        ridge = self.experiment.problems[problem]
        return ridge.F(np.zeros(ridge.d)) - self.optimum(problem, k)[1]

    def find(self, label: str, panel: Panel, *, switch: str = "", fresh: bool = True) -> RaceResult | None:
        """Return the first result of an entry, with fresh runs if ``fresh`` is true; None if there is none."""
        for result in self.compared():
            entry = result.race.entry
            if (entry.label, entry.panel, entry.switch) == (label, panel, switch) and bool(result.judged) >= fresh:
                return result
        return None

    def compared(self) -> list[RaceResult]:
        """Return the results with the experiment's own budget and the paper's rule: all that are not of a ladder."""
        return [result for result in self.results if result.race.rule == LOWEST_MEAN]

    def ladders(self) -> dict[Entry, list[RaceResult]]:
        """Return the results of each ladder by its entry, the smallest budget first."""
        found: dict[Entry, list[RaceResult]] = {}
        for result in self.results:
            if result.race.rule == LOWEST_OWN:
                found.setdefault(result.race.entry, []).append(result)
        return {entry: sorted(steps, key=lambda result: result.race.decades) for entry, steps in found.items()}

    def measures(self, label: str, panel: Panel, *, switch: str = "", fresh: bool = True) -> Measures | None:
        """Return the measures of an entry, as `find` finds it."""
        result = self.find(label, panel, switch=switch, fresh=fresh)
        return None if result is None else result.measures(fresh)

    def labels(self) -> list[str]:
        """Return the methods, in the paper's order."""
        return list(dict.fromkeys(result.race.entry.label for result in self.results if not result.race.entry.switch))


def cell_of(experiment: Experiment, race: Race, eta: float, place: Place) -> Cell:
    """Return the run of a race with a learning rate, on a problem and with a seed."""
    (problem, seed), entry = place, race.entry
    label, budget = experiment.label_of(race), experiment.budget_of(race)
    return Cell(label, entry.make(eta), entry.estimator, entry.panel.k, budget, problem, seed)


def check_runs(experiment: Experiment) -> None:
    """Refuse an experiment of which a run could not begin, such as one with a budget that is too small."""
    subjects = {name: Subject.of(problem) for name, problem in experiment.problems.items()}
    for race in experiment.races:
        for eta in experiment.etas_of(race):
            first = cell_of(experiment, race, eta, race.protocol.choose[0])
            try:
                check_cell(subjects[first.subject], first)
            except ValueError as error:
                part = f"for {first.label}: " if race.decades else ""
                raise ValueError(f"{part}{error}") from None


def run(experiment: Experiment, *, jobs: int = 1, folder: Path | None = None, done: Done | None = None) -> Study:
    """Run an experiment: first the runs that choose the learning rates, then the fresh ones.

    Arguments
    ---------
    experiment: what to run.
    jobs, folder, done: as for `run_cells`. A run that several races have in common is made once.
    """
    subjects = {name: Subject.of(problem) for name, problem in experiment.problems.items()}

    def outcomes(cells: Sequence[Cell]) -> Iterator[Outcome]:
        once = list(dict.fromkeys(cells))
        made = dict(zip(once, run_cells(subjects, once, jobs=jobs, folder=folder, done=done), strict=True))
        told = set[Cell]()
        for cell in cells:
            if cell in told and done is not None:
                done(cell, made[cell], False)
            told.add(cell)
            yield made[cell]

    def cells(race: Race, eta: float, places: Sequence[Place]) -> list[Cell]:
        return [cell_of(experiment, race, eta, place) for place in places]

    choosing = outcomes(
        [
            cell
            for race in experiment.races
            for eta in experiment.etas_of(race)
            for cell in cells(race, eta, race.protocol.choose)
        ]
    )
    study = Study(experiment)
    chosen: list[tuple[Race, tuple[Candidate, ...], float]] = []
    for race in experiment.races:
        etas = experiment.etas_of(race)
        candidates = tuple(
            Candidate(race.entry.make(eta), tuple(next(choosing) for _ in race.protocol.choose)) for eta in etas
        )
        chosen.append((race, candidates, etas[candidates.index(best_by(race, candidates, study))]))
    judging = outcomes([cell for race, _, eta in chosen for cell in cells(race, eta, race.protocol.judge)])
    for race, candidates, eta in chosen:
        judged = tuple(next(judging) for _ in race.protocol.judge)
        study.results.append(RaceResult(race, candidates, eta, judged, study))
    return study

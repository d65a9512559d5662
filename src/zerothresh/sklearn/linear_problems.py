"""What is minimised: a mean loss of rows, whose outputs auto sees, or a metric, of which it sees one number."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zerothresh.api.minimizer import minimize
from zerothresh.api.result import Result
from zerothresh.basics.arrays import Array, Indices
from zerothresh.session.status import Status
from zerothresh.sklearn.linear_design import LinearDesign
from zerothresh.sklearn.row_losses import RowLoss

CALLS_PER_COLUMN = 20  # a fit ends by itself after about 2 to 10
EXTRA_CALLS = 400  # the same for tables of few columns, where steps and restarts count more than columns
PATIENCE_PER_COLUMN = 2  # calls without a gain after which a fit ends: each column may be measured again
EXTRA_PATIENCE = 60
METRIC_CALLS_PER_COLUMN = 100  # of one number each: a second difference for each coordinate costs about 3
METRIC_CALLS = 1000
MOST_METRIC_CALLS = 20_000


@dataclass(frozen=True, eq=False)
class RowProblem:
    """The mean loss of rows."""

    design: LinearDesign
    loss: RowLoss

    def __call__(self, points: Array) -> Array:
        """Return the outputs for points, (B, n)."""
        return self.loss.outputs(self.design.scores(points))

    def F(self, point: Array) -> float:
        """Return the mean loss, in the user's unit."""
        return self.loss.mean(self.design.scores(point[None])[0])

    @property
    def calls(self) -> int:
        """How many calls a fit may make, if the user does not say it."""
        return CALLS_PER_COLUMN * self.design.d + EXTRA_CALLS

    @property
    def patience(self) -> int | None:
        """After how many calls without a gain a fit ends."""
        return PATIENCE_PER_COLUMN * self.design.d + EXTRA_PATIENCE

    @property
    def form(self) -> dict[str, Any]:
        """What `minimize` has to know."""
        return {"outputs": "residuals", "loss": self.loss.loss}


@dataclass(frozen=True, eq=False)
class MetricProblem:
    """A metric of the scores of all rows, which is one number."""

    design: LinearDesign
    metric: Callable[[Array], float]

    def __call__(self, points: Array) -> Array:
        """Return F for points, (B,)."""
        return np.array([self.metric(scores) for scores in self.design.scores(points)])

    def F(self, point: Array) -> float:
        """Return the metric, as a loss."""
        return float(self.metric(self.design.scores(point[None])[0]))

    @property
    def calls(self) -> int:
        """How many calls a fit may make, if the user does not say it."""
        return min(METRIC_CALLS_PER_COLUMN * self.design.d + METRIC_CALLS, MOST_METRIC_CALLS)

    @property
    def patience(self) -> int | None:
        """The whole budget is spent."""
        return None

    @property
    def form(self) -> dict[str, Any]:
        """What `minimize` has to know."""
        return {}


@dataclass(frozen=True)
class Effort:
    """How much a search may do, and where it keeps what it has found.

    Attributes
    ----------
    max_calls, patience: int or None, as the user gave them.
    seed: int.
    workers: int, threads.
    run: str or None, a folder.
    """

    max_calls: int | None
    patience: int | None
    seed: int
    workers: int = 1
    run: str | None = None

    def with_patience(self, problem: RowProblem) -> Effort:
        """Return the same for a search that only prepares another one: it ends where nothing is gained any more."""
        return replace(self, patience=self.patience or problem.patience)


def places(problem: RowProblem | MetricProblem, k: int) -> tuple[int, dict[str, Any]]:
    """Return the number of non-zeros with the intercept, and the coordinates that always or never have a place."""
    design = problem.design
    include = [design.d - 1] if design.constant else []
    return min(k, design.features - design.useless.size) + len(include), {
        "include": include or None,
        "exclude": design.useless.tolist() or None,
    }


def settings(problem: RowProblem | MetricProblem, effort: Effort) -> dict[str, Any]:
    """Return the arguments of `minimize` and `path` that do not depend on k."""
    patience = effort.patience or (problem.patience if effort.max_calls is None else None)
    return {
        "vectorized": True,
        "seed": effort.seed,
        "patience": patience,
        "workers": effort.workers,
        "parallel": 1,
        "progress": False,
        **problem.form,
    }


def search(
    problem: RowProblem | MetricProblem, k: int, start: Array | None, effort: Effort, part: str = ""
) -> Result | None:
    """Return the result of a search from a start; None if there is nothing to search for."""
    places_left, chosen = places(problem, k)
    if places_left == 0:
        return None
    budget = effort.max_calls or problem.calls
    run = None if effort.run is None else f"{effort.run}/{part}"
    x0: Any = problem.design.d if start is None else start
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "k = d", UserWarning)  # that every feature may be chosen is no surprise
        result = minimize(problem, x0, places_left, budget=budget, run=run, **chosen, **settings(problem, effort))
    checked(result)
    return result


def polish(problem: MetricProblem, point: Array, effort: Effort, part: str) -> tuple[Array, int]:
    """Return a point on the same features whose metric is not worse, and the calls it took.

    The search is along combinations of the chosen columns that are not correlated: where neighbouring columns nearly
    agree, as wavelengths do, steps along single coefficients do harm before they help.
    """
    design = problem.design
    S: Indices = np.flatnonzero(point)
    if design.constant:
        S = np.union1d(S, [design.d - 1])
    if not S.size:
        return point, 0
    units = np.zeros((S.size, design.d))
    units[np.arange(S.size), S] = 1.0
    U, size, Vt = np.linalg.svd(design.scores(units).T, full_matrices=False)
    kept = size > np.finfo(float).eps * design.n * size[0]
    here = design.scores(point[None])[0]
    length = float(np.sqrt(design.n)) * (float(here.std()) or 1.0)
    ways = U[:, kept] * length

    def metric(steps: Array) -> Array:
        return np.array([problem.metric(here + ways @ u) for u in steps])

    number, budget = int(kept.sum()), effort.max_calls or problem.calls
    run = None if effort.run is None else f"{effort.run}/{part}-polish"
    how = settings(problem, effort) | {"patience": effort.patience or budget}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "k = d", UserWarning)
        warnings.filterwarnings("ignore", "the budget", UserWarning)
        result = minimize(metric, number, number, budget=budget, run=run, **how)
    checked(result)
    out = point.copy()
    out[S] += (Vt[kept].T / size[kept]) @ result.x * length
    return (out if problem.F(out) < problem.F(point) else point), result.nfev


def checked(result: Any) -> None:
    """Raise if the function failed, or the user has stopped the search."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt(result.message)
    if result.status in (Status.DISK, Status.METHOD_FAILED):
        raise RuntimeError(result.message)
    if result.status in (Status.FAILED, Status.BAD_VALUE):
        error = None if result.failure is None else result.failure.error
        raise ValueError(f"the loss cannot be evaluated: {result.message}") from error


def sparse_part(problem: RowProblem | MetricProblem, point: Array, k: int) -> Array:
    """Return a point with its k largest standardised coefficients, and its intercept."""
    out, features = point.copy(), problem.design.features
    away: Indices = np.argsort(-np.abs(point[:features]), kind="stable")[k:]
    out[away] = 0.0
    return out

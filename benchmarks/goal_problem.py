"""What a problem of `goals.py` is, how its parameters are drawn, and how one run on it is measured.

A family is a function of a `Draw`. In the development set a parameter has its usual value, and only the data vary with
the seed; in the judging set the parameters themselves are random, and so are the unit and the offset of F.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np
from objectives import Array, Indices

import zerothresh as zt

FIRST_SEED = {"dev": 0, "former": 1000, "judge": 11000}  # those from 1000 to 9999 have been seen
SECONDS = 300.0  # the longest that a single run may take


class Draw:
    """The parameters of one problem.

    Arguments
    ---------
    name: the family.
    seed: the seed; those of the judging set begin at 11000.
    judge: whether parameters are random.
    """

    def __init__(self, name: str, seed: int, judge: bool) -> None:
        self.seed, self.judge = seed, judge
        self.rng = np.random.default_rng([zlib.crc32(name.encode()), seed])

    def whole(self, usual: int, low: int, high: int) -> int:
        """An integer from low to high."""
        return int(self.rng.integers(low, high + 1)) if self.judge else usual

    def real(self, usual: float, low: float, high: float) -> float:
        """A number between low and high."""
        return float(self.rng.uniform(low, high)) if self.judge else usual

    def scale(self, usual: float, low: float, high: float) -> float:
        """A number between low and high whose logarithm is uniform."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high)))) if self.judge else usual

    def sparse(self, d: int, k: int, low: float, high: float) -> Array:
        """A vector with k non-zero entries of random sign, whose sizes lie between low and high."""
        x = np.zeros(d)
        x[self.rng.choice(d, k, replace=False)] = self.rng.choice([-1.0, 1.0], k) * self.rng.uniform(low, high, k)
        return x


@dataclass
class GoalProblem:
    """A black box together with what the benchmark knows about it.

    Attributes
    ----------
    values: the components f_i without noise, for points (B, d) and component numbers (B,).
    F: the exact objective at one point.
    d, k: the dimension, and the largest number of non-zeros.
    budget: the number of calls of f_i.
    n: the number of components; None if the user's function is F itself.
    x0, bounds: as in `zt.minimize`.
    F_star: the lowest F known.
    target: the F that counts as solved; by default 1 % of the way from F_star to the start is left.
    truth: the coordinates that should be found.
    noise: the standard deviation of normal noise in each value.
    growing: the standard deviation of normal noise in each value as a share of that value.
    random: whether the values are random in another way.
    rate: a success rate of a point that is not F.
    scale, offset: what the user's function returns is scale f_i + offset.
    """

    values: Callable[[Array, Indices], Array]
    F: Callable[[Array], float]
    d: int
    k: int
    budget: int
    n: int | None = None
    x0: Array | None = None
    bounds: Any = None
    F_star: float = nan
    target: float = nan
    truth: Indices | None = None
    noise: float = 0.0
    growing: float = 0.0
    random: bool = False
    rate: Callable[[Array], float] | None = None
    scale: float = 1.0
    offset: float = 0.0
    calls: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)  # spent in the user's function

    def __post_init__(self) -> None:
        self.start = np.zeros(self.d) if self.x0 is None else self.x0
        self.F_start = self.F(self.start)
        if self.target != self.target:
            self.target = self.F_star + 0.01 * (self.F_start - self.F_star)
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Choose the stream of the noise."""
        self._random = np.random.default_rng([seed, 1])

    def gap(self, x: Array) -> float:
        """The share of F(start) - F_star that is left at x."""
        return (self.F(x) - self.F_star) / (self.F_start - self.F_star)

    def found(self, x: Array) -> int:
        """How many of the coordinates that should be found are in the support of x."""
        return 0 if self.truth is None else int(np.isin(self.truth, np.flatnonzero(x)).sum())

    def black_box(self, points: Array, components: Indices | None = None) -> Array:
        """The function that the user gives: what is asked is counted, timed, and seen through noise."""
        began = time.process_time()
        rows = np.zeros(len(points), np.int64) if components is None else components
        exact = self.values(points, rows)
        if self.growing:
            exact = exact * (1 + self.growing * self._random.standard_normal(len(points)))
        out = self.scale * exact + self.offset
        if self.noise:
            out = out + self.scale * self.noise * self._random.standard_normal(len(points))
        self.calls += len(points)
        self.seconds += time.process_time() - began
        return out


@dataclass
class Run:
    """What one call of `zt.minimize` did.

    Attributes
    ----------
    x: the point returned.
    F: the exact F there.
    calls: how many calls had been made when the incumbent first reached the target; infinite if it never did.
    nfev: the number of calls made.
    seconds: the processor time of the run without the user's function and without the measurements.
    status, success: as in the result.
    """

    x: Array
    F: float
    calls: float
    nfev: int
    seconds: float
    status: str
    success: bool


def solve(
    problem: GoalProblem,
    seed: int,
    *,
    method: Any = "auto",
    budget: int | None = None,
    watch: bool = True,
    stop: bool = True,
    max_time: float = SECONDS,
) -> Run:
    """Call `zt.minimize` as a user would, and measure.

    Arguments
    ---------
    problem: a fresh problem.
    seed: the seed of the run.
    method: "auto", or an arm that runs alone.
    budget: the number of calls; by default that of the problem.
    watch: whether F is measured at each incumbent, which costs no calls.
    stop: whether the run ends once the incumbent has reached the target; never done under noise, where the incumbent
        may get worse again.
    max_time: seconds after which the run ends.
    """
    reached, spent, last = inf, 0.0, np.empty(0)

    def look(progress: Any) -> None:
        nonlocal reached, spent, last
        began = time.process_time()
        if reached == inf and not np.array_equal(progress.x, last):
            last = progress.x
            if problem.F(last) <= problem.target:
                reached = progress.nfev
        spent += time.process_time() - began
        if reached < inf and stop and not (problem.noise or problem.growing or problem.random):
            raise StopIteration

    inside, began = problem.seconds, time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        result = zt.minimize(
            problem.black_box,
            problem.d if problem.x0 is None else problem.x0,
            problem.k,
            budget=problem.budget if budget is None else budget,
            n=problem.n,
            method=method,
            seed=seed,
            vectorized=True,
            bounds=problem.bounds,
            max_time=max_time,
            callback=look if watch else None,
            progress=False,
        )
    own = time.process_time() - began - spent - (problem.seconds - inside)
    F = problem.F(result.x)
    if reached == inf and problem.target >= F:
        reached = result.nfev
    _check(problem, result, budget)
    return Run(result.x, F, reached, int(result.nfev), own, result.status.name, bool(result.success))


def _check(problem: GoalProblem, result: Any, budget: int | None) -> None:
    """Whether the constraint and the budget were kept, by counts of our own."""
    assert np.count_nonzero(result.x) <= problem.k, "too many non-zeros"
    assert problem.calls == result.nfev <= (problem.budget if budget is None else budget), "calls"
    if problem.bounds is not None:
        low, high = (inf if side is None else side for side in problem.bounds)
        low = -inf if problem.bounds[0] is None else low
        assert np.all((result.x >= low) & (result.x <= high)), "bounds"


Family = Callable[[Draw], GoalProblem]
FAMILIES: dict[str, Family] = {}


def family(name: str, **fixed: Any) -> Callable[[Any], Any]:
    """Register a function of a `Draw`, and of the arguments given here, as a family of problems."""

    def register(make: Any) -> Any:
        FAMILIES[name] = partial(make, **fixed)
        return make

    return register

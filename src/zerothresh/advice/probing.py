r"""Estimate rho_s^- and rho_s^+ of a black box from second differences along sparse directions.

.. math:: u'Hu \approx \big(f_i(\theta + hu) + f_i(\theta - hu) - 2 f_i(\theta)\big) / h^2

Probing is a method like any other: the engine makes its calls, counts them, and stops at the budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerothresh.api.arguments import dimension_of
from zerothresh.api.minimizer import minimize
from zerothresh.api.result import Result
from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.diagnosis import Diagnosis, diagnose
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.objective.forms import wrap
from zerothresh.theory.curvature import Constants, of_samples

LARGEST = 1e50  # of curvatures, so that the cube of the ratio of two of them is a number
_MIN_DIRECTIONS = 8  # with fewer, the variance of the curvatures is not reliable
_MAX_DIRECTIONS = 200  # with more, the estimate hardly improves
_DIAGNOSIS_CALLS = 100  # the largest number of calls of the diagnosis
_FURTHER_CALLS = 6  # per component: the two centres, and four points with the double step
# A kinked function looks less curved with the double step, by a factor of about 2; a smooth one changes little.
_KINK_BELOW, _KINK_ABOVE = 0.7, 2


class ProbeFailed(RuntimeError):
    """The function failed while it was probed; ``result`` is that of the failed run."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.message)
        self.result = result


@dataclass(frozen=True)
class Probe:
    """The result of `probe`."""

    constants: Constants  # rho_s^- of F, and rho_s^+ of the least smooth component
    whole: Constants  # both constants of F
    diagnosis: Diagnosis  # noise and natural length of the function
    start: float  # F at the start, as the mean of the sampled components
    components: int  # number of sampled components
    directions: int
    n: int
    d: int
    queries: int  # calls of f_i
    kink: bool = False  # whether the curvatures depend on the length of the step

    @property
    def trusted(self) -> bool:
        """Whether the function is smooth enough for its curvatures to be meaningful."""
        return not (self.diagnosis.rough or self.kink)


@dataclass(frozen=True)
class Probing(Program):
    """Measure curvatures along random s-sparse unit vectors, at the start and at a sparse point near it."""

    s: int
    found: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        left = int(context.left)
        most = left // (2 * 2 * _MIN_DIRECTIONS + _FURTHER_CALLS)  # components that the budget allows
        of = np.sort(context.rng.subset(context.n, max(1, min(context.n, most))))
        count = min(_MAX_DIRECTIONS, (left // of.size - _FURTHER_CALLS) // 2)
        h = diagnosis.curvature_step(context.d)
        rows: list[Array] = []
        for centre in (context.theta0, self._sparse(context, diagnosis.gradient_length(context.d))):
            u = self._directions(context, (count + 1) // 2 if not rows else count // 2)
            base = (yield from context.values([centre], of))[0]
            ahead = yield from context.values([*(centre + h * u)], of)
            back = yield from context.values([*(centre - h * u)], of)
            if not rows:
                self.found.update(start=float(base.mean()) * context.unit)
            rows.append((ahead + back - 2 * base) / h**2)
            if len(rows) == 1:  # compare with the curvatures for twice the step
                far = yield from context.values([*(centre + 2 * h * u[:2]), *(centre - 2 * h * u[:2])], of)
                wide = float(np.abs((far[:2] + far[2:] - 2 * base) / (4 * h**2)).sum())
                size = float(np.abs(rows[0][:2]).sum())
                self.found.update(kink=wide < _KINK_BELOW * size or wide > _KINK_ABOVE * size)
        self.found.update(
            diagnosis=diagnosis, curvatures=np.concatenate(rows).T * context.unit, components=int(of.size)
        )

    def _directions(self, context: Context, count: int) -> Array:
        """Random s-sparse unit vectors, one per row."""
        out = np.zeros((count, context.d))
        for row in out:
            row[context.rng.subset(context.d, self.s)] = context.rng.normal(self.s)
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True))

    def _sparse(self, context: Context, length: float) -> Array:
        """A point at the given distance from the start, with k changed coordinates."""
        support = context.rng.subset(context.d, context.k)
        step = context.rng.normal(context.k)
        out = context.theta0.copy()
        out[support] += length * step / np.linalg.norm(step)
        return out


def probe(
    fun: Any,
    x0: Any,
    k: int,
    *,
    k_star: int,
    budget: int,
    n: int | None = None,
    seed: int | None = None,
    vectorized: bool = False,
) -> Probe:
    r"""Estimate rho_s^- and rho_s^+ of a function at s = 2k + k* (at most d) from its values.

    A direction takes 2n calls. If the budget does not allow 8 directions, a random subset of the components is used.
    The intervals of the result cover two standard errors of the sampled directions. They do not cover the errors of
    sampling supports and components.

    Arguments
    ---------
    fun, x0, k, n, vectorized: as in `zt.minimize`.
    k_star: int. Number of non-zeros of the solution.
    budget: int, at least 122. Largest number of calls of f_i.
    seed: int or None, default None. Seed of the random directions.

    Returns `Probe`. It raises `ProbeFailed` if the function fails.

    >>> quadratic = lambda x: 2 * (x**2).sum()
    >>> found = probe(quadratic, 20, 3, k_star=1, budget=300, seed=0)
    >>> round(found.constants.rho_minus, 3), round(found.constants.rho_plus, 3), found.queries <= 300
    (4.0, 4.0, True)
    """
    objective = wrap(fun, dimension_of(x0), n, vectorized)
    least = _DIAGNOSIS_CALLS + 2 * _MIN_DIRECTIONS + _FURTHER_CALLS
    if check.count("probe", budget, what=" (calls for probing)") < least:
        raise ValueError(
            f"probing takes at least {least} calls (a diagnosis of the function and {_MIN_DIRECTIONS} directions), "
            f"but probe = {budget}: raise it"
        )
    method = Probing(s=min(objective.d, 2 * check.count("k", k) + check.count("k_star", k_star)))
    result = minimize(
        fun,
        x0,
        k,
        budget=budget,
        n=n,
        method=method,
        seed=seed,
        vectorized=vectorized,
        monitor=lambda x: 0.0,  # F at the end is not needed, and this way no calls are reserved for it
        progress=False,
    )
    if not result.success or "curvatures" not in method.found:
        raise ProbeFailed(result)
    table: Array = method.found["curvatures"]
    if not (np.abs(table) <= LARGEST).all():
        raise ValueError(
            f"the function is too curved to compute with: its second differences reach {np.abs(table).max():.3g}; "
            f"scale it so that they are at most {LARGEST:g}"
        )
    return Probe(
        constants=of_samples(table, s=method.s, queries=result.nfev),
        whole=of_samples(table.mean(axis=0), s=method.s, queries=result.nfev),
        diagnosis=method.found["diagnosis"],
        start=method.found["start"],
        components=method.found["components"],
        directions=table.shape[1],
        n=objective.n,
        d=objective.d,
        queries=result.nfev,
        kink=method.found["kink"],
    )

r"""rho_s^- and rho_s^+ of a black box, from second differences along sparse directions; every call is charged.

.. math:: u'Hu \approx \big(f_i(\theta + hu) + f_i(\theta - hu) - 2 f_i(\theta)\big) / h^2

The probing is a method like any other: the engine makes its calls, counts them, and stops at the budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerothresh.api.minimizer import minimize
from zerothresh.api.result import Result
from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.diagnosis import Diagnosis, diagnose
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.theory.curvature import Constants, of_samples

LEAST, MOST = 8, 200  # directions
_LOOK = 100  # calls that the first look may cost


class ProbeFailed(RuntimeError):
    """The function failed while it was probed; ``result`` tells how."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.message)
        self.result = result


@dataclass(frozen=True)
class Probe:
    """What probing found."""

    constants: Constants  # rho_s^- of F, rho_s^+ of the roughest component
    whole: Constants  # both of F
    look: Diagnosis
    start: float  # F at the start, of the components that were seen
    components: int  # how many of the n were seen
    directions: int
    n: int
    d: int
    queries: int
    kink: bool = False  # curvatures depend on the length of the step

    @property
    def trusted(self) -> bool:
        """Whether the function is smooth enough to have curvatures."""
        return not (self.look.rough or self.kink)


@dataclass(frozen=True)
class Probing(Program):
    """Curvatures along random s-sparse unit vectors, at the start and at a sparse point about as far as a step."""

    s: int
    found: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def search(self, context: Context) -> Asks:
        seen = yield from diagnose(context)
        left = int(context.left)
        of = np.sort(context.rng.subset(context.n, max(1, min(context.n, left // (2 * 2 * LEAST + 6)))))
        count = min(MOST, (left // of.size - 6) // 2)
        h = seen.curvature_step(context.d)
        rows: list[Array] = []
        for centre in (context.theta0, self._sparse(context, seen.gradient_length(context.d))):
            u = self._directions(context, (count + 1) // 2 if not rows else count // 2)
            base = (yield from context.values([centre], of))[0]
            ahead = yield from context.values([*(centre + h * u)], of)
            back = yield from context.values([*(centre - h * u)], of)
            if not rows:
                self.found.update(start=float(base.mean()) * context.unit)
            rows.append((ahead + back - 2 * base) / h**2)
            if len(rows) == 1:  # the same with twice the step: half as much is a kink
                far = yield from context.values([*(centre + 2 * h * u[:2]), *(centre - 2 * h * u[:2])], of)
                wide = (far[:2] + far[2:] - 2 * base) / (4 * h**2)
                size = float(np.abs(rows[0][:2]).sum())
                self.found.update(kink=bool(np.abs(wide).sum() < 0.7 * size or np.abs(wide).sum() > 2 * size))
        self.found.update(look=seen, curvatures=np.concatenate(rows).T * context.unit, components=int(of.size))

    def _directions(self, context: Context, count: int) -> Array:
        out = np.zeros((count, context.d))
        for row in out:
            row[context.rng.subset(context.d, self.s)] = context.rng.normal(self.s)
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True))

    def _sparse(self, context: Context, length: float) -> Array:
        """A point as sparse as the constraint asks for, that far from the start."""
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
    r"""Estimate rho_s^- and rho_s^+ at s = 2k + k* (at most d) with at most ``budget`` calls of f_i.

    With n components, 2n calls a direction; where the budget does not allow for 8 directions, a random
    part of the components is seen. The intervals hold two standard errors of the sampled directions;
    that supports and components are sampled too, they do not show.

    >>> quadratic = lambda x: 2 * (x**2).sum()
    >>> found = probe(quadratic, 20, 3, k_star=1, budget=300, seed=0)
    >>> round(found.constants.rho_minus, 3), round(found.constants.rho_plus, 3), found.queries <= 300
    (4.0, 4.0, True)
    """
    from zerothresh.api.arguments import dimension_of
    from zerothresh.objective.forms import wrap

    objective = wrap(fun, dimension_of(x0), n, vectorized)
    d, components = objective.d, objective.n
    least = _LOOK + 2 * LEAST + 6
    if check.count("budget", budget) < least:
        raise ValueError(
            f"probing takes at least {least} calls (a look, and {LEAST} directions): "
            f"{budget} are too few, raise the budget for probing"
        )
    method = Probing(s=min(d, 2 * check.count("k", k) + check.count("k_star", k_star)))
    result = minimize(
        fun,
        x0,
        k,
        budget=budget,
        n=n,
        method=method,
        seed=seed,
        vectorized=vectorized,
        monitor=lambda x: 0.0,  # F at the end is not wanted, and its n calls are not kept for it
        progress=False,
    )
    if not result.success or "curvatures" not in method.found:
        raise ProbeFailed(result)
    table: Array = method.found["curvatures"]
    return Probe(
        of_samples(table, s=method.s, queries=result.nfev),
        of_samples(table.mean(axis=0), s=method.s, queries=result.nfev),
        method.found["look"],
        method.found["start"],
        method.found["components"],
        table.shape[1],
        components,
        d,
        result.nfev,
        method.found["kink"],
    )

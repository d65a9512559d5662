"""The problems that every method has to cope with, and copies of them that a lazy solver fails on."""

from __future__ import annotations

import inspect

import numpy as np

import zerothresh as zt
from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.registry import family_of, make, needs_outputs

# The methods of other authors.
BY_OTHERS = [name for name, method in zt.methods.available().items() if family_of(method) in ("literature", "external")]
# The methods that need nothing but values; the others need the residuals of each call.
OF_VALUES = [name for name, method in zt.methods.available().items() if not needs_outputs(method)]
SMALL = {
    "eta": 0.02,
    "m": 4,
    "batch": 1,
    "p": 2,
    "size": 4.0,
    "radius": 10.0,
    "rho_minus": 1.0,
    "rho_plus": 1.0,
    "q": 4,
}


def instance(name: str, **options: object) -> zt.Method:
    """A method with small settings, whatever hyper-parameters it has."""
    parameters = inspect.signature(zt.methods.available()[name]).parameters
    wanted = {key: value for key, value in {**SMALL, **options}.items() if key in parameters}
    if "batch" in wanted and parameters["batch"].default is None:
        del wanted["batch"]  # it wants all components
    return make(name, wanted)


class Absolute:
    """Least absolute deviation: not smooth."""

    def __init__(self, seed: int = 0, n: int = 12, d: int = 6) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.d = n, d
        self.X = rng.standard_normal((n, d))
        self.y = self.X[:, 1] * 2 - self.X[:, 4]

    def values(self, points: Array, components: Indices) -> Array:
        return np.abs((points * self.X[components]).sum(axis=1) - self.y[components])

    def F(self, x: Array) -> float:
        return float(np.abs(self.X @ x - self.y).mean())


class Translated:
    """f(x - shift), the shift on the first two coordinates, so that the solution moves with it."""

    def __init__(self, problem: zt.Problem, shift: float) -> None:
        self.problem, self.n, self.d = problem, problem.n, problem.d
        self.shift = np.zeros(self.d)
        self.shift[:2] = shift

    def values(self, points: Array, components: Indices) -> Array:
        return self.problem.values(points - self.shift, components)

    def F(self, x: Array) -> float:
        return self.problem.F(x - self.shift)


class Permuted:
    """f with its coordinates in another order."""

    def __init__(self, problem: zt.Problem, seed: int = 5) -> None:
        self.problem, self.n, self.d = problem, problem.n, problem.d
        self.order = np.random.default_rng(seed).permutation(self.d)

    def values(self, points: Array, components: Indices) -> Array:
        return self.problem.values(np.ascontiguousarray(points[:, self.order]), components)

    def F(self, x: Array) -> float:
        return self.problem.F(x[self.order])


def zoo() -> dict[str, zt.Problem]:
    """Small problems by name; k = 3 fits all."""
    ridge = zt.problems.ridge(seed=0)
    quadratic = zt.problems.quadratic(d=8, k_true=2, n=6, condition=4, spread=0.3, seed=1)
    return {
        "ridge": ridge,
        "quadratic": quadratic,
        "logistic": zt.problems.logistic(n=9, d=7, seed=2),
        "non-smooth": Absolute(),
        "one component": zt.problems.quadratic(d=6, k_true=2, n=1, condition=3, seed=3),
        "translated": Translated(quadratic, 3.0),
        "permuted": Permuted(ridge),
    }

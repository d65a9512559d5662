"""The test problems of `queries.py`, made from a name and a seed.

    from suite import NAMES, make
    problem = make("ridge-3", seed=0)   # d, n, values(points, components); k, budget, x0, F, F_star, ...

Synthetic data vary with the seed. Real data do not; only their runs do. A noisy problem uses the j-th number of its own
random stream for its j-th call, so make a fresh instance for each run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from objectives import (
    Absolute,
    Array,
    Attack,
    Auc,
    Hinge,
    Indices,
    Linear,
    Logistic,
    Minibatch,
    Net,
    Poisson,
    Portfolio,
    Quadratics,
    Squared,
    TwoScores,
)
from optima import mark, optimum

import zerothresh as zt
from zerothresh.problems.ridge_regression import standardise


@dataclass
class Instance:
    """A problem object for `zt.minimize`, together with what the benchmark has to know about it."""

    name: str
    seed: int
    objective: Any
    k: int
    budget: int
    structure: bool = False  # f_i = l_i(v_i . theta) + lam/2 |theta|^2
    deviation: float = 0.0  # standard deviation of the normal noise in each value, as a share of F(x0)
    outliers: float = 0.0  # the share of values that are replaced by 100 F(x0) times a uniform number
    calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.d, self.n = self.objective.d, self.objective.n
        self.x0: Array = np.zeros(self.d)
        self.F: Callable[[Array], float] = self.objective.F
        self.F_start = self.F(self.x0)
        self._noise = np.random.default_rng([self.seed, 1])
        self._chance = np.random.default_rng([self.seed, 2])

    @property
    def noisy(self) -> bool:
        """Whether two calls at the same point may return different values."""
        return bool(self.deviation or self.outliers or isinstance(self.objective, Minibatch))

    def values(self, points: Array, components: Indices) -> Array:
        """Return f_i(x) for each row x of points, each with fresh noise."""
        self.calls += len(points)
        if isinstance(self.objective, Minibatch):
            return self.objective.draw(points, self._noise)
        values = self.objective.values(points, components)
        if self.deviation:
            values = values + self.deviation * self.F_start * self._noise.standard_normal(len(points))
        if self.outliers:
            chance = self._chance.random((len(points), 2))
            values = np.where(chance[:, 0] < self.outliers, 100 * self.F_start * chance[:, 1], values)
        return values

    @cached_property
    def _best(self) -> tuple[Array, float]:
        return optimum(self.name, self.objective, self.k)

    @property
    def x_star(self) -> Array:
        """The best known k-sparse point."""
        return self._best[0]

    @property
    def F_star(self) -> float:
        """F at the best known k-sparse point."""
        return self._best[1]

    def target(self, tolerance: float) -> float:
        """Return the value of F that has to be reached."""
        return self.F_star + tolerance * (self.F_start - self.F_star)

    def __repr__(self) -> str:
        return f"<{self.name}, seed {self.seed}: n = {self.n}, d = {self.d}, k = {self.k}>"


def _sparse(rng: np.random.Generator, d: int, k: int, low: float, high: float) -> Array:
    """Return a k-sparse vector whose entries have sizes between low and high, and random signs."""
    x = np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k) * rng.uniform(low, high, k)
    return x


def _ridge(seed: int) -> Linear:
    data = zt.problems.ridge(n=10, d=5, lam=0.5, seed=seed)
    return Linear(data.X, data.y, Squared(), data.lam)


def _table(X: Array, y: Array) -> Linear:
    """Return ridge regression by the paper's protocol: columns standardised, y unchanged."""
    return Linear(standardise(X), y, Squared(), 0.5)


def _bodyfat(seed: int) -> Linear:
    return _table(*zt.datasets.load_bodyfat(return_X_y=True))


def _autoprice(seed: int) -> Linear:
    return _table(*zt.datasets.load_autoprice(return_X_y=True))


def _diabetes(seed: int) -> Linear:
    from sklearn.datasets import load_diabetes

    return _table(*load_diabetes(return_X_y=True))


def _least_squares(seed: int, n: int = 200, d: int = 500) -> Linear:
    rng = np.random.default_rng(seed)
    X, truth = rng.standard_normal((n, d)), np.zeros(d)
    truth[rng.choice(d, 10, replace=False)] = rng.standard_normal(10)
    objective = Linear(X, X @ truth, Squared())
    objective.known = truth
    return objective


def _logistic(seed: int, n: int = 100, d: int = 100, k: int = 10) -> Linear:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X @ _sparse(rng, d, k, 1.0, 2.0)
    return Linear(X, np.where(rng.random(n) < 1 / (1 + np.exp(-z)), 1.0, -1.0), Logistic(), 1e-2)


def _poisson(seed: int, n: int = 100, d: int = 50) -> Linear:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Linear(X, rng.poisson(np.exp(X @ _sparse(rng, d, 5, 0.3, 0.6))).astype(float), Poisson(), 1e-2)


def _absolute(seed: int, n: int = 100, d: int = 30) -> Linear:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return Linear(X, X @ _sparse(rng, d, 5, 1.0, 2.0) + rng.laplace(0, 0.3, n), Absolute())


def _hinge(seed: int, n: int = 100, d: int = 30) -> Linear:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X @ _sparse(rng, d, 5, 1.0, 2.0) + 0.5 * rng.standard_normal(n)
    return Linear(X, np.where(z > 0, 1.0, -1.0), Hinge(), 1e-2)


def _quadratic(seed: int, condition: float) -> Quadratics:
    data = zt.problems.quadratic(d=50, k_true=5, condition=condition, seed=seed)
    return Quadratics(data.A[None], data.centres, known=data.centres[0])


def _quadratics(seed: int, n: int = 10, d: int = 30) -> Quadratics:
    rng = np.random.default_rng(seed)
    bases = np.linalg.qr(rng.standard_normal((n, d, d)))[0]
    matrices = np.einsum("nij,j,nkj->nik", bases, np.geomspace(0.1, 1.0, d), bases)
    return Quadratics(matrices, _sparse(rng, d, 5, 1.0, 2.0) + 0.3 * rng.standard_normal((n, d)))


def _two_scores(seed: int, n: int = 100, d: int = 60) -> TwoScores:
    rng = np.random.default_rng(seed)
    X, V = rng.standard_normal((2, n, d))
    return TwoScores(X, V, _sparse(rng, d, 4, 0.4, 0.7))


def _auc(seed: int, half: int = 60, d: int = 20) -> Auc:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * half, d))
    order = np.argsort(X @ _sparse(rng, d, 4, 0.5, 1.5) + rng.standard_normal(2 * half))
    return Auc(X[order[half:]], X[order[:half]])


def _net(seed: int, n: int = 50, inputs: int = 8, hidden: int = 5) -> Net:
    rng = np.random.default_rng(seed)
    out = rng.choice([-1.0, 1.0], hidden) * rng.uniform(0.5, 1.5, hidden)
    teacher = _sparse(rng, inputs * hidden, 4, 0.8, 1.6)
    return Net(rng.standard_normal((n, inputs)), rng.uniform(-1, 1, hidden), out, teacher)


def _portfolio(seed: int, n: int = 60, d: int = 40) -> Portfolio:
    rng = np.random.default_rng(seed)
    market, sectors = rng.standard_normal((n, 1)), rng.standard_normal((n, 4))
    own = rng.standard_normal((n, d)) * rng.uniform(0.3, 1.0, d)
    returns = rng.uniform(0.0, 0.3, d) + 0.5 * market + 0.3 * sectors @ rng.standard_normal((4, d)) + own
    return Portfolio(returns, aversion=1.0, var=0.5, width=0.1, tail=1.0, total=1.0)


def _attack(seed: int, n: int = 10) -> Attack:
    images, labels = _digits()
    layers = _trained()
    W, b, V, c = layers
    right = (np.tanh(images @ W + b) @ V + c).argmax(axis=1) == labels
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.flatnonzero(right & (labels == seed % 10)), n, replace=False)
    return Attack(images[chosen], labels[chosen], layers, kappa=0.0)


@lru_cache(1)
def _digits() -> tuple[Array, Indices]:
    """Return 8 x 8 digits in [0, 1]; without scikit-learn, noisy copies of ten smooth random pictures."""
    if find_spec("sklearn"):
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        return images / 16, labels.astype(np.int64)
    rng = np.random.default_rng(0)
    rough = rng.standard_normal((10, 4, 4)).repeat(2, axis=1).repeat(2, axis=2).reshape(10, 64)
    labels = np.arange(1500) % 10
    noise = 0.3 * rng.standard_normal((1500, 64))
    return np.clip(0.5 + 0.3 * rough[labels] + noise, 0.0, 1.0), labels


@lru_cache(1)
def _trained(hidden: int = 32, steps: int = 300) -> tuple[Array, Array, Array, Array]:
    """Train a net for the digits by Adam, with a fifth of the pixels replaced at random so that it becomes robust."""
    images, labels = _digits()
    rng = np.random.default_rng(0)
    layers = [0.2 * rng.standard_normal((64, hidden)), np.zeros(hidden)]
    layers += [0.2 * rng.standard_normal((hidden, 10)), np.zeros(10)]
    first, second = [np.zeros_like(p) for p in layers], [np.zeros_like(p) for p in layers]
    for step in range(1, steps + 1):
        W, b, V, c = layers
        seen = np.where(rng.random(images.shape) < 0.2, rng.random(images.shape).round(), images)
        active = np.tanh(seen @ W + b)
        logits = active @ V + c
        chance = np.exp(logits - logits.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        chance[np.arange(len(labels)), labels] -= 1
        chance /= len(labels)
        back = chance @ V.T * (1 - active**2)
        slopes = [seen.T @ back, back.sum(axis=0), active.T @ chance, chance.sum(axis=0)]
        for p, g, m, v in zip(layers, slopes, first, second, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= 0.03 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return layers[0], layers[1], layers[2], layers[3]


@dataclass(frozen=True)
class Recipe:
    """How to make a problem."""

    objective: Callable[[int], Any]
    k: int
    budget: int
    structure: bool = False
    noise: dict[str, float] = field(default_factory=dict)
    needs: str = ""  # a package that must be installed
    fixed: bool = False  # whether the data are the same for all seeds


RECIPES: dict[str, Recipe] = {
    "ridge-2": Recipe(_ridge, 2, 80_000, True),
    "ridge-3": Recipe(_ridge, 3, 80_000, True),
    "ridge-4": Recipe(_ridge, 4, 80_000, True),
    "bodyfat": Recipe(_bodyfat, 5, 200_000, True, fixed=True),
    "autoprice": Recipe(_autoprice, 5, 200_000, True, fixed=True),
    "diabetes": Recipe(_diabetes, 5, 200_000, True, needs="sklearn", fixed=True),
    "least-squares": Recipe(_least_squares, 20, 200_000, True),
    "logistic": Recipe(_logistic, 10, 200_000, True),
    "poisson": Recipe(_poisson, 5, 200_000, True),
    "absolute": Recipe(_absolute, 5, 100_000, True),
    "hinge": Recipe(_hinge, 5, 100_000, True),
    "quadratic-1": Recipe(lambda seed: _quadratic(seed, 1.0), 5, 50_000),
    "quadratic-10": Recipe(lambda seed: _quadratic(seed, 10.0), 5, 50_000),
    "quadratic-100": Recipe(lambda seed: _quadratic(seed, 100.0), 5, 50_000),
    "quadratics": Recipe(_quadratics, 5, 100_000),
    "two-scores": Recipe(_two_scores, 4, 100_000),
    "auc": Recipe(_auc, 4, 20_000),
    "net": Recipe(_net, 8, 100_000),
    "portfolio": Recipe(_portfolio, 6, 100_000),
    "attack": Recipe(_attack, 8, 3_000),
    "ridge-3-noise": Recipe(_ridge, 3, 80_000, True, {"deviation": 1e-3}),
    "quadratic-10-noise": Recipe(lambda seed: _quadratic(seed, 10.0), 5, 50_000, False, {"deviation": 1e-3}),
    "quadratic-10-outliers": Recipe(lambda seed: _quadratic(seed, 10.0), 5, 50_000, False, {"outliers": 0.01}),
    "logistic-batch": Recipe(lambda seed: Minibatch(_logistic(seed, n=200, d=30, k=5), 64), 5, 50_000),
}
MISSING = [name for name, recipe in RECIPES.items() if recipe.needs and find_spec(recipe.needs) is None]
NAMES = [name for name in RECIPES if name not in MISSING]


@lru_cache(512)
def _objective(name: str, seed: int) -> Any:
    return RECIPES[name].objective(seed)


def make(name: str, seed: int = 0) -> Instance:
    """Make a fresh instance; its data are made once per process."""
    recipe = RECIPES[name]
    objective = _objective(name, 0 if recipe.fixed else seed)
    return Instance(name, seed, objective, recipe.k, recipe.budget, recipe.structure, **recipe.noise)


@lru_cache(64)
def full_name(name: str) -> str:
    """Return a file name that is unique to the data, k, budget and noise of a problem."""
    recipe = RECIPES[name]
    return f"{name}-{mark(make(name).objective, recipe.k, recipe.budget, recipe.noise)}"

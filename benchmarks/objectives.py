"""The objectives of the test problems: the values of the components, in the form of `zt.Problem`, and the exact F.

If they are available, ``local`` returns the gradient and the Hessian of F. Only the offline search for F* and the
choice of learning rates for the paper's methods use them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.problems.common import scores, squares
from zerothresh.sampling.jit import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Squared:
    """(z - y)^2."""

    def value(self, z: Array, y: Array) -> Array:
        return (z - y) ** 2

    def derivatives(self, z: Array, y: Array) -> tuple[Array, Array]:
        return 2 * (z - y), np.full_like(z, 2.0)


class Logistic:
    """log(1 + exp(-y z)), y in {-1, 1}."""

    def value(self, z: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * z)

    def derivatives(self, z: Array, y: Array) -> tuple[Array, Array]:
        chance = np.exp(-np.logaddexp(0.0, y * z))
        return -y * chance, chance * (1 - chance)


class Poisson:
    """exp(z) - y z, where exp is continued by its tangent beyond z = 20 so that it stays finite."""

    top = 20.0

    def value(self, z: Array, y: Array) -> Array:
        return np.exp(np.minimum(z, self.top)) * (1 + np.maximum(z - self.top, 0.0)) - y * z

    def derivatives(self, z: Array, y: Array) -> tuple[Array, Array]:
        rate = np.exp(np.minimum(z, self.top))
        return rate - y, np.where(z < self.top, rate, 0.0)


class Absolute:
    """|z - y|; with delta > 0, for the offline search, sqrt((z - y)^2 + delta^2)."""

    delta = 0.0

    def value(self, z: Array, y: Array) -> Array:
        return np.abs(z - y) if self.delta == 0 else np.hypot(z - y, self.delta)

    def derivatives(self, z: Array, y: Array) -> tuple[Array, Array]:
        length = np.maximum(np.hypot(z - y, self.delta), 1e-300)
        return (z - y) / length, self.delta**2 / length**3


class Hinge:
    """max(0, 1 - y z); with delta > 0, for the offline search, (m + sqrt(m^2 + delta^2)) / 2, where m = 1 - y z."""

    delta = 0.0

    def value(self, z: Array, y: Array) -> Array:
        m = 1 - y * z
        return np.maximum(m, 0.0) if self.delta == 0 else 0.5 * (m + np.hypot(m, self.delta))

    def derivatives(self, z: Array, y: Array) -> tuple[Array, Array]:
        m = 1 - y * z
        length = np.maximum(np.hypot(m, self.delta), 1e-300)
        return -0.5 * y * (1 + m / length), 0.5 * self.delta**2 / length**3


class Linear:
    """Losses of a linear score: f_i = l(x_i . theta, y_i) + lam/2 |theta|^2."""

    def __init__(self, X: Array, y: Array, loss: Any, lam: float = 0.0) -> None:
        self.X, self.y, self.loss, self.lam = np.ascontiguousarray(X), np.ascontiguousarray(y), loss, lam
        self.n, self.d = self.X.shape

    def values(self, points: Array, components: Indices) -> Array:
        z, norm = np.empty(len(points)), np.empty(len(points))
        scores(points, self.X, components, z)
        squares(points, norm)
        return self.loss.value(z, self.y[components]) + (0.5 * self.lam) * norm

    def F(self, x: Array) -> float:
        return float(self.loss.value(self.X @ x, self.y).mean() + 0.5 * self.lam * (x @ x))

    def local(self, x: Array) -> tuple[Array, Array]:
        slope, curve = self.loss.derivatives(self.X @ x, self.y)
        gradient = self.X.T @ slope / self.n + self.lam * x
        return gradient, (self.X * curve[:, None]).T @ self.X / self.n + self.lam * np.eye(self.d)


class Minibatch:
    """A single noisy component: each call returns the mean of ``size`` random components of another objective."""

    n = 1

    def __init__(self, whole: Linear, size: int) -> None:
        self.whole, self.size, self.d = whole, size, whole.d
        self.F, self.local = whole.F, whole.local

    def draw(self, points: Array, rng: np.random.Generator) -> Array:
        """Return one value per point, each from a fresh batch."""
        chosen = (rng.random((len(points), self.size)) * self.whole.n).astype(np.int64)
        many = self.whole.values(np.repeat(points, self.size, axis=0), chosen.ravel())
        return many.reshape(chosen.shape).mean(axis=1)


@kernel
def forms(points: Any, matrices: Any, centres: Any, components: Any, out: Any) -> None:
    """Set out_b = (x_b - c)' A (x_b - c) / 2, with A and c of the component in row b."""
    d = points.shape[1]
    for b in range(points.shape[0]):
        A, c = matrices[components[b]], centres[components[b]]
        total = 0.0
        for i in range(d):
            row = 0.0
            for j in range(d):
                row += A[i, j] * (points[b, j] - c[j])
            total += row * (points[b, i] - c[i])
        out[b] = 0.5 * total


class Quadratics:
    """f_i = (theta - c_i)' A_i (theta - c_i) / 2, where each component has its own A_i."""

    def __init__(self, matrices: Array, centres: Array, known: Array | None = None) -> None:
        self.matrices, self.centres = np.ascontiguousarray(matrices), np.ascontiguousarray(centres)
        self.n, self.d = self.centres.shape
        self.known = known
        self._H = self.matrices.mean(axis=0)
        self._b = np.einsum("nij,nj->i", self.matrices, self.centres) / self.n
        self._constant = 0.5 * np.einsum("ni,nij,nj->", self.centres, self.matrices, self.centres) / self.n

    def values(self, points: Array, components: Indices) -> Array:
        out = np.empty(len(points))
        forms(points, self.matrices, self.centres, components, out)
        return out

    def F(self, x: Array) -> float:
        if self.n == 1:  # no cancellation near the optimum
            offset = x - self.centres[0]
            return float(0.5 * offset @ self._H @ offset)
        return float(x @ (0.5 * self._H @ x - self._b) + self._constant)

    def local(self, x: Array) -> tuple[Array, Array]:
        return self._H @ x - self._b, self._H


class TwoScores:
    """f_i = (tanh(z) + sin(w)/2 + z w/5 - y_i)^2 of two scores z = x_i . theta and w = v_i . theta."""

    def __init__(self, X: Array, V: Array, truth: Array) -> None:
        self.X, self.V, self.known = np.ascontiguousarray(X), np.ascontiguousarray(V), truth
        self.n, self.d = X.shape
        self.y = self._response(X @ truth, V @ truth)

    @staticmethod
    def _response(z: Array, w: Array) -> Array:
        return np.tanh(z) + 0.5 * np.sin(w) + 0.2 * z * w

    def values(self, points: Array, components: Indices) -> Array:
        z, w = np.empty(len(points)), np.empty(len(points))
        scores(points, self.X, components, z)
        scores(points, self.V, components, w)
        return (self._response(z, w) - self.y[components]) ** 2

    def F(self, x: Array) -> float:
        return float(((self._response(self.X @ x, self.V @ x) - self.y) ** 2).mean())


@kernel
def misordered(positive: Any, negative: Any) -> float:
    """Return the share of pairs in which the negative has the larger score; a tie counts as 1/2."""
    count = 0.0
    for a in positive:
        for b in negative:
            if b > a:
                count += 1.0
            elif b == a:
                count += 0.5
    return count / (positive.size * negative.size)


class Auc:
    """1 - AUC of a linear score: piecewise constant, and the length of theta does not matter."""

    n = 1

    def __init__(self, positive: Array, negative: Array) -> None:
        self.positive, self.negative = np.ascontiguousarray(positive), np.ascontiguousarray(negative)
        self.d = positive.shape[1]

    def values(self, points: Array, components: Indices) -> Array:
        return np.array([self.F(point) for point in points])

    def F(self, x: Array) -> float:
        return misordered(self.positive @ x, self.negative @ x)


class Net:
    """A tanh net with one hidden layer. The unknowns are its first-layer weights, and a teacher gives the targets."""

    def __init__(self, X: Array, bias: Array, out: Array, teacher: Array) -> None:
        self.X, self.bias, self.out, self.known = X, bias, out, teacher
        self.n, self.d = len(X), teacher.size
        self.shape = (len(bias), X.shape[1])
        self.y = self._answer(teacher[None], np.zeros(self.n, np.int64), X)

    def _answer(self, points: Array, rows: Indices, X: Array) -> Array:
        weights = points.reshape(-1, *self.shape)[rows]
        return np.tanh(np.einsum("bhi,bi->bh", weights, X) + self.bias) @ self.out

    def values(self, points: Array, components: Indices) -> Array:
        return (self._answer(points, np.arange(len(points)), self.X[components]) - self.y[components]) ** 2

    def F(self, x: Array) -> float:
        answer = np.tanh(self.X @ x.reshape(self.shape).T + self.bias) @ self.out
        return float(((answer - self.y) ** 2).mean())


class Portfolio:
    """Portfolio weights w in scenario s: -r.w + a/2 (r.w - m.w)^2 + tail(-r.w) + b/2 (1.w - 1)^2, m the mean of all r.

    The tail is a softplus beyond a loss of ``var``. A component depends on three scores, not on a single direction.
    """

    def __init__(self, returns: Array, aversion: float, var: float, width: float, tail: float, total: float) -> None:
        self.R, self.mean = np.ascontiguousarray(returns), returns.mean(axis=0)
        self.n, self.d = returns.shape
        self.aversion, self.var, self.width, self.tail, self.total = aversion, var, width, tail, total

    def _values(self, z: Array, m: Array, total: Array) -> Array:
        excess = self.tail * self.width * np.logaddexp(0.0, (-z - self.var) / self.width)
        return -z + 0.5 * self.aversion * (z - m) ** 2 + excess + 0.5 * self.total * (total - 1) ** 2

    def values(self, points: Array, components: Indices) -> Array:
        z = np.empty(len(points))
        scores(points, self.R, components, z)
        return self._values(z, points @ self.mean, points.sum(axis=1))

    def F(self, x: Array) -> float:
        return float(self._values(self.R @ x, self.mean @ x, x.sum()).mean())

    def local(self, x: Array) -> tuple[Array, Array]:
        z = self.R @ x
        chance = np.exp(-np.logaddexp(0.0, (z + self.var) / self.width))
        centred = self.R - self.mean
        gradient = self.R.T @ (-1 - self.tail * chance) / self.n + self.aversion * centred.T @ (centred @ x) / self.n
        curve = self.tail * chance * (1 - chance) / self.width
        hessian = (self.R.T * curve) @ self.R / self.n + self.aversion * centred.T @ centred / self.n
        return gradient + self.total * (x.sum() - 1), hessian + self.total


class Attack:
    """One sparse change of all images that should make a net misread them: f_i = max(margin, -kappa) of image i."""

    def __init__(self, images: Array, labels: Indices, layers: tuple[Array, Array, Array, Array], kappa: float) -> None:
        self.images, self.labels, self.kappa = images, labels, kappa
        self.W, self.b, self.V, self.c = layers
        self.n, self.d = images.shape

    def values(self, points: Array, components: Indices) -> Array:
        seen = np.clip(self.images[components] + points, 0.0, 1.0)
        logits = np.tanh(seen @ self.W + self.b) @ self.V + self.c
        rows = np.arange(len(points))
        right = logits[rows, self.labels[components]]
        logits[rows, self.labels[components]] = -np.inf
        return np.maximum(right - logits.max(axis=1), -self.kappa)

    def F(self, x: Array) -> float:
        return float(self.many(x[None])[0])

    def many(self, points: Array) -> Array:
        """Return F of each row."""
        rows = np.repeat(points, self.n, axis=0)
        values = self.values(rows, np.tile(np.arange(self.n), len(points)))
        return values.reshape(len(points), self.n).mean(axis=1)

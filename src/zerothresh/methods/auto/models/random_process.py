"""A Gaussian process for random values, and what one more value would be worth: the knowledge gradient.

F is taken for the sum of a smooth process and of ripples: what changes from point to point, but not from call to call.
Noise is what a further call at the same point changes. So a value that is low by chance is told from a ripple by asking
again, and both are told from the smooth part by their neighbours.

Reference: Frazier, Powell and Dayanik, *The knowledge-gradient policy for correlated normal beliefs*, 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.gaussian_process import Form, correlation
from zerothresh.methods.auto.models.value_warp import Warp, transform
from zerothresh.methods.auto.settings.active_subset_settings import GAUSSIAN_PROCESS as PRIOR
from zerothresh.methods.auto.settings.active_subset_settings import RANDOM_PROCESS as SET

UNASKED = -1  # the number of a point where no value is known
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(SET.nodes)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def random_forms(p: int) -> list[Form]:
    """Return the forms to try."""
    kernels = ["gauss", "matern", "bowl"] + (["sum"] if p > 1 else [])
    return [(warped, kernel) for warped in (False, True) for kernel in kernels]


@dataclass(frozen=True)
class RandomProcess:
    """The posterior of F from values with noise, with a length per coordinate.

    Attributes
    ----------
    X: array of shape (points, p), where values are known.
    form: whether values are warped by a logarithm, and the kernel; a "bowl" is a sum of parabolas.
    parameters: the logarithms of p lengths, of the amplitude and of the ripples.
    t: array (points,), the values after warping and standardisation; known: the variance of the noise in each.
    factor: the Cholesky factor of the covariance, and ``weights`` its solution with t.
    evidence: float, the log posterior density of the parameters and the values.
    warp: how values are transformed.
    """

    X: Array
    form: Form
    parameters: Array
    t: Array
    known: Array
    factor: Array
    weights: Array
    evidence: float
    warp: Warp

    @property
    def lengths(self) -> Array:
        """The length of each coordinate, over which F changes."""
        return np.exp(self.parameters[:-2])

    @property
    def is_bowl(self) -> bool:
        """Whether F is a sum of parabolas, up to ripples and noise."""
        return self.form == (False, "bowl")

    @property
    def ripples(self) -> float:
        """The variance of the ripples."""
        return math.exp(2 * float(self.parameters[-1]))

    def mean(self, Z: Array) -> Array:
        """Return the mean of the smooth part at points (points, p)."""
        return np.asarray(_covariance(self.form[1], self.parameters, Z, self.X) @ self.weights)

    def posterior(self, Z: Array, numbers: Indices) -> tuple[Array, Array]:
        """Return mean of F at points, and what values say of them: (values, points), whose squares lower the variance.

        ``numbers`` are those of the values at the points, or `UNASKED`.
        """
        K = _covariance(self.form[1], self.parameters, self.X, Z)
        asked = np.flatnonzero(numbers != UNASKED)
        K[numbers[asked], asked] += self.ripples
        return K.T @ self.weights, solve_triangular(self.factor, K, lower=True, check_finite=False)

    def at_values(self) -> tuple[Array, Array]:
        """Return mean and standard deviation of F at the points where values are known."""
        mean, said = self.posterior(self.X, np.arange(self.t.size))
        return mean, np.sqrt(np.maximum(self._prior(self.X) - np.square(said).sum(axis=0), 0.0))

    def surprise(self, number: int, value: float) -> tuple[float, float]:
        """Return the squared difference of a further value from the mean, and the share of noise in its variance."""
        mean, deviation = self.at_values()
        noise = float(self.warp.deviation(mean)[number]) ** 2
        return (value - float(self.warp.original(mean)[number])) ** 2, noise / (noise + float(deviation[number]) ** 2)

    def worth(self, points: Array, numbers: Indices) -> Array:
        """Return by how much one more value at each of the points may lower the lowest mean among them.

        Where noise hides what one value would tell, several at the same point are considered, and their worth shared.
        """
        mean, said = self.posterior(points, numbers)
        cov = _covariance(self.form[1], self.parameters, points, points) - said.T @ said
        cov[np.diag_indices_from(cov)] += self.ripples
        variance = np.maximum(np.diag(cov), PRIOR.least_variance)
        noise, lowest, worth = np.square(self.warp.deviation(mean)), mean.min(), np.zeros(len(points))
        for calls in SET.repeats:
            change, expected = cov / np.sqrt(variance + noise / calls), np.zeros(len(points))
            for node, weight in zip(_NODES, _WEIGHTS, strict=True):
                expected += weight * (mean[:, None] + node * change).min(axis=0)
            worth = np.maximum(worth, (lowest - expected) / calls)
        return worth

    def believing(self, x: Array, number: int) -> RandomProcess:
        """Return the process if F at x, (p,), were what it expects there."""
        mean, _ = self.posterior(x[None], np.array([number]))
        noise = np.square(self.warp.deviation(mean))
        if number == UNASKED:
            X, t, known = np.concatenate([self.X, x[None]]), np.append(self.t, mean), np.append(self.known, noise)
        else:
            X, t, known = self.X, self.t.copy(), self.known.copy()
            share = known[number] / (known[number] + noise[0])
            t[number] += share * (mean[0] - t[number])
            known[number] *= 1.0 - share
        factor, weights = _solve(self.form[1], self.parameters, X, t, known)
        return replace(self, X=X, t=t, known=known, factor=factor, weights=weights)

    def _prior(self, Z: Array) -> Array:
        amplitude = math.exp(2 * float(self.parameters[-2]))
        if self.form[1] == "bowl":
            u = (Z - 0.5) / self.lengths
            return np.asarray(amplitude / u.shape[1] * np.square(1 + u * u).sum(axis=1) + self.ripples)
        return np.full(len(Z), amplitude + self.ripples)


def fit_random(X: Array, y: Array, counts: Array, form: Form, start: Array | None, noise: float) -> RandomProcess:
    """Fit the parameters by their posterior density.

    Arguments
    ---------
    X: array of shape (points, p) in the unit cube. y: array (points,), the values, means of ``counts`` calls each.
    form: the warp and the kernel.
    start: the parameters to start from, or None: then two standard starts are tried.
    noise: float, the standard deviation of one value.
    """
    p = X.shape[1]
    t, warp, jacobian = transform(y, form[0], noise)
    known = np.square(warp.deviation(t)) / counts
    prior = np.array([math.log(PRIOR.usual_length)] * p + [0.0, math.log(SET.ripples)])
    spread = np.array([PRIOR.length_spread] * p + [PRIOR.amplitude_spread, PRIOR.noise_spread])

    def objective(parameters: Array) -> tuple[float, Array]:
        return _negative_log_posterior(parameters, form[1], X, t, known, (prior, spread))

    starts = [start] if start is not None else [prior, prior + np.array([-1.0] * p + [0.0, 0.0])]
    bounds = [PRIOR.length_range] * p + [SET.amplitude_range, PRIOR.noise_range]
    steps = PRIOR.first_steps if start is None else PRIOR.later_steps
    options = {"maxiter": steps, "maxfun": 2 * steps}
    solutions = [minimize(objective, s, jac=True, method="L-BFGS-B", bounds=bounds, options=options) for s in starts]
    best = min(solutions, key=lambda solution: float(solution.fun))
    factor, weights = _solve(form[1], best.x, X, t, known)
    return RandomProcess(X, form, best.x, t, known, factor, weights, jacobian - float(best.fun), warp)


def _solve(kernel: str, parameters: Array, X: Array, t: Array, known: Array) -> tuple[Array, Array]:
    K = _covariance(kernel, parameters, X, X)
    K[np.diag_indices_from(K)] += math.exp(2 * parameters[-1]) + known + PRIOR.jitter
    factor = np.tril(cho_factor(K, lower=True, check_finite=False)[0])
    return factor, np.asarray(cho_solve((factor, True), t, check_finite=False))


def _covariance(kernel: str, parameters: Array, A: Array, B: Array) -> Array:
    return _terms(kernel, parameters, A, B)[0]


def _terms(kernel: str, parameters: Array, A: Array, B: Array, *, slopes: bool = False) -> tuple[Array, list[Array]]:
    """Return the covariance of the smooth part, and its derivatives by the logarithms of the lengths."""
    p = A.shape[1]
    amplitude, inverse = math.exp(2 * parameters[p]), np.exp(-parameters[:p])
    if kernel == "bowl":
        w = ((A - 0.5) * inverse).T[:, :, None] * ((B - 0.5) * inverse).T[:, None, :]
        K = amplitude / p * np.square(1 + w).sum(axis=0)
        return K, list(-2 * 2 * amplitude / p * (1 + w) * w) if slopes else []
    if kernel == "sum":
        squares = np.square((A * inverse).T[:, :, None] - (B * inverse).T[:, None, :])
        c, s = correlation("matern", squares)
        return amplitude / p * c.sum(axis=0), list(amplitude / p * s * squares) if slopes else []
    U, V = A * inverse, B * inverse
    r2 = np.maximum(np.einsum("ij,ij->i", U, U)[:, None] + np.einsum("ij,ij->i", V, V) - 2 * U @ V.T, 0.0)
    c, s = correlation(kernel, r2)
    K, s = amplitude * c, amplitude * s
    return K, [s * np.square(U[:, None, j] - V[None, :, j]) for j in range(p)] if slopes else []


def _negative_log_posterior(
    parameters: Array, kernel: str, X: Array, t: Array, known: Array, prior: tuple[Array, Array]
) -> tuple[float, Array]:
    p, ripples = X.shape[1], math.exp(2 * parameters[-1])
    smooth, slopes = _terms(kernel, parameters, X, X, slopes=True)
    K = smooth.copy()
    K[np.diag_indices_from(K)] += ripples + known + PRIOR.jitter
    z = (parameters - prior[0]) / prior[1]
    try:
        L = cho_factor(K, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return PRIOR.refused, np.zeros_like(parameters)
    weights = cho_solve(L, t, check_finite=False)
    W = cho_solve(L, np.eye(t.size), check_finite=False) - np.outer(weights, weights)
    value = 0.5 * float(t @ weights) + float(np.log(np.diag(L[0])).sum()) + 0.5 * float(z @ z)
    gradient = z / prior[1]
    gradient[:p] += [0.5 * float(np.vdot(W, slope)) for slope in slopes]
    gradient[p] += float(np.vdot(W, smooth))
    gradient[p + 1] += float(np.trace(W)) * ripples
    return value, gradient

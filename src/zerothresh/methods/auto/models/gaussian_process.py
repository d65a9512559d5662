"""A small Gaussian process for values of F at a few dozen points of the unit cube."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtr

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.active_subset_settings import GAUSSIAN_PROCESS as SET
from zerothresh.methods.auto.settings.floating_point import TINY

Form = tuple[bool, str]  # whether values are warped by a logarithm, and the name of the kernel


def forms(p: int) -> list[Form]:
    """Return the forms to try."""
    kernels = ["gauss", "matern"] + (["sum"] if p > 1 else [])
    return [(warped, kernel) for warped in (False, True) for kernel in kernels]


def correlation(kernel: str, r2: Array) -> tuple[Array, Array]:
    """Return the correlation at squared distances r2, and -2 times its derivative by r2."""
    if kernel == "gauss":
        c = np.exp(-0.5 * r2)
        return c, c
    r = np.sqrt(5.0 * r2)
    e = np.exp(-r)
    return (1 + r + r * r / 3) * e, 5 / 3 * (1 + r) * e  # Matern 5/2


@dataclass(frozen=True)
class GaussianProcess:
    """The posterior of a Gaussian process, with a length per coordinate.

    Attributes
    ----------
    X: array of shape (points, p), where values are known.
    form: the warp of the values and the kernel: a product over the coordinates, or a sum of one term per coordinate.
    parameters: the logarithms of p lengths, of the amplitude and of the noise.
    t: array (points,), the values after warping and standardisation; small is good.
    factor: the Cholesky factor of the covariance, and ``weights`` its solution with t.
    evidence: float, the log posterior density of the parameters and the values.
    centre, scale, warp: how the values were standardised and warped.
    """

    X: Array
    form: Form
    parameters: Array
    t: Array
    factor: Array
    weights: Array
    evidence: float
    centre: float  # of the values, in their own unit
    scale: float  # likewise
    warp: tuple[float, float]  # the lowest value, and how far above it the warp begins to bend

    @property
    def additive(self) -> bool:
        """Whether it is a sum over the coordinates."""
        return self.form[1] == "sum"

    @property
    def lengths(self) -> Array:
        """The length of each coordinate, over which F changes."""
        return np.exp(self.parameters[:-2])

    def given(self, X: Array, y: Array, counts: Array) -> GaussianProcess:
        """Return the process with the same parameters, given other values."""
        y = np.log1p(np.maximum(y - self.warp[0], 0.0) / self.warp[1]) if self.form[0] else y
        t = (y - self.centre) / self.scale
        K = _cross_covariance(self.form[1], self.parameters, X, X)
        K[np.diag_indices_from(K)] += math.exp(2 * self.parameters[-1]) / counts + SET.jitter
        factor = np.tril(cho_factor(K, lower=True, check_finite=False)[0])
        weights = cho_solve((factor, True), t, check_finite=False)
        return replace(self, X=X, t=t, factor=factor, weights=weights)

    def believing(self, x: Array) -> GaussianProcess:
        """Return the process if F at x, (p,), were what it expects there: what it expects elsewhere stays the same."""
        mean, _ = self.predict(x[None])
        beside = _cross_covariance(self.form[1], self.parameters, x[None], self.X)[0]
        row = solve_triangular(self.factor, beside, lower=True, check_finite=False)
        own = float(_cross_covariance(self.form[1], self.parameters, x[None], x[None])[0, 0])
        own += math.exp(2 * self.parameters[-1]) + SET.jitter
        corner = math.sqrt(max(own - float(row @ row), SET.jitter))
        factor = np.block([[self.factor, np.zeros((row.size, 1))], [row[None], np.array([[corner]])]])
        t = np.append(self.t, mean)
        weights = cho_solve((factor, True), t, check_finite=False)
        return replace(self, X=np.concatenate([self.X, x[None]]), t=t, factor=factor, weights=weights)

    def predicts(self) -> bool:
        """Whether it predicts values that are left out: well, and even better than it claims to.

        The square of an error over the variance that the process has there is about 1 if the form fits, and less if F
        is smoother than that.
        """
        inverse = solve_triangular(self.factor, np.eye(self.t.size), lower=True, check_finite=False)
        precision = np.einsum("ij,ij->j", inverse, inverse)
        missed = float(np.mean(np.square(self.weights / precision)) / max(self.t.var(), TINY))
        surprise = float(np.mean(np.square(self.weights) / precision))
        return missed <= SET.most_missed and surprise <= SET.most_surprise

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation at points Z, shape (points, p), in standardised values."""
        K = _cross_covariance(self.form[1], self.parameters, Z, self.X)
        V = solve_triangular(self.factor, K.T, lower=True, check_finite=False)
        variance = math.exp(2 * self.parameters[-2]) - np.einsum("ij,ij->j", V, V)
        return K @ self.weights, np.sqrt(np.maximum(variance, SET.least_variance))


def _cross_covariance(kernel: str, parameters: Array, Z: Array, X: Array) -> Array:
    p = X.shape[1]
    amplitude = math.exp(2 * parameters[p])
    A, B = Z * np.exp(-parameters[:p]), X * np.exp(-parameters[:p])
    if kernel == "sum":
        terms = [correlation("matern", (A[:, j, None] - B[:, j]) ** 2)[0] for j in range(p)]
        return np.asarray(amplitude / p * np.sum(terms, axis=0))
    r2 = np.maximum(np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B) - 2 * A @ B.T, 0.0)
    return amplitude * correlation(kernel, r2)[0]


def _standardise(y: Array, warped: bool) -> tuple[Array, float, float, float, tuple[float, float]]:
    """Return values of mean 0 and variance 1, warped if asked for, the log Jacobian, and how it was done.

    They are rounded to a fixed resolution: a fit amplifies the last bits, which depend on the unit and offset of F.
    """
    jacobian, scale, lowest = 0.0, 1.0, float(y.min())
    if warped:
        above = y - lowest
        scale = float(np.quantile(above[above > 0], SET.warp_quantile)) if (above > 0).any() else 1.0
        y = np.log1p(above / scale)
        jacobian = -float(np.log(scale + above).sum())
    deviation = max(float(y.std()), TINY)
    centre = float(y.mean())
    t = np.round((y - centre) / (deviation * SET.resolution)) * SET.resolution
    return t, jacobian - y.size * math.log(deviation), centre, deviation, (lowest, scale)


def fit(X: Array, y: Array, counts: Array, form: Form, start: Array | None) -> GaussianProcess:
    """Fit the parameters by their posterior density.

    Arguments
    ---------
    X: array of shape (points, p) in the unit cube. y: array (points,), the values, means of ``counts`` calls each.
    form: the warp and the kernel.
    start: the parameters to start from, or None: then two standard starts are tried.
    """
    p = X.shape[1]
    t, jacobian, centre, scale, warp = _standardise(y, form[0])
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    prior = np.array([math.log(SET.usual_length)] * p + [0.0, math.log(SET.least_noise)])
    spread = np.array([SET.length_spread] * p + [SET.amplitude_spread, SET.noise_spread])

    def objective(parameters: Array) -> tuple[float, Array]:
        return _negative_log_posterior(parameters, form[1], t, squares, counts, prior, spread)

    starts = [start] if start is not None else [prior, prior + np.array([-1.0] * p + [0.0, 0.0])]
    bounds = [SET.length_range] * p + [SET.amplitude_range, SET.noise_range]
    steps = SET.first_steps if start is None else SET.later_steps
    solutions = [
        minimize(
            objective, s, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps, "maxfun": 2 * steps}
        )
        for s in starts
    ]
    best = min(solutions, key=lambda solution: float(solution.fun))
    K, _ = _covariance(best.x, form[1], squares, counts)
    factor = np.tril(cho_factor(K, lower=True, check_finite=False)[0])
    weights = cho_solve((factor, True), t, check_finite=False)
    return GaussianProcess(X, form, best.x, t, factor, weights, jacobian - float(best.fun), centre, scale, warp)


def _covariance(
    parameters: Array, kernel: str, squares: Array, counts: Array
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Return the covariance of the values, and per term of the kernel the covariance and its slope."""
    p = squares.shape[2]
    amplitude, inverse = math.exp(2 * parameters[p]), np.exp(-2 * parameters[:p])
    if kernel == "sum":
        terms = [correlation("matern", squares[:, :, j] * inverse[j]) for j in range(p)]
        terms = [(amplitude / p * c, amplitude / p * s) for c, s in terms]
    else:
        c, s = correlation(kernel, squares @ inverse)
        terms = [(amplitude * c, amplitude * s)]
    K = np.sum([c for c, _ in terms], axis=0)
    K[np.diag_indices_from(K)] += math.exp(2 * parameters[p + 1]) / counts + SET.jitter
    return K, terms


def _negative_log_posterior(
    parameters: Array, kernel: str, t: Array, squares: Array, counts: Array, prior: Array, spread: Array
) -> tuple[float, Array]:
    p = squares.shape[2]
    K, terms = _covariance(parameters, kernel, squares, counts)
    z = (parameters - prior) / spread
    try:
        L = cho_factor(K, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return SET.refused, np.zeros_like(parameters)
    weights = cho_solve(L, t, check_finite=False)
    W = cho_solve(L, np.eye(t.size), check_finite=False) - np.outer(weights, weights)
    value = 0.5 * float(t @ weights) + float(np.log(np.diag(L[0])).sum()) + 0.5 * float(z @ z)
    gradient = z / spread
    inverse = np.exp(-2 * parameters[:p])
    if kernel == "sum":
        by_length = np.array([np.vdot(W, s * squares[:, :, j]) for j, (_, s) in enumerate(terms)])
    else:
        by_length = (W * terms[0][1]).ravel() @ squares.reshape(-1, p)
    gradient[:p] += 0.5 * by_length * inverse
    gradient[p] += sum(float(np.vdot(W, c)) for c, _ in terms)
    gradient[p + 1] += float(np.diag(W) @ (1 / counts)) * math.exp(2 * parameters[p + 1])
    return value, gradient


def log_expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return the logarithm of the expected fall below ``best``; far out, by its asymptotic expansion."""
    z = (best - mean) / deviation
    near = z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    w = np.maximum(z * z, SET.asymptotic**2)
    far = -0.5 * (w + math.log(2 * math.pi)) - np.log(w) + np.log1p(-3 / w + 15 / w**2)
    return np.asarray(np.log(deviation) + np.where(z > SET.asymptotic, np.log(np.maximum(near, TINY)), far))

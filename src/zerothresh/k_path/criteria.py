"""How a k is chosen from a path: held-out F with the one-standard-error rule, or an information criterion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array

LIKELIHOODS = ("gaussian", "logistic", "poisson", "nll")
MEAN_LOGS = ("logistic", "poisson", "nll")  # F is the mean negative log-likelihood itself, up to a constant


def information(fun: float, nonzeros: int, n: int, likelihood: str) -> tuple[float, float]:
    r"""Return AIC and BIC of a point with s non-zeros, up to a constant that is the same for all k.

    .. math:: AIC = D + 2 s, \quad BIC = D + s \log n

    With "gaussian", F is the mean square of n residuals of unknown variance, and D = n log F. With "logistic",
    "poisson" or "nll", F is the mean negative log-likelihood of n observations in natural logarithms, and D = 2 n F.

    Arguments
    ---------
    fun: float, F.
    nonzeros: int, s.
    n: int, the number of observations.
    likelihood: one of `LIKELIHOODS`.

    >>> aic, bic = information(0.5, 2, 100, "nll")
    >>> aic, round(bic, 3)
    (104.0, 109.21)
    """
    if likelihood in MEAN_LOGS:
        deviance = 2 * n * fun
    else:
        deviance = n * math.log(fun) if fun > 0 else (-math.inf if fun == 0 else math.nan)
    return deviance + 2 * nonzeros, deviance + nonzeros * math.log(n)


def likelihood_of(value: object) -> str | None:
    """Check the argument ``likelihood``."""
    return None if value is None else check.one_of("likelihood", value, LIKELIHOODS)


def held_out(found: Mapping[tuple[int, int], float], ks: Sequence[int], cv: int) -> tuple[Array, Array]:
    """Return the mean of held-out F over the folds and its standard error, for each k; NaN where folds are missing."""
    means, errors = np.full(len(ks), np.nan), np.full(len(ks), np.nan)
    for place, k in enumerate(ks):
        values = [found[k, fold] for fold in range(cv) if (k, fold) in found]
        if len(values) == cv:
            means[place] = np.mean(values)
            errors[place] = np.std(values, ddof=1) / math.sqrt(cv)
    return means, errors


def one_standard_error(ks: Sequence[int], means: Array, errors: Array) -> int | None:
    """Return the smallest k whose held-out F is within one standard error of the lowest; None if none is known.

    >>> one_standard_error([1, 2, 3], np.array([3.0, 1.2, 1.0]), np.array([0.3, 0.3, 0.3]))
    2
    """
    if np.isnan(means).all():
        return None
    lowest = int(np.nanargmin(means))
    limit = means[lowest] + errors[lowest]
    return next(k for k, value in zip(ks, means, strict=True) if value <= limit)

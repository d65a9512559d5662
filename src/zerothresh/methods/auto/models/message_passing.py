r"""Approximate message passing: the large entries of a vector from a few noisy sums of all its entries with signs.

The prior of an entry is a mixture of two Gaussians, few large entries among many small ones. Their weights and
variances are learned on the way (expectation maximisation). Rows of signs come from a Hadamard matrix with
permuted columns of random signs: they need no memory, and a product with all rows costs d log d.

Reference: Vila and Schniter, *Expectation-maximization Gaussian-mixture approximate message passing*, IEEE Trans.
Signal Process. 2013.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.grouped_slopes_settings import MESSAGE_PASSING as SETTINGS


def hadamard_transform(v: Array) -> Array:
    """Return the product of a vector, whose length is a power of 2, with the Hadamard matrix of Sylvester.

    >>> hadamard_transform(np.array([1.0, 2.0, 3.0, 4.0]))
    array([10., -2., -4.,  0.])
    """
    out, half = v.copy(), 1
    while half < v.size:
        pairs = out.reshape(-1, 2, half)
        out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return out


class SignRows:
    """Rows of signs over d coordinates: some rows of a Hadamard matrix, with permuted columns and random signs.

    Arguments
    ---------
    places: indices of shape (d,), the different columns of the Hadamard matrix that the coordinates have.
    signs: array of shape (d,), each -1 or 1.
    size: int, the size of the Hadamard matrix, a power of 2.
    rows: indices of shape (m,), the chosen rows.
    """

    def __init__(self, places: Indices, signs: Array, size: int, rows: Indices) -> None:
        self.places, self.signs, self.size, self.rows = places, signs, size, rows

    @staticmethod
    def order(d: int) -> int:
        """Return the size of the smallest Hadamard matrix with d columns and more than d rows."""
        return 1 << int(d).bit_length()

    def row(self, index: int) -> Array:
        """Return one row, shape (d,)."""
        bits = self.places & int(self.rows[index])
        for shift in (32, 16, 8, 4, 2, 1):
            bits = bits ^ (bits >> shift)
        return np.where(bits & 1, -self.signs, self.signs)

    def times(self, v: Array) -> Array:
        """Return the products of all rows with a vector of shape (d,)."""
        spread = np.zeros(self.size)
        spread[self.places] = self.signs * v
        return hadamard_transform(spread)[self.rows]

    def transposed_times(self, z: Array) -> Array:
        """Return the sum of all rows, each multiplied by its entry of z."""
        spread = np.zeros(self.size)
        spread[self.rows] = z
        return np.asarray(self.signs * hadamard_transform(spread)[self.places])


def large_entries(rows: SignRows, y: Array, k: int) -> tuple[Array, float]:
    """Estimate a vector g with about k large entries from y = rows g + noise.

    Arguments
    ---------
    rows: m rows of signs over d coordinates.
    y: array of shape (m,).
    k: int, a first guess at the number of large entries.

    Returns
    -------
    The posterior mean, shape (d,), and the standard deviation of an entry of the estimate before the prior is applied.
    """
    m, d = y.size, rows.places.size
    y = y / np.sqrt(m)
    x, z, total = np.zeros(d), y.copy(), max(float(y @ y), TINY)
    share = min(0.5, k / d)
    large, small = total / (2 * k), total / (2 * d)
    least, best, deviation = np.inf, x, np.sqrt(total / m)
    for iteration in range(SETTINGS.iterations):
        tau = max(float(z @ z) / m, TINY)
        r = x + rows.transposed_times(z) / np.sqrt(m)
        log_large = np.log(share) - 0.5 * np.log(large + tau) - r * r / (2 * (large + tau))
        log_small = np.log1p(-share) - 0.5 * np.log(small + tau) - r * r / (2 * (small + tau))
        w = 1 / (
            1 + np.exp(np.clip(log_small - log_large, -SETTINGS.surest, SETTINGS.surest))
        )  # the probability of a large entry
        mean_large, mean_small = r * large / (large + tau), r * small / (small + tau)
        var_large, var_small = tau * large / (large + tau), tau * small / (small + tau)
        x = w * mean_large + (1 - w) * mean_small
        variance = w * (var_large + mean_large**2) + (1 - w) * (var_small + mean_small**2) - x * x
        feedback = min(d / m * float(variance.mean()) / tau, SETTINGS.feedback)
        z = y - rows.times(x) / np.sqrt(m) + feedback * z
        if iteration >= SETTINGS.settled:
            share = float(np.clip(w.mean(), 0.5 / d, 0.5))
            small = float(((1 - w) * (mean_small**2 + var_small)).sum() / max((1 - w).sum(), TINY))
            large = max(float((w * (mean_large**2 + var_large)).sum() / max(w.sum(), TINY)), SETTINGS.apart * small)
        residual = float(z @ z)
        if residual > SETTINGS.diverged * total:
            break
        if residual < least:
            least, best, deviation = residual, x, np.sqrt(tau)
    return best, float(deviation)

"""Quadratic bowls for the tests of methods, with their calls counted."""

from __future__ import annotations

import numpy as np


class Bowl:
    """F(x) = scale/2 sum_j a_j (x_j - c_j)^2, as n equal components or, with a spread, as n different ones."""

    def __init__(self, c, a=1.0, n=1, spread=0.0, scale=1.0, transform=lambda v: v):
        self.c, self.d, self.n = np.asarray(c, float), len(c), n
        self.a = np.broadcast_to(np.asarray(a, float), self.c.shape)
        shifts = np.random.default_rng(5).standard_normal((n, self.d))
        self.shifts = spread * (shifts - shifts.mean(axis=0))
        self.scale, self.transform = scale, transform
        self.calls = 0

    def values(self, points, components):
        self.calls += len(points)
        off = points - self.c - self.shifts[components]
        return self.transform(0.5 * self.scale * (self.a * off**2).sum(axis=1))

    def F(self, x):
        return float(self.values(np.repeat(x[None], self.n, axis=0), np.arange(self.n)).mean())

    def gradient(self, x):
        return self.scale * self.a * (x - self.c)


def sparse_centre(d, *values):
    c = np.zeros(d)
    c[np.random.default_rng(2).choice(d, len(values), replace=False)] = values
    return c

"""Nonlinear least squares of the Moré-Wild collection (Moré, Garbow and Hillstrom 1981), with random starts.

`draw(seed)` gives every problem with a start of its own: x0 (1 + N / 2) + N / 10, with N standard normal.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
from objectives import Array

Residuals = Callable[[Array], Array]
PROBLEMS: dict[str, tuple[Residuals, Array]] = {}
LARGEST_EXPONENT = 300.0  # exponentials are cut off there, so that a wild step gives a huge value, not an overflow
RELATIVE, ABSOLUTE = 0.5, 0.1  # spread of the random starts


def problem(name: str, start: Array) -> Callable[[Residuals], Residuals]:
    """Register residuals under a name, with the usual start."""

    def add(residuals: Residuals) -> Residuals:
        PROBLEMS[name] = residuals, np.asarray(start, dtype=float)
        return residuals

    return add


def draw(seed: int) -> dict[str, tuple[Residuals, Array]]:
    """Every problem with the random start of this seed."""
    drawn = {}
    for name, (residuals, x0) in PROBLEMS.items():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        near = x0 * (1 + RELATIVE * rng.standard_normal(x0.size))
        drawn[name] = residuals, near + ABSOLUTE * rng.standard_normal(x0.size)
    return drawn


def _exp(z: Array) -> Array:
    return np.exp(np.minimum(z, LARGEST_EXPONENT))


@problem("rosenbrock-2", np.array([-1.2, 1.0]))
@problem("rosenbrock-10", np.tile([-1.2, 1.0], 5))
def rosenbrock(x: Array) -> Array:
    r = np.empty(x.size)
    r[0::2], r[1::2] = 10 * (x[1::2] - x[0::2] ** 2), 1 - x[0::2]
    return r


@problem("bard", np.ones(3))
def bard(x: Array) -> Array:
    y = np.array([0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39])
    u = np.arange(1.0, 16.0)
    v = 16 - u
    return y - (x[0] + u / (v * x[1] + np.minimum(u, v) * x[2]))


@problem("kowalik", np.array([0.25, 0.39, 0.415, 0.39]))
def kowalik(x: Array) -> Array:
    y = np.array([0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246])
    u = np.array([4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])
    return y - x[0] * (u * u + u * x[1]) / (u * u + u * x[2] + x[3])


@problem("chebyquad-6", np.arange(1, 7) / 7)
@problem("chebyquad-8", np.arange(1, 9) / 9)
@problem("chebyquad-10", np.arange(1, 11) / 11)
@problem("chebyquad-11", np.arange(1, 12) / 12)
def chebyquad(x: Array) -> Array:
    before, now = np.ones_like(x), 2 * x - 1
    r = np.zeros(x.size)
    for i in range(1, x.size + 1):
        r[i - 1] = now.mean() - (0 if i % 2 else -1 / (i * i - 1))
        before, now = now, 2 * (2 * x - 1) * now - before
    return r


@problem("brown-almost-linear-10", np.full(10, 0.5))
def brown_almost_linear(x: Array) -> Array:
    r = x + x.sum() - (x.size + 1)
    r[-1] = np.prod(x) - 1
    return r


@problem("powell-singular", np.array([3.0, -1.0, 0.0, 1.0]))
def powell_singular(x: Array) -> Array:
    squares = (x[1] - 2 * x[2]) ** 2, np.sqrt(10) * (x[0] - x[3]) ** 2
    return np.array([x[0] + 10 * x[1], np.sqrt(5) * (x[2] - x[3]), *squares])


@problem("boundary-value-10", np.arange(1, 11) / 11 * (np.arange(1, 11) / 11 - 1))
def boundary_value(x: Array) -> Array:
    h = 1 / (x.size + 1)
    t = np.arange(1, x.size + 1) * h
    wide = np.concatenate([[0.0], x, [0.0]])
    return 2 * x - wide[:-2] - wide[2:] + h * h * (x + t + 1) ** 3 / 2


@problem("osborne-2", np.array([1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5]))
def osborne_2(x: Array) -> Array:
    # fmt: off
    y = np.array([
        1366, 1191, 1112, 1013, 991, 885, 831, 847, 786, 725, 746, 679, 608, 655, 616, 606, 602, 626, 651,
        724, 649, 649, 694, 644, 624, 661, 612, 558, 533, 495, 500, 423, 395, 375, 372, 391, 396, 405, 428,
        429, 523, 562, 607, 653, 672, 708, 633, 668, 645, 632, 591, 559, 597, 625, 739, 710, 729, 720, 636,
        581, 428, 292, 162, 98, 54,
    ])
    # fmt: on
    t = np.arange(65) / 10
    peaks = sum(x[j] * _exp(-((t - x[j + 7]) ** 2) * x[j + 4]) for j in (1, 2, 3))
    return y / 1000 - (x[0] * _exp(-t * x[4]) + peaks)


@problem("helical-valley", np.array([-1.0, 0.0, 0.0]))
def helical_valley(x: Array) -> Array:
    turn = np.arctan2(x[1], x[0]) / (2 * np.pi)
    return np.array([10 * (x[2] - 10 * turn), 10 * (np.hypot(x[0], x[1]) - 1), x[2]])


@problem("freudenstein-roth", np.array([0.5, -2.0]))
def freudenstein_roth(x: Array) -> Array:
    return np.array([-13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1], -29 + x[0] + ((1 + x[1]) * x[1] - 14) * x[1]])


@problem("meyer", np.array([0.02, 4000, 250]))
def meyer(x: Array) -> Array:
    y = [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872]
    with np.errstate(all="ignore"):
        exponent = x[1] / (45 + 5 * np.arange(1, 17) + x[2])
        return np.clip(np.nan_to_num(x[0] * _exp(exponent), nan=1e100), -1e100, 1e100) - np.array(y)


@problem("watson-6", np.full(6, 0.5))
@problem("watson-9", np.full(9, 0.5))
@problem("watson-12", np.full(12, 0.5))
def watson(x: Array) -> Array:
    t, j = np.arange(1, 30)[:, None] / 29, np.arange(x.size)
    slope, value = (t ** np.maximum(j - 1, 0) * j) @ x, (t**j) @ x
    return np.concatenate([slope - value**2 - 1, [x[0], x[1] - x[0] ** 2 - 1]])


@problem("box-3", np.array([0.0, 10.0, 20.0]))
def box_3(x: Array) -> Array:
    t = np.arange(1, 11) / 10
    return _exp(-t * x[0]) - _exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t))


@problem("jennrich-sampson", np.array([0.3, 0.4]))
def jennrich_sampson(x: Array) -> Array:
    i = np.arange(1, 11)
    return 2 + 2 * i - (_exp(i * x[0]) + _exp(i * x[1]))


@problem("brown-dennis", np.array([25.0, 5.0, -5.0, -1.0]))
def brown_dennis(x: Array) -> Array:
    t = np.arange(1, 21) / 5
    return (x[0] + t * x[1] - np.exp(t)) ** 2 + (x[2] + x[3] * np.sin(t) - np.cos(t)) ** 2


@problem("osborne-1", np.array([0.5, 1.5, -1.0, 0.01, 0.02]))
def osborne_1(x: Array) -> Array:
    # fmt: off
    y = np.array([
        844, 908, 932, 936, 925, 908, 881, 850, 818, 784, 751, 718, 685, 658, 628, 603, 580, 558, 538, 522,
        506, 490, 478, 467, 457, 448, 438, 431, 424, 420, 414, 411, 406,
    ])
    # fmt: on
    t = 10 * np.arange(33)
    return y / 1000 - (x[0] + x[1] * _exp(-t * x[3]) + x[2] * _exp(-t * x[4]))


@problem("bdqrtic-8", np.ones(8))
@problem("bdqrtic-12", np.ones(12))
def bdqrtic(x: Array) -> Array:
    i = np.arange(x.size - 4)
    quartic = x[i] ** 2 + 2 * x[i + 1] ** 2 + 3 * x[i + 2] ** 2 + 4 * x[i + 3] ** 2 + 5 * x[-1] ** 2
    return np.concatenate([-4 * x[i] + 3, quartic])


@problem("cube-5", np.full(5, 0.5))
@problem("cube-8", np.full(8, 0.5))
def cube(x: Array) -> Array:
    return np.concatenate([[x[0] - 1], 10 * (x[1:] - x[:-1] ** 3)])


def _mancino_terms(x: Array) -> Array:
    i = np.arange(1, x.size + 1)
    v = np.sqrt(x[:, None] ** 2 + i[:, None] / i[None])
    return (i - 50.0) ** 3 + (v * (np.sin(np.log(v)) ** 5 + np.cos(np.log(v)) ** 5)).sum(1)


@problem("mancino-5", -8.711e-4 * _mancino_terms(np.zeros(5)))
@problem("mancino-12", -8.711e-4 * _mancino_terms(np.zeros(12)))
def mancino(x: Array) -> Array:
    return 1400 * x + _mancino_terms(x)


@problem("heart-8", np.array([-0.3, -0.39, 0.3, -0.344, -1.2, 2.69, 1.59, -1.5]))
def heart_8(x: Array) -> Array:
    a, b, c, d, t, u, v, w = x
    sums = np.array([-0.69, -0.044, -1.57, -1.31, -2.65, 2, -12.6, 9.48])
    return (
        np.array(
            [
                a + b,
                c + d,
                t * a + u * b - v * c - w * d,
                v * a + w * b + t * c + u * d,
                a * (t * t - v * v) - 2 * c * t * v + b * (u * u - w * w) - 2 * d * u * w,
                c * (t * t - v * v) + 2 * a * t * v + d * (u * u - w * w) + 2 * b * u * w,
                a * t * (t * t - 3 * v * v)
                + c * v * (v * v - 3 * t * t)
                + b * u * (u * u - 3 * w * w)
                + d * w * (w * w - 3 * u * u),
                c * t * (t * t - 3 * v * v)
                - a * v * (v * v - 3 * t * t)
                + d * u * (u * u - 3 * w * w)
                - b * w * (w * w - 3 * u * u),
            ]
        )
        - sums
    )

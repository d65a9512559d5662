"""Sparse problems where one run returns all residuals: spectra, regressions, an ODE, a deconvolution; drawn by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from objectives import Array

CASES: dict[str, Callable[[int], ResidualProblem]] = {}


@dataclass(frozen=True)
class ResidualProblem:
    """Residuals of one run, and the sparse point at which they vanish."""

    fun: Callable[[Array], Array]
    d: int
    k: int
    truth: Array
    low: float | None = None

    @property
    def start(self) -> Array:
        return np.zeros(self.d)


def mixture(seed: int, few: int = 3) -> ResidualProblem:
    """Which 3 of 40 absorption spectra are in a mixture: Beer's law, so the outputs are not linear."""
    rng, wave = np.random.default_rng([11, seed]), np.linspace(0, 1, 200)
    spectra = np.asarray(sum(np.exp(-(((wave - rng.random((40, 1))) / 0.02) ** 2)) for _ in range(4)))
    truth = np.zeros(40)
    truth[rng.choice(40, few, replace=False)] = rng.uniform(0.3, 0.9, few)
    y = np.exp(-truth @ spectra)
    return ResidualProblem(lambda x: np.exp(-x @ spectra) - y, 40, few, truth, low=0.0)


LINKS: dict[str, Callable[[Array], Array]] = {
    "exp": lambda z: np.exp(np.clip(z, -50, 50)),
    "logit": lambda z: 1 / (1 + np.exp(-np.clip(z, -500, 500))),
    "tanh": np.tanh,
}


def regression(seed: int, d: int, k: int, n: int, link: str, correlation: float = 0.0) -> ResidualProblem:
    """Outputs that are a curve of one linear score, or a sum of curves of two."""
    rng = np.random.default_rng([12, seed])
    A = rng.standard_normal((n, d))
    if correlation:
        for j in range(1, d):
            A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
    A /= np.sqrt(k)
    truth = np.zeros(d)
    truth[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    if link == "two":
        other = rng.standard_normal((n, d)) / np.sqrt(k)

        def outputs(x: Array) -> Array:
            return np.tanh(A @ x) + 0.5 * LINKS["exp"](-other @ x)
    else:

        def outputs(x: Array) -> Array:
            return LINKS[link](A @ x)

    y = outputs(truth)
    return ResidualProblem(lambda x: outputs(x) - y, d, k, truth)


MONOMIALS = np.array([e for e in product(range(4), repeat=3) if sum(e) <= 3])


def ode(seed: int, trajectories: int = 12, duration: float = 2.0, samples: int = 10, sub: int = 4) -> ResidualProblem:
    """Which 5 of 60 rate terms (20 monomials for each of 3 species) are active, from 12 trajectories in one run."""
    rng = np.random.default_rng([13, seed])
    place = {tuple(e): a for a, e in enumerate(MONOMIALS.tolist())}
    begin, rate = rng.uniform(0.3, 1.5, (trajectories, 3)), rng.uniform(0.8, 1.2, 5)
    truth = np.zeros((3, 20))
    truth[0, place[1, 0, 0]], truth[0, place[1, 1, 0]] = rate[0], -rate[1]
    truth[1, place[0, 1, 0]], truth[1, place[1, 1, 0]] = -0.8 * rate[2], 0.7 * rate[3]
    truth[2, place[0, 1, 1]] = -0.6 * rate[4]
    step = duration / samples / sub

    def simulate(theta: Array) -> Array:
        W = theta.reshape(3, 20).T

        def slope(u: Array) -> Array:
            powers = [np.ones_like(u), u, u * u, u * u * u]
            return np.stack([powers[a][:, 0] * powers[b][:, 1] * powers[c][:, 2] for a, b, c in MONOMIALS], 1) @ W

        u, out = begin.copy(), []
        with np.errstate(all="ignore"):
            for _ in range(samples):
                for _ in range(sub):
                    k1 = slope(u)
                    k2 = slope(u + step / 2 * k1)
                    k3 = slope(u + step / 2 * k2)
                    k4 = slope(u + step * k3)
                    u = np.nan_to_num(np.clip(u + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4), -1e3, 1e3))
                out.append(u.copy())
        return np.concatenate(out).ravel()

    y = simulate(truth.ravel())
    return ResidualProblem(lambda x: simulate(x) - y, 60, 5, truth.ravel())


def deconvolution(seed: int, d: int = 500, k: int = 8, width: float = 4.0) -> ResidualProblem:
    """Spikes seen through a wide kernel and a sensor that saturates: neighbouring columns are nearly the same."""
    rng, i = np.random.default_rng([14, seed]), np.arange(d)
    K = np.exp(-0.5 * ((i[:, None] - i) / width) ** 2)
    truth = np.zeros(d)
    while np.diff(spikes := np.sort(rng.choice(d, k, replace=False))).min() < 6:
        pass
    truth[spikes] = rng.uniform(0.5, 2, k)

    def outputs(x: Array) -> Array:
        seen = K @ x
        return seen / (1 + 0.5 * np.abs(seen))

    y = outputs(truth)
    return ResidualProblem(lambda x: outputs(x) - y, d, k, truth, low=0.0)


def noisy(problem: ResidualProblem, level: float, seed: int) -> ResidualProblem:
    """The same problem with noise in every output of every run, relative to the residuals at the start."""
    rng, at_start = np.random.default_rng([15, seed]), problem.fun(problem.start)
    sigma = level * float(np.sqrt(np.mean(at_start**2)))
    return replace(problem, fun=lambda x: problem.fun(x) + sigma * rng.standard_normal(at_start.size))


def contaminated(problem: ResidualProblem, share: float, seed: int) -> ResidualProblem:
    """The same problem with gross errors in a share of the data."""
    rng, n = np.random.default_rng([16, seed]), problem.fun(problem.start).size
    wrong, bad = np.zeros(n), int(share * n)
    wrong[rng.choice(n, bad, replace=False)] = rng.choice([-1, 1], bad) * rng.uniform(1, 3, bad)
    return replace(problem, fun=lambda x: problem.fun(x) - wrong)


CASES |= {
    "mixture": mixture,
    "exp-100": lambda seed: regression(seed, 100, 5, 100, "exp"),
    "logit-100": lambda seed: regression(seed, 100, 5, 50, "logit"),
    "two-100": lambda seed: regression(seed, 100, 5, 100, "two"),
    "exp-500": lambda seed: regression(seed, 500, 10, 200, "exp"),
    "logit-500": lambda seed: regression(seed, 500, 10, 200, "logit", 0.7),
    "two-500": lambda seed: regression(seed, 500, 10, 200, "two"),
    "logit-2000": lambda seed: regression(seed, 2000, 20, 500, "logit"),
    "exp-2000": lambda seed: regression(seed, 2000, 5, 100, "exp"),
    "two-2000": lambda seed: regression(seed, 2000, 10, 300, "two"),
    "ode": ode,
    "deconvolution": deconvolution,
}

"""Measure where in the (q, k) plane methods converge, with the same learning rate everywhere."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import zerothresh as zt

QS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
KS = (1, 2, 4, 8, 16, 32, 64, 128)
ETA, STEPS, N, D, K_STAR = 0.1, 150, 10, 400, 1
METHODS: dict[str, Any] = {
    "SZOHT": zt.SZOHT(eta=ETA),
    "SARAH-SZHT": zt.SARAHSZHT(eta=ETA, m=10),
    "SAGA-SZHT": zt.SAGASZHT(eta=ETA),
    "VR-SZHT": zt.VRSZHT(eta=ETA, m=10),
    "FGZOHT": zt.FGZOHT(eta=ETA),
}


@dataclass
class Round:
    """f_i = ||theta - b_i||^2 / 2, where the mean of the b_i is k*-sparse. Its kappa is 1, the best case for theory."""

    centres: np.ndarray

    @property
    def n(self) -> int:
        return len(self.centres)

    @property
    def d(self) -> int:
        return self.centres.shape[1]

    def values(self, points: np.ndarray, components: np.ndarray) -> np.ndarray:
        return 0.5 * ((points - self.centres[components]) ** 2).sum(axis=1)

    def gap(self, x: np.ndarray) -> float:
        """Return F - F* at x."""
        return float(0.5 * ((x - self.centres.mean(axis=0)) ** 2).sum())


def problem(seed: int, spread: float = 0.1) -> Round:
    """Return the problem of a seed; ``spread`` is the standard deviation of the b_i around their mean."""
    rng = np.random.default_rng(seed)
    noise = spread * rng.standard_normal((N, D))
    star = np.zeros(D)
    star[rng.choice(D, K_STAR, replace=False)] = 3.0
    return Round(star + noise - noise.mean(axis=0))


def left(method: Any, q: int, k: int, seed: int) -> float:
    """Return the gap after STEPS thresholdings as a share of the first gap; infinite if the run diverged."""
    black_box = problem(seed)
    estimator = zt.Estimator(q=q, mu=1e-4, directions="sphere")
    first, gaps = black_box.gap(np.zeros(D)), []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for state in zt.iterate(
                black_box, None, k, budget=10**12, method=method, estimator=estimator, seed=seed, monitor=black_box.gap
            ):
                if state.nht and state.fun is not None:
                    gaps.append(state.fun)
                if state.nht >= STEPS or (gaps and gaps[-1] > 1e6 * first):
                    break
    except RuntimeError:  # DIVERGED
        return np.inf
    return float(np.median(gaps[-10:]) / first)


def plane(seeds: int, qs: tuple[int, ...] = QS, ks: tuple[int, ...] = KS) -> dict[str, np.ndarray]:
    """Return the median over seeds of the remaining gap, an array of shape (k, q) for each method."""
    return {
        name: np.array([[np.median([left(method, q, k, seed) for seed in range(seeds)]) for q in qs] for k in ks])
        for name, method in METHODS.items()
    }


def boundary(table: np.ndarray, ks: tuple[int, ...], qs: tuple[int, ...], goal: float = 1e-2) -> dict[int, int | None]:
    """Return, for each k, the least q from which on runs converge, which means that the gap falls to ``goal``."""
    out: dict[int, int | None] = {}
    for k, row in zip(ks, table, strict=True):
        good = [q for place, q in enumerate(qs) if (row[place:] < goal).all()]
        out[k] = good[0] if good else None
    return out

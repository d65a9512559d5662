"""Measure how the number of calls grows with kappa, n, d, k and q, and compare the exponents with the paper's."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from inequalities import Quadratics

import zerothresh as zt
from zerothresh import theory

GOAL = 1e-3  # the share of the first gap that has to be reached
BASE = {"kappa": 8.0, "n": 20, "d": 60, "k": 6, "q": 30}
VALUES: dict[str, tuple[float, ...]] = {
    "kappa": (2, 4, 8, 16, 32, 64),
    "n": (5, 20, 80, 320),
    "d": (30, 60, 120, 240),
    "k": (4, 8, 16, 32),
    "q": (3, 10, 30, 100),
}
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times 1 / (rho^+ (1 + (s + 2) / q))
PAPER = {  # the orders of the theory; their slopes are fitted over the same values
    "SZOHT": lambda at: theory.szoht_queries(k=at["k"], d=at["d"], s2=at["d"], kappa=at["kappa"], eps=GOAL),
    "VR-SZHT": lambda at: theory.vr_estimates(n=at["n"], kappa=at["kappa"], eps=GOAL),
    "VR-SZHT, with q": lambda at: theory.vr_queries(n=at["n"], q=at["q"], kappa=at["kappa"], eps=GOAL),
}


@dataclass(frozen=True)
class Slope:
    """Calls and thresholdings as one parameter varies and the others stay at BASE, with fitted exponents."""

    method: str
    name: str
    at: list[float]
    calls: list[float]
    exponent: float
    error: float
    paper: float
    thresholdings: list[float]
    nht_exponent: float


def hits(method: Any, box: Quadratics, k: int, q: int, seed: int, most: float) -> tuple[float, float]:
    """Return the calls and thresholdings needed to reach GOAL; infinite if ``most`` calls are not enough."""
    estimator = zt.Estimator(q=q, mu=1e-5, directions="sphere")
    first = box.F(np.zeros(box.d))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for state in zt.iterate(
                box, None, k, budget=10**12, method=method, estimator=estimator, seed=seed, monitor=box.F
            ):
                if state.fun is not None and state.fun < GOAL * first:
                    return float(state.nfev), float(state.nht)
                if state.nfev > most or (state.fun is not None and state.fun > 1e4 * first):
                    break
    except RuntimeError:
        pass
    return math.inf, math.inf


def best(name: str, at: dict[str, float], seeds: int) -> tuple[float, float]:
    """Return the fewest calls over learning rates and inner steps, each the median over seeds."""
    k, q, n, d = (int(at[key]) for key in ("k", "q", "n", "d"))
    boxes = [
        Quadratics(d=d, n=n, k_star=3, kappa=at["kappa"], spread=0.0, seed=seed, extremes=True) for seed in range(seeds)
    ]
    found = (math.inf, math.inf)
    inner = (None,) if name == "SZOHT" else tuple(sorted({max(2, n // 2), 2 * n, 8 * n}))
    for factor in STEPS:
        eta = factor / (boxes[0].rho_plus * (1 + (2 * k + 5) / q))
        for m in inner:
            method: Any = zt.SZOHT(eta=eta) if m is None else zt.VRSZHT(eta=eta, m=m)
            most = min(2e6, 1.5 * found[0])
            runs = [hits(method, box, k, q, seed, most) for seed, box in enumerate(boxes)]
            found = min(found, tuple(np.median(runs, axis=0)))
    return found


def slopes(seeds: int, values: dict[str, tuple[float, ...]] = VALUES) -> list[Slope]:
    """Measure the slopes of both methods against each parameter."""
    out, known = [], {}
    for method in ("SZOHT", "VR-SZHT"):
        for name, at in values.items():
            rows = []
            for value in at:
                setting = {**BASE, name: value}
                key = (method, *setting.values())
                if key not in known:
                    known[key] = best(method, setting, seeds)
                rows.append(known[key])
            calls, nht = [row[0] for row in rows], [row[1] for row in rows]
            exponent, error = fit(at, calls)
            out.append(
                Slope(
                    method,
                    name,
                    list(at),
                    calls,
                    exponent,
                    error,
                    slope_of(PAPER[method], name, at),
                    nht,
                    fit(at, nht)[0],
                )
            )
    return out


def fit(at: tuple[float, ...], calls: list[float]) -> tuple[float, float]:
    """Return the fitted exponent and its standard error."""
    good = np.isfinite(calls)
    x, y = np.log(np.array(at)[good]), np.log(np.array(calls)[good])
    if good.sum() < 3:
        return math.nan, math.nan
    (slope, _), covariance = (
        np.polyfit(x, y, 1, cov=True) if good.sum() > 3 else (np.polyfit(x, y, 1), np.zeros((2, 2)))
    )
    return float(slope), float(math.sqrt(covariance[0, 0]))


def slope_of(order: Any, name: str, at: tuple[float, ...]) -> float:
    """Return the slope of an order, fitted over the same values."""
    return fit(at, [float(order({**BASE, name: int(value) if name != "kappa" else value})) for value in at])[0]

"""Measure gradient error and expansivity as q, k and s2 vary, with and without variance reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
from inequalities import Quadratics, directions, estimate, worst_ratio

import zerothresh as zt
from zerothresh import theory

QS = (1, 2, 5, 10, 20, 50, 100, 200)


def gradient_error(draws: int) -> dict[str, Any]:
    """Return E||est_I f - grad_I f||^2 / ||grad f||^2: measured, exact for linear f, and by Lemma 2's bound."""
    d, k, k_star = 100, 5, 2
    s = 2 * k + k_star
    box = Quadratics(d=d, n=1, k_star=k_star, kappa=3, spread=0.0, seed=0)
    x = np.random.default_rng(0).standard_normal(d) * 0.3
    g, out = box.gradient(x, 0), {"q": list(QS)}
    I = np.arange(s)
    inside, whole = (g[I] ** 2).sum(), (g**2).sum()
    for s2 in (1, 10, d):
        rows = []
        for q in QS:
            size = {"d": d, "q": q, "s": s, "s2": s2}
            found = [estimate(box, x, 0, directions(q, d, s2, seed=1, number=r), 1e-5)[I] for r in range(draws)]
            errors = ((np.array(found) - g[I]) ** 2).sum(axis=1)
            a, b = theory.second_moment(**size)
            exact = (a - 1) * inside + b * (whole - inside)
            bound = 2 * (theory.eps_I(**size) + 1) * inside + 2 * theory.eps_Ic(**size) * (whole - inside)
            rows.append([errors.mean() / whole, errors.std() / draws**0.5 / whole, exact / whole, bound / whole])
        out[f"s2 = {s2}"] = np.array(rows).T.tolist()
    return out


def expansion() -> dict[str, list[float]]:
    """Return Lemma 1's alpha, the tight bound, and the worst points found, for k* = 3."""
    ks = (3, 4, 5, 6, 8, 12, 24, 48, 96)
    return {
        "k": list(ks),
        "alpha": [theory.alpha(k=k, k_star=3) if k > 3 else float("inf") for k in ks],
        "tight": [theory.alpha_tight(k=k, k_star=3, d=400) for k in ks],
        "worst": [worst_ratio(k, 3, 3 * k + 9) for k in ks],
    }


def rates() -> dict[str, Any]:
    """Return SZOHT's rate for many k and some q: small k suffer from expansivity, large k from gradient error."""
    d, k_star = 40_000, 3
    ks = np.unique(np.geomspace(k_star, (d - k_star) // 2, 120).astype(int))
    out: dict[str, Any] = {"k": ks.tolist()}
    for q in (500, 1500, 3000, 10_000, 100_000):
        out[f"q = {q:,}"] = [
            theory.szoht_rate(
                k=int(k), k_star=k_star, eps_I=theory.eps_I(d=d, q=q, s=int(2 * k + k_star), s2=d), kappa=1.0
            )
            for k in ks
        ]
    return out


def reduced(draws: int) -> dict[str, Any]:
    """Measure E||g - grad F||^2 / ||grad F||^2 of a step near the anchor, as q varies."""
    d, n, k = 100, 10, 6
    box = Quadratics(d=d, n=n, k_star=3, kappa=3, spread=0.1, seed=0)
    rng = np.random.default_rng(1)
    anchor = zt.hard_threshold(box.star + 0.1 * rng.standard_normal(d), k)
    x = anchor + 0.02 * np.where(anchor != 0, rng.standard_normal(d), 0.0)
    grad = np.mean([box.gradient(x, i) for i in range(n)], axis=0)
    names = ("SZOHT", "FGZOHT", "VR, independent directions", "VR, shared directions", "SAGA")
    out: dict[str, Any] = {"q": list(QS), **{name: [] for name in names}}

    def at(point: np.ndarray, i: int, u: np.ndarray) -> np.ndarray:
        return estimate(box, point, i, u, 1e-5)

    for q in QS:
        found: dict[str, list[float]] = {name: [] for name in names}
        for r in range(draws):
            block = [directions(q, d, d, seed=2, number=20 * r + j) for j in range(3 + n)]
            i = r % n
            here = at(x, i, block[0])
            full = np.mean([at(anchor, j, block[1]) for j in range(n)], axis=0)
            held = [at(anchor, j, block[3 + j]) for j in range(n)]  # SAGA's memory: each row has its own directions
            steps = (
                here,
                np.mean([at(x, j, block[0]) for j in range(n)], axis=0),
                here - at(anchor, i, block[2]) + full,
                here - at(anchor, i, block[0]) + full,
                here - held[i] + np.mean(held, axis=0),
            )
            for name, g in zip(names, steps, strict=True):
                found[name].append(float(((g - grad) ** 2).sum() / (grad**2).sum()))
        for name in names:
            out[name].append(float(np.mean(found[name])))
    return out

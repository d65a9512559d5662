"""Measure where in the (q, k) plane methods converge, for each learning rate of a sweep and for two laws of directions.

Where the gradient of F is estimated, which FGZOHT does in every step and VR-SZHT and SARAH-SZHT do once per epoch, each
of the n components has directions of its own in the paper's eq. (3) (`zt.Estimator.paper`), and all of them share one
block by default in the library. SZOHT and SAGA-SZHT estimate one component per step, so that both laws are one for
them, but for the memory with which SAGA-SZHT begins.

The problem is so simple that an estimate of eq. (3) has a closed form, and runs that differ only in k and in the method
share their directions and components, so that a step of all of them is two matrix products. tests/test_plane.py
compares these runs with those of the library, for both laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

QS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
KS = (1, 2, 4, 8, 16, 32, 64, 128)
OWN_QS = (1, 4, 16, 64, 256)  # fewer for the paper's law, whose runs take longer
OWN_KS = (1, 2, 8, 32, 128)
ETAS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
FLOOR_QS = (64, 256, 1024, 2048)  # below and above d, for one eta and one k
FLOOR_ETA, FLOOR_K = 0.01, 32  # 800 steps, at the end of which all methods are at their floors
FLOOR_MS = (1, 2, 5, 10, 20, 40)  # inner steps per epoch, below and above n
SMALL_ETA, SMALL_Q = 0.001, 4  # stable for all of FLOOR_MS
N, D, K_STAR, MU = 10, 400, 1, 1e-4
M = 10  # inner steps per epoch of VR-SZHT and SARAH-SZHT, as in the paper's experiments
SPREAD = 0.1  # standard deviation of the b_i around their mean
SIGNAL = 3.0  # the non-zero of theta*
TRAVEL = 8.0  # eta times steps: an exact gradient would leave exp(-2 TRAVEL) = 1e-7 of the gap
LEAST_STEPS = 150  # of the large learning rates, which would have fewer by TRAVEL alone
LAST = 10  # the gap at the end is the median over these last steps, an epoch of VR-SZHT
DIVERGED = 1e6  # times the first gap
GOALS = (1e-2, 1e-4)  # shares of the first gap for which calls are counted
METHODS = ("SZOHT", "FGZOHT", "SAGA-SZHT", "VR-SZHT", "SARAH-SZHT")

Floats = np.ndarray  # of 32 bits, whose rounding errors are far below the gaps that are measured


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


def problem(seed: int) -> Round:
    """Return the problem of a seed."""
    rng = np.random.default_rng(seed)
    noise = SPREAD * rng.standard_normal((N, D))
    star = np.zeros(D)
    star[rng.choice(D, K_STAR, replace=False)] = SIGNAL
    return Round(star + noise - noise.mean(axis=0))


def steps_of(eta: float) -> int:
    """The steps of a run: all learning rates travel equally far, and none has fewer than LEAST_STEPS steps."""
    return max(LEAST_STEPS, round(TRAVEL / eta))


def calls_of(method: str, steps: int, q: int) -> int:
    """The calls of f_i that a method makes for its first ``steps`` thresholdings."""
    epochs = -(-steps // M)
    estimates = {
        "SZOHT": steps,
        "FGZOHT": N * steps,
        "SAGA-SZHT": N + steps,
        "VR-SZHT": N * epochs + 2 * steps,
        "SARAH-SZHT": N * epochs + 2 * (steps - epochs),  # the first step of an epoch is that of the full gradient
    }
    return (q + 1) * estimates[method]


def unit_vectors(rng: np.random.Generator, q: int) -> Floats:
    """Return q directions, uniform on the sphere."""
    u = rng.standard_normal((q, D), dtype=np.float32)
    u /= np.sqrt((u * u).sum(axis=1, keepdims=True))
    return u


def estimates(residuals: Floats, u: Floats) -> Floats:
    """Return the estimates of eq. (3) of gradients ``residuals``, up to the part of mu, which all have in common."""
    return np.float32(D / len(u)) * ((residuals @ u.T) @ u)


def part_of_mu(u: Floats) -> Floats:
    """Return what mu adds to an estimate: (f(theta + mu u) - f(theta)) / mu = u.(theta - b) + mu / 2."""
    return np.float32(D / len(u) * MU / 2) * u.sum(axis=0)


def mean_of_own(rng: np.random.Generator, points: Floats, centres: Floats, q: int) -> Floats:
    """Return estimates of the gradient of F at each row of ``points``, with q directions for each component.

    A direction u is t r/|r| + sqrt(1 - t^2) v, where r is the residual of its component, t the first coordinate of a
    point on the sphere, and v a unit vector orthogonal to r. The q vectors v of a component enter only as a weighted
    sum, which is replaced by a normal vector of the same covariance; its other moments differ by shares of the order
    1/d. The cost hardly depends on q then. Like directions, the draws are the same for all rows.
    """
    n = len(centres)
    square = rng.standard_normal((n, q), dtype=np.float32)
    t = square / np.sqrt(square**2 + 2 * rng.standard_gamma((D - 1) / 2, (n, q), dtype=np.float32))
    rest = 1 - t * t
    x = rng.standard_normal((n, D), dtype=np.float32)
    residuals = points[:, None] - centres
    size = np.sqrt(np.einsum("kid,kid->ki", residuals, residuals))
    half = np.float32(MU / 2)  # each direction has the weight t |r| + mu / 2
    along = (t * t).sum(axis=1) * size + half * t.sum(axis=1)
    spread = (rest * t * t).sum(axis=1) * size**2 + 2 * half * (rest * t).sum(axis=1) * size
    across = np.sqrt(np.maximum(spread + half**2 * rest.sum(axis=1), 0) / np.float32(D - 1))
    along -= across * np.einsum("kid,id->ki", residuals, x) / size  # the part of x along r
    return np.float32(D / (n * q)) * (np.einsum("ki,kid->kd", along / size, residuals) + across @ x)


def largest(points: Floats, keep: np.ndarray) -> Floats:
    """Return H_k of each row, with the row's own k."""
    size = np.abs(points)
    least = np.sort(size, axis=1)[np.arange(len(points)), D - keep]
    return np.where(size >= least[:, None], points, np.float32(0))


def runs(
    eta: float, q: int, ks: tuple[int, ...], seed: int, own: bool = False, m: int = M
) -> tuple[np.ndarray, np.ndarray]:
    """Run every method with every k, by the paper's law (``own``) or by the library's.

    Return the gaps left as shares of the first one, of shape (method, k) and infinite after divergence, and the first
    step below each of GOALS, of shape (goal, method, k) and 0 if there is none.
    """
    box = problem(seed)
    centres, mean = box.centres.astype(np.float32), box.centres.mean(axis=0).astype(np.float32)
    rng = np.random.Generator(np.random.SFC64([seed, q, round(1 / eta)]))
    sgd, full, saga, vr, sarah = (slice(j * len(ks), (j + 1) * len(ks)) for j in range(len(METHODS)))
    keep = np.tile(np.array(ks), len(METHODS))
    theta = np.zeros((len(keep), D), np.float32)
    first, steps, step_size = box.gap(np.zeros(D)), steps_of(eta), np.float32(eta)

    blocks = [unit_vectors(rng, q) for _ in range(N)] if own else [unit_vectors(rng, q)] * N
    rows = [estimates(-centre[None], u)[0] + part_of_mu(u) for centre, u in zip(centres, blocks, strict=True)]
    held = np.repeat(np.array(rows)[None], len(ks), axis=0)  # SAGA's memory at theta^(0)
    anchor = anchor_gradient = before = gradient = full_gradient = first_gradient = theta[vr]
    alive, below = np.ones(len(keep), bool), np.zeros((len(GOALS), len(keep)), int)
    ends = []
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps):
            begins = t % m == 0
            if begins:
                anchor = theta[vr]
            if own:
                averaged = (full, vr, sarah) if begins else (full,)
                means = mean_of_own(rng, np.concatenate([theta[part] for part in averaged]), centres, q)
                full_gradient, *others = means.reshape(len(averaged), len(ks), D)
                if begins:
                    anchor_gradient, first_gradient = others
            elif begins:
                u = unit_vectors(rng, q)
                anchor_gradient = estimates(anchor - mean, u) + part_of_mu(u)
            u, i = unit_vectors(rng, q), int(rng.integers(N))
            residuals = np.empty_like(theta)
            residuals[sgd], residuals[saga] = theta[sgd] - centres[i], theta[saga] - centres[i]
            residuals[full], residuals[vr] = theta[full] - mean, theta[vr] - anchor
            residuals[sarah] = theta[sarah] - (mean if begins else before)
            g = estimates(residuals, u)
            added = part_of_mu(u)
            g[sgd] += added
            g[full] += added
            g[saga] += added
            fresh, g[saga] = g[saga].copy(), g[saga] - held[:, i] + held.mean(axis=1)
            held[:, i] = fresh
            g[vr] += anchor_gradient  # inside a difference, the parts of mu cancel
            g[sarah] += added if begins else gradient
            if own:
                g[full] = full_gradient
                g[sarah] = first_gradient if begins else g[sarah]
            before, gradient = theta[sarah], g[sarah]
            theta = largest(theta - step_size * g, keep)
            gaps = 0.5 * ((theta - mean) ** 2).sum(axis=1) / first
            lost = ~(gaps < DIVERGED)
            if lost.any():
                alive &= ~lost
                theta[lost] = gradient[lost[sarah]] = held[lost[saga]] = 0  # so that no number overflows
                anchor, anchor_gradient = (np.where(lost[vr, None], 0, x) for x in (anchor, anchor_gradient))
                before = np.where(lost[sarah, None], 0, before)
            for goal, hits in zip(GOALS, below, strict=True):
                hits[(hits == 0) & alive & (gaps < goal)] = t + 1
            if t >= steps - LAST:
                ends.append(np.where(alive, gaps, np.inf))
    shape = (len(METHODS), len(ks))
    return np.median(ends, axis=0).reshape(shape), below.reshape(len(GOALS), *shape)


def sweep(
    seeds: int,
    qs: tuple[int, ...] = QS,
    ks: tuple[int, ...] = KS,
    etas: tuple[float, ...] = ETAS,
    own: bool = False,
) -> dict[str, Any]:
    """Return, for each method, the gap left by (eta, k, q), and the fewest calls over eta to each goal by (k, q).

    Both are medians over seeds. The calls are infinite if more than half of the seeds do not reach the goal.
    """
    left: dict[str, Any] = {name: np.empty((len(etas), len(ks), len(qs))) for name in METHODS}
    calls: dict[str, Any] = {
        f"{goal:g}": {name: np.full((len(ks), len(qs)), np.inf) for name in METHODS} for goal in GOALS
    }
    for e, eta in enumerate(etas):
        for c, q in enumerate(qs):
            gaps, hits = zip(*(runs(eta, q, ks, seed, own) for seed in range(seeds)), strict=True)
            middle = np.median(gaps, axis=0)
            reached = np.median(np.where(np.array(hits) > 0, hits, np.inf), axis=0)
            for j, name in enumerate(METHODS):
                left[name][e, :, c] = middle[j]
                for goal, by_k in zip(calls, reached[:, j], strict=True):
                    counted = [calls_of(name, int(step), q) if np.isfinite(step) else np.inf for step in by_k]
                    calls[goal][name][:, c] = np.minimum(calls[goal][name][:, c], counted)
    return {
        "q": qs,
        "k": ks,
        "eta": etas,
        "steps": [steps_of(eta) for eta in etas],
        "left": {name: cube.tolist() for name, cube in left.items()},
        "calls": {goal: {name: cube.tolist() for name, cube in by.items()} for goal, by in calls.items()},
    }


def floors(seeds: int, qs: tuple[int, ...] = FLOOR_QS, ms: tuple[int, ...] = FLOOR_MS) -> dict[str, Any]:
    """Return the gaps left by the paper's law at FLOOR_K: by q beyond those of the sweep, and by m at a small q."""
    by_q = {q: [runs(FLOOR_ETA, q, (FLOOR_K,), seed, own=True)[0][:, 0] for seed in range(seeds)] for q in qs}
    by_m = {
        m: [runs(SMALL_ETA, SMALL_Q, (FLOOR_K,), seed, own=True, m=m)[0][:, 0] for seed in range(3 * seeds)] for m in ms
    }
    middle = {
        name: [dict(zip(METHODS, np.median(rows, axis=0).tolist(), strict=True)) for rows in by.values()]
        for name, by in (("by_q", by_q), ("by_m", by_m))
    }
    return {"q": qs, "m": ms, "k": FLOOR_K, "eta": FLOOR_ETA, "small_q": SMALL_Q, "small_eta": SMALL_ETA} | middle


def predicted_floor(method: str, eta: float, q: int, k: int, m: int = M) -> float:
    """Return the gap that the noise at the solution leaves by the paper's law, as a share of the first one.

    At theta*, each coordinate of a component's estimate has the variance V = sigma^2 (1/q + 1/d), sigma^2 = E||b_i -
    mean||^2, where 1/q is due to the directions and 1/d to the choice of a component. A step of length eta shrinks
    errors by 1 - eta and adds noise, which leaves eta V/2 per coordinate, on k of them. The mean of n components has
    the variance sigma^2/(qn). The m steps of an epoch repeat the same error of the anchor, which adds up to m times the
    variance of m independent ones. Where eta k/q is not small, the noise grows with the distance as well, and more is
    left.
    """
    sigma_square = D * SPREAD**2 * (1 - 1 / N)
    noise = {
        "SZOHT": 1 / q + 1 / D,
        "FGZOHT": 1 / (q * N),
        "VR-SZHT": m / (q * N),
        "SARAH-SZHT": m / (q * N),
    }
    return eta * k / 4 * sigma_square * noise[method] / (SIGNAL**2 / 2)


def best(cube: Any) -> np.ndarray:
    """Return the smallest gap left over the learning rates, by (k, q)."""
    return np.min(np.array(cube, float), axis=0)


def boundary(table: np.ndarray, ks: tuple[int, ...], qs: tuple[int, ...], goal: float = 1e-2) -> dict[int, int | None]:
    """Return, for each k, the least q from which on runs converge, which means that the gap falls to ``goal``."""
    out: dict[int, int | None] = {}
    for k, row in zip(ks, table, strict=True):
        good = [q for place, q in enumerate(qs) if (row[place:] < goal).all()]
        out[k] = good[0] if good else None
    return out

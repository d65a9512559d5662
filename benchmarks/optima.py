"""Find F*, the best known k-sparse value, offline and with exact derivatives. Results are kept in benchmarks/.cache."""

from __future__ import annotations

import json
from hashlib import blake2b
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from objectives import Array, Attack, Auc, Indices, Linear, Logistic, Minibatch, Quadratics, Squared

CACHE = Path(__file__).parent / ".cache"
MOST = 200_000  # the largest number of supports that are enumerated


def keep(path: Path, content: Any) -> None:
    """Write a file of the cache, which git ignores."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.replace(path)


def mark(objective: Any, *more: object) -> str:
    """Return a digest of all numbers that define an objective."""
    digest = blake2b(repr((type(objective).__name__, more)).encode(), digest_size=8)
    for name, value in sorted(vars(objective).items()):
        if isinstance(value, np.ndarray):
            digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, (int, float, tuple)):
            digest.update(f"{name}{value}".encode())
        elif hasattr(value, "__dict__") and not callable(value):
            digest.update(f"{name}{mark(value)}{type(value).__name__}".encode())
    return digest.hexdigest()


def optimum(name: str, objective: Any, k: int) -> tuple[Array, float]:
    """Return theta* and F*, from the cache if the same objective was solved before."""
    path = CACHE / "optima" / f"{name}-{mark(objective, k)}.json"
    if path.exists():
        x = np.array(json.loads(path.read_text())["x"])
    else:
        x = solve(objective, k)
        keep(path, {"x": x.tolist(), "F": objective.F(x)})
    return x, objective.F(x)


def solve(objective: Any, k: int, seed: int = 0) -> Array:
    """Find the best k-sparse point by the strategy that suits the objective."""
    rng = np.random.default_rng(seed)
    if getattr(objective, "known", None) is not None:  # F >= 0 everywhere, and F = 0 at this point
        return objective.known
    if isinstance(objective, Minibatch):
        return solve(objective.whole, k, seed)
    if isinstance(objective, Attack):
        return patterns(objective, k, rng)
    if isinstance(objective, Auc):
        return ranked(objective, k, rng)
    quadratic = isinstance(objective, Quadratics) or isinstance(getattr(objective, "loss", None), Squared)
    if quadratic and comb(objective.d, k) <= MOST:
        return enumerated(objective, k)
    if hasattr(getattr(objective, "loss", None), "delta"):
        return rough(objective, k, rng)
    return spliced(objective, k, rng)


def on(d: int, support: Indices, z: Array) -> Array:
    """Return the vector of length d with entries z on the support."""
    x = np.zeros(d)
    x[support] = z
    return x


def enumerated(objective: Any, k: int) -> Array:
    """Minimise a quadratic by trying every support."""
    minus_b, H = objective.local(np.zeros(objective.d))
    best, lowest = np.zeros(objective.d), np.inf
    supports = np.array(list(combinations(range(objective.d), k)))
    for part in np.array_split(supports, max(1, len(supports) // 20_000)):
        z = np.linalg.solve(H[part[:, :, None], part[:, None, :]], -minus_b[part][..., None])[..., 0]
        value = 0.5 * (minus_b[part] * z).sum(axis=1)
        row = int(value.argmin())
        if value[row] < lowest:
            best, lowest = on(objective.d, part[row], z[row]), value[row]
    return best


def newton(objective: Any, x: Array, support: Indices, steps: int = 100) -> Array:
    """Minimise on a support by damped Newton steps."""
    x = on(objective.d, support, x[support])
    value = objective.F(x)
    for _ in range(steps):
        g, H = objective.local(x)
        g, H = g[support], H[np.ix_(support, support)]
        step = np.linalg.lstsq(H + 1e-14 * np.trace(H) * np.eye(len(support)), g, rcond=None)[0]
        length = 1.0
        while length > 1e-10:
            trial = on(objective.d, support, x[support] - length * step)
            lower = objective.F(trial)
            if lower < value:
                break
            length *= 0.5
        else:
            return x
        done = value - lower <= 1e-15 * abs(value)
        x, value = trial, lower
        if done:
            return x
    return x


def swaps(objective: Any, x: Array, support: Indices, count: int) -> list[Indices]:
    """Return the supports that differ in one coordinate and are best by the quadratic model at x."""
    g, H = objective.local(x)
    b = H @ x - g
    others = np.setdiff1d(np.arange(objective.d), support)
    tried = np.repeat(support[None], len(support) * len(others), axis=0)
    tried = tried.reshape(len(support), len(others), -1)
    for place in range(len(support)):
        tried[place, :, place] = others
    tried = tried.reshape(-1, len(support))
    M = H[tried[:, :, None], tried[:, None, :]] + 1e-10 * np.trace(H) / objective.d * np.eye(len(support))
    z = np.linalg.solve(M, b[tried][..., None])[..., 0]
    order = np.argsort(-(b[tried] * z).sum(axis=1))[:count]
    return [np.sort(tried[row]) for row in order]


def descend(objective: Any, x: Array, support: Indices, fit: Any, count: int = 8) -> tuple[Array, float]:
    """Exchange one coordinate of the support at a time while F falls."""
    x = fit(x, support)
    value = objective.F(x)
    while True:
        for other in swaps(objective, x, support, count):
            trial = fit(x, other)
            if objective.F(trial) < value - 1e-12 * abs(value):
                x, value, support = trial, objective.F(trial), other
                break
        else:
            return x, value


def spliced(objective: Any, k: int, rng: np.random.Generator, restarts: int = 40) -> Array:
    """Exchange coordinates from the gradient's support, then repeatedly restart from a changed best support."""

    def fit(x: Array, support: Indices) -> Array:
        return newton(objective, x, support)

    start = np.zeros(objective.d)
    support = np.sort(np.argsort(-np.abs(objective.local(start)[0]))[:k])
    best, lowest = descend(objective, start, support, fit)
    for restart in range(restarts):
        held = np.flatnonzero(best)
        kept = rng.permutation(held)[: len(held) - min(2 + restart % 3, k)] if restart % 5 else np.empty(0, np.int64)
        fresh = rng.permutation(np.setdiff1d(np.arange(objective.d), kept))[: k - len(kept)]
        x, value = descend(objective, best, np.sort(np.concatenate([kept, fresh])), fit)
        if value < lowest:
            best, lowest = x, value
    return best


def rough(objective: Linear, k: int, rng: np.random.Generator) -> Array:
    """Minimise a loss with kinks: find supports with a smoothed loss, remove the smoothing, exchange coordinates."""
    smooth = Linear(objective.X, objective.y, type(objective.loss)(), objective.lam)

    def polish(x: Array, support: Indices) -> Array:
        best = x = on(objective.d, support, x[support])
        for delta in np.geomspace(0.3, 1e-10, 20):
            smooth.loss.delta = delta
            x = newton(smooth, x, support)
            best = min(best, x, key=objective.F)
        return best

    best, lowest = np.zeros(objective.d), np.inf
    for delta in (0.5, 0.1):
        smooth.loss.delta = delta
        x = spliced(smooth, k, rng)
        support = np.flatnonzero(x)
        x = polish(x, support)
        value = objective.F(x)
        while True:  # exchanges are judged without smoothing
            smooth.loss.delta = delta
            for other in swaps(smooth, x, support, 24):
                trial = polish(x, other)
                if objective.F(trial) < value - 1e-10:
                    x, value, support = trial, objective.F(trial), other
                    break
            else:
                break
        if value < lowest:
            best, lowest = x, value
    return best


def ranked(objective: Auc, k: int, rng: np.random.Generator, supports: int = 80, lines: int = 400) -> Array:
    """Minimise 1 - AUC: find supports by a logistic loss on the pairs, then run exact line searches on the best."""
    pairs = (objective.positive[:, None] - objective.negative[None]).reshape(-1, objective.d)
    smooth = Linear(pairs, np.ones(len(pairs)), Logistic(), 1e-3)
    start = newton(smooth, np.zeros(objective.d), np.arange(objective.d))
    found = {}
    _, H = smooth.local(start)
    every = np.array(list(combinations(range(objective.d), k)))
    b = H @ start - smooth.local(start)[0]
    z = np.linalg.solve(H[every[:, :, None], every[:, None, :]], b[every][..., None])[..., 0]
    for row in np.argsort(-(b[every] * z).sum(axis=1))[: 4 * supports]:
        x = newton(smooth, on(objective.d, every[row], z[row]), every[row], 10)
        found[objective.F(x)] = x
    best = [found[value] for value in sorted(found)[:supports]]
    for place, x in enumerate(best):
        support, value = np.flatnonzero(x), objective.F(x)
        for line in range(lines):
            v = np.zeros(objective.d)
            v[support] = np.eye(k)[line % k] if line % 3 == 0 else rng.standard_normal(k)
            x, value = along(objective, pairs, x, v, value)
        best[place] = x
    return min(best, key=objective.F)


def along(objective: Auc, pairs: Array, x: Array, v: Array, value: float) -> tuple[Array, float]:
    """Return the best point on the line x + t v: the order of a pair changes only where its two scores are equal."""
    level, slope = pairs @ x, pairs @ v
    moving = slope != 0
    meets, signs = -level[moving] / slope[moving], np.sign(slope[moving])
    order = np.argsort(meets)
    right = np.cumsum(signs[order])  # pairs that became right minus pairs that became wrong, coming from -infinity
    place = int(right[:-1].argmax())
    trial = x + 0.5 * (meets[order[place]] + meets[order[place + 1]]) * v
    lower = objective.F(trial)
    return (trial / np.abs(trial).max(), lower) if lower < value else (x, value)


def patterns(objective: Attack, k: int, rng: np.random.Generator, starts: int = 12) -> Array:
    """Change one or two pixels at a time while F falls, from several starts and on finer and finer grids."""
    best, lowest = np.zeros(objective.d), objective.F(np.zeros(objective.d))
    for start in range(starts):
        x = np.zeros(objective.d)
        if start:
            x[rng.permutation(objective.d)[:k]] = rng.choice([-1.0, 1.0], k)
        value = objective.F(x)
        for levels in (np.linspace(-1, 1, 5), np.linspace(-1, 1, 21), None, None, None):
            while True:
                trials = _changed(x, k, levels, rng)
                values = objective.many(trials)
                row = int(values.argmin())
                if values[row] >= value - 1e-12:
                    break
                x, value = trials[row], values[row]
        if value < lowest:
            best, lowest = x, value
    return best


def _changed(x: Array, k: int, levels: Array | None, rng: np.random.Generator) -> Array:
    """Return neighbours of x: another value for a pixel, a change moved to another pixel, or small random steps."""
    support = np.flatnonzero(x)
    if levels is None:
        sizes = 10.0 ** rng.uniform(-6, -1, (2000, 1))
        steps = sizes * rng.standard_normal((2000, len(support))) * (rng.random((2000, len(support))) < 0.5)
        trials = np.repeat(x[None], 2000, axis=0)
        trials[:, support] = np.clip(trials[:, support] + steps, -1, 1)
        return trials
    leaving = [*support, -1] if len(support) < k else list(support)
    trials = []
    for old in leaving:
        for new in range(x.size):
            if new in support and new != old:
                continue
            for level in levels:
                trial = x.copy()
                if old >= 0:
                    trial[old] = 0.0
                trial[new] = level
                trials.append(trial)
    return np.array(trials)

"""Check whether the inequalities of the theory hold on quadratics, and with how much slack.

Each row has the ratio of the measured quantity to its bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import zerothresh as zt
from zerothresh import theory
from zerothresh.sampling.directions import draw


@dataclass(frozen=True)
class Row:
    """An inequality: the largest and the median of measured / bound over cases. It holds if the largest is <= 1."""

    what: str
    cases: int
    largest: float
    median: float
    error: float  # standard error of the largest ratio, where it is a mean over draws

    @property
    def holds(self) -> bool:
        return self.largest - 3 * self.error <= 1


class Quadratics:
    """f_i = (theta - b_i)' A_i (theta - b_i) / 2 with diagonal A_i; the mean has its minimum at a k*-sparse point."""

    def __init__(
        self, *, d: int, n: int, k_star: int, kappa: float, spread: float, seed: int, extremes: bool = False
    ) -> None:
        rng = np.random.default_rng(seed)
        self.d, self.n, self.k_star = d, n, k_star
        base = np.geomspace(1 / kappa, 1, d)[rng.permutation(d)]
        self.A = base * (1 + 0.5 * rng.uniform(-1, 1, (n, d)))
        self.star = np.zeros(d)
        support = rng.choice(d, k_star, replace=False)
        if extremes:  # from the flattest to the steepest coordinate, each with the same share of the gap
            support = np.argsort(base)[np.linspace(0, d - 1, k_star).round().astype(int)]
        self.star[support] = base[support] ** -0.5 if extremes else 1 + rng.random(k_star)
        push = spread * rng.standard_normal((n, d))
        self.push = push - push.mean(axis=0)  # grad f_i(theta*), of mean 0
        self.rho_minus, self.rho_plus = float(self.A.mean(axis=0).min()), float(self.A.max())

    def values(self, points: np.ndarray, components: np.ndarray) -> np.ndarray:
        e = points - self.star
        return (e * (0.5 * self.A[components] * e + self.push[components])).sum(axis=1)

    def gradient(self, x: np.ndarray, i: int) -> np.ndarray:
        return self.A[i] * (x - self.star) + self.push[i]

    def F(self, x: np.ndarray) -> float:
        """Return F - F* at x."""
        return float(0.5 * (self.A.mean(axis=0) * (x - self.star) ** 2).sum())


def directions(q: int, d: int, s2: int, *, seed: int, number: int) -> np.ndarray:
    """Return the library's own block of q directions, an array of shape (q, d)."""
    out = np.empty((q, d))
    draw("sphere", q, d, s2, key=seed, round=number, tag=1).displace(np.zeros(d), 1.0, out)
    return out


def estimate(box: Quadratics, x: np.ndarray, i: int, u: np.ndarray, mu: float) -> np.ndarray:
    """Return the gradient estimate of eq. (3) for component i, from the directions u."""
    of = np.full(len(u) + 1, i)
    values = box.values(np.vstack([x[None], x + mu * u]), of)
    return box.d / (len(u) * mu) * ((values[1:] - values[0]) @ u)


def row(what: str, ratios: list[tuple[float, float]]) -> Row:
    """Summarise pairs of (ratio, standard error)."""
    numbers = np.array([ratio for ratio, _ in ratios])
    worst = int(numbers.argmax())
    return Row(what, len(ratios), float(numbers[worst]), float(np.median(numbers)), float(ratios[worst][1]))


def expansivity(draws: int) -> list[Row]:
    """Compare ||H_k(theta) - theta*||^2 / ||theta - theta*||^2 with alpha, at random points and at the worst one."""
    rng, random, worst, tight = np.random.default_rng(0), [], [], []
    for k_star in (1, 3, 10):
        for k in (k_star + 1, 2 * k_star, 4 * k_star, 16 * k_star):
            if k <= k_star:
                continue
            d, bound = 3 * k + 5, theory.alpha(k=k, k_star=k_star)
            for _ in range(draws // 12):
                star = np.where(np.arange(d) < k_star, rng.standard_normal(d), 0.0)
                random.append(
                    (ratio_of(star + rng.standard_normal(d) * rng.choice([0.1, 0.5, 2]), star, k) / bound, 0.0)
                )
            found = worst_ratio(k, k_star, d)
            worst.append((found / bound, 0.0))
            tight.append((found / theory.alpha_tight(k=k, k_star=k_star, d=d), 0.0))
    return [
        row("expansivity of H_k: random points, over alpha", random),
        row("expansivity of H_k: worst point, over alpha", worst),
        row("expansivity of H_k: worst point, over the tight bound", tight),
    ]


def ratio_of(v: np.ndarray, star: np.ndarray, k: int) -> float:
    """Return ||H_k(v) - star||^2 / ||v - star||^2."""
    return float(((zt.hard_threshold(v, k) - star) ** 2).sum() / ((v - star) ** 2).sum())


def worst_ratio(k: int, k_star: int, d: int) -> float:
    """Return the largest ratio over a family of points v.

    theta* is 1 on k* coordinates, where v is h, and v is slightly larger on k others. H_k then keeps the k others and
    drops all coordinates of theta*.
    """
    star = (np.arange(d) < k_star).astype(float)
    best = 0.0
    for h in np.linspace(0.01, 0.99, 400):
        v = np.where(np.arange(d) < k_star, h, np.where(np.arange(d) < k_star + k, h * (1 + 1e-9), 0.0))
        best = max(best, ratio_of(v, star, k))
    return best


def moments(draws: int) -> list[Row]:
    """Compare bias and second moment of eq. (3) with Lemma 2's bounds, for several s2."""
    d, k, k_star = 60, 4, 2
    s = 2 * k + k_star
    rows = []
    for s2 in (1, 2, 5, 20, d):
        bias, second, exact = [], [], []
        for case, (q, mu, reach) in enumerate([(1, 1e-4, 1.0), (5, 1e-4, 1.0), (20, 0.5, 0.1), (5, 2.0, 0.3)]):
            box = Quadratics(d=d, n=3, k_star=k_star, kappa=10, spread=0.3, seed=case)
            rng = np.random.default_rng(case)
            x = zt.hard_threshold(box.star + reach * rng.standard_normal(d), k)
            I = rng.choice(d, s, replace=False)
            g = box.gradient(x, 0)
            found = np.array(
                [estimate(box, x, 0, directions(q, d, s2, seed=case, number=r), mu)[I] for r in range(draws)]
            )
            size = {"d": d, "q": q, "s": s, "s2": s2}
            inside, outside = (g[I] ** 2).sum(), (g**2).sum() - (g[I] ** 2).sum()
            off = found.mean(axis=0) - g[I]
            noise = (found.var(axis=0, ddof=1) / draws).sum()  # the error that the mean over draws has by chance
            allowed = theory.eps_mu(d=d, s=s, rho_plus=box.rho_plus) * mu**2
            bias.append((max(0.0, (off**2).sum() - noise) / allowed, noise / allowed))
            norms = (found**2).sum(axis=1)
            bound = theory.eps_I(**size) * inside + theory.eps_Ic(**size) * outside
            bound += theory.eps_abs(**size, rho_plus=box.rho_plus) * mu**2
            second.append((norms.mean() / bound, norms.std() / draws**0.5 / bound))
            if mu < 1e-3:
                a, b = theory.second_moment(**size)
                exact.append(
                    (norms.mean() / (a * inside + b * outside), norms.std() / draws**0.5 / (a * inside + b * outside))
                )
        rows.append(row(f"bias, s2 = {s2}, mu = 0.5 and 2", [one for place, one in enumerate(bias) if place > 1]))
        rows.append(row(f"second moment, s2 = {s2}, over Lemma 2", second))
        rows.append(row(f"second moment, s2 = {s2}, over the exact one", exact))
    return rows


def bent(draws: int) -> list[Row]:
    """Measure the bias where it is not 0, which takes an f that is not quadratic: f = sum a x|x| / 2."""
    d, s, mu, ratios = 40, 10, 0.1, []
    a = np.linspace(0.2, 1, d)
    for s2 in (1, 5, d):
        mean = np.zeros(d)
        for r in range(draws):
            u = directions(20, d, s2, seed=5, number=r)
            mean += d / (20 * mu) * ((0.5 * (mu * u * np.abs(mu * u)) @ a) @ u) / draws
        ratios.append(((mean[-s:] ** 2).sum() / (theory.eps_mu(d=d, s=s, rho_plus=1.0) * mu**2), 0.0))
    return [row("bias, f not quadratic, s2 = 1, 5, d", ratios)]


def chosen(draws: int) -> list[Row]:
    """Measure the second moment on the support that the draw itself chooses, which Lemma 2 does not cover."""
    d, k, q = 1000, 3, 1
    g = np.full(d, d**-0.5)
    norms = np.empty(draws)
    for r in range(draws):
        u = directions(q, d, d, seed=3, number=r)
        norms[r] = (zt.hard_threshold(d / q * (u @ g) @ u, k) ** 2).sum()
    size = {"d": d, "q": q, "s": k, "s2": d}
    bound = theory.eps_I(**size) * k / d + theory.eps_Ic(**size) * (1 - k / d)
    return [
        row(
            "second moment, on the support that the draw chose",
            [(norms.mean() / bound, norms.std() / draws**0.5 / bound)],
        )
    ]


def steps(draws: int) -> list[Row]:
    """Check Theorem 1 on steps of SZOHT, FGZOHT and VR-SZHT (shared directions), with measured second moments."""
    kinds: dict[str, Callable[..., np.ndarray]] = {
        "SZOHT": lambda box, x, anchor, i, u, mu: estimate(box, x, i, u, mu),
        "FGZOHT": lambda box, x, anchor, i, u, mu: np.mean([estimate(box, x, j, u, mu) for j in range(box.n)], axis=0),
        "VR-SZHT": lambda box, x, anchor, i, u, mu: (
            estimate(box, x, i, u, mu)
            - estimate(box, anchor, i, u, mu)
            + np.mean([box.gradient(anchor, j) for j in range(box.n)], axis=0)
        ),
    }
    rows = []
    for name, make in kinds.items():
        ratios = []
        for case in range(12):
            rng = np.random.default_rng(case)
            d, k_star, q = 40, int(rng.integers(1, 4)), int(rng.choice([2, 10, 40]))
            k, s2, mu = k_star + int(rng.integers(1, 6)), int(rng.choice([1, 10, 40])), float(rng.choice([1e-4, 0.3]))
            box = Quadratics(d=d, n=4, k_star=k_star, kappa=5, spread=0.1, seed=case)
            eta = float(rng.choice([0.05, 0.3, 1.0])) / box.rho_plus
            x = zt.hard_threshold(box.star + 0.5 * rng.standard_normal(d), k)
            anchor = zt.hard_threshold(x + 0.1 * rng.standard_normal(d), k)
            after, second = np.empty(draws), np.empty(draws)
            for r in range(draws):
                g = make(box, x, anchor, r % box.n, directions(q, d, s2, seed=case, number=r), mu)
                new = zt.hard_threshold(x - eta * g, k)
                I = (new != 0) | (x != 0) | (box.star != 0)
                after[r], second[r] = ((new - box.star) ** 2).sum(), (g[I] ** 2).sum()
            bound = theory.step_bound(
                eta=eta, alpha=theory.alpha(k=k, k_star=k_star), rho_minus=box.rho_minus,
                eps_mu=theory.eps_mu(d=d, s=min(d, 2 * k + k_star), rho_plus=box.rho_plus), mu=mu,
                distance_square=((x - box.star) ** 2).sum(), second_moment=second.mean(), gap=box.F(x),
            )  # fmt: skip
            ratios.append((after.mean() / bound, after.std() / draws**0.5 / bound))
        rows.append(row(f"Theorem 1, a step of {name}", ratios))
    return rows


def epochs(seeds: int) -> list[Row]:
    """Check Theorem 3 and SARAH's theorem on an epoch, with the outgoing iterate drawn by the law of the proof."""
    out = []
    for name, made, gamma, delta, errors in (
        ("VR-SZHT", zt.VRSZHT, theory.vr_gamma, theory.vr_delta, theory.vr_errors),
        ("SARAH-SZHT", zt.SARAHSZHT, theory.sarah_gamma, theory.sarah_delta, theory.sarah_errors),
    ):
        ratios = []
        for case in range(8):
            rng = np.random.default_rng(case)
            d, k_star, k, m = 40, 2, int(rng.choice([3, 6, 12])), int(rng.choice([3, 10]))
            q, mu, s = int(rng.choice([10, 40])), 1e-3, 2 * k + 2
            box = Quadratics(d=d, n=5, k_star=k_star, kappa=4, spread=0.0 if case % 2 else 0.05, seed=case)
            size = {"d": d, "q": q, "s": s, "s2": d}
            eps_I, a = theory.eps_I(**size), theory.alpha(k=k, k_star=k_star)
            curve = {"eps_I": eps_I, "rho_minus": box.rho_minus, "rho_plus": box.rho_plus}
            eta = 1 / (48 * eps_I * box.rho_plus)
            start = zt.hard_threshold(box.star + 0.5 * rng.standard_normal(d), k)
            law = theory.outgoing_law(beta=theory.beta(eta=eta, alpha=a, rho_minus=box.rho_minus), m=m)
            gaps = np.array(
                [law @ iterates(made(eta=eta, m=m), box, start, k, q, mu, m, seed) for seed in range(seeds)]
            )
            at = theory.AtOptimum(0.0, float((np.abs(box.push).max(axis=1) ** 2).mean()))
            rest = errors(
                eta=eta, m=m, alpha=a, rho_minus=box.rho_minus, eps_I=eps_I, eps_Ic=theory.eps_Ic(**size), d=d, s=s,
                eps_mu=theory.eps_mu(d=d, s=s, rho_plus=box.rho_plus), mu=mu, at_optimum=at,
                eps_abs=theory.eps_abs(**size, rho_plus=box.rho_plus),
            )  # fmt: skip
            left = delta(eta=eta, m=m, alpha=a, **curve) * gaps
            right = gamma(eta=eta, m=m, alpha=a, **curve) * box.F(start) + sum(rest)
            ratios.append((left.mean() / right, left.std() / seeds**0.5 / right))
        out.append(row(f"theorem of {name}, an epoch", ratios))
    return out


def iterates(
    method: Any, box: Quadratics, start: np.ndarray, k: int, q: int, mu: float, m: int, seed: int
) -> np.ndarray:
    """Return F - F* at theta^(0) .. theta^(m-1) of the first epoch."""
    gaps = [box.F(start)]
    estimator = zt.Estimator(q=q, mu=mu, directions="sphere")
    for state in zt.iterate(box, start, k, budget=10**9, method=method, estimator=estimator, seed=seed, monitor=box.F):
        if state.nht:
            gaps.append(float(state.fun))
        if state.nht >= m - 1:
            break
    return np.array(gaps[:m])


def memory(draws: int) -> list[Row]:
    """Check the repaired Theorem 2 on a step of SAGA-SZHT, from a fresh memory and from a stale one.

    The fresh memory was filled at the iterate. The stale one was filled far from theta*, and the iterate is at theta*.
    """
    rows = []
    for name, stale in (("fresh", False), ("stale", True)):
        ratios = []
        for case in range(8):
            rng = np.random.default_rng(case)
            d, k_star, k, n = 40, 2, int(rng.choice([3, 6, 12])), 5
            q, mu, s = int(rng.choice([10, 40])), 1e-5, 2 * k + 2
            box = Quadratics(d=d, n=n, k_star=k_star, kappa=4, spread=0.0, seed=case)
            size = {"d": d, "q": q, "s": s, "s2": d}
            eps_I, a = theory.eps_I(**size), theory.alpha(k=k, k_star=k_star)
            curve = {"eps_I": eps_I, "rho_minus": box.rho_minus, "rho_plus": box.rho_plus}
            eta = theory.pm_eta(**curve)
            old = zt.hard_threshold(box.star + (3.0 if stale else 0.5) * rng.standard_normal(d), k)
            x = box.star if stale else old
            after = np.empty(draws)
            for r in range(draws):
                blocks = [directions(q, d, d, seed=case, number=7 * r + j) for j in range(n + 1)]
                held = [estimate(box, old, i, blocks[i + 1], mu) for i in range(n)]
                g = estimate(box, x, r % n, blocks[0], mu) - held[r % n] + np.mean(held, axis=0)
                after[r] = box.F(zt.hard_threshold(x - eta * g, k))
            common = {
                "eps_I": eps_I, "eps_Ic": theory.eps_Ic(**size), "d": d, "s": s, "mu": mu, "rho_plus": box.rho_plus,
                "eps_abs": theory.eps_abs(**size, rho_plus=box.rho_plus),
            }  # fmt: skip
            A_r = theory.memory_error(past_gap=box.F(old), **common)
            rest = theory.pm_errors(
                eta=eta, alpha=a, rho_minus=box.rho_minus, A_r=A_r,
                eps_mu=theory.eps_mu(d=d, s=s, rho_plus=box.rho_plus), **common,
            )  # fmt: skip
            own = theory.pm_gamma(eta=eta, alpha=a, p=1, n=n, **curve) - 1 + 1 / n
            right = own * box.F(x) + sum(rest)
            ratios.append((after.mean() / right, after.std() / draws**0.5 / right))
        rows.append(row(f"Theorem 2, repaired, a step of SAGA-SZHT, {name} memory", ratios))
    return rows


def lemmas(draws: int) -> list[Row]:
    """Compare E||g_I||^2 of pM-SZHT, VR-SZHT and SARAH-SZHT with the bounds of `zerothresh.theory.moments`."""
    found: dict[str, list[tuple[float, float]]] = {"pM-SZHT": [], "VR-SZHT": [], "SARAH-SZHT": []}
    for case in range(8):
        rng = np.random.default_rng(case)
        d, k_star, k, n, mu = 40, 2, int(rng.choice([3, 6, 12])), 5, 1e-3
        q, s = int(rng.choice([3, 10, 40])), 2 * k + 2
        box = Quadratics(d=d, n=n, k_star=k_star, kappa=4, spread=0.0 if case % 2 else 0.1, seed=case)
        size = {"d": d, "q": q, "s": s, "s2": d}
        x, old = (
            zt.hard_threshold(box.star + reach * rng.standard_normal(d), k) for reach in rng.permutation([0.5, 0.1])
        )
        I = np.argsort(-np.abs(x) - np.abs(old) - np.abs(box.star))[:s]  # fixed before the draws
        steep = np.mean([box.gradient(old, j) for j in range(n)], axis=0)
        wrong = 0.1 * rng.standard_normal(d)  # the error that SARAH's gradient has kept
        norms = {name: np.empty(draws) for name in found}
        for r in range(draws):
            i, blocks = r % n, [directions(q, d, d, seed=case, number=8 * r + j) for j in range(n + 1)]
            held = [estimate(box, old, j, blocks[j + 1], mu) for j in range(n)]
            here, there = estimate(box, x, i, blocks[0], mu), estimate(box, old, i, blocks[0], mu)
            full = np.mean([estimate(box, old, j, blocks[1], mu) for j in range(n)], axis=0)
            norms["pM-SZHT"][r] = ((here - held[i] + np.mean(held, axis=0))[I] ** 2).sum()
            norms["VR-SZHT"][r] = ((here - there + full)[I] ** 2).sum()
            norms["SARAH-SZHT"][r] = ((here - there + steep + wrong)[I] ** 2).sum()
        common: dict[str, Any] = {
            "eps_I": theory.eps_I(**size), "eps_Ic": theory.eps_Ic(**size), "d": d, "s": s, "mu": mu,
            "eps_abs": theory.eps_abs(**size, rho_plus=box.rho_plus), "rho_plus": box.rho_plus, "gap": box.F(x),
            "at_optimum": theory.AtOptimum(0.0, float((np.abs(box.push).max(axis=1) ** 2).mean())),
        }  # fmt: skip
        A_r = theory.memory_error(past_gap=box.F(old), **{key: one for key, one in common.items() if key != "gap"})
        kept = float((wrong[I] ** 2).sum())
        bounds = {
            "pM-SZHT": theory.pm_second_moment(A_r=A_r, **common),
            "VR-SZHT": theory.vr_second_moment(anchor_gap=box.F(old), **common),
            "SARAH-SZHT": theory.sarah_second_moment(previous_gap=box.F(old), kept_error=kept, **common),
        }
        for name, bound in bounds.items():
            found[name].append((norms[name].mean() / bound, norms[name].std() / draws**0.5 / bound))
    return [row(f"second moment of {name}, over its lemma", ratios) for name, ratios in found.items()]


@dataclass(frozen=True)
class Convergence:
    """A run of SZOHT where its theorem holds: mean squared distances, and what the theory predicts."""

    measured: list[float]
    words: dict[str, float]  # settings, rates and floors


def szoht_run(seeds: int, steps: int) -> Convergence:
    """Measure linear convergence to the predicted floor, on the smallest kind of problem that the theorem covers."""
    d, k_star, k, kappa, mu = 400, 1, 150, 1.05, 1e-5
    box = Quadratics(d=d, n=1, k_star=k_star, kappa=1.0, spread=0.0, seed=0)
    box.A = np.linspace(1 / kappa, 1, d)[None]
    box.rho_minus, box.rho_plus = 1 / kappa, 1.0
    q = 2 * theory.szoht_q(d=d, s2=d, k_star=k_star, kappa=kappa, k=k)
    size = {"d": d, "q": q, "s": 2 * k + k_star, "s2": d}
    eps_I = theory.eps_I(**size)
    eta = theory.szoht_eta(eps_I=eps_I, rho_minus=box.rho_minus, rho_plus=1.0)
    rate = theory.szoht_rate(k=k, k_star=k_star, eps_I=eps_I, kappa=kappa)
    floor = theory.szoht_floor(
        rate=rate, gamma_square=theory.alpha_tight(k=k, k_star=k_star, d=d), eta=eta, rho_minus=box.rho_minus, mu=mu,
        eps_mu=theory.eps_mu(d=d, s=size["s"], rho_plus=1.0), eps_abs=theory.eps_abs(**size, rho_plus=1.0),
    )  # fmt: skip

    def distance(x: np.ndarray) -> float:
        return float(((x - box.star) ** 2).sum())

    runs = []
    for seed in range(seeds):
        one = [distance(np.zeros(d))]
        estimator = zt.Estimator(q=q, mu=mu, directions="sphere")
        method = zt.SZOHT(eta=eta)
        for state in zt.iterate(
            box, None, k, budget=10**9, method=method, estimator=estimator, seed=seed, monitor=distance
        ):
            one.append(float(state.fun))
            if len(one) > steps:
                break
        runs.append(one)
    mean = np.mean(runs, axis=0)
    fall = mean[: max(2, int((mean > 1e3 * mean[-1]).sum()))]
    seen = float((fall[-1] / fall[0]) ** (1 / (len(fall) - 1))) ** 0.5
    words = {"d": d, "k": k, "k_star": k_star, "kappa": kappa, "q": q, "eta": eta, "mu": mu, "rate": rate}
    words |= {"rate seen": seen, "floor": floor, "floor seen": float(mean[-20:].mean())}
    return Convergence(mean.tolist(), words)

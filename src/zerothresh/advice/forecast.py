"""What the theory guarantees for a problem: whether each method converges, with which settings, in how many calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from zerothresh import theory
from zerothresh.theory.complexity import digits

_GRID = [2 ** (step / 4) for step in range(41)]  # factors from 1 to 1024, for trying q and m above the smallest allowed


@dataclass(frozen=True)
class Question:
    """The numbers that the theorems depend on."""

    n: int
    d: int
    k: int
    k_star: int
    rho_minus: float
    rho_plus: float
    eps: float
    s2: int | None = None  # size of the support of a direction; None tries 1 and d
    rho_plus_mean: float | None = None  # smoothness of F; None takes that of the components

    @property
    def kappa(self) -> float:
        """kappa_s, or infinity where rho^- is not positive."""
        return self.rho_plus / self.rho_minus if self.rho_minus > 0 else math.inf

    @property
    def supports(self) -> tuple[int, ...]:
        """The sizes s2 to try."""
        return (self.s2,) if self.s2 is not None else tuple(sorted({1, self.d}))

    def eps_I(self, q: int, s2: int) -> float:
        """eps_I at s = 2k + k*."""
        return theory.eps_I(d=self.d, q=q, s=2 * self.k + self.k_star, s2=s2)


@dataclass(frozen=True)
class Forecast:
    """The theory's forecast for one method.

    ``queries`` bounds the calls until the gap is eps times its initial value; None means that there is no guarantee.
    """

    method: str
    why: str  # the violated condition, or the condition on q
    q: int | None = None
    least_q: int | None = None
    s2: int | None = None
    m: int | None = None
    eta: float | None = None
    eta_low: float | None = None  # ends of the interval of learning rates
    eta_high: float | None = None
    queries: float | None = None

    @property
    def converges(self) -> bool:
        """Whether a theorem guarantees convergence on this problem."""
        return self.queries is not None


def forecasts(asked: Question) -> tuple[Forecast, ...]:
    """The forecasts for all methods of the paper that have a theorem."""
    return tuple(forecast(name, asked) for name in METHODS)


def forecast(name: str, asked: Question) -> Forecast:
    """The forecast for one method, by its registered name."""
    violated = _violated(asked)
    return Forecast(name, violated) if violated else METHODS[name](name, asked)


def _violated(asked: Question) -> str:
    """The first violated condition of those that all theorems share; empty if all of them hold."""
    if asked.k <= asked.k_star:
        return f"needs k > k*, but k = {asked.k} and k* = {asked.k_star}"
    if asked.rho_minus <= 0:
        return "needs rho^- > 0, but F is not convex along all sparse directions"
    if 2 * asked.k + asked.k_star > asked.d:
        return f"needs s = 2k + k* <= d, but s = {2 * asked.k + asked.k_star} and d = {asked.d}"
    return ""


def _best(found: list[Forecast], name: str, why: str) -> Forecast:
    """The forecast with the fewest calls, or one that says why there is none."""
    return min(found, key=lambda one: one.queries or math.inf) if found else Forecast(name, why)


def _plain(name: str, asked: Question) -> Forecast:
    """Forecast SZOHT, or FGZOHT, which is SZOHT on F itself: the smoothness of F, and n times the calls per step."""
    each, found = (asked.n if name == "fgzoht" else 1), []
    if name == "fgzoht" and asked.rho_plus_mean is not None:
        asked = replace(asked, rho_plus=max(asked.rho_plus_mean, asked.rho_minus))
    for s2 in asked.supports:
        try:
            least = theory.szoht_q(d=asked.d, s2=s2, k_star=asked.k_star, kappa=asked.kappa, k=asked.k)
        except ValueError:
            continue
        for q in (math.ceil(least * factor) for factor in _GRID):
            eps_I = asked.eps_I(q, s2)
            rate = theory.szoht_rate(k=asked.k, k_star=asked.k_star, eps_I=eps_I, kappa=asked.kappa)
            if rate >= 1:
                continue
            eta = theory.szoht_eta(eps_I=eps_I, rho_minus=asked.rho_minus, rho_plus=asked.rho_plus)
            # The rate is that of distances, and the gap is quadratic in them: hence the 2.
            steps = math.ceil(digits(asked.eps) / (-2 * math.log(rate)))
            found.append(
                Forecast(name, f"q >= {least:,}", q, least, s2, None, eta, queries=float(each * steps * (q + 1)))
            )
    limit = theory.szoht_least_k(k_star=asked.k_star, kappa=asked.kappa)
    return _best(found, name, _too_few(limit, asked))


def _reduced(name: str, asked: Question) -> Forecast:
    """Forecast VR-SZHT or SARAH-SZHT."""
    delta, gamma = (theory.vr_delta, theory.vr_gamma) if name == "vr-szht" else (theory.sarah_delta, theory.sarah_gamma)
    saved = 0 if name == "vr-szht" else 1
    found = []
    a = theory.alpha(k=asked.k, k_star=asked.k_star)
    for s2 in asked.supports:
        try:
            least = theory.vr_q(d=asked.d, s2=s2, k_star=asked.k_star, kappa=asked.kappa, k=asked.k)
        except ValueError:
            continue
        for q in (math.ceil(least * factor) for factor in _GRID):
            curve = {"eps_I": asked.eps_I(q, s2), "rho_minus": asked.rho_minus, "rho_plus": asked.rho_plus}
            ends, eta = theory.vr_eta_interval(alpha=a, **curve), theory.vr_eta(**curve)
            if eta not in ends:
                continue
            try:
                m_least = theory.vr_least_m(eta=eta, alpha=a, **curve) + 2
            except ValueError:  # at the very end of the interval
                continue
            for m in (math.ceil(m_least * factor) for factor in _GRID[::4]):
                try:
                    ratio = gamma(eta=eta, m=m, alpha=a, **curve) / delta(eta=eta, m=m, alpha=a, **curve)
                except ValueError:  # beta^m overflows
                    break
                if not 0 < ratio < 1:
                    continue
                rounds = math.ceil(digits(asked.eps) / -math.log(ratio))
                calls = float(rounds * (asked.n + 2 * (m - saved)) * (q + 1))
                found.append(Forecast(name, f"q >= {least:,}", q, least, s2, m, eta, ends.low, ends.high, calls))
    limit = theory.vr_least_k(k_star=asked.k_star, kappa=asked.kappa)
    return _best(found, name, _too_few(limit, asked))


def _memory(name: str, asked: Question) -> Forecast:
    """Forecast pM-SZHT with p = 1 (SAGA): gamma < 1 requires p/n above 1 - 1/196, so n = 1."""
    a, found = theory.alpha(k=asked.k, k_star=asked.k_star), []
    for s2 in asked.supports:
        for q in (2**power for power in range(50)):
            curve = {"eps_I": asked.eps_I(q, s2), "rho_minus": asked.rho_minus, "rho_plus": asked.rho_plus}
            ends, eta = theory.pm_eta_interval(alpha=a, p=1, n=asked.n, **curve), theory.pm_eta(**curve)
            if eta in ends:
                rate = theory.pm_gamma(eta=eta, alpha=a, p=1, n=asked.n, **curve)
                calls = float(math.ceil(digits(asked.eps) / -math.log(rate)) * (q + 1))
                found.append(Forecast(name, "n = 1", q, None, s2, None, eta, ends.low, ends.high, calls))
    return _best(found, name, "there is no eta with gamma < 1, for any q (erratum pm-interval-empty in docs/theory.md)")


def _too_few(limit: int, asked: Question) -> str:
    """Why no q is large enough, given the smallest k in the limit of large q and d."""
    if asked.k < limit:
        return f"needs k >= {limit:,}, so d >= {2 * limit + asked.k_star:,}, even as q tends to infinity"
    return f"no q is large enough: the bound k >= {limit:,} is reached only as q and d tend to infinity"


METHODS: dict[str, Callable[[str, Question], Forecast]] = {
    "szoht": _plain,
    "fgzoht": _plain,
    "vr-szht": _reduced,
    "sarah-szht": _reduced,
    "saga-szht": _memory,
}


def smallest(asked: Question) -> Question | None:
    """A problem with these curvatures on which SZOHT's theorem holds, with at least twice the smallest k.

    None if F is not convex along sparse directions.
    """
    if not math.isfinite(asked.kappa):
        return None
    k = max(asked.k, 2 * theory.szoht_least_k(k_star=asked.k_star, kappa=asked.kappa))
    d = max(asked.d, 2 * k + asked.k_star)
    return replace(asked, d=d, k=k, s2=None)

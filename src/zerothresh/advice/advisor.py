"""`zt.advise`: from n, d, k, k* and the curvatures, or a function to probe, to what should be run."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zerothresh import theory
from zerothresh.advice import probing as blackbox
from zerothresh.advice.forecast import Forecast, Question, forecast, forecasts, smallest
from zerothresh.advice.practice import Curvature, Recommendation, automatic, of_the_paper
from zerothresh.advice.probing import Probe, ProbeFailed
from zerothresh.api.minimizer import minimize
from zerothresh.basics import check
from zerothresh.theory.complexity import digits
from zerothresh.theory.constants import check_curvature

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True)
class Apart:
    """The same number in theory and in practice. ``share`` is how many times more cautious theory is."""

    what: str
    theory: float
    practice: float
    share: float
    note: str = ""


@dataclass(frozen=True)
class Trial:
    """A recommendation that was followed, within the calls allowed."""

    name: str
    calls: int
    start: float
    end: float
    support: int
    status: str


@dataclass(frozen=True)
class Advice:
    """What `advise` found; prints as tables, ``to_json()`` for programs.

    ``settings`` follows the first recommendation: ``zt.minimize(fun, x0, k, n=n, **advice.settings)``;
    ``paper_settings`` the second, with a method of the paper.
    """

    asked: Question
    k_star_given: bool
    probe: Probe | None
    theory: tuple[Forecast, ...]
    orders: dict[str, float]
    practice: tuple[Recommendation, Recommendation]
    apart: tuple[Apart, ...]
    trials: tuple[Trial, ...] = ()
    objective: str | None = None  # as the command line names it
    components: int | None = None  # n, if the function takes a component
    vectorized: bool = False
    start: str | None = None  # how the start is named, if it is not 0

    @property
    def settings(self) -> dict[str, Any]:
        """The first recommendation, as keyword arguments of `zt.minimize`."""
        return self.practice[0].settings

    @property
    def paper_settings(self) -> dict[str, Any]:
        """The paper's method that promises most here, as keyword arguments of `zt.minimize`."""
        return self.practice[1].settings

    def command(self, which: int = 0) -> str:
        """What follows a recommendation: a `zerothresh solve` line for the command line, else a call of `minimize`."""
        one, asked, n = self.practice[which], self.asked, self.components
        if self.objective is None:
            words = ["fun", self.start or str(asked.d), str(asked.k)]
            words += [] if n is None else [f"n={n}"]
            words += ["vectorized=True"] if self.vectorized else []
            return f"zt.minimize({', '.join([*words, *one.arguments()])})"
        words = ["zerothresh", "solve", self.objective, "--dim", str(asked.d), "-k", str(asked.k)]
        words += [] if n is None else ["--components", str(n)]
        words += ["--vectorized"] if self.vectorized else []
        words += [] if self.start is None else ["--x0", self.start]
        return " ".join([*words, *one.words()])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists."""
        asked = asdict(self.asked) | {"kappa": self.asked.kappa, "k_star_given": self.k_star_given}
        found = None
        if self.probe is not None:
            found = {
                "queries": self.probe.queries,
                "directions": self.probe.directions,
                "components": self.probe.components,
                "words": self.probe.look.summary(),
                "start": self.probe.start,
                "rho_minus": asdict(self.probe.constants.minus),
                "rho_plus": asdict(self.probe.constants.plus),
                "rho_plus_of_F": {"estimate": self.probe.whole.rho_plus, **asdict(self.probe.whole.plus)},
            }
        return {
            "problem": asked,
            "probe": found,
            "theory": [asdict(one) | {"converges": one.converges} for one in self.theory],
            "orders": self.orders,
            "practice": [
                {
                    "method": one.name,
                    "options": one.options,
                    "estimator": None if one.estimator is None else asdict(one.estimator),
                    "budget": one.budget,
                    "calls": one.calls,
                    "why": one.why,
                    "command": self.command(place),
                }
                for place, one in enumerate(self.practice)
            ],
            "apart": [asdict(one) for one in self.apart],
            "trials": [asdict(one) for one in self.trials],
        }

    def to_json(self) -> str:
        """As JSON; what is no number is null."""
        return json.dumps(_finite(self.to_dict()), indent=2, allow_nan=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from zerothresh.advice.rendering import tables

        yield from tables(self)

    def __str__(self) -> str:
        from zerothresh.advice.rendering import text

        return text(self)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def advise(
    fun: Any = None,
    x0: Any = None,
    k: int | None = None,
    *,
    n: int | None = None,
    d: int | None = None,
    k_star: int | None = None,
    rho_minus: float | None = None,
    rho_plus: float | None = None,
    s2: int | None = None,
    eps: float = 1e-3,
    probe: int = 2000,
    trial: int = 0,
    seed: int | None = None,
    vectorized: bool = False,
) -> Advice:
    """What theory promises on a problem, what to run in practice, and how far the two are apart.

    Either ``rho_minus`` and ``rho_plus`` with ``n``, ``d`` and ``k``; or a function with its start (or d),
    which is probed.

    Arguments
    ---------
    fun, x0, k, n, vectorized: as in `zt.minimize`. k is needed.
    d: the dimension, if there is no function.
    k_star: non-zeros of the solution that theory compares with, below k. Default: k/2, at least 1.
    rho_minus, rho_plus: restricted convexity of F and smoothness of every f_i, at s = 2k + k*.
    s2: the size of a direction's support that theory is asked for. Default: the better of 1 and d.
    eps: accuracy that calls are forecast for, as a share of the first gap F - F*.
    probe: the most calls that probing may make; they are counted (``advice.probe.queries``).
    trial: calls for trying each recommendation, to be sure; 0: none.
    seed: of probing and trials.

    >>> found = advise(n=30, d=1000, k=200, k_star=1, rho_minus=1.0, rho_plus=1.0)
    >>> [one.method for one in found.theory if one.converges]
    ['szoht', 'fgzoht']
    """
    if k is None:
        raise ValueError("k is needed: the most non-zeros")
    check.count("k", k)
    digits(eps)
    given = k_star is not None
    k_star = check.count("k_star", max(1, k // 2) if k_star is None else k_star)
    start: Any = None
    if fun is None:
        found, components, d, curve = None, n, *_told(n, d, rho_minus, rho_plus)
    else:
        if rho_minus is not None or rho_plus is not None:
            raise ValueError("give rho_minus and rho_plus, or a function to probe, not both")
        start = d if x0 is None and d is not None else x0
        found = blackbox.probe(fun, start, k, k_star=k_star, budget=probe, n=n, seed=seed, vectorized=vectorized)
        components, d, curve = (n if found.n == 1 else found.n), found.d, _probed(found)
    theory.sparsity(k=k, k_star=k_star)
    if k > d:
        raise ValueError(f"k = {k} is larger than the dimension d = {d}: take k from 1 to {d}")
    if s2 is not None and check.count("s2", s2) > d:
        raise ValueError(f"s2 = {s2} is larger than the dimension d = {d}: take s2 from 1 to {d}")
    asked = Question(components or 1, d, k, k_star, curve.rho_minus, curve.component, eps, s2, curve.whole)
    promised = forecasts(asked)
    chosen = (
        automatic(n=asked.n, d=d),
        of_the_paper(n=asked.n, d=d, seen=curve, eps=eps),
    )
    trials: tuple[Trial, ...] = ()
    if trial and fun is not None and found is not None:
        trials = tuple(_try(one, fun, start, k, n, trial, seed, vectorized, found.start) for one in chosen)
    return Advice(
        asked,
        k_star_given=given,
        probe=found,
        theory=promised,
        orders=_orders(asked),
        practice=chosen,
        apart=_apart(asked, promised, chosen[1]),
        trials=trials,
        components=components,
        vectorized=vectorized,
        start="x0" if np.ndim(start) else None,
    )


def _told(n: int | None, d: int | None, rho_minus: float | None, rho_plus: float | None) -> tuple[int, Curvature]:
    if d is None or rho_minus is None or rho_plus is None:
        raise ValueError("without a function, d, rho_minus and rho_plus are needed: all that theory goes by")
    check.count("d", d)
    if n is not None:
        check.count("n", n)
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    return d, Curvature(rho_minus, rho_plus, rho_plus)


def _probed(found: Probe) -> Curvature:
    whole, rough = found.whole.rho_plus, found.constants.rho_plus
    if not found.trusted or whole <= 0:  # kinks and flat starts: what the look saw of one component has to do
        whole = rough = max(whole, rough, found.look.start_value / found.look.length**2)
    return Curvature(found.constants.rho_minus, whole, max(whole, rough), found.look.mu, found.look.central)


def _orders(asked: Question) -> dict[str, float]:
    """The expressions inside O(...), as they are stated."""
    if not math.isfinite(asked.kappa):
        return {}
    kappa, s2 = asked.kappa, asked.s2 or asked.d
    q = math.ceil(asked.k + asked.d / s2)
    return {
        "szoht": theory.szoht_queries(k=asked.k, d=asked.d, s2=s2, kappa=kappa, eps=asked.eps),
        "vr-szht, as printed": theory.vr_estimates(n=asked.n, kappa=kappa, eps=asked.eps),
        "vr-szht and sarah-szht, with q": theory.vr_queries(n=asked.n, q=q, kappa=kappa, eps=asked.eps),
        "hzo-ht": theory.hzo_ht_queries(kappa=kappa, alpha=1.0, tau=float(q), eps=asked.eps),
    }


def _apart(asked: Question, promised: tuple[Forecast, ...], chosen: Recommendation) -> tuple[Apart, ...]:
    """What theory asks for, beside what practice does."""
    if not math.isfinite(asked.kappa):
        return ()
    rows: list[Apart] = []
    least = {
        "least k, szoht": theory.szoht_least_k(k_star=asked.k_star, kappa=asked.kappa),
        "least k, vr-szht": theory.vr_least_k(k_star=asked.k_star, kappa=asked.kappa),
    }
    for what, k in least.items():
        rows.append(Apart(what, k, asked.k, k / asked.k))
    eta, q = chosen.options["eta"], chosen.estimator.q if chosen.estimator else 1
    curve = {"rho_minus": asked.rho_minus, "rho_plus": asked.rho_plus}
    for what, rate in (("eta, szoht", theory.szoht_eta), ("eta, vr-szht", theory.vr_eta)):
        value = rate(eps_I=asked.eps_I(q, asked.d) if 2 * asked.k + asked.k_star <= asked.d else 2.0, **curve)
        rows.append(Apart(what, value, eta, eta / value, f"practice: {chosen.name}, q = {q}"))
    held = [one for one in promised if one.queries is not None]
    note = ""
    if not held and (other := smallest(asked)) is not None:
        held = [one for one in (forecast("szoht", other),) if one.queries is not None]
        note = f"theory: at d = {other.d:,}, k = {other.k:,}, the least it covers"
    if held and chosen.calls:
        best = min(one.queries or math.inf for one in held)
        rows.append(Apart("calls", best, chosen.calls, best / chosen.calls, note))
    return tuple(rows)


def _try(
    one: Recommendation, fun: Any, x0: Any, k: int, n: int | None, calls: int, seed: int | None, vectorized: bool,
    start: float,
) -> Trial:  # fmt: skip
    settings = one.settings | {"budget": min(one.budget, calls)}
    result = minimize(fun, x0, k, n=n, seed=seed, vectorized=vectorized, progress=False, **settings)
    if result.failure is not None:
        raise ProbeFailed(result)
    return Trial(one.name, result.nfev, start, float(result.fun), result.support.size, result.status.name)

"""`zt.advise`: from a function to probe, or from known curvatures, to what the theory guarantees and what to run."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zerothresh import theory
from zerothresh.advice.forecast import Forecast, Question, forecast, forecasts, smallest
from zerothresh.advice.practice import Curvature, Recommendation, automatic, of_the_paper
from zerothresh.advice.probing import LARGEST, Probe, ProbeFailed
from zerothresh.advice.probing import probe as measure
from zerothresh.advice.whole_function import WholeFunction
from zerothresh.api.arguments import dimension_of
from zerothresh.api.minimizer import minimize
from zerothresh.basics import check
from zerothresh.objective.forms import wrap
from zerothresh.objective.vector_forms import policy_for
from zerothresh.sampling.philox import seed_of
from zerothresh.theory.complexity import digits
from zerothresh.theory.constants import check_curvature

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


MOST = 1 << 53  # of n and d
SMALLEST = 1 / LARGEST  # of curvatures


@dataclass(frozen=True)
class Apart:
    """One quantity in theory and in practice; ``share`` is the factor by which the theory is more conservative."""

    what: str
    theory: float
    practice: float
    share: float
    note: str = ""


@dataclass(frozen=True)
class Trial:
    """The outcome of a trial run of a recommendation."""

    name: str
    calls: int
    start: float
    end: float
    support: int
    status: str


@dataclass(frozen=True)
class Advice:
    """The result of `advise`. It prints as tables; ``to_json()`` is for programs.

    To follow the first recommendation, call ``zt.minimize(fun, x0, k, n=n, **advice.settings)``. ``paper_settings`` is
    the second one, with a method of the paper.
    """

    asked: Question
    k_star_given: bool
    probe: Probe | None
    theory: tuple[Forecast, ...]
    orders: dict[str, float]
    practice: tuple[Recommendation, Recommendation]
    apart: tuple[Apart, ...]
    trials: tuple[Trial, ...] = ()
    objective: str | None = None  # the name of the function on the command line
    components: int | None = None  # n, if the function has components
    vectorized: bool = False
    start: str | None = None  # the name of the start, if it is not 0
    outputs: str | None = None  # what a call returns, if that is a vector
    loss: Any = None  # of its entries, if it is not the default

    @property
    def form(self) -> dict[str, Any]:
        """What `zt.minimize` has to be told of the outputs of a call; empty if a call returns one number."""
        return {name: one for name, one in (("outputs", self.outputs), ("loss", self.loss)) if one is not None}

    @property
    def settings(self) -> dict[str, Any]:
        """The first recommendation, as keyword arguments of `zt.minimize`."""
        return self.practice[0].settings | self.form

    @property
    def paper_settings(self) -> dict[str, Any]:
        """The recommended method of the paper, as keyword arguments of `zt.minimize`."""
        return self.practice[1].settings | self.form

    def command(self, which: int = 0) -> str:
        """The command to run: a line of `zerothresh solve` for the command line, otherwise a call of `zt.minimize`.

        ``which`` is 0 for the first recommendation (default), and 1 for the second.
        """
        if check.count("which", which, low=0, what=" and at most 1") > 1:
            raise ValueError(f"which must be 0 or 1, because there are two recommendations, not {which}")
        one, asked, n = self.practice[which], self.asked, self.components
        if self.objective is None:
            arguments = ["fun", self.start or str(asked.d), str(asked.k)]
            arguments += [] if n is None else [f"n={n}"]
            arguments += ["vectorized=True"] if self.vectorized else []
            arguments += [f"{name}={given!r}" for name, given in self.form.items()]
            return f"zt.minimize({', '.join([*arguments, *one.arguments()])})"
        line = ["zerothresh", "solve", self.objective, "--dim", str(asked.d), "-k", str(asked.k)]
        line += [] if n is None else ["--components", str(n)]
        line += ["--vectorized"] if self.vectorized else []
        for name, given in self.form.items():
            line += [f"--{name}", str(given)]
        line += [] if self.start is None else ["--x0", self.start]
        return shlex.join([*line, *one.solve_options()])

    def to_dict(self) -> dict[str, Any]:
        """The advice as a dict of plain numbers, strings and lists."""
        asked = asdict(self.asked) | {"kappa": self.asked.kappa, "k_star_given": self.k_star_given}
        found = None
        if self.probe is not None:
            found = {
                "queries": self.probe.queries,
                "directions": self.probe.directions,
                "components": self.probe.components,
                "message": self.probe.diagnosis.summary(),
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
        """The advice as JSON; infinities and NaN become null."""
        return json.dumps(_finite(self.to_dict()), indent=2, allow_nan=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from zerothresh.advice.rendering import tables

        yield from tables(self)

    def __str__(self) -> str:
        from zerothresh.advice.rendering import text

        return text(self)


def _finite(value: Any) -> Any:
    """A copy of nested dicts and lists in which numbers that are not finite are None."""
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
    outputs: str | None = None,
    loss: Any = None,
) -> Advice:
    """Compare what the theory guarantees on a problem with what to run in practice.

    Give either a function with its start (or d), which is then probed, or the curvatures ``rho_minus`` and ``rho_plus``
    with ``n``, ``d`` and ``k``.

    Arguments
    ---------
    fun, x0, k, n, vectorized: as in `zt.minimize`. k is required.
    d: int. The dimension, if there is no function.
    k_star: int, default k/2, at least 1. Number of non-zeros of the solution that the theory compares with; below k.
    rho_minus, rho_plus: float. Restricted strong convexity of F and smoothness of every f_i, at s = 2k + k*.
    s2: int, default the better of 1 and d. Size of the support of a direction in the theory.
    eps: float, default 1e-3. The calls are forecast until the gap F - F* is this share of its initial value.
    probe: int, default 2000. Largest number of calls for probing; the actual number is ``advice.probe.queries``.
    trial: int, default 0. Number of calls for a trial run of each recommendation; 0 makes none.
    seed: int or None, default None. Seed of probing and trials.
    outputs, loss: as in `zt.minimize`, if a call returns a vector. The theory is then that of F alone, n = 1, because a
        call gives all of it.

    Returns `Advice`. It raises `zerothresh.advice.ProbeFailed` if the function fails.

    >>> found = advise(n=30, d=1000, k=200, k_star=1, rho_minus=1.0, rho_plus=1.0)
    >>> [one.method for one in found.theory if one.converges]
    ['szoht', 'fgzoht']
    """
    if k is None:
        raise ValueError("k is required: the largest number of non-zeros that the solution may have")
    k = check.count("k", k)
    eps = check.positive("eps", eps)
    digits(eps)
    given = k_star is not None
    k_star = check.count("k_star", max(1, k // 2) if k_star is None else k_star)
    theory.sparsity(k=k, k_star=k_star)
    trial = check.count("trial", trial, low=0, what=" (calls for a trial run of each recommendation)")
    s2 = None if s2 is None else check.count("s2", s2)
    check.flag("vectorized", vectorized)
    seed_of(seed)
    start: Any = None
    asked_fun, policy = fun, policy_for(outputs, loss, n, "stop")
    if policy is not None:
        if fun is None:
            raise ValueError("outputs goes with a function: it says what its calls return")
        fun, n = WholeFunction(fun, policy, vectorized), None
        start = getattr(asked_fun, "d", None)
    if fun is None:
        found, components, d, curvature = None, n, *_given(n, d, rho_minus, rho_plus)
        _check_sizes(k, d, s2)
    else:
        if rho_minus is not None or rho_plus is not None:
            raise ValueError("pass either rho_minus and rho_plus, or a function to probe, not both")
        start = x0 if x0 is not None else start if d is None else d
        _check_sizes(k, wrap(fun, dimension_of(start), n, vectorized).d, s2)
        found = measure(fun, start, k, k_star=k_star, budget=probe, n=n, seed=seed, vectorized=vectorized)
        components, d, curvature = (n if found.n == 1 else found.n), found.d, _probed(found)
    _check_scale(curvature)
    asked = Question(
        n=int(components or 1),
        d=d,
        k=k,
        k_star=k_star,
        rho_minus=curvature.rho_minus,
        rho_plus=curvature.component,
        eps=eps,
        s2=s2,
        rho_plus_mean=curvature.whole,
    )
    promised = forecasts(asked)
    chosen = (
        automatic(n=asked.n, d=d),
        of_the_paper(n=asked.n, d=d, curvature=curvature, eps=eps),
    )
    trials: tuple[Trial, ...] = ()
    if trial and fun is not None and found is not None:
        form = {"n": n, "vectorized": vectorized, "outputs": outputs, "loss": loss}
        tried = (_try(one, asked_fun, start, k, form, trial, seed, found.start) for one in chosen)
        trials = tuple(one for one in tried if one is not None)
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
        outputs=outputs,
        loss=loss,
    )


def _check_sizes(k: int, d: int, s2: int | None) -> None:
    """Check k and s2 against the dimension."""
    if k > d:
        raise ValueError(f"k = {k} is larger than the dimension d = {d}: take k from 1 to {d}")
    if s2 is not None and s2 > d:
        raise ValueError(f"s2 = {s2} is larger than the dimension d = {d}: take s2 from 1 to {d}")


def _check_scale(curvature: Curvature) -> None:
    """Refuse curvatures whose powers, which the theorems have, are not floating-point numbers any more."""
    sizes = [abs(number) for number in (curvature.rho_minus, curvature.whole, curvature.component)]
    if not all(number == 0 or SMALLEST <= number <= LARGEST for number in sizes) or not sizes[1]:
        raise ValueError(
            f"the curvatures, from {curvature.rho_minus:.3g} to {curvature.component:.3g}, are too small or too large "
            f"to compute with: scale the function so that they are between {SMALLEST:g} and {LARGEST:g}"
        )


def _given(n: int | None, d: int | None, rho_minus: float | None, rho_plus: float | None) -> tuple[int, Curvature]:
    """Check the dimension and the curvatures that the user gave instead of a function."""
    if d is None or rho_minus is None or rho_plus is None:
        raise ValueError("without a function to probe, d, rho_minus and rho_plus are required")
    d = check.count("d", d)
    if max(d, 1 if n is None else check.count("n", n)) > MOST:
        raise ValueError(f"n and d must be at most {MOST:,}, the largest number that is exact in a forecast")
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    return d, Curvature(float(rho_minus), float(rho_plus), float(rho_plus))


def _probed(found: Probe) -> Curvature:
    """The curvatures to base the settings on, after probing."""
    diagnosis = found.diagnosis
    whole, rough = found.whole.rho_plus, found.constants.rho_plus
    if not found.trusted or whole <= 0:  # kinks and flat starts: use the diagnosis of one component
        whole = rough = max(whole, rough, diagnosis.start_value / diagnosis.length**2)
    return Curvature(found.constants.rho_minus, whole, max(whole, rough), diagnosis.mu, diagnosis.central)


def _orders(asked: Question) -> dict[str, float]:
    """The expressions inside O(...) as the papers state them."""
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
    """Compare what the theory requires with what the recommended method of the paper uses."""
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
    curvatures = {"rho_minus": asked.rho_minus, "rho_plus": asked.rho_plus}
    for what, rate in (("eta, szoht", theory.szoht_eta), ("eta, vr-szht", theory.vr_eta)):
        value = rate(eps_I=asked.eps_I(q, asked.d) if 2 * asked.k + asked.k_star <= asked.d else 2.0, **curvatures)
        rows.append(Apart(what, value, eta, eta / value, f"practice: {chosen.name}, q = {q}"))
    guaranteed = [one for one in promised if one.queries is not None]
    note = ""
    if not guaranteed and (other := smallest(asked)) is not None:
        guaranteed = [one for one in (forecast("szoht", other),) if one.queries is not None]
        note = f"theory: for d = {other.d:,} and k = {other.k:,}, a problem that it covers"
    if guaranteed and chosen.calls:
        best = min(one.queries or math.inf for one in guaranteed)
        rows.append(Apart("calls", best, chosen.calls, best / chosen.calls, note))
    return tuple(rows)


def _try(
    one: Recommendation, fun: Any, x0: Any, k: int, form: dict[str, Any], calls: int, seed: int | None, start: float
) -> Trial | None:
    """Run a recommendation with at most ``calls`` calls; None, with a warning, if they are not enough for a step."""
    settings = one.settings | {"budget": min(one.budget, calls)}
    try:
        result = minimize(fun, x0, k, seed=seed, progress=False, **form, **settings)
    except ValueError as error:
        warnings.warn(f"there is no trial of {one.name}: {error}", stacklevel=3)
        return None
    if result.failure is not None:
        raise ProbeFailed(result)
    return Trial(one.name, result.nfev, start, float(result.fun), result.support.size, result.status.name)

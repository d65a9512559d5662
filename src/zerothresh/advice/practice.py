"""What to run in practice: `auto`, or a method of the paper with settings that follow from measured curvatures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from zerothresh.methods import FGZOHT, VRSZHT, Auto
from zerothresh.methods.registry import name_of
from zerothresh.rounds.estimator import Estimator
from zerothresh.theory.complexity import digits

MOST_Q = 1000  # directions per estimate: more of them would make single steps too expensive
# Learning rates of VR-SZHT are this factor below 1 / (expected smoothness), and budgets this factor above the forecast.
_SAFETY = 3
_FLATTEST = 0.02  # of rho^+: directions with a smaller curvature are ignored, since they would need too many calls


@dataclass(frozen=True)
class Curvature:
    """The curvatures that the settings depend on: of F, and of its least smooth component."""

    rho_minus: float
    whole: float  # rho_s^+ of F
    component: float  # max_i rho_s^+ of f_i
    mu: float = 1e-4  # length of the differences
    central: bool = False  # whether differences should be central


@dataclass(frozen=True)
class Recommendation:
    """A method with all its settings, and the reason for them."""

    method: Any  # an instance
    estimator: Estimator | None
    budget: int
    calls: float | None  # forecast until the gap is eps times its initial value; None if there is no forecast
    why: str

    @property
    def name(self) -> str:
        """The name of the method for `zt.minimize` and the command line."""
        return name_of(self.method)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments for `zt.minimize(fun, x0, k, n=n, **settings)`."""
        out: dict[str, Any] = {"method": self.method, "budget": self.budget}
        return out if self.estimator is None else {**out, "estimator": self.estimator}

    @property
    def options(self) -> dict[str, Any]:
        """The hyper-parameters that differ from their defaults."""
        if isinstance(self.method, VRSZHT):
            return {"eta": self.method.eta, "m": self.method.m, "batch": self.method.batch}
        return {"eta": self.method.eta} if isinstance(self.method, FGZOHT) else {}

    def arguments(self) -> list[str]:
        """The arguments of `zt.minimize`, written as Python code."""
        given = ", ".join(f"{key}={value:.6g}" for key, value in self.options.items())
        out = [
            f"budget={self.budget}",
            f"method=zt.{type(self.method).__name__}({given})" if given else 'method="auto"',
        ]
        if (estimator := self.estimator) is not None:
            central = ', difference="central"' if estimator.difference == "central" else ""
            out.append(f"estimator=zt.Estimator(q={estimator.q}, mu={estimator.mu:g}{central})")
        return out

    def solve_options(self) -> list[str]:
        """The command-line options of `zerothresh solve`."""
        out = ["--budget", str(self.budget), "--method", self.name]
        for key, value in self.options.items():
            out += ["--set", f"{key}={value:.6g}"]
        if self.estimator is not None:
            out += ["--q", str(self.estimator.q), "--mu", f"{self.estimator.mu:.6g}"]
            out += ["--difference", "central"] if self.estimator.difference == "central" else []
        return out


def automatic(*, n: int, d: int) -> Recommendation:
    """Recommend `auto`, which has no settings."""
    budget = max(20 * n * (d + 2), 100 * d)
    why = "it has no settings; it measures noise and curvature, chooses a method, and stops by itself"
    return Recommendation(Auto(), None, budget, None, why)


def of_the_paper(*, n: int, d: int, curvature: Curvature, eps: float) -> Recommendation:
    """Recommend the cheaper of FGZOHT and VR-SZHT, by the rates of gradient descent and of SVRG with mini-batches.

    The estimate from q orthonormal directions is the gradient's projection times d/q, so that steps have to be shorter
    by the factor q/d and cost less by the same factor. SZOHT is not considered, because with a constant eta it does not
    converge unless all components agree at the optimum.

    Arguments
    ---------
    n, d: int. Number of components and dimension.
    curvature: `Curvature`. Measured or given curvatures.
    eps: float. The calls are forecast until the gap is eps times its initial value.
    """
    q = min(d, MOST_Q)
    rho_minus = max(curvature.rho_minus, _FLATTEST * curvature.whole)
    cost = calls_per_estimate(q, central=curvature.central)
    full = FGZOHT(eta=_round(q / d / curvature.whole))
    why = "it suits few components, or components that differ much; eta is q/d / rho^+ of F"
    choices: list[tuple[float, Any, str]] = [(n * cost / (full.eta * rho_minus), full, why)]
    batch = 1
    while batch < n:
        expected = expected_smoothness(n=n, batch=batch, whole=curvature.whole, component=curvature.component)
        m = max(1, math.ceil(n / batch))
        reduced = VRSZHT(eta=_round(q / d / (_SAFETY * expected)), m=m, batch=batch)
        calls = (n + 2 * m * batch) * cost / (m * reduced.eta * rho_minus)
        why = (
            f"it suits many similar components; m is n/batch, and eta is q/d / ({_SAFETY} x the expected smoothness of "
            f"batches of {batch})"
        )
        choices.append((calls, reduced, why))
        batch *= 2
    calls, method, why = min(choices, key=lambda choice: choice[0])
    calls *= digits(eps)
    difference = "central" if curvature.central else "forward"
    estimator = Estimator(q=q, mu=float(f"{curvature.mu:.2g}"), difference=difference)
    budget = math.ceil(_SAFETY * calls) + 2 * n * cost
    return Recommendation(method, estimator, budget, calls, why)


def calls_per_estimate(q: int, *, central: bool) -> int:
    """The number of calls of one gradient estimate."""
    return 2 * q if central else q + 1


def expected_smoothness(*, n: int, batch: int, whole: float, component: float) -> float:
    r"""The expected smoothness of a mini-batch drawn without replacement:

    .. math:: \frac{n(b-1)}{b(n-1)} L + \frac{n-b}{b(n-1)} L_{max}

    Reference: Gower et al., *SGD: general analysis and improved rates*, ICML 2019.

    >>> [expected_smoothness(n=10, batch=batch, whole=1, component=5) for batch in (1, 10)]
    [5.0, 1.0]
    """
    return (n * (batch - 1) * whole + (n - batch) * component) / (batch * (n - 1))


def _round(eta: float) -> float:
    """Round to three digits, so that the numbers shown are the numbers used."""
    return float(f"{eta:.3g}")

"""What works in practice: `auto`, and settings of the paper's methods that follow from measured curvatures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from zerothresh.methods import FGZOHT, VRSZHT, Auto
from zerothresh.methods.registry import name_of
from zerothresh.rounds.estimator import Estimator
from zerothresh.theory.complexity import digits

MOST_Q = 1000
_SAFETY = 3  # learning rates of VR-SZHT are this much below 1 / (expected smoothness); budgets this much above the need
_FLATTEST = 0.02  # of rho^+: a rho^- that is less is not waited for


@dataclass(frozen=True)
class Curvature:
    """What practice goes by: of F, and of the roughest component."""

    rho_minus: float
    whole: float  # rho_s^+ of F
    component: float  # max_i rho_s^+ of f_i
    mu: float = 1e-4
    central: bool = False


@dataclass(frozen=True)
class Recommendation:
    """A method with all its settings, and why."""

    method: Any  # an instance
    estimator: Estimator | None
    budget: int
    calls: float | None  # expected until the gap is eps of the first; None: it decides itself
    why: str

    @property
    def name(self) -> str:
        """As the command and `zt.minimize` know it."""
        return name_of(self.method)

    @property
    def settings(self) -> dict[str, Any]:
        """For `zt.minimize(fun, x0, k, n=n, **settings)`."""
        out: dict[str, Any] = {"method": self.method, "budget": self.budget}
        return out if self.estimator is None else {**out, "estimator": self.estimator}

    @property
    def options(self) -> dict[str, Any]:
        """The hyper-parameters that are not defaults."""
        if isinstance(self.method, VRSZHT):
            return {"eta": self.method.eta, "m": self.method.m, "batch": self.method.batch}
        return {"eta": self.method.eta} if isinstance(self.method, FGZOHT) else {}

    def arguments(self) -> list[str]:
        """The arguments of `zt.minimize`, as they are written in Python."""
        given = ", ".join(f"{key}={value:.6g}" for key, value in self.options.items())
        out = [
            f"budget={self.budget}",
            f"method=zt.{type(self.method).__name__}({given})" if given else 'method="auto"',
        ]
        if (made := self.estimator) is not None:
            central = ', difference="central"' if made.difference == "central" else ""
            out.append(f"estimator=zt.Estimator(q={made.q}, mu={made.mu:g}{central})")
        return out

    def words(self) -> list[str]:
        """The options of `zerothresh solve`."""
        out = ["--budget", str(self.budget), "--method", self.name]
        for key, value in self.options.items():
            out += ["--set", f"{key}={value:.6g}"]
        if self.estimator is not None:
            out += ["--q", str(self.estimator.q), "--mu", f"{self.estimator.mu:.6g}"]
            out += ["--difference", "central"] if self.estimator.difference == "central" else []
        return out


def automatic(*, n: int, d: int) -> Recommendation:
    """`auto`: it measures for itself, and stops when it finds nothing better."""
    budget = max(20 * n * (d + 2), 100 * d)
    why = "no settings: it measures noise and curvature, chooses, checks, and stops by itself"
    return Recommendation(Auto(), None, budget, None, why)


def of_the_paper(*, n: int, d: int, seen: Curvature, eps: float) -> Recommendation:
    """The cheaper of FGZOHT and VR-SZHT, by the rates of gradient descent and of SVRG with mini-batches.

    Directions are orthonormal, q of them, and the estimate is the gradient's projection times d/q: steps
    have to be shorter by q/d and are as much cheaper. SZOHT is no candidate, for it does not converge with
    a constant eta unless all components agree at the optimum.
    """
    q = min(d, MOST_Q)
    rho_minus = max(seen.rho_minus, _FLATTEST * seen.whole)
    cost = seen_calls(q, seen)
    full = FGZOHT(eta=_round(q / d / seen.whole))
    choices: list[tuple[float, Any, str]] = [
        (n * cost / (full.eta * rho_minus), full, "eta = 1/rho^+ of F: few components, or rough ones")
    ]
    batch = 1
    while batch < n:
        expected = expected_smoothness(n=n, batch=batch, whole=seen.whole, component=seen.component)
        m = max(1, math.ceil(n / batch))
        reduced = VRSZHT(eta=_round(q / d / (_SAFETY * expected)), m=m, batch=batch)
        calls = (n + 2 * m * batch) * cost / (m * reduced.eta * rho_minus)
        why = f"eta = 1/({_SAFETY} x expected smoothness of {batch}), m = n/batch: many components, alike enough"
        choices.append((calls, reduced, why))
        batch *= 2
    calls, method, why = min(choices, key=lambda choice: choice[0])
    calls *= digits(eps)
    difference = "central" if seen.central else "forward"
    estimator = Estimator(q=q, mu=float(f"{seen.mu:.2g}"), difference=difference)
    budget = math.ceil(_SAFETY * calls) + 2 * n * cost
    return Recommendation(method, estimator, budget, calls, why)


def seen_calls(q: int, seen: Curvature) -> int:
    """Calls of one estimate."""
    return 2 * q if seen.central else q + 1


def expected_smoothness(*, n: int, batch: int, whole: float, component: float) -> float:
    r"""Of a mini-batch drawn without replacement: :math:`\frac{n(b-1)}{b(n-1)} L + \frac{n-b}{b(n-1)} L_{max}`.

    Reference: Gower et al., *SGD: general analysis and improved rates*, ICML 2019.

    >>> [expected_smoothness(n=10, batch=batch, whole=1, component=5) for batch in (1, 10)]
    [5.0, 1.0]
    """
    return (n * (batch - 1) * whole + (n - batch) * component) / (batch * (n - 1))


def _round(eta: float) -> float:
    """Three digits, for what is shown is what is run."""
    return float(f"{eta:.3g}")

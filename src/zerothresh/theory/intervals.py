r"""The learning rates for which a theorem guarantees convergence, and the ones that it recommends.

Each condition is a quadratic inequality a eta^2 - b eta + c < 0. The printed ones differ in places: see `errata`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from zerothresh.basics import check
from zerothresh.theory.constants import check_curvature, need
from zerothresh.theory.quantities import formula


@dataclass(frozen=True)
class Interval:
    """The open interval from low to high; its truth value is False if it is empty.

    >>> 0.5 in Interval(0, 1), bool(Interval(1, 0))
    (True, False)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number = check.real(getattr(self, name))
            if number is None:
                raise ValueError(
                    f"{name} must be a number, the end of an interval, not {check.shown(getattr(self, name))}"
                )
            object.__setattr__(self, name, number)

    def __bool__(self) -> bool:
        return self.low < self.high

    def __contains__(self, value: float) -> bool:
        return self.low < value < self.high


EMPTY = Interval(math.inf, -math.inf)


def negative(a: float, b: float, c: float) -> Interval:
    """The interval on which a x^2 - b x + c < 0, for a > 0.

    >>> negative(1, 3, 2)
    Interval(low=1.0, high=2.0)
    """
    square = b * b - 4 * a * c
    if square <= 0:
        return EMPTY
    far = (b + math.copysign(math.sqrt(square), b)) / 2  # one root without cancellation; the other one by Vieta
    return Interval(*sorted((c / far, far / a)))


def _check(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> None:
    """Check the arguments that the conditions share."""
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    need(alpha >= 1, "alpha >= 1 (H_k is not a contraction)", f"alpha = {alpha:g}")
    need(eps_I >= 2, "eps_I >= 2 (its limit as q tends to infinity)", f"eps_I = {eps_I:g}")


@formula
def vr_eta_interval(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> Interval:
    r"""The learning rates for which VR-SZHT converges with some m (corollary in the appendix):

    .. math:: \alpha (48 \epsilon_I \rho_s^+ \rho_s^- + {\rho_s^-}^2) \eta^2 - \alpha \rho_s^- \eta + \alpha - 1 < 0

    The interval is empty unless alpha < 1 + 1 / (192 eps_I kappa + 3). The paper prints {rho_s^-}^2 without alpha.

    >>> vr_eta_interval(alpha=1.5, eps_I=3, rho_minus=1, rho_plus=1)
    Interval(low=inf, high=-inf)
    """
    _check(alpha=alpha, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus)
    return negative(
        alpha * (48 * eps_I * rho_plus * rho_minus + rho_minus**2),
        alpha * rho_minus,
        alpha - 1,
    )


@formula
def sarah_eta_interval(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> Interval:
    r"""The learning rates for which SARAH-SZHT converges with some m:

    .. math:: (48 \epsilon_I \alpha \rho_s^+ + \alpha\rho_s^-) \eta^2 - \alpha \eta + (\alpha - 1) / \rho_s^- < 0

    This is the condition of its corollary with (alpha - 1) / rho_s^- in place of alpha - 1. It is that of VR-SZHT
    divided by rho_s^-.
    """
    _check(alpha=alpha, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus)
    return negative(48 * eps_I * alpha * rho_plus + alpha * rho_minus, alpha, (alpha - 1) / rho_minus)


@formula
def pm_eta_interval(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int) -> Interval:
    r"""The learning rates for which gamma < 1 in Theorem 2 (pM-SZHT), with the missing factor rho_s^+ / 2 restored:

    .. math:: \alpha\rho_s^+ (24 \epsilon_I \rho_s^+ + \rho_s^-) \eta^2 - \alpha\rho_s^+ \eta
        + \alpha\kappa_s - p/n < 0

    The interval is empty for all p <= n (1 - 1/196): see the erratum "pm-interval-empty".
    """
    _check(alpha=alpha, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus)
    share = refreshed(p=p, n=n)
    return negative(
        alpha * rho_plus * (24 * eps_I * rho_plus + rho_minus),
        alpha * rho_plus,
        alpha * rho_plus / rho_minus - share,
    )


@formula
def refreshed(*, p: float, n: int) -> float:
    """p/n, the probability that a step refreshes a given row of the memory."""
    check.count("n", n)
    check.positive("p", p)
    need(p <= n, "p <= n (p/n is a probability)", f"p = {p:g} and n = {n}")
    return p / n


@formula
def vr_eta(*, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""The recommended learning rate of VR-SZHT (Theorem 3), the middle of its interval:

    .. math:: \eta = \frac{1}{2(48 \epsilon_I \rho_s^+ + \rho_s^-)}

    The paper prints alpha rho_s^- / (2 (48 eps_I alpha rho_s^- rho_s^+ + {rho_s^-}^2)), the middle of the interval as
    printed. The recommended rate of SARAH-SZHT is the same.
    """
    _check(alpha=1.0, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus)
    return 1 / (2 * (48 * eps_I * rho_plus + rho_minus))


sarah_eta = vr_eta


@formula
def pm_eta(*, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""The learning rate with the smallest gamma in Theorem 2 (pM-SZHT):
    :math:`\eta = 1 / (2 (24 \epsilon_I \rho_s^+ + \rho_s^-))`."""
    _check(alpha=1.0, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus)
    return 1 / (2 * (24 * eps_I * rho_plus + rho_minus))


@formula
def szoht_eta(*, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""The learning rate of SZOHT's theorem: :math:`\eta = \rho_s^- / ((4\epsilon_I + 1) {\rho_s^+}^2)`.

    Reference: de Vazelhes et al., NeurIPS 2022, Theorem 1.
    """
    _check(alpha=1.0, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus)
    return rho_minus / ((4 * eps_I + 1) * rho_plus**2)

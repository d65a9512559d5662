r"""The constants of Section 2: the expansivity of H_k, and the errors of the gradient estimate of eq. (3).

Throughout, d is the dimension, q the number of directions, s2 the size of their random supports, and s the size of the
support I on which errors are measured: 2k + k* in all theorems.
"""

from __future__ import annotations

import math

from zerothresh.basics import check
from zerothresh.theory.quantities import formula


def need(holds: bool, condition: str, given: str) -> None:
    """Raise ValueError with the violated condition unless it holds."""
    if not holds:
        raise ValueError(f"the theory needs {condition}, but {given}")


def check_sizes(*, d: int, q: int, s: int, s2: int) -> None:
    """Check that 1 <= s <= d, 1 <= s2 <= d and q >= 1."""
    for name, value in {"d": d, "q": q, "s": s, "s2": s2}.items():
        check.count(name, value)
    need(s2 <= d, "s2 <= d (the support of a direction lies in [d])", f"s2 = {s2} and d = {d}")
    need(s <= d, "s <= d (the support I lies in [d])", f"s = {s} and d = {d}")


def check_curvature(*, rho_minus: float, rho_plus: float) -> None:
    """Check that 0 < rho^- <= rho^+, Assumptions 1 and 2."""
    check.positive("rho_minus", rho_minus)
    check.positive("rho_plus", rho_plus)
    need(
        rho_minus <= rho_plus,
        "rho_s^- <= rho_s^+ (the smallest curvature is at most the largest)",
        f"rho_minus = {rho_minus:g} and rho_plus = {rho_plus:g}",
    )


def check_kappa(kappa: float) -> float:
    """Check that kappa_s = rho_s^+ / rho_s^- >= 1, and return it."""
    check.positive("kappa", kappa)
    need(kappa >= 1, "kappa_s = rho_s^+ / rho_s^- >= 1", f"kappa = {kappa:g}")
    return kappa


@formula
def sparsity(*, k: int, k_star: int) -> int:
    """s = 2k + k*, the size of I: the supports of two iterates and of theta* (Theorem 2).

    >>> sparsity(k=5, k_star=2)
    12
    """
    return 2 * check.count("k", k) + check.count("k_star", k_star)


@formula
def alpha(*, k: int, k_star: int) -> float:
    r"""The expansivity of H_k, Lemma 1: :math:`\alpha = 1 + 2\sqrt{k^*} / \sqrt{k - k^*}`.

    .. math:: ||H_k(\theta) - \theta^*||^2 \le \alpha ||\theta - \theta^*||^2

    >>> alpha(k=5, k_star=1)
    2.0
    """
    check.count("k", k)
    check.count("k_star", k_star)
    need(k > k_star, "k > k* (at k = k* the bound on the expansivity of H_k is infinite)", f"k = {k} and k* = {k_star}")
    return 1 + 2 * math.sqrt(k_star / (k - k_star))


@formula
def alpha_tight(*, k: int, k_star: int, d: int) -> float:
    r"""The smallest possible alpha, :math:`1 + (t + \sqrt{(4 + t) t}) / 2`, t = K / (k - k* + K), K = min(k*, d - k).

    It is finite at k = k*, too. Reference: Shen and Li, *A tight bound of hard thresholding*, JMLR 2017.

    >>> round(alpha_tight(k=1, k_star=1, d=9), 3)
    2.618
    """
    check.count("k", k)
    check.count("k_star", k_star)
    need(k_star <= k <= d, "k* <= k <= d", f"k* = {k_star}, k = {k}, d = {d}")
    most = min(k_star, d - k)
    if most == 0:
        return 1.0
    t = most / (k - k_star + most)
    return 1 + (t + math.sqrt((4 + t) * t)) / 2


@formula
def beta(*, eta: float, alpha: float, rho_minus: float) -> float:
    r"""The growth of the squared distance per step in Theorem 1, :math:`\beta = (1 + \eta^2 {\rho_s^-}^2) \alpha`."""
    return (1 + (check.positive("eta", eta) * check.positive("rho_minus", rho_minus)) ** 2) * alpha


@formula
def eps_mu(*, d: int, s: int, rho_plus: float) -> float:
    r"""The bias of the estimate, Lemma 2: :math:`||E\hat\nabla_I f - \nabla_I f||^2 \le \epsilon_\mu \mu^2`,
    :math:`\epsilon_\mu = {\rho^+}^2 s d`.

    ``rho_plus`` is the smoothness along the directions, that is, at sparsity s2: see the erratum "rho-at-s2".
    """
    check_sizes(d=d, q=1, s=s, s2=1)
    return check.positive("rho_plus", rho_plus) ** 2 * s * d


@formula
def eps_I(*, d: int, q: int, s: int, s2: int) -> float:
    r"""The second moment of the estimate, Lemma 2: the factor of the squared gradient on I,

    .. math:: \epsilon_I = \frac{2d}{q(s_2+2)}\Big(\frac{(s-1)(s_2-1)}{d-1} + 3\Big) + 2

    >>> eps_I(d=10, q=20, s=3, s2=10)
    2.4166666666666665
    """
    check_sizes(d=d, q=q, s=s, s2=s2)
    return 2 * d / (q * (s2 + 2)) * (_pairs(s - 1, s2, d) + 3) + 2


@formula
def eps_Ic(*, d: int, q: int, s: int, s2: int) -> float:
    r"""The second moment of the estimate, Lemma 2: the factor of the squared gradient outside of I,

    .. math:: \epsilon_{I^c} = \frac{2d}{q(s_2+2)} \frac{s(s_2-1)}{d-1}

    The paper prints -1 instead of d - 1: see the erratum "eps-Ic-denominator".

    >>> eps_Ic(d=10, q=20, s=3, s2=1)
    0.0
    """
    check_sizes(d=d, q=q, s=s, s2=s2)
    return 2 * d / (q * (s2 + 2)) * _pairs(s, s2, d)


@formula
def eps_abs(*, d: int, q: int, s: int, s2: int, rho_plus: float) -> float:
    r"""The second moment of the estimate, Lemma 2: what the curvature adds per unit of mu^2,

    .. math:: \epsilon_{abs} = \frac{2d{\rho^+}^2 s s_2}{q}\Big(\frac{(s-1)(s_2-1)}{d-1} + 1\Big) + {\rho^+}^2 s d
    """
    check_sizes(d=d, q=q, s=s, s2=s2)
    square = check.positive("rho_plus", rho_plus) ** 2
    return 2 * d * square * s * s2 / q * (_pairs(s - 1, s2, d) + 1) + square * s * d


@formula
def second_moment(*, d: int, q: int, s: int, s2: int) -> tuple[float, float]:
    r"""The exact second moment for a linear f and independent directions, as the factors of
    :math:`||\nabla_I f||^2` and :math:`||\nabla_{I^c} f||^2`.

    eps_I and eps_Ic are at least twice as large, because they also cover a curved f.

    >>> second_moment(d=10, q=1, s=10, s2=10)  # I is all of R^d, one direction: the factor is d
    (10.0, 0.0)
    """
    check_sizes(d=d, q=q, s=s, s2=s2)
    inside = d / (q * (s2 + 2)) * (_pairs(s - 1, s2, d) + 3) + (1 - 1 / q)
    return inside, (d / (q * (s2 + 2)) * _pairs(s, s2, d) if s < d else 0.0)


def _pairs(count: int, s2: int, d: int) -> float:
    """count (s2 - 1) / (d - 1): how many of ``count`` other coordinates share a direction's support, on average."""
    return 0.0 if d == 1 else count * (s2 - 1) / (d - 1)

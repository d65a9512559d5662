r"""Where the printed theory cannot be: the printed form, what is wrong with it, and what is used instead.

`ERRATA` is the list; ``printed_*`` are the printed formulas, so that what is said of them can be seen.
Tests show each (tests/test_errata.py), docs/theory.md has the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.theory.constants import beta
from zerothresh.theory.intervals import EMPTY, Interval, negative


@dataclass(frozen=True)
class Erratum:
    """A printed formula that cannot be."""

    key: str
    where: str  # in the paper
    printed: str
    wrong: str
    used: str


ERRATA = (
    Erratum(
        "eps-Ic-denominator",
        "Section 2.2, Lemma 2",
        "eps_Ic = 2d/(q(s2+2)) (s(s2-1)/(-1))",
        "negative: it would bound a second moment from above by less than 0",
        "denominator d - 1, which the fourth moments of the directions give",
    ),
    Erratum(
        "lemma-2-whole-gradient",
        "Lemma 2, third item",
        "E||est_I f - grad f||^2 <= 2(eps_I+1)||grad_I f||^2 + 2 eps_Ic ||grad_Ic f||^2 + ..",
        "the left side holds ||grad_Ic f||^2, which no q makes small; the right side's share of it vanishes",
        "grad_I f on the left",
    ),
    Erratum(
        "rho-at-s2",
        "Lemma 2 (eps_mu, eps_abs)",
        "{rho_s^+}^2, s = 2k + k*",
        "f is queried along directions with s2 non-zeros; smoothness at sparsity s says nothing of them if s2 > s",
        "rho^+ at sparsity s2, the `rho_plus` of eps_mu and eps_abs",
    ),
    Erratum(
        "random-support",
        "Theorem 1 with Lemma 2",
        "E||g_I||^2 <= eps_I ||grad_I f||^2 + .. for I that holds supp(theta^(r+1))",
        "Lemma 2 is for a fixed I; supp(theta^(r+1)) is chosen by the same draw, where the estimate is largest",
        "the constants as they are, for comparison with the paper; s = d holds for every I, eps_I = 2d/q + 2",
    ),
    Erratum(
        "szoht-q-s2-1",
        "Section 2.3, s2 = 1",
        "q >= 8 kappa^2 d / sqrt(d/k* + 1)",
        "at that q the condition on k asks for k > d + k*: no k <= (d - k*)/2 is left, whatever the parameters",
        "q >= 8 kappa^2 d / ((1 + sqrt(2d/k* - 1))/2 - 9 kappa^2), and d large enough (`szoht_q`)",
    ),
    Erratum(
        "szoht-q-cap",
        "Section 2.3, s2 > 1",
        "q >= 16 d (s2-1) k* kappa^2/((s2+2)(d-1)) [18 kappa^2 - 1 + 2 sqrt(..)]",
        "the bracket makes the quadratic in k have roots, but they may lie above (d - k*)/2",
        "the least q that leaves some k <= (d - k*)/2 (`szoht_q`)",
    ),
    Erratum(
        "n-square",
        "Theorem 1, and all that follows",
        "alpha n^2 eps_mu mu^2 / {rho_s^-}^2",
        "F is a mean, not a sum: its bias is the mean of n biases. Doubling every f_i would multiply the term by 4",
        "alpha eps_mu mu^2 / {rho_s^-}^2",
    ),
    Erratum(
        "pm-gamma-units",
        "Theorem 2",
        "gamma = 2 beta/rho_s^- + 48 eta^2 alpha rho_s^+ eps_I - 2 eta alpha + 1 - p/n",
        "the first three terms are in units of 1/rho, the rest has none: gamma changes with the units of F",
        "the first three times rho_s^+/2, which turns squared distances into values (`pm_gamma`)",
    ),
    Erratum(
        "pm-delta-negative",
        "Corollary of Theorem 2, and Remark (independence of q)",
        'Delta = 4 alpha^2 - 4(48 eps_I alpha rho_s^+ + rho_s^-)(1 - p/n + 2/rho_s^-), "Delta > 0 for any q > 0"',
        "Delta > 0 needs alpha > 192: it is negative for every q, p, n, k > k* and curvature, unless k* > 9,120",
        "`pm_eta_interval`",
    ),
    Erratum(
        "pm-corollary-quadratic",
        "Corollary of Theorem 2",
        "(48 eps_I alpha rho_s^+ + rho_s^-) eta^2 - 2 alpha eta + 1 - p/n + 2/rho_s^- <= 0",
        "gamma <= 1 gives 2 alpha rho_s^- for rho_s^-, 2 alpha/rho_s^- for 2/rho_s^-, and no 1: printed is gamma <= 0",
        "`pm_eta_interval`",
    ),
    Erratum(
        "pm-max",
        "Corollary of Theorem 2",
        "eta <= max{eta' + .., 1/(48 eps_I rho_s^+)}",
        "beyond its larger root the quadratic is positive, so the larger of the two cannot be the end",
        "min, which the VR corollary has too",
    ),
    Erratum(
        "pm-interval-empty",
        "Theorem 2, repaired",
        "-",
        "also with units put right, gamma < 1 needs p/n > 1 - 1/196: no p-SAGA converges by this theorem",
        "`pm_eta_interval`, which is then empty",
    ),
    Erratum(
        "pm-eta-square",
        "Theorem 2, L_mu",
        "6 alpha eps_abs mu^2",
        "eta^2 is missing: a squared gradient is added to squared distances",
        "6 eta^2 alpha eps_abs mu^2, as in the proof",
    ),
    Erratum(
        "pm-48k",
        "Appendix, lemma of pM-SZHT and its proof",
        "48 k ||F(theta^r) - F(theta*)||^2, later 48 k eps_I [F(theta^r) - F(theta*)]",
        "a squared gradient is bounded by numbers in other units; three times 4 eps_I times 4 rho_s^+ is meant",
        "48 rho_s^+ eps_I [F(theta^r) - F(theta*)], as in Theorem 2",
    ),
    Erratum(
        "memory-weights",
        "Appendix, lemma of pM-SZHT",
        "A_r = 1/n sum_u (1 - q/n)^(r-u-1) (..) + (1 - q/n)^(r-1) (..)",
        "q, the number of directions, for p (1 - q/n is negative for q > n); and 1/n for p/n: they do not sum to 1",
        "p/n in both (`memory_weights`)",
    ),
    Erratum(
        "gradients-left",
        "Lemmas on the second moment",
        "((4 eps_I s + 2) + eps_Ic (d - k)) E||grad f_i(theta*)||_inf^2",
        "||grad_I f||^2 is up to s times ||grad f||_inf^2, so 2 has to be 2s; (a+b)^2 <= 2a^2 + 2b^2 makes 4 eps_Ic",
        "4 eps_I s + 2s + 4 eps_Ic (d - s) (`gradients_left`)",
    ),
    Erratum(
        "gap-may-be-negative",
        "Proof of Theorem 3",
        "E||grad f_i(theta) - grad f_i(theta*)||^2 <= 4 rho_s^+ [F(theta) - F(theta*)]",
        "theta has k > k* non-zeros and may lie below theta*: the right side is then negative",
        "as printed, for problems with grad F(theta*) = 0, where 2 rho_s^+ would do",
    ),
    Erratum(
        "outgoing-law",
        "Proof of Theorem 3",
        "sum_t beta^(m-1-t) [F(theta^(t)) - F*] = (beta^m - 1)/(beta - 1) [F(theta~) - F*], t' uniform",
        "that is a mean with the weights beta^(m-1-t), not a uniform one; nor is it the last iterate",
        "`outgoing_law`; the methods keep the last iterate, which does better in practice",
    ),
    Erratum(
        "vr-alpha",
        "Corollary of Theorem 3, eta_min, eta_max and the recommended eta",
        "(48 eps_I alpha rho_s^- rho_s^+ + {rho_s^-}^2) eta^2 - alpha rho_s^- eta + alpha - 1 < 0",
        "beta - 1 = alpha - 1 + alpha eta^2 {rho_s^-}^2: alpha is missing before {rho_s^-}^2",
        "`vr_eta_interval`, `vr_eta`",
    ),
    Erratum(
        "vr-72",
        "Theorem 3, L'",
        "72 eta^2 eps_abs mu^2",
        "two estimates, each three times 2 eps_abs mu^2, make 12; the 6 of the neighbouring term was multiplied in",
        "12 eta^2 eps_abs mu^2, as in the appendix's lemma",
    ),
    Erratum(
        "vr-parenthesis",
        "Theorem 3, L'_mu",
        "6 eta^2 (beta^m-1)/(beta-1) alpha (..) E||grad f_i(theta*)||_inf^2 + 3 ||grad_I F(theta*)||_2^2)",
        "the last term has lost its parenthesis: without eta^2 it is a squared gradient among squared distances",
        "3 ||grad_I F(theta*)||^2 with the factor eta^2 alpha (beta^m-1)/(beta-1) too (`vr_errors`)",
    ),
    Erratum(
        "vr-depends-on-q",
        "After Theorem 3; Corollary of SARAH-SZHT",
        '"q is also independent", "q does not play a decisive role"',
        "eps_I grows as 1/q, and alpha < 1 + 1/(192 eps_I kappa + 3) needs k >= 599,077 k* even for q to infinity; "
        "with few directions no k is left",
        "`vr_k`, `vr_q`",
    ),
    Erratum(
        "vr-constants",
        "Proof of the query complexity",
        "eta <= C_3/(eps_I rho_s^+) < 1/(72 eps_I rho_s^+) < C_3/(144 rho_s^+)",
        "needs 2/eps_I < C_3 < 1/72, so eps_I > 144, while eps_I comes down to 2 with more directions",
        "eta <= C_3/(2 rho_s^+), from eps_I >= 2: all that follows needs no more",
    ),
    Erratum(
        "kappa-small",
        "Corollary of Theorem 3",
        '"when kappa is small, the complexity will tend to n + kappa^3"',
        "kappa >= 1, so kappa^3/(kappa^2 + 1) lies between kappa/2 and kappa",
        "`vr_inner`: of the order kappa",
    ),
    Erratum(
        "vr-queries-q",
        "Corollary of Theorem 3",
        "ZO query complexity O([n + kappa^3/(kappa^2+1)] log 1/eps)",
        "these are gradient estimates, q + 1 queries each; SZOHT's (k + d/s2) kappa^2 beside it counts its q",
        "`vr_queries`, with q; `vr_estimates` is the printed one",
    ),
    Erratum(
        "vr-nht",
        "Corollary of Theorem 3",
        "hard-thresholding complexity O(log 1/eps)",
        "every one of the m inner steps thresholds, and m is of the order kappa",
        "`vr_thresholdings`",
    ),
    Erratum(
        "sarah-units",
        "Corollary of SARAH-SZHT",
        "(48 eps_I alpha rho_s^+ + alpha rho_s^-) eta^2 - alpha eta + (alpha - 1) <= 0",
        "two terms in units of 1/rho and one without: the interval moves with the units of F",
        "(alpha - 1)/rho_s^-: then it is VR-SZHT's (`sarah_eta_interval`)",
    ),
    Erratum(
        "sarah-alpha",
        "Theorem of SARAH-SZHT, gamma'",
        "gamma' = (2 eta (beta^(m-1)-1)/(beta-1) - (.. + ..) 48 eps_I eta^2 rho_s^+) alpha)",
        "by its parentheses alpha multiplies the second term only; the sum that it comes from has it in both",
        "alpha times all of it (`sarah_delta`)",
    ),
    Erratum(
        "sarah-beta",
        "Proof of SARAH-SZHT's corollary",
        "beta = alpha (1 + eta^2 rho_s^-)^2",
        "eta^2 rho_s^- has the unit 1/rho, and cannot be added to 1",
        "beta = alpha (1 + eta^2 {rho_s^-}^2), as everywhere else",
    ),
    Erratum(
        "sarah-unbiased",
        "Proof of SARAH-SZHT's lemma",
        "E g^(t) = E est f_i(theta^(t)), and g^(t-1) is replaced by est F(theta^(t-1))",
        "given the past, the mean of g^(t) is grad F(theta^(t)) + g^(t-1) - grad F(theta^(t-1)): errors are kept",
        "as printed, marked: no bound of ours replaces it",
    ),
    Erratum(
        "sarah-large-m",
        "Remark after SARAH-SZHT's corollary",
        '"the algorithm does not converge when m is large"',
        "the theorem says the opposite: if gamma' < delta for some m, so it is for every larger m",
        "`sarah_delta`, `sarah_gamma`; practice is on the remark's side, because the lemma drops the kept errors",
    ),
)


def printed_eps_Ic(*, d: int, q: int, s: int, s2: int) -> float:
    """Section 2.2, with the denominator -1."""
    return 2 * d / (q * (s2 + 2)) * (s * (s2 - 1) / -1)


def printed_szoht_q(*, d: int, s2: int, k_star: int, kappa: float) -> float:
    """Section 2.3: the least q of SZOHT, both cases of s2."""
    square = kappa**2
    if s2 == 1:
        return 8 * square * d / math.sqrt(d / k_star + 1)
    root = 9 * square * (9 * square - 1) + 0.5 - 1 / (2 * k_star) + 1.5 * (d - 1) / (k_star * (s2 - 1))
    scale = 16 * d * (s2 - 1) * k_star * square / ((s2 + 2) * (d - 1))
    return scale * (18 * square - 1 + 2 * math.sqrt(root))


def printed_pm_gamma(
    *, eta: float, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int
) -> float:
    """Theorem 2."""
    grown = 2 * beta(eta=eta, alpha=alpha, rho_minus=rho_minus) / rho_minus
    return grown + 48 * eta**2 * alpha * rho_plus * eps_I - 2 * eta * alpha + 1 - p / n


def printed_pm_delta(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int) -> float:
    """Delta of the corollary of Theorem 2, which its remark says is positive for every q."""
    return 4 * alpha**2 - 4 * (48 * eps_I * alpha * rho_plus + rho_minus) * (1 - p / n + 2 / rho_minus)


def printed_pm_eta_interval(
    *, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int
) -> Interval:
    """The corollary of Theorem 2."""
    square = printed_pm_delta(alpha=alpha, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus, p=p, n=n)
    if square <= 0:
        return EMPTY
    a = 48 * eps_I * alpha * rho_plus + rho_minus
    half = math.sqrt(square) / (2 * a)
    return Interval(alpha / a - half, max(alpha / a + half, 1 / (48 * eps_I * rho_plus)))


def printed_memory_weights(*, r: int, q: float, n: int) -> NDArray[np.float64]:
    """The weights of A_r in the appendix, of steps 0 .. r-1."""
    weights: NDArray[np.float64] = (1 - q / n) ** (r - 1 - np.arange(r)) / n
    weights[0] = (1 - q / n) ** (r - 1)
    return weights


def printed_vr_eta_interval(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> Interval:
    """eta_min and eta_max of the corollary of Theorem 3."""
    return negative(48 * eps_I * alpha * rho_minus * rho_plus + rho_minus**2, alpha * rho_minus, alpha - 1)


def printed_vr_eta(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    """The recommended eta of Theorem 3."""
    return alpha * rho_minus / (2 * (48 * eps_I * alpha * rho_minus * rho_plus + rho_minus**2))


def printed_sarah_eta_interval(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> Interval:
    """The corollary of SARAH-SZHT."""
    return negative(48 * eps_I * alpha * rho_plus + alpha * rho_minus, alpha, alpha - 1)

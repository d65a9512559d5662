r"""Errors in the printed theory: the printed form, what is wrong with it, and what this library uses instead.

`ERRATA` is the list, and docs/theory.md shows it as a table. The functions ``printed_*`` are the formulas as printed;
tests/test_errata.py uses them to prove each statement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zerothresh.basics import capacity
from zerothresh.basics.arrays import Array
from zerothresh.theory.constants import beta, check_kappa
from zerothresh.theory.intervals import EMPTY, Interval, negative
from zerothresh.theory.quantities import formula


@dataclass(frozen=True)
class Erratum:
    """A printed formula or statement that is not correct."""

    key: str
    where: str  # the place in the paper
    printed: str  # as printed; "-" if nothing is
    wrong: str  # what is wrong with it
    used: str  # what this library uses instead


ERRATA = (
    Erratum(
        "eps-Ic-denominator",
        "Section 2.1, Lemma 2",
        "eps_Ic = 2d/(q(s2+2)) (s(s2-1)/(-1))",
        "A d is missing before -1. As printed it is negative, but it is part of an upper bound of a second moment.",
        "The denominator is d - 1, which follows from the fourth moments of the directions.",
    ),
    Erratum(
        "support-size",
        "Section 2.1",
        "I = I^(r) + I^(r+1) + I~, where I~ = supp(H_2k(est F(theta*))) + supp(theta*)",
        "This I may have 4k + k* elements, because I~ has up to 2k + k*, but the constants have s = 2k + k*.",
        "I = supp(theta^(r)) + supp(theta^(r+1)) + supp(theta*), as in the proofs, which has at most s = 2k + k* "
        "elements (`sparsity`).",
    ),
    Erratum(
        "lemma-2-whole-gradient",
        "Lemma 2, third item",
        "E||est_I f - grad f||^2 <= 2(eps_I+1)||grad_I f||^2 + 2 eps_Ic ||grad_Ic f||^2 + ..",
        "The left side contains ||grad_Ic f||^2 for every q; its factor on the right side tends to 0.",
        "The left side has grad_I f instead of grad f.",
    ),
    Erratum(
        "rho-at-s2",
        "Lemma 2 (eps_mu, eps_abs)",
        "{rho_s^+}^2, s = 2k + k*",
        "The lemma assumes smoothness along directions with s2 non-zeros, but its constants have that at "
        "sparsity s, which says nothing about these directions if s2 > s.",
        "rho^+ at sparsity s2: the argument `rho_plus` of `eps_mu` and `eps_abs`.",
    ),
    Erratum(
        "random-support",
        "Theorem 1 with Lemma 2",
        "E||g_I||^2 <= eps_I ||grad_I f||^2 + .. for an I that contains supp(theta^(r+1))",
        "Lemma 2 holds for a fixed I, but supp(theta^(r+1)) depends on the draw: it is where the estimate is largest.",
        "The constants as printed, for comparison. With s = d the lemma holds for every I: eps_I = 2d/q + 2.",
    ),
    Erratum(
        "szoht-q-s2-1",
        "Section 2.2, s2 = 1",
        "q >= 8 kappa^2 d / sqrt(d/k* + 1)",
        "At that q, the condition on k requires k > d + k*, so that no k <= (d - k*)/2 is left, for any parameters.",
        "q >= 8 kappa^2 d / ((1 + sqrt(2d/k* - 1))/2 - 9 kappa^2) for d large enough (`szoht_q`).",
    ),
    Erratum(
        "szoht-q-cap",
        "Section 2.2, s2 > 1",
        "q >= 16 d (s2-1) k* kappa^2/((s2+2)(d-1)) [18 kappa^2 - 1 + 2 sqrt(..)]",
        "The bound ensures that the quadratic in k has roots, but they may lie above (d - k*)/2.",
        "The smallest q that leaves some k <= (d - k*)/2 (`szoht_q`).",
    ),
    Erratum(
        "n-square",
        "Theorem 1, and all that follows",
        "alpha n^2 eps_mu mu^2 / {rho_s^-}^2",
        "F is a mean, not a sum, so its bias is the mean of n biases. Listing every f_i twice would multiply it by 4.",
        "alpha eps_mu mu^2 / {rho_s^-}^2.",
    ),
    Erratum(
        "pm-gamma-units",
        "Theorem 2",
        "gamma = 2 beta/rho_s^- + 48 eta^2 alpha rho_s^+ eps_I - 2 eta alpha + 1 - p/n",
        "The first three terms have the unit 1/rho, the others have none, so that gamma depends on the units of F.",
        "The first three terms times rho_s^+/2, which converts squared distances into values (`pm_gamma`).",
    ),
    Erratum(
        "pm-memory",
        "Theorem 2",
        "gamma = (.. + 1 - p/n), L_mu = .. + 6 eta^2 alpha A_r",
        "The proof has a sum over the gaps [F(theta^(u)) - F(theta*)] of past iterates, which the theorem "
        "replaces by (1 - p/n) times the current gap. At theta* that is 0, whatever the memory holds.",
        "The past gaps are in A_r, the error of the memory (`memory_error`, `pm_errors`); the rate for any "
        "memory is `pm_rate`. L_mu is then needed once, not twice.",
    ),
    Erratum(
        "system-error-components",
        "Remark (system error) after Theorem 2",
        '"if F has a k*-sparse unconstrained minimizer .. then we would have ||grad F(theta*)||_inf = 0 and '
        '||grad f_ir(theta*)||^2_inf = 0"',
        "The second does not follow from the first: the gradients of the f_i at theta* need only have the mean "
        "0. It is right if every f_i has its minimum at theta*, as in a network that fits all its data.",
        "Both are arguments: `AtOptimum(F_inf, f_inf_square)`.",
    ),
    Erratum(
        "pm-delta-negative",
        "Corollary of Theorem 2, and Remark (independence of q)",
        'Delta = 4 alpha^2 - 4(48 eps_I alpha rho_s^+ + rho_s^-)(1 - p/n + 2/rho_s^-), "for any q>0 the '
        'necessary condition Delta>0 .. holds"',
        "Delta > 0 requires alpha > 192. It is negative for all q, p, n, k > k* and curvatures unless k* > 9,120.",
        "`pm_eta_interval`.",
    ),
    Erratum(
        "pm-corollary-quadratic",
        "Corollary of Theorem 2",
        "(48 eps_I alpha rho_s^+ + rho_s^-) eta^2 - 2 alpha eta + 1 - p/n + 2/rho_s^- <= 0",
        "The printed condition is gamma <= 0. gamma <= 1 has 2 alpha rho_s^- instead of rho_s^-, 2 alpha/rho_s^- "
        "instead of 2/rho_s^-, and no 1.",
        "`pm_eta_interval`.",
    ),
    Erratum(
        "pm-max",
        "Corollary of Theorem 2",
        "eta <= max{eta' + .., 1/(48 eps_I rho_s^+)}",
        "The quadratic is positive beyond its larger root, so that the interval cannot end at the maximum of the two.",
        "The minimum, as in the corollary of VR-SZHT.",
    ),
    Erratum(
        "pm-interval-empty",
        "Theorem 2, with consistent units",
        "-",
        "gamma < 1 requires p/n > 1 - 1/196, because of the term 1 - p/n: the theorem covers no practical p-SAGA.",
        "`pm_eta_interval`, which is then empty. `pm_rate` has no such term: it is below 1 for every p where "
        "alpha and kappa are close enough to 1.",
    ),
    Erratum(
        "pm-eta-square",
        "Theorem 2, L_mu",
        "6 alpha eps_abs mu^2",
        "The factor eta^2 is missing: a squared gradient is added to squared distances.",
        "6 eta^2 alpha eps_abs mu^2, as in the proof.",
    ),
    Erratum(
        "pm-48k",
        "Appendix, lemma of pM-SZHT and its proof",
        "48 k ||F(theta^r) - F(theta*)||^2, later 48 k eps_I [F(theta^r) - F(theta*)]",
        "The bound of a squared gradient has other units. What is meant is 3 times 4 eps_I times 4 rho_s^+.",
        "48 rho_s^+ eps_I [F(theta^r) - F(theta*)], as in Theorem 2.",
    ),
    Erratum(
        "memory-weights",
        "Appendix, lemma of pM-SZHT",
        "A_r = 1/n sum_u (1 - q/n)^(r-u-1) (..) + (1 - q/n)^(r-1) (..)",
        "This q is that of Hofmann et al., which the paper renames to p, and not the number of directions. For p > 1, "
        "the factor 1/n must be p/n: the weights do not sum to 1. The lemma itself has r as the last exponent.",
        "p/n in both places (`memory_weights`).",
    ),
    Erratum(
        "gradients-left",
        "Lemmas on the second moment",
        "((4 eps_I s + 2) + eps_Ic (d - k)) E||grad f_i(theta*)||_inf^2",
        "||grad_I f||^2 can be s times ||grad f||_inf^2, so 2 must be 2s; (a+b)^2 <= 2a^2 + 2b^2 gives 4 eps_Ic.",
        "4 eps_I s + 2s + 4 eps_Ic (d - s) (`gradients_left`).",
    ),
    Erratum(
        "gap-may-be-negative",
        "Proof of Theorem 3",
        "E||grad f_i(theta) - grad f_i(theta*)||^2 <= 4 rho_s^+ [F(theta) - F(theta*)]",
        "theta has k > k* non-zeros, so that F(theta) may be below F(theta*); the right side is then negative.",
        "As printed, for problems with grad F(theta*) = 0, where 2 rho_s^+ would suffice.",
    ),
    Erratum(
        "outgoing-law",
        "Proof of Theorem 3",
        "sum_t beta^(m-1-t) [F(theta^(t)) - F*] = (beta^m - 1)/(beta - 1) [F(theta~) - F*], random t' in [m-1]",
        "The sum is a mean with weights beta^(m-1-t), not a uniform one, and not the last iterate either.",
        "`outgoing_law`. The methods start the next epoch at the last iterate by default, as in the main text; "
        "docs/theory.md compares it with a random one.",
    ),
    Erratum(
        "vr-anchor-directions",
        "Lemma of VR-SZHT, second inequality of the proof",
        "E||est f_i(theta^0) - grad f_i(theta*) - est F(theta^0) + grad F(theta*)||^2 <= E||est f_i(theta^0) - "
        "grad f_i(theta*)||^2",
        "It is E||x - Ex||^2 <= E||x||^2 only if est f_i(theta^0) has the directions of est F(theta^0). In the "
        "listing, an inner step computes it anew, and with new directions both errors add up.",
        "The anchor's term counts twice (`vr_second_moment`). The theorem as printed has enough slack for that "
        "on all problems that we tried.",
    ),
    Erratum(
        "vr-alpha",
        "Corollary of Theorem 3, eta_min, eta_max and the recommended eta",
        "(48 eps_I alpha rho_s^- rho_s^+ + {rho_s^-}^2) eta^2 - alpha rho_s^- eta + alpha - 1 < 0",
        "beta - 1 = alpha - 1 + alpha eta^2 {rho_s^-}^2, so the factor alpha is missing before {rho_s^-}^2.",
        "`vr_eta_interval`, `vr_eta`.",
    ),
    Erratum(
        "vr-72",
        "Theorem 3, L'",
        "72 eta^2 eps_abs mu^2",
        "Two estimates, each with 3 times 2 eps_abs mu^2, give 12; the 6 belongs to the neighbouring term.",
        "12 eta^2 eps_abs mu^2, as in the lemma of the appendix.",
    ),
    Erratum(
        "vr-parenthesis",
        "Theorem 3, L'_mu",
        "6 eta^2 (beta^m-1)/(beta-1) alpha (..) E||grad f_i(theta*)||_inf^2 + 3 ||grad_I F(theta*)||_2^2)",
        "A typo: an opening parenthesis is missing. Without it, the last term has no eta^2, and a squared "
        "gradient is added to squared distances.",
        "3 ||grad_I F(theta*)||^2 also has the factor eta^2 alpha (beta^m-1)/(beta-1), as in the proof (`vr_errors`).",
    ),
    Erratum(
        "vr-depends-on-q",
        "Remark (independence of q), after Theorem 3, and the remark on SARAH-SZHT",
        '"variance reduction can only make q unable to determine whether to converge", "q is also independent in '
        'VR-SZHT", "q does not play a decisive role in convergence"',
        "The conditions do not show this: eps_I - 2 is proportional to 1/q, and alpha < 1 + 1/(192 eps_I kappa + 3) "
        "requires k >= 599,077 k* even as q tends to infinity. With few directions, they leave no k. Measured with "
        "the paper's estimator and a small enough eta on the problem of docs/theory.md, the gap falls to a floor for "
        "every q, so that the statement is right. But it is right for SZOHT as well, and with m = n both have about "
        "the same floor unless q is about as large as d. If all components share their directions, variance "
        "reduction removes the floor.",
        "`vr_k`, `vr_q`. For what is measured, see the (q, k) plane in docs/theory.md.",
    ),
    Erratum(
        "vr-constants",
        "Proof of the query complexity",
        "eta <= C_3/(eps_I rho_s^+) < 1/(72 eps_I rho_s^+) < C_3/(144 rho_s^+)",
        "It requires 2/eps_I < C_3 < 1/72, so eps_I > 144, but eps_I tends to 2 with more directions.",
        "eta <= C_3/(2 rho_s^+), from eps_I >= 2, which suffices for the rest of the proof.",
    ),
    Erratum(
        "kappa-small",
        "Corollary of Theorem 3, in the appendix",
        '"When kappa_s is small, the complexity will tend to O([n+kappa^3] log(1/eps))"',
        "Since kappa >= 1, kappa^3/(kappa^2 + 1) lies between kappa/2 and kappa.",
        "`vr_inner`, which is of the order kappa.",
    ),
    Erratum(
        "vr-queries-q",
        "Corollary of Theorem 3",
        "ZO query complexity O([n + kappa^3/(kappa^2+1)] log(1/eps))",
        "These are gradient estimates of q + 1 queries each, but the order of SZOHT beside it includes its q.",
        "`vr_queries`, with q; `vr_estimates` is as printed.",
    ),
    Erratum(
        "vr-nht",
        "Corollary of Theorem 3",
        "hard-thresholding query complexity O(log(1/eps))",
        "Each of the m inner steps applies H_k, and m is of the order kappa.",
        "`vr_thresholdings`.",
    ),
    Erratum(
        "sarah-units",
        "Corollary of SARAH-SZHT",
        "(48 eps_I alpha rho_s^+ + alpha rho_s^-) eta^2 - alpha eta + (alpha - 1) <= 0",
        "Two terms have the unit 1/rho and one has none, so that the interval depends on the units of F.",
        "(alpha - 1)/rho_s^- as the last term, which gives the interval of VR-SZHT (`sarah_eta_interval`).",
    ),
    Erratum(
        "sarah-alpha",
        "Theorem of SARAH-SZHT, gamma'",
        "gamma' = ((beta^(m-1)-1)/(beta-1) 2 eta - (.. + ..) 48 eps_I eta^2 rho_s^+) alpha)",
        "A typo: the parentheses do not match.",
        "alpha times the whole expression, as in the proof (`sarah_delta`).",
    ),
    Erratum(
        "sarah-corollary-step",
        "Proof of SARAH-SZHT's corollary",
        "(2 beta^(m-1) - 1)/(alpha rho_s^-) + 48 eps_I eta^2 rho_s^+ beta^(m-2) <= (beta^(m-1)-1)/(beta-1) 2 eta "
        "- beta^(m-2) 48 eps_I eta^2 rho_s^+",
        "The theorem has the sum of (beta^(m-1)-1)/(beta-1) and (beta^(m-2)-1)/(beta-1) in the last term; "
        "beta^(m-2) is their difference. The condition is too weak, and the quadratic printed after it does not "
        "follow from it.",
        "The quadratic follows from the theorem itself, but for its units (`sarah_eta_interval`).",
    ),
    Erratum(
        "sarah-beta",
        "Proof of SARAH-SZHT's corollary",
        "beta = alpha (1 + eta^2 rho_s^-)^2",
        "A typo: the square is misplaced. As printed, eta^2 rho_s^- has the unit 1/rho and cannot be added to 1.",
        "beta = alpha (1 + eta^2 {rho_s^-}^2), as everywhere else in the paper.",
    ),
    Erratum(
        "sarah-unbiased",
        "Lemma of SARAH-SZHT and its proof",
        "E g^(r) = E est f_i(theta^(r)), and g^(r-1) is replaced by est F(theta^(r-1))",
        "Given the past, the mean of g^(r) is grad F(theta^(r)) + g^(r-1) - grad F(theta^(r-1)): errors "
        "accumulate, and the lemma's bound can be exceeded.",
        "`sarah_second_moment`, which has the error that g has kept as an argument. The theorem is as printed.",
    ),
    Erratum(
        "sarah-large-m",
        "Theorem of SARAH-SZHT, and the second remark after its corollary",
        '"This will cause the algorithm to not converge when m is large."',
        "The remark is right, but the theorem says the opposite: if the factor of the old gap is below that of "
        "the new one for some m, it is so for every larger m. The lemma behind it has no accumulated errors.",
        "`sarah_delta`, `sarah_gamma`, as printed.",
    ),
)


@formula
def printed_eps_Ic(*, d: int, q: int, s: int, s2: int) -> float:
    """eps_Ic of Section 2.1, with the denominator -1."""
    return 2 * d / (q * (s2 + 2)) * (s * (s2 - 1) / -1)


@formula
def printed_szoht_q(*, d: int, s2: int, k_star: int, kappa: float) -> float:
    """The smallest q of SZOHT in Section 2.2, for s2 = 1 and for s2 > 1."""
    square = check_kappa(kappa) ** 2
    if s2 == 1:
        return 8 * square * d / math.sqrt(d / k_star + 1)
    root = 9 * square * (9 * square - 1) + 0.5 - 1 / (2 * k_star) + 1.5 * (d - 1) / (k_star * (s2 - 1))
    scale = 16 * d * (s2 - 1) * k_star * square / ((s2 + 2) * (d - 1))
    return scale * (18 * square - 1 + 2 * math.sqrt(root))


@formula
def printed_pm_gamma(
    *, eta: float, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int
) -> float:
    """gamma of Theorem 2."""
    grown = 2 * beta(eta=eta, alpha=alpha, rho_minus=rho_minus) / rho_minus
    return grown + 48 * eta**2 * alpha * rho_plus * eps_I - 2 * eta * alpha + 1 - p / n


@formula
def printed_pm_delta(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int) -> float:
    """Delta of the corollary of Theorem 2; the remark after it claims that Delta is positive for every q."""
    return 4 * alpha**2 - 4 * (48 * eps_I * alpha * rho_plus + rho_minus) * (1 - p / n + 2 / rho_minus)


@formula
def printed_pm_eta_interval(
    *, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int
) -> Interval:
    """The interval of learning rates in the corollary of Theorem 2."""
    square = printed_pm_delta(alpha=alpha, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus, p=p, n=n)
    if square <= 0:
        return EMPTY
    a = 48 * eps_I * alpha * rho_plus + rho_minus
    half = math.sqrt(square) / (2 * a)
    return Interval(alpha / a - half, max(alpha / a + half, 1 / (48 * eps_I * rho_plus)))


@formula
def printed_memory_weights(*, r: int, q: float, n: int) -> Array:
    """The weights of the steps 0 .. r-1 in A_r, in the appendix, where q is Hofmann's name for p."""
    capacity.need(capacity.NUMBER * r, f"a law of r = {r} probabilities", "take a smaller r")
    weights: Array = (1 - q / n) ** (r - 1 - np.arange(r)) / n
    weights[0] = (1 - q / n) ** (r - 1)
    return weights


@formula
def printed_vr_eta_interval(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> Interval:
    """The interval from eta_min to eta_max in the corollary of Theorem 3."""
    return negative(48 * eps_I * alpha * rho_minus * rho_plus + rho_minus**2, alpha * rho_minus, alpha - 1)


@formula
def printed_vr_eta(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    """The recommended learning rate of Theorem 3."""
    return alpha * rho_minus / (2 * (48 * eps_I * alpha * rho_minus * rho_plus + rho_minus**2))


@formula
def printed_sarah_eta_interval(*, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> Interval:
    """The interval of learning rates in the corollary of SARAH-SZHT."""
    return negative(48 * eps_I * alpha * rho_plus + alpha * rho_minus, alpha, alpha - 1)

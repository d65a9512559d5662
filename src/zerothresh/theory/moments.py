r"""The second moments of the gradient estimates of pM-SZHT, VR-SZHT and SARAH-SZHT: the lemmas of the appendix.

Each bounds E||g_I||^2 for a fixed support I of size s, by gaps F - F* at the points where the estimate was made. All of
them are built from `estimate_error`. They need grad F(theta*) = 0 (see the erratum "gap-may-be-negative").
"""

from __future__ import annotations

from zerothresh.basics.arrays import Array
from zerothresh.theory.constants import need
from zerothresh.theory.pm import memory_weights
from zerothresh.theory.quantities import formula, real_array
from zerothresh.theory.step import NOTHING, AtOptimum, gradients_left


@formula
def estimate_error(
    *,
    gap: float,
    eps_I: float,
    eps_Ic: float,
    eps_abs: float,
    rho_plus: float,
    d: int,
    s: int,
    mu: float,
    at_optimum: AtOptimum = NOTHING,
) -> float:
    r"""The bound on :math:`E||\hat\nabla_I f_i(\theta) - \nabla_I f_i(\theta^*)||^2` for a random component i,

    .. math:: 16\epsilon_I\rho_s^+ [F(\theta) - F(\theta^*)]
        + (4\epsilon_I s + 2s + 4\epsilon_{I^c}(d - s)) E||\nabla f_i(\theta^*)||_\infty^2 + 2\epsilon_{abs}\mu^2

    It is Lemma 2 with :math:`||a + b||^2 \le 2||a||^2 + 2||b||^2`, applied twice, and
    :math:`E||\nabla f_i(\theta) - \nabla f_i(\theta^*)||^2 \le 4\rho_s^+ [F(\theta) - F(\theta^*)]`.
    """
    rest = gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s) * at_optimum.f_inf_square
    return 16 * eps_I * rho_plus * gap + rest + 2 * eps_abs * mu**2


@formula
def past_gap(*, gaps: Array, p: float, n: int) -> float:
    r"""The mean gap of the iterates from which the memory's rows date,
    :math:`\sum_u w_u [F(\theta^{(u)}) - F(\theta^*)]`.

    The w_u are `memory_weights`, and ``gaps`` has the gaps at the steps u = 0 .. r-1.

    >>> past_gap(gaps=[4.0, 2.0, 1.0], p=1, n=2)
    2.0
    """
    values = real_array("gaps", gaps)
    need(values.ndim == 1 and values.size > 0, "the gaps of the steps 0 .. r-1", f"gaps has the shape {values.shape}")
    return float(memory_weights(r=values.size, p=p, n=n) @ values)


@formula
def memory_error(
    *,
    past_gap: float,
    eps_I: float,
    eps_Ic: float,
    eps_abs: float,
    rho_plus: float,
    d: int,
    s: int,
    mu: float,
    at_optimum: AtOptimum = NOTHING,
) -> float:
    r"""A_r of Theorem 2: the bound on :math:`E||\hat a_i - \nabla_I f_i(\theta^*)||^2` for a row of the memory.

    It is `estimate_error` at the iterates from which the rows date, whose mean gap is `past_gap`. A memory that was
    filled far from theta* has a large error, however close to theta* the iterate is. In the paper, A_r has the noise of
    the estimates alone: see the erratum "pm-memory".
    """
    return estimate_error(
        gap=past_gap, eps_I=eps_I, eps_Ic=eps_Ic, eps_abs=eps_abs, rho_plus=rho_plus, d=d, s=s, mu=mu,
        at_optimum=at_optimum,
    )  # fmt: skip


@formula
def pm_second_moment(
    *,
    gap: float,
    A_r: float,
    eps_I: float,
    eps_Ic: float,
    eps_abs: float,
    rho_plus: float,
    d: int,
    s: int,
    mu: float,
    at_optimum: AtOptimum = NOTHING,
) -> float:
    r"""The bound on :math:`E||\hat g_I||^2` of pM-SZHT, with A_r from `memory_error`:

    .. math:: 3 E||\hat\nabla_I f_i(\theta) - \nabla_I f_i(\theta^*)||^2 + 3 A_r + 3 ||\nabla_I F(\theta^*)||^2

    The first term is `estimate_error`. The last one is in the proof of the paper's lemma, but not in its result.
    """
    here = estimate_error(
        gap=gap, eps_I=eps_I, eps_Ic=eps_Ic, eps_abs=eps_abs, rho_plus=rho_plus, d=d, s=s, mu=mu, at_optimum=at_optimum
    )
    return 3 * (here + A_r + s * at_optimum.F_inf**2)


@formula
def vr_second_moment(
    *,
    gap: float,
    anchor_gap: float,
    eps_I: float,
    eps_Ic: float,
    eps_abs: float,
    rho_plus: float,
    d: int,
    s: int,
    mu: float,
    at_optimum: AtOptimum = NOTHING,
) -> float:
    r"""The bound on :math:`E||\hat g_I||^2` of VR-SZHT, with E the `estimate_error`:

    .. math:: 3 E(\theta) + 6 E(\theta^{(0)}) + 3 ||\nabla_I F(\theta^*)||^2

    The paper has 3 instead of 6. That is right if the step takes the anchor's estimate of component i from the
    directions of :math:`\hat\mu`; with directions of its own, as in the listing, the errors of both add up: see the
    erratum "vr-anchor-directions".
    """
    common = {"eps_I": eps_I, "eps_Ic": eps_Ic, "eps_abs": eps_abs, "rho_plus": rho_plus, "mu": mu}
    here, anchor = (estimate_error(gap=one, d=d, s=s, at_optimum=at_optimum, **common) for one in (gap, anchor_gap))
    return 3 * (here + 2 * anchor + s * at_optimum.F_inf**2)


@formula
def sarah_second_moment(
    *,
    gap: float,
    previous_gap: float,
    kept_error: float,
    eps_I: float,
    eps_Ic: float,
    eps_abs: float,
    rho_plus: float,
    d: int,
    s: int,
    mu: float,
    at_optimum: AtOptimum = NOTHING,
) -> float:
    r"""The bound on :math:`E||\hat g_I^{(t)}||^2` of SARAH-SZHT given the past, with E the `estimate_error`:

    .. math:: 4 E(\theta^{(t)}) + 4 E(\theta^{(t-1)}) + 4 ||\nabla_I F(\theta^*)||^2 + 4 \text{ kept error}

    ``kept_error`` is :math:`||\hat g_I^{(t-1)} - E\hat\nabla_I F(\theta^{(t-1)})||^2`, the error that g has accumulated
    before. The paper has no such term, and 3 instead of 4: see the erratum "sarah-unbiased".
    """
    common = {"eps_I": eps_I, "eps_Ic": eps_Ic, "eps_abs": eps_abs, "rho_plus": rho_plus, "mu": mu}
    here, before = (estimate_error(gap=one, d=d, s=s, at_optimum=at_optimum, **common) for one in (gap, previous_gap))
    return 4 * (here + before + s * at_optimum.F_inf**2 + kept_error)

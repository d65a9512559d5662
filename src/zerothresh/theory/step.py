r"""One step of any method: Theorem 1, the contribution of the gradients at theta*, and the floor of SZOHT."""

from __future__ import annotations

from dataclasses import dataclass

from zerothresh.basics import check
from zerothresh.theory.constants import beta, need
from zerothresh.theory.quantities import formula


@dataclass(frozen=True)
class AtOptimum:
    """The sizes of the gradients at theta*; all 0 if every f_i has its minimum there."""

    F_inf: float = 0.0  # ||grad F(theta*)||_inf
    f_inf_square: float = 0.0  # E ||grad f_i(theta*)||_inf^2

    def __post_init__(self) -> None:
        for name in ("F_inf", "f_inf_square"):
            object.__setattr__(self, name, check.not_negative(name, getattr(self, name)))


NOTHING = AtOptimum()


@formula
def step_bound(
    *,
    eta: float,
    alpha: float,
    rho_minus: float,
    eps_mu: float,
    mu: float,
    distance_square: float,
    second_moment: float,
    gap: float,
) -> float:
    r"""The bound of Theorem 1 on E||theta^(r+1) - theta*||^2,

    .. math:: (1+\eta^2{\rho_s^-}^2)\alpha E||\theta - \theta^*||^2 + \eta^2 \alpha E||\hat g_I||^2
        - 2\eta\alpha [F(\theta) - F(\theta^*)] + \alpha \epsilon_\mu\mu^2 / {\rho_s^-}^2

    The paper prints a factor n^2 in the last term, which a mean over n components does not have.
    """
    grown = beta(eta=eta, alpha=alpha, rho_minus=rho_minus) * distance_square
    return grown + alpha * (eta**2 * second_moment - 2 * eta * gap + eps_mu * (mu / rho_minus) ** 2)


@formula
def gradients_left(*, eps_I: float, eps_Ic: float, d: int, s: int) -> float:
    r"""The factor of E||grad f_i(theta*)||_inf^2 in system errors, :math:`4\epsilon_I s + 2s + 4\epsilon_{I^c}(d-s)`.

    The paper prints :math:`(4\epsilon_I s + 2) + \epsilon_{I^c}(d - k)`.
    """
    return 4 * eps_I * s + 2 * s + 4 * eps_Ic * (d - s)


@formula
def szoht_floor(
    *, rate: float, gamma_square: float, eta: float, rho_minus: float, eps_mu: float, eps_abs: float, mu: float
) -> float:
    r"""The limit of the bound on E||theta - theta*||^2 for SZOHT if every f_i has its minimum at theta*:

    .. math:: \frac{\gamma^2\mu^2}{1 - (\gamma\rho)^2}
        \Big(\frac{4\eta\epsilon_\mu}{3\rho_s^-} + \eta^2\epsilon_{abs}\Big)

    This is a derivation of this library: a step with eta = rho^- / ((4 eps_I + 1) rho^+^2) has a slack of at least 3/4
    of eta rho^-, which covers the bias (by 2ab <= (3/4) rho^- a^2 + 4 b^2 / (3 rho^-)).
    """
    need(rate < 1, "a rate below 1", f"rate = {rate:g}")
    spread = 4 * eta * eps_mu / (3 * rho_minus) + eta**2 * eps_abs
    return gamma_square * mu**2 * spread / (1 - rate**2)

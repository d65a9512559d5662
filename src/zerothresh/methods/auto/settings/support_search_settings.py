"""Support search and random steps: exchanges, restarts and the last resort for the rest of the budget."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SupportSearchSettings:
    """How other supports are searched once a descent has ended."""

    temperature: float = 0.7  # of the Gumbel noise on the scores: .4 to 1.0 did equally well in studies/few_calls
    most_enumerated: int = 300  # supports: so few are all tried, rather than drawn
    parabola_tolerance: float = 1e-4  # relative error up to which values lie on a parabola; the minimum is that close
    parabola_noise: float = 4.0  # and in units of the noise
    component_share: float = 0.25  # of the components from which second derivatives are measured
    least_components: int = 2  # times k of them at least
    trial_share: float = 0.34  # of the components on which a restart is tried before all of them are asked
    trial_passes: int = 4  # supports that it chooses there at most
    least_room: float = 0.1  # of a step: if a bound leaves less, the step is made to the other side
    least_eigenvalue: float = 1e-8  # of the largest one: keeps the quadratic model of a function convex
    model_starts: int = 30  # random supports from which the quadratic model is minimised, without calls
    model_trials: int = 5  # of its supports that are tried
    hessian_share: float = 0.8  # of the calls left that all second derivatives may cost: the rest tries them out
    most_drawn: int = 500  # exchanges that are drawn until one has not been tried
    restart_gradients: int = 3  # gradients that the budget must cover before a restart
    dropped_share: float = 0.5  # of that support: what stays should tell as much as what goes
    first_points: int = 8  # random points whose best one is the start, if nothing led away from the first start
    length_growth: float = 3.0  # their lengths grow by this factor from restart to restart
    length_cycle: int = 5  # and begin anew after so many
    evolve_step: float = 1 / 3  # powers of this are the first steps of random search on the support
    evolve_cycle: int = 3  # up to this power


SUPPORT_SEARCH = SupportSearchSettings()


@dataclass(frozen=True)
class RandomStepsSettings:
    """How the length of random steps follows their successes."""

    growth: float = 1.5  # of the length after a success (Kern et al. 2004)
    failures: float = 0.25  # a failure shortens by growth to this power: the length is stable at a fifth of successes
    noise_factor: float = 2.0  # standard deviations of F by which a trial must be lower


RANDOM_STEPS = RandomStepsSettings()

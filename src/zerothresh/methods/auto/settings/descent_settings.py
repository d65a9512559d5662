"""Local descent: differences, quasi-Newton steps, exchanges."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DescentSettings:
    """How a local descent steps, and when it gives up."""

    judged_steps: int = 4  # steps on the support after the first gradient, in which F should have fallen
    # Components: a descent begins with a few, and uses more as it makes progress.
    min_gradients: int = 3  # a budget below this many gradients of one component is too small for differences
    first_gradients: int = 8  # gradients of the first components that the budget must cover
    least_components: int = 3  # to begin with
    components_per_coordinate: int = 3  # of a support, that determine it: as many rows make an index fit meaningful
    first_share: int = 9  # one of this many components to begin with: two levels of growth then reach all
    level_growth: int = 3  # components of the next level; sampling errors fall by sqrt(3) each time

    # When a decrease counts, as a share of the decrease so far.
    negligible: float = 1e-8  # with all components: about the accuracy of a forward difference
    negligible_on_some: float = 3e-2  # with some components: a closer fit to them would not carry over to the rest
    kink_promise: float = 1e-4  # a rejected step that promised more than this hints at a kink
    kink_shorter: float = (
        0.1  # of that step: the departure from the slope falls to 1 % if F is smooth, at a kink to 10 %
    )
    kink_order: float = 0.03  # and lies in between where it is not clear
    kink_noise: float = 10.0  # and more than this many times the noise

    # Differences.
    rounding_step: float = 1e-8  # of |theta|: a shorter step is lost in its rounding
    longest_share_of_box: float = 0.25  # of the box's width: a difference over more says little about the slope
    clear_signal: float = 3.0  # gradient over noise from which a difference step is long enough
    strong_signal: float = 6.0  # and from which its length may be what misleads, so that it is shortened
    lengthen: float = 4.0  # the noise of a slope falls by this factor
    shorten: float = 5.0  # not a power of `lengthen`, so that other lengths are tried
    most_shortenings: int = 4  # in a row without progress
    longest_noisy_step: float = 1e3  # in diagnosed steps
    spare_gradients: int = 4  # that must be left before a gradient is measured again with a longer step
    forward_noise: float = 0.02  # noise over the change at stake up to which forward differences pick the support
    forward_step: float = 0.4  # of the central step: beside the noise they have the error of the curvature
    more_calls: int = 4  # calls per value are multiplied by this where noise hides further gains: halves the noise
    noise_repeats: int = 4  # calls from which the noise at a point is estimated
    kink_step: float = 1.0  # first step at a kink, as a share of the way from the start
    rough_step: float = 0.3  # the same for jumps, or for kinks that show later
    shorten_kinked: float = 3.0  # how fast these steps are shortened
    finest_share: float = 2e-3  # and up to where

    # Steps that may change the support.
    damping_rounds: int = 7  # increases of the damping before a step is given up
    damping_share: float = 0.5  # of the damping that explains the curvature seen: half, since it includes higher orders
    damping_growth: float = 4.0  # at least: a rejected step costs more than one that is a little short
    least_damping: float = 0.1  # of the mean curvature; below it a rejected step would hardly change
    first_damping: float = 10.0  # at most, at first
    most_damping_growth: float = 100.0  # at most, later
    least_curvature: float = 1e-3  # of slope over length: a flatter model would step a thousand lengths
    curvature_step: float = 0.1  # of the natural length: the step that measures the first curvature
    coarse_curvature_step: float = 1.0  # the same where short steps show kinks only
    steep_share: float = 0.6  # of the promised decrease: a step that achieves it is extended
    extension: float = 2.5  # factor of an extension
    longest_extension: float = 1e4
    longest_step: float = 1e5  # of the way from the start, or of the natural length
    longest_way: float = 1e20  # of the natural length: beyond it arithmetic overflows
    gauss_newton_values: int = 3  # values per component that must be left for a Gauss-Newton model
    least_alignment: float = 0.3  # cosine of a move and its gradient: bounds may have bent the move
    clear_bend: float = 4.0  # standard deviations of a value above which a second difference is a curvature
    gauss_newton_ridge: float = 1e-3  # of its mean curvature: components may have further scores
    secants: int = 8  # changes of the components' gradients that are kept: components rarely have more scores
    secant_miss: float = 0.4  # of a change of the gradient by which Gauss-Newton alone must miss a single one
    most_secant_numbers: int = 1_000_000  # in one of them: 8 MB
    secant_independence: float = 0.1  # of a step's length that later steps do not tell: else its errors are amplified
    secant_share: float = 1e-2  # of the largest curvature of a component along the steps: less is not told from 0

    # Quasi-Newton steps on a support.
    most_modelled: int = 500  # coordinates of a dense model: its algebra takes about 0.1 s per step
    least_cosine: float = 1e-8  # pairs with s'y below this share of |s| |y| would make the BFGS update unstable
    curvature_noise: float = 3.0  # standard deviations by which s'y must stand out to say anything about curvature
    newton_ridge: float = 1e-10  # of the mean diagonal: keeps the system solvable without changing its solution
    steps: int = 30  # on a support, with all components
    steps_on_some: int = 8  # with some components
    promising: float = 2.0  # times k coordinates outside the support, whose slopes are asked for before all others
    next_cycle: float = 0.1  # fall per call of the second cycle over that of the first: 1 and 0.01 need 20 % more calls
    steps_to_adapt: int = 3  # to components that were added
    armijo: float = 1e-4  # share of the predicted decrease that a step must achieve (Nocedal and Wright, section 3.1)
    backtracks: int = 5  # reductions of a step
    usual_backtrack: float = 0.25  # if the parabola through both values has no minimum
    most_backtrack: float = 0.05  # limits of one reduction
    least_backtrack: float = 0.5
    most_points: int = 4096  # of one round of second derivatives: they are all held at once
    worth_lengthening: float = 1.5  # steps to the minimum of the parabola from which a longer one is worth a value
    lengthening: float = 10.0  # factor of one lengthening: a parabola is not trusted further
    short_of_promise: float = 0.1  # of the promise, or of a negligible decrease: a smaller gain ends the steps

    # Exchanges.
    exchanges: int = 6  # of one coordinate, tried at a local minimum
    coarse_exchanges: int = 10  # times as many where a trial costs one value
    exchange_candidates: int = 4  # drawn from the model per exchange that is tried: some have been tried before
    hopeful_steps: float = 5.0  # a restart goes on while so many gains like the last one would beat the best value
    trial_steps: int = 4  # on the support of an exchange
    optimism: float = 3.0  # a trial goes on while this many times the promised decrease would beat the best value

    # Where slopes say nothing: (1+1)-CMA-ES on the support (Igel, Suttorp and Hansen 2006), and swaps.
    success_rate: float = 2 / 11  # the rate at which the step size stays
    success_memory: float = 0.9  # weight of the past in the rate
    evolve_step: float = 0.3  # first step in units of the mean size on the support
    least_evolve_step: float = 1e-4  # steps below this end the search
    evolve_failures: tuple[int, int] = (30, 10)  # in a row, at most: the first plus the second per coordinate
    swap_candidates: int = 100  # coordinates outside the support that one swap tries at most
    swap_values: tuple[float, ...] = (0.7, -0.7, 0.25, -0.25)  # for a new coordinate, in mean sizes on the support

    # Response surfaces through noisy values.
    most_surface_coordinates: int = 30  # a surface on a larger support needs too many values
    surface_share: float = 0.5  # of the calls made so far: what a surface may cost
    evolve_learning: float = 6.0  # the covariance learns at the rate 2 / (k^2 + 6) (Igel, Suttorp and Hansen)


DESCENT = DescentSettings()


@dataclass(frozen=True)
class StochasticSettings:
    """How stages of stochastic gradient steps are made where noise hides single steps."""

    calls_per_coordinate: int = 40  # a smaller budget does not pay for the stages
    comparison_calls: int = 48  # F is the mean of at least this many calls when points are compared
    comparison_share: float = 0.05  # of the calls made so far: what a comparison of two supports may cost per point
    first_steps: int = 12  # of a stage
    more_steps: float = 1.2  # factor of the steps after a stage that failed
    batch: int = 4  # components per gradient
    calibration_batch: int = 8  # the same while lengths are calibrated
    calibration_lengths: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # in natural lengths
    calibration_factors: tuple[float, ...] = (0.5, 2.0)  # moves in units of the difference step
    finalists: int = 4  # that are compared once more, with this many times the calls
    safety: float = 0.6  # the learning rate is this share of the one that lowered F most
    slower: float = 2.0  # divisor of the learning rate after a stage that failed
    shorten: float = 1.7  # divisor of the difference step
    shortest_step: float = 0.5  # of the way from the start, below which difference steps are not shortened
    start_again: int = 3  # every third failure: begin at the start again, with as many times the first steps
    most_failures: int = 12  # unsuccessful stages (less the successful ones) after which the search ends
    most_doublings: int = 5  # of the calls of a comparison, one per failure
    surface_values: int = 20  # values of F that must be left for a response surface
    clear_difference: float = 2.0  # standard errors from which the order of two supports counts as clear
    comparisons: int = 3  # of a support with the best one, as long as their difference is not clear
    rival_share: float = 0.08  # of the calls made so far: what the surface on another support may cost before each
    surface_share: float = 0.15  # the same for the surface on the best support
    polish_share: float = 0.3  # of the calls made so far that this surface has cost before other supports come first
    dropped_share: float = 0.5  # of the best support, before a new descent: what stays should tell as much as what goes
    stage_surface_share: float = 0.4  # the same after a stage of gradient steps, which says less about the minimum
    noise_repeats: int = 8  # values from which the noise of F is estimated


STOCHASTIC = StochasticSettings()


@dataclass(frozen=True)
class SurfaceSettings:
    """How a quadratic is fitted to noisy values around a point."""

    largest_radius: float = 4.0  # times the larger of the first radius and the way from the start
    prior_spread: float = 0.5  # the prior curvature may be wrong by half of its mean
    short_share: float = 0.5  # of the sampled moves is half as long, which tells a cubic term from the slope
    near: float = 2.0  # values up to this many radii away are fitted
    least_curvature: float = 0.1  # times the prior's mean curvature: the fitted Hessian is kept positive definite
    longest_step: float = 1.5  # in radii: the minimiser is trusted only about as far as values have been seen
    shrink: float = 1.3  # factors of the radius; it shrinks faster than it grows, because a cubic term misleads
    grow: float = 1.15
    cubic_significance: float = 1.7  # standard deviations of chi squared above which a cubic term counts as seen
    most_cubic_terms: int = 300  # of a surface: with more, the regression on them takes more than 0.1 s
    frame_share: int = 8  # values per coordinate after which two frames are sampled at once, and so on
    least_noise: float = 1e-9  # of the range of the values: regression needs some
    ridge: float = 1e-12  # on scaled coefficients: keeps the regression solvable
    worst_condition: float = 1e10  # of the cubic terms: beyond it they cannot be told apart
    calls_per_direction: int = 4  # both ends of a direction, each called twice


SURFACE = SurfaceSettings()


@dataclass(frozen=True)
class SparseSurfaceSettings:
    """How a quadratic on all coordinates is fitted to noisy values, and which coordinates are moved."""

    first_frames: int = 4  # of all coordinates: eight values per slope
    growth: float = 0.3  # of the values so far: those of the next round
    short_share: float = 0.25  # of the sampled moves is half as long: the support needs curvature more than cubic terms
    deviations: float = 2.0  # standard errors of a slope within which a coordinate still comes into question
    candidates: float = 2.0  # times k: so many always do, so that a wrong coordinate can be exchanged
    near: float = (
        2.5  # values up to this many radii away are fitted: more of them tell the support, and bias rarely matters
    )
    most_modelled: int = 30  # coordinates whose second derivatives are fitted one by one
    most_coordinates: int = 200  # of the regression: its algebra takes about 0.1 s per round
    cubic_significance: float = (
        3.0  # standard deviations of chi squared; what is left, a surface on the support corrects
    )
    centre_share: float = 0.1  # of a round: values at the point itself, which tell whether it is better
    least_repeats: int = 8  # of them at least
    same_rounds: int = 2  # rounds in a row without a change of the support that end a descent
    worse: float = 2.0  # standard errors by which a point is worse than the one before
    dampings: int = 30  # doublings of the damping until a step is short enough
    first_damping: float = 0.1  # of the mean curvature
    budget_share: float = 0.25  # of the calls left that the first round may take; gradient steps need fewer


SPARSE_SURFACE = SparseSurfaceSettings()


@dataclass(frozen=True)
class NihtSettings:
    """Steps of normalised hard thresholding."""

    min_gradients: int = 3  # full gradients are used if the budget covers at least this many of them
    backtracks: int = 20  # reductions of a step size: after these, rounding is all that is left
    backtrack: float = 4.0  # divisor of a reduction
    uncurved: float = 10.0  # times the measuring step: where F has no curvature along the gradient
    least_judges: int = 5  # fewer components cannot show that a decrease is more than chance (see `significance`)
    judging: int = 4  # one of so many calls may go into one comparison of F
    sampled_gradients: int = 10  # gradients that the budget is divided into, if it covers no full ones
    decay: float = 0.5  # weight of the past in the running mean of sampled gradients
    first_move: float = 0.5  # of the natural length, along the steepest coordinate
    factor: float = 3.0  # between the step sizes that are compared
    longest: float = 1e6  # natural lengths up to which a difference step is lengthened on a plateau
    flat_rounds: int = 20  # gradients in a row that are zero
    failed_rounds: int = 30  # gradients in a row along which no step lowers F


NIHT_STEPS = NihtSettings()


@dataclass(frozen=True)
class GuidedSettings:
    """Steps of guided SAGA."""

    least_rate: float = 1e-6  # the search ends when halving has brought the rate below this share of the first
    steep_quantile: float = 0.9  # a tenth of the components may be steeper than the curvature that sets the rate
    rate_divisor: float = 3.0  # the rate is 1 / 3L (Defazio et al. 2014)
    first_move: float = 10.0  # natural lengths: the longest first step
    longest_step: float = 1e3  # of the way from the start, or of the natural length
    independent: float = 1e-6  # what is left of a unit vector that depends on earlier ones is below this


GUIDED = GuidedSettings()

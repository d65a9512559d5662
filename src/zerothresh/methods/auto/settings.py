"""Every number on which a decision of `auto` depends, with its reason or the ablation that chose it.

All of them are dimensionless: ratios of differences of F to noise, of lengths to lengths, of calls to calls. Nothing
here is compared with F itself, so that no decision depends on the unit or the offset of F, nor on the unit of x.
Each part of `auto` has one frozen dataclass, and one instance of it with the values in use.
"""

from __future__ import annotations

from dataclasses import dataclass

EPS = 2.0**-52  # relative spacing of floating-point numbers: the only place where |F| itself counts
TINY = 1e-300  # lower limit of divisors


# --- Diagnosis: noise, lengths, kinks -------------------------------------------------------------------------------


@dataclass(frozen=True)
class DiagnosisSettings:
    """When the first calls show noise, curvature, kinks, jumps and plateaus."""

    # Values and noise.
    noise_points: int = 7  # equidistant points of ECnoise: six differences, as Moré and Wild recommend
    noise_spacing: float = 1e-3  # of the step that shows a difference: the smooth part cancels over so short a line
    orders_agree: float = 4.0  # successive orders of differences within this factor show noise (Moré and Wild)
    random_repeats: int = 4  # calls per value if values are random: halves the noise, and measures it
    floor: float = 4.0  # standard deviations from which a difference is more than noise
    random_floor: float = 8.0  # the same for random values, whose noise is known less well
    rounding: float = 8.0  # units of rounding that an ordinary sum loses
    batch_rounding: float = 64.0  # the same between two calls whose batches differ
    noise_growth: float = 5.0  # noise that grows by this factor twice in a row grows with the step
    clear: float = 10.0  # noise floors from which a difference is clear
    most_decimals: int = 8  # decimal digits to which values may have been rounded
    decimal_range: float = 1e12  # a number with more digits before and after the point is not a decimal one
    strong_noise: float = 0.1  # noise over the change at stake above which single steps cannot be judged

    # The quick check: four values of a smooth function without noise.
    min_calls: int = 100  # with fewer calls left, only the quick check is made
    quick_step: float = 1e-3  # of the first length: third order terms are below the tolerance, rounding too
    same_curvature: float = 0.03  # second differences to both sides of a smooth function agree up to this share
    least_quick_bend: float = 1e-7  # second over first difference: below it, rounding may have made the curvature
    most_quick_bend: float = 3e-2  # above it, the step is not short
    quick_rounding: float = 300.0  # units of rounding by which a second difference must stand out
    longest_quick_length: float = 1e6  # in steps of the quick check: beyond it the function is linear

    # The search for the natural length.
    first_step: float = 1e-4  # of the first length: a step too short costs less than one too long
    most_rounds: int = 20  # steps that are tried at most
    longest_step: float = 1e8  # of the first length: what shows nothing up to there is flat or linear
    lengthen: float = 10.0  # a step that shows a slope alone is lengthened by this factor
    lengthen_flat: float = 30.0  # a step that shows nothing
    least_bend: float = 0.03  # second over first difference: between these two, slope and curvature both show
    most_bend: float = 1.2
    aim: float = 0.3  # the bend that the next step aims at
    most_shortening: float = 1e-4  # factors of one change of the step
    most_lengthening: float = 1e3
    shortest_length: float = 0.3  # natural length in steps: it is not trusted further from what was seen
    longest_length: float = 30.0
    most_switches: int = 2  # other components to try if the first one seems to be stationary at the start

    # Kinks, jumps and stationary starts.
    kink_share: float = 0.2  # a second difference across the start above this share of the first may be a kink
    kink_ratio: float = 5.0  # and if it is above this multiple of the second difference on one side
    kink_checks: int = 3  # two much shorter steps tell a kink from a step that is too long; then back again
    kink_shortening: float = 1e-3
    kink_rounds: int = 4  # lengthenings to find out how far a kink dominates
    kink_curvature: float = 0.3  # of slope over length: the curvature that stands in for that of a kink
    straight_share: float = 0.05  # a function straight up to this share of a step
    bent: float = 0.1  # and bent by this much over it has a kink in between
    jump_growth: float = 3.0  # a first difference that grows by less than this
    jump_lengthening: float = 20.0  # over a step that grew by more than this is a jump
    plateau_order: int = 4  # the highest order with which a smooth function may begin before it counts as flat
    even_share: float = 0.1  # a first difference with a smaller odd part has no slope
    shorten_even: float = 0.01  # how fast the step shrinks to look for a slope
    even_shortening: float = 1e-6  # of the first such step: if no slope shows up to there, the start is stationary
    even_rounds: int = 6  # lengthenings to find where F departs from its parabola
    even_departure: float = 0.4  # from the ratio 2 of second to first difference of a parabola

    # Difference steps (Moré and Wild 2012).
    step_factor: float = 1.68  # 8^(1/4): minimises the error of a forward difference
    random_step_factor: float = 8.0  # longer if values are random: central differences, whose bias is of third order
    shortest_step: float = 1e-7  # of the natural length: rounding in x must not show
    longest_share_of_box: float = 0.25  # of its width: a difference over more says little about the slope
    central_above: float = 0.02  # of the natural length: a forward step this long is biased by more than 1 %
    curvature_share: float = 0.1  # of the length along a gradient: the shortest step of a second difference
    curvature_step: float = 3.0  # times length^(1/2) (noise/curvature)^(1/4): balances noise and fourth order
    cubic_step: float = 2.0  # times the cube root of the relative noise: balances noise and third order
    shortest_central: float = 1e-5  # of the length along a gradient


DIAGNOSIS = DiagnosisSettings()


# --- Active subset: few coordinates matter --------------------------------------------------------------------------


# --- Grouped slopes: fewer calls than coordinates -------------------------------------------------------------------


# --- Single index: components are losses of linear scores -----------------------------------------------------------


# --- Local descent: differences, quasi-Newton steps, exchanges ------------------------------------------------------


@dataclass(frozen=True)
class DescentSettings:
    """How a local descent steps, and when it gives up."""

    # Components: a descent begins with a few, and uses more as it makes progress.
    min_gradients: int = 3  # a budget below this many gradients of one component is too small for differences
    first_gradients: int = 8  # gradients of the first components that the budget must cover
    least_components: int = 3  # to begin with
    first_share: int = 9  # one of this many components to begin with: two levels of growth then reach all
    level_growth: int = 3  # components of the next level; sampling errors fall by sqrt(3) each time

    # When a decrease counts, as a share of the decrease so far.
    negligible: float = 1e-8  # with all components: about the accuracy of a forward difference
    negligible_on_some: float = 3e-2  # with some components: a closer fit to them would not carry over to the rest
    kink_promise: float = 1e-4  # a rejected step that promised more than this hints at a kink
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

    # Quasi-Newton steps on a support.
    most_modelled: int = 500  # coordinates of a dense model: its algebra takes about 0.1 s per step
    least_cosine: float = 1e-8  # pairs with s'y below this share of |s| |y| would make the BFGS update unstable
    curvature_noise: float = 3.0  # standard deviations by which s'y must stand out to say anything about curvature
    newton_ridge: float = 1e-10  # of the mean diagonal: keeps the system solvable without changing its solution
    steps: int = 30  # on a support, with all components
    steps_on_some: int = 8  # with some components
    steps_to_adapt: int = 3  # to components that were added
    armijo: float = 1e-4  # share of the predicted decrease that a step must achieve (Nocedal and Wright, section 3.1)
    backtracks: int = 5  # reductions of a step
    usual_backtrack: float = 0.25  # if the parabola through both values has no minimum
    most_backtrack: float = 0.05  # limits of one reduction
    least_backtrack: float = 0.5
    short_of_promise: float = 0.1  # of the promise, or of a negligible decrease: a smaller gain ends the steps

    # Exchanges.
    exchanges: int = 6  # of one coordinate, tried at a local minimum
    coarse_exchanges: int = 10  # times as many where a trial costs one value
    exchange_candidates: int = 4  # drawn from the model per exchange that is tried: some have been tried before
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


DESCENT = DescentSettings()


@dataclass(frozen=True)
class StochasticSettings:
    """How stages of stochastic gradient steps are made where noise hides single steps."""

    calls_per_coordinate: int = 40  # a smaller budget does not pay for the stages
    comparison_calls: int = 48  # F is the mean of at least this many calls when points are compared
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
    surface_share: float = 0.4  # of the calls made so far: what a surface may cost
    noise_repeats: int = 8  # values from which the noise of F is estimated


STOCHASTIC = StochasticSettings()


@dataclass(frozen=True)
class SurfaceSettings:
    """How a quadratic is fitted to noisy values around a point."""

    largest_radius: float = 4.0  # times the larger of the first radius and the way from the start
    prior_spread: float = 0.5  # the prior curvature may be wrong by half of its mean
    short_share: float = 0.25  # of the sampled moves is half as long, which shows whether F is quadratic
    near: float = 2.0  # values up to this many radii away are fitted
    least_curvature: float = 0.1  # times the prior's mean curvature: the fitted Hessian is kept positive definite
    longest_step: float = 1.5  # in radii: the minimiser is trusted only about as far as values have been seen
    shrink: float = 1.3  # factors of the radius; it shrinks faster than it grows, because a cubic term misleads
    grow: float = 1.15
    cubic_significance: float = 1.7  # standard deviations of chi squared above which a cubic term counts as seen
    frame_share: int = 8  # values per coordinate after which two frames are sampled at once, and so on
    least_noise: float = 1e-9  # of the range of the values: regression needs some
    ridge: float = 1e-12  # on scaled coefficients: keeps the regression solvable
    worst_condition: float = 1e10  # of the cubic terms: beyond it they cannot be told apart


SURFACE = SurfaceSettings()


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


# --- Corner swaps and long steps: finite bounds, flat starts --------------------------------------------------------


# --- Support search: exchanges and restarts with the rest of the budget ---------------------------------------------


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
    hessian_share: float = 0.5  # of the calls left that all second derivatives may cost: the rest tries them out
    most_drawn: int = 500  # exchanges that are drawn until one has not been tried
    restart_gradients: int = 3  # gradients that the budget must cover before a restart
    partial_every: int = 2  # every second restart begins with a part of the best support, the others at random
    dropped_share: float = 0.5  # of that support: what stays should tell as much as what goes
    first_points: int = 8  # random points whose best one is the start, if nothing led away from the first start
    length_growth: float = 3.0  # their lengths grow by this factor from restart to restart
    length_cycle: int = 5  # and begin anew after so many
    evolve_step: float = 1 / 3  # powers of this are the first steps of random search on the support
    evolve_cycle: int = 3  # up to this power


SUPPORT_SEARCH = SupportSearchSettings()


# --- The race -------------------------------------------------------------------------------------------------------

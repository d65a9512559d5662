"""Every number on which a decision of `auto` depends, with its reason or the ablation that chose it.

All of them are dimensionless: ratios of differences of F to noise, of lengths to lengths, of calls to calls. Nothing
here is compared with F itself, so that no decision depends on the unit or the offset of F, nor on the unit of x.
Each part of `auto` has one frozen dataclass, and one instance of it with the values in use.
"""

from __future__ import annotations

from dataclasses import dataclass

EPS = 2.0**-52  # relative spacing of floating-point numbers: the only place where |F| itself counts
TINY = 1e-300  # lower limit of divisors
LARGEST_ROOT = 1e150  # its square, and that square times a number of ordinary size, is still a floating-point number


# --- Diagnosis: noise, lengths, kinks -------------------------------------------------------------------------------


@dataclass(frozen=True)
class DiagnosisSettings:
    """When the first calls show noise, curvature, kinks, jumps and plateaus."""

    # Values and noise.
    noise_points: int = 7  # equidistant points of ECnoise: six differences, as Moré and Wild recommend
    noise_spacing: float = 1e-3  # of the step that shows a difference: the smooth part cancels over so short a line
    orders_agree: float = 4.0  # successive orders of differences within this factor show noise (Moré and Wild)
    start_repeats: int = 6  # values at the start from which random noise is measured, up to a factor of 1.4 mostly
    random_repeats: int = 2  # calls per value if values are random: they measure the noise elsewhere
    distant_repeats: int = 4  # the same if noise does not show at the start: then nothing else measures it
    floor: float = 4.0  # standard deviations from which a difference is more than noise
    random_floor: float = 8.0  # the same for random values, whose noise is known less well
    rounding: float = 8.0  # units of rounding that an ordinary sum loses
    batch_rounding: float = 64.0  # the same between two calls whose batches differ
    noise_growth: float = 5.0  # noise that grows by the square of this factor in two rounds grows with the step
    clear: float = 10.0  # noise floors from which a difference is clear
    most_decimals: int = 8  # decimal digits to which values may have been rounded
    decimal_range: float = 1e12  # a number with more digits before and after the point is not a decimal one
    strong_noise: float = 0.1  # noise over the change at stake above which single steps cannot be judged

    # The quick check: four values of a smooth function without noise.
    min_calls: int = 100  # with fewer calls left, only the quick check is made
    quick_step: float = 1e-3  # of the first length: third order terms are below the tolerance, rounding too
    quick_components: int = 3  # that give the natural length; one alone is too short by a factor of 10 in 1 of 10 draws
    same_curvature: float = 0.03  # second differences to both sides of a smooth function agree up to this share
    least_quick_bend: float = 1e-7  # second over first difference: below it, rounding may have made the curvature
    most_quick_bend: float = 3e-2  # above it, noise may look like curvature; to one side the step may be too long
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


@dataclass(frozen=True)
class ActiveSubsetSettings:
    """When F counts as a function of few coordinates, and how they are found and searched."""

    # Finding the coordinates.
    most_active: int = 20  # a model of more than this many coordinates needs more values than it saves
    fewest_active: int = 4  # `fits`: a screen that could not even find this many is not worth its calls
    gradient_share: float = 0.5  # of the d calls of a gradient: 2 s log2(d) calls for s coordinates must stay below it
    screen_components: int = 4  # of n: whether a coordinate matters shows in a few components already
    density_tests: int = 5  # random groups of d / (2 s) coordinates: all five differ with a chance of 1 % if s matter
    weak_share: float = 2e-3  # of the spread of F: five groups that change F by less belong to weak coordinates
    visible_share: float = 1e-2  # of the spread of F: coordinates that change F by less are left to a second screen
    deviations: float = 4.0  # of the noise of a difference: a chance of 6e-5 per comparison, for about 100 of them
    rounding: float = 64.0  # spacings of floating-point numbers that a value may be off by
    alone_halvings: int = 2  # halvings that did not divide a group, after which it probably has one coordinate
    most_joint: int = 3  # groups that one call halves at most: the 2^m hybrids of four cost more than they save
    joint_choice: int = 7  # of the largest groups the batches are chosen, so that choosing costs nothing
    joint_misses: int = 3  # such calls without a known value after which groups are halved one by one
    beyond_doubt: float = 2.0  # times the visible difference: more than that needs no further values
    confirmations: int = 2  # further pairs of values for a coordinate found under random noise
    quiet_pairs: int = 2  # pairs without a difference after which the screen leaves the rest to later tests
    plateau_pairs: int = 64  # the same while nothing has been found: 2 % of the box not flat are found in 3 of 4 runs
    growths: int = 6  # times that the region is enlarged where F shows no change and there are no bounds
    growth: float = 10.0  # factor of one enlargement
    edge: float = 0.05  # of the region: a minimum this near to its end asks for a larger one, where there are no bounds
    region: float = 10.0  # natural lengths per coordinate from the start to each side, where there are no bounds
    pair_values: int = 4  # values that a pair of points and the first halving of what differs take


ACTIVE_SUBSET = ActiveSubsetSettings()


@dataclass(frozen=True)
class WideSettings:
    """What idle workers are spent on where many calls take no longer than one (`parallel`)."""

    parts: int = 8  # into which a bisection cuts a group at most: 4 takes more rounds, 16 more calls
    proposals: int = 8  # points that a Gaussian process proposes at once: 5 takes more rounds, 12 more calls
    patience: int = 3  # rounds of them without improvement that end a descent by process
    extensions: int = 3  # of a step that may change the support: longer ones that are evaluated with it
    extension_slopes: int = 1  # of these, with the slopes on their supports: 0 takes more rounds, 3 a fifth more calls


WIDE = WideSettings()


@dataclass(frozen=True)
class GaussianProcessSettings:
    """The priors of the Gaussian process (on the unit cube, values of variance 1), and how long it is fitted."""

    usual_length: float = 0.5  # half of the range: F changes a few times over it
    length_spread: float = 1.0  # of its logarithm: a factor of e
    length_range: tuple[float, float] = (-5.0, 4.0)  # logarithms: beyond them F is noise, or constant
    amplitude_spread: float = 1.5  # of its logarithm; values have variance 1
    amplitude_range: tuple[float, float] = (-3.0, 4.0)
    least_noise: float = 2.5e-3  # of the spread: what is expected where values are not random
    noise_spread: float = 2.0  # of its logarithm: weak coordinates and a wrong kernel look like noise, too
    noise_range: tuple[float, float] = (-11.0, 1.0)
    warp_quantile: float = 0.25  # of the values above the lowest: the warp log(1 + y/c) begins to bend there
    first_steps: int = 30  # of L-BFGS from the prior
    later_steps: int = 8  # from the last parameters, which are near
    jitter: float = 1e-9  # of the variance, so that the covariance can be factorised
    resolution: float = 2.0**-33  # of the deviation of the values: finer than the jitter, coarser than rounding
    least_variance: float = 1e-12  # of the variance: below it rounding decides
    refused: float = 1e10  # the objective where the covariance cannot be factorised
    most_missed: float = 0.2  # of the variance of the values: what a process that predicts F misses of left-out ones
    most_surprise: float = 0.7  # mean square of left-out errors over deviations: 0.2-0.7 if F is smooth, else 0.8-2
    asymptotic: float = -6.0  # deviations from which the expansion of the expected improvement is exact to 1 %


GAUSSIAN_PROCESS = GaussianProcessSettings()


@dataclass(frozen=True)
class RandomProcessSettings:
    """What a Gaussian process for random values has beside the priors above."""

    ripples: float = 0.02  # of the spread: what is expected to change from point to point beside the smooth part
    amplitude_range: tuple[float, float] = (-3.0, 6.0)  # logarithms: a bowl with long lengths has a large amplitude
    bend: float = 4.0  # of the noise: the warp bends at least this far above the lowest value, which is low by chance
    nodes: int = 9  # of Gauss-Hermite quadrature, up to 4.5 deviations
    repeats: tuple[int, ...] = (1, 4)  # values at a point whose worth is considered: one hardly shows a rare fall


RANDOM_PROCESS = RandomProcessSettings()


@dataclass(frozen=True)
class QuadraticModelSettings:
    """The numerical limits of quadratic interpolation."""

    rank: float = 1e-12  # relative size of the singular values that are taken for zero
    sweeps: int = 50  # of coordinate descent at most; few coordinates need about ten
    settled: float = 1e-9  # of the radius: coordinate descent ends with a shorter move


QUADRATIC_MODEL = QuadraticModelSettings()


@dataclass(frozen=True)
class GlobalSearchSettings:
    """The search on the few coordinates that matter: descents by Gaussian process and by quadratic model in turn."""

    first_points: int = 2  # beyond p + 1: the random points from which a descent begins
    most_points: int = 150  # in a Gaussian process: its cost grows with their cube
    global_candidates: int = 600  # points of the cube at which the expected improvement is computed
    near_candidates: int = 100  # and points around the best one, for each of these distances in lengths:
    distances: tuple[float, ...] = (0.02, 0.05, 0.1, 0.3)
    line_points: int = 24  # candidates on the line through the best point along each coordinate
    moved_share: float = 0.4  # of the coordinates that a point nearby changes, but two at least
    refinements: int = 6  # rounds that refine the best candidates
    refined: int = 3  # candidates that are refined
    refined_points: int = 24  # points around each of them
    refined_shrink: float = 0.6  # of their distance per round
    refined_distance: float = 0.1  # lengths, at first
    length_range: tuple[float, float] = (0.05, 0.7)  # of the cube: limits of what moves take for a length
    mean_every: int = 3  # every third call goes to the minimiser of the mean: it polishes where improvement explores
    form_every: int = 8  # calls after which all forms of the process are fitted again; in between, only the best one
    believed_margin: float = 0.5  # of the noise: how much better a point must be believed to be to be an improvement
    gain: float = 1e-3  # of the fall from the median to the lowest value: less is no improvement
    patience: int = 8  # calls without improvement that end a descent by process, which sees the whole cube at first
    first_patience: int = 2  # times as many if the descent has found nothing at all: it may not be at a bottom
    idle_steps: int = 6  # the same for a descent by quadratic model
    narrowing: float = 0.5  # factor of the width of the box in which a process looks, after a call without improvement
    least_width: float = 0.02
    basin: float = 0.9  # lengths around a bottom within which another descent neither begins nor looks
    shortlist: int = 48  # best candidates that are tested for lying in a known basin
    way_points: int = 9  # points on the way from a candidate to a bottom
    barrier: float = 0.05  # of the spread of the values: a lower one on this way does not part two basins
    trusted_weight: float = 4.0  # of a process that predicts values it was not fitted to
    first_radius: float = 0.2  # of the cube: the trust region of the quadratic model at first (as for BOBYQA)
    near_radii: tuple[float, float] = (0.01, 0.08)  # the same for descents from the best point, drawn by chance
    last_radius: float = 1e-3  # where it ends
    growing: float = 0.7  # actual over predicted fall above which the radius doubles
    failing: float = 0.1  # and below which it is halved
    largest_radius: float = 0.5  # half of the cube
    misfit: float = 0.1  # of the spread of the values that a model goes near: 0, .03, .1, .3 need on Ackley6 209, 115,
    # 107, 114 calls, and on Rosenbrock4 146, 132, 125, 245
    hope: float = 10.0  # falls as large as predicted, or as the last, after which a descent must have passed the best
    small_radius: float = 0.05  # from which on descents without hope end
    far: float = 2.0  # radii from which a point of the model is replaced when a step fails (Powell)
    shortest_step: float = 0.1  # radii: a shorter step asks for a smaller region instead of a value
    long_step: float = 0.9  # radii: only a step this long shows that the region is too small
    random_starts: int = 2  # of the minimisation of a model that may be indefinite
    same: float = 1e-7  # of the cube: a point this near to another one tells nothing new


GLOBAL_SEARCH = GlobalSearchSettings()


@dataclass(frozen=True)
class BeliefSettings:
    """Which point is the best one if values are random."""

    most_points: int = 120  # lowest and newest values that the process goes near: its cost grows with their cube
    caution: float = 0.5  # deviations that are added to what is believed: a value that was seen once may be luck


BELIEF = BeliefSettings()


@dataclass(frozen=True)
class KnowledgeSettings:
    """Where a further random value is worth most."""

    patience: int = 16  # calls without improvement that end a descent: single values hardly show one under noise
    least_values: int = 2  # at the best point: an estimate of the noise that is too low is found out
    rivals: int = 25  # best points that may be asked for again
    distances: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3)  # lengths from the best point, of points around it
    promising: int = 100  # of these points: those of smallest mean
    nearby: int = 40  # others of them, by chance
    wide: int = 80  # random points of the cube
    corners: int = 40  # random corners of it: they tell most of a bowl
    refinements: int = 14  # rounds that refine the minimiser of the mean: to a thousandth of a length


KNOWLEDGE = KnowledgeSettings()


# --- Grouped slopes: fewer calls than coordinates -------------------------------------------------------------------


@dataclass(frozen=True)
class GroupedSlopesSettings:
    """Gradients from fewer calls than coordinates: groups, samples of components, sign rows."""

    cheaper_share: float = 0.5  # of d: bisection must be cheaper than half a gradient, or a gradient tells more
    gradients: float = 3.0  # the arm fits if the budget pays for fewer full gradients: beyond, differences are exact
    groups: float = 1.0  # groups at the beginning of a search, times k: 0.5 and 2 are within chance on dense.py
    depth: float = (
        0.1  # a group of size s has the priority |slope| s^-depth: 0.1 needs 5 % fewer calls than 0, 0.25 fails
    )
    taken: int = 1  # coordinates that a search looks for: 2 needs 5 to 10 % more calls, 3 needs 20 %
    polish_steps: int = 3  # quasi-Newton steps after a search; the third one hardly pays
    polish_share: float = 0.1  # of the fall so far that the next step must promise: 0.01 and 0.5 need 5 to 10 % more
    trusted: float = 0.01  # of the predicted fall by which a step may miss it without a new gradient; 0.05 is too much
    line_trials: int = 4  # shorter steps that are tried along a line before it is given up
    sufficient: float = 1e-4  # of the predicted fall that a step must reach (Armijo; Nocedal and Wright, section 3.1)
    first_step: float = 0.3  # of the natural length, for the first curvature along found slopes
    additivity: float = 0.3  # of the largest slope by which a union may differ from its groups before the step shrinks
    shrink: float = 0.1  # factor of the step where slopes do not add up
    shrinkings: int = 3  # times in a row that the step shrinks
    lengthen: float = 100.0  # factor of the step where no group changes F at all
    flat_searches: int = 4  # searches without any change of F after which it is taken to be constant
    splits: float = 2.0  # values per level of halving that a search takes: one for each of two groups, about
    searches: float = 2.0  # searches that must be affordable, or coordinates are not told from one another at all
    group_share: float = 0.125  # of the affordable values that the first groups of a search may take
    search_share: float = 0.5  # of the affordable values after which a search goes straight down to one coordinate
    coarse_share: float = 0.5  # of the affordable values for slopes where coordinates are not told apart; steps follow
    shortest: float = 0.1  # factor of the step after a failed one, at least: parabolas far from a minimum mislead
    longest: float = 0.5  # factor of the step after a failed one, at most
    first_share: float = 0.125  # of the calls left that one value on the first sample may cost
    sample: int = 8  # components that a search begins with: fewer hardly give a standard error
    growth: int = 4  # factor of the sample: all smaller samples together cost a third of the next one
    stand_out: float = 4.0  # standard errors: the largest of 10,000 standard normals is about this large
    significance: float = 3.0  # standard errors by which a point must be better on a sample of the components
    judges: int = 5  # the standard error of fewer components says too little
    judge_share: float = 0.5  # of the calls left that one judgement may cost
    probe_share: float = 0.05  # of the calls left that may tell whether groups show slopes, where coordinates would do
    first_groups: int = 4  # groups whose slopes on the first sample tell how many components a slope takes
    chance: float = 2.0  # standard deviations of a mean square that chance may add
    group_signal: float = 4.0  # of the variance of a group's mean slope that its square must be to be worth a search
    exchange: float = 0.3  # of the rise by what leaves that the fall by what enters must be to be tried; 1 loses half
    stalls: int = 4  # searches without a fall before half of the support is drawn anew: 2 needs 10 % more calls
    polish_calls: float = 0.25  # of the calls left that one gradient on the support may cost
    judged_points: int = 3  # points that a judgement compares: the start, the point found, and one in between


GROUPED_SLOPES = GroupedSlopesSettings()


@dataclass(frozen=True)
class DistilledStepSettings:
    """A step from few calls on many components."""

    kept: float = 0.5  # of the coordinates after each stage: 0.3 and 0.7 are within chance
    spare: float = 2.0  # times the coordinates that may move: so many has the last stage (1: 1 % more wrong steps)
    longest_stage: float = 0.4  # of the calls that the first stage may take, with one component along all coordinates
    fewest: int = 24  # components whose agreement counts: that of 8 is often chance, and the step too long
    least_rows: int = 8  # gradients of components that another search has measured, to begin with them
    curvatures: int = 6  # components that show the curvature along the step, at least
    curvature_share: float = 0.03  # of the calls, for the curvature: a step that is too long harms
    least_part: float = 0.1  # of the step that the components asked would imply if the others had no slope
    deviations: float = 1.5  # standard errors by which the agreement is reduced if the step is not judged
    least_race: float = 0.2  # of n: calls for the race beside those for the slope of F along one direction
    safe_part: float = 0.7  # of the way to the minimum of the parabola, if the slope of F is known: 9 % less fall


DISTILLED_STEP = DistilledStepSettings()


@dataclass(frozen=True)
class CoordinateRaceSettings:
    """How a race of coordinates gives up those that show no slope: gently, because a good one is easily lost."""

    first: int = 8  # components that each coordinate is asked on at first, or more if the calls allow
    kept: float = 0.85  # of the coordinates after each stage: 0.75 leaves 1 to 3 % more of F (logistic, 8 draws)
    growth: float = 1.15  # factor of the components from stage to stage: 1.08 leaves 2 to 7 % more of F
    cost: float = 2.0  # what the stages are planned to cost over the first; they may cost twice that: 3.5 is worse
    kept_back: float = 2.0  # times the cost of the finalists, calls that a race leaves for them and what follows
    round: int = 4096  # calls of one round at most, or one component on all coordinates
    finalists: float = 2.0  # times k: 4 is as good
    final_share: float = 0.5  # of the calls of a race that the finalists may cost
    least: float = 8.0  # values of F below which nothing is raced: two finalists
    share: float = 0.5  # of the calls left that one race may take: 0.35 and 0.7 find fewer
    taken: float = 0.5  # of k, coordinates taken from a race: 0.3 and 1 are about as good


COORDINATE_RACE = CoordinateRaceSettings()


@dataclass(frozen=True)
class MessagePassingSettings:
    """Approximate message passing with a prior of two Gaussians, as in the study gnoise.py."""

    iterations: int = 40  # it settles within 20 to 30
    settled: int = 3  # iterations before the prior is learned: earlier estimates are dominated by the first guess
    feedback: float = 0.95  # the largest weight of the old residual (Onsager term): 1 would not contract
    diverged: float = 1e3  # times the energy of the data: a residual above this will not come back
    apart: float = 1.01  # variance of large over that of small entries: as equals they could not be told apart
    surest: float = 50.0  # logarithm of odds at which a probability is 0 or 1 up to rounding


MESSAGE_PASSING = MessagePassingSettings()


@dataclass(frozen=True)
class SignRowSettings:
    """Gradients from rows of signs where slopes do not stand out of random noise."""

    stand_out: float = 10.0  # a slope less than this over its noise is better seen by rows: 0.1 in the study gnoise.py
    trial_directions: int = 4  # along which the length of a row is tried
    lengthenings: int = 10  # times that a row is made longer at most
    longer: float = 2.0  # factor of a longer row
    uneven: float = 3.0  # standard deviations of noise by which the curvature along rows may differ among them
    bent: float = 0.5  # of the odd part at the longer row that may be missing before it is too long
    share: float = 0.33  # of the calls left that one gradient may cost
    most: float = 0.5  # of the coordinates: more rows than this hardly find more
    round: int = 64  # rows that are asked in one round
    repeats: int = 4  # of each value that decides on a step, at first
    most_repeats: int = 64  # of a pair of points whose order is in doubt
    polish_step: float = 0.3  # of the root mean square of the support's entries: the noise matters less at long steps
    polish_reach: float = 3.0  # steps that a parabola is trusted
    polish_share: float = 0.3  # of the calls left that a polish may cost
    polishes: int = 3  # on one support: they end earlier if one does not help
    fractions: tuple[float, ...] = (1.0, 0.25, 4.0)  # of the step that the curvature suggests
    deviations: float = 1.0  # of its error by which an entry must be larger to be moved along
    compared: int = 4  # points that a step compares: the present one and three trials


SIGN_ROWS = SignRowSettings()


# --- Single index: components are losses of linear scores -----------------------------------------------------------


@dataclass(frozen=True)
class RowSettings:
    """Learning the rows of the single-index model, and testing that the components have its form."""

    tested: int = 3  # rows learnt before all others: three estimates of the l2 term show whether two of them agree
    first: int = 16  # components to begin with, or k if that is more: fewer do not show which coordinates matter
    fit_values: int = 10  # per component, beside its row: the curvature, the values of a fit and their check
    reserve: float = 1.5  # times the first rows that the budget must cover: the fit and its check need calls as well
    weak: float = 5e-3  # a row below this share of the typical norm belongs to a component stationary at the start
    typical: float = 0.9  # quantile of the norms of rows: more than half of the components may be stationary
    weak_deviations: float = 8.0  # times its noise: a shorter row says more about the noise than about the component
    often_weak: float = 0.1  # share of such components beyond which all others are learnt at another point at once
    visible_bend: float = 0.03  # of a change: at the natural length about half of it is curvature
    lengthening: float = 5.0  # of a step at which no curvature shows; the length is corrected after two of these
    lengthenings: int = 20  # of a step at most: a component that is straight over 13 orders of magnitude is linear
    form_tolerance: float = 0.05  # relative deviation up to which second differences count as those of one l2 term
    form_deviations: float = 24.0  # standard deviations of noise that a second difference of three values may show
    l2_deviations: float = 6.0  # a second difference of three values has a deviation of 2.5; below 6 it is noise
    l2_share: float = 1e-6  # of the change along a gradient: a smaller second difference is an error of the slopes
    centre_deviations: float = 40.0  # standard deviations allowed where an l2 term centred at 0 is told from others
    shortest_move: float = 1e-6  # of |start|: what is left of it across a row must be longer than rounding
    checked: int = 5  # components on which predicted slopes are compared with measured ones
    test_saves: int = 100  # calls for further rows above which an early test of the form, at 12 calls, is worth it
    prediction_error: float = 0.01  # of a slope, without noise: one score gives 1e-6, random Hessians 0.02 and more
    noisy_prediction_error: float = 0.2  # the same if values are random, whose noise is only roughly known
    slope_deviations: float = 5.0  # standard deviations of a measured slope that are no error of the prediction
    same_minimum: float = 1e-4  # of the spread of values: so far minima may differ; and of a curvature from them
    same_minimum_rows: int = 3  # curvatures that are measured before that is tested: one fixes it, two test it


@dataclass(frozen=True)
class IndexSettings:
    """Fitting the single-index model to more and more components."""

    rows_per_coordinate: int = 3  # components per coordinate of the support that make a fit meaningful
    fewest_rows_per_coordinate: int = 2  # the same for a second, bolder fit, which held-out components judge as well
    growth: float = 50.0  # coordinates: below it, the components are doubled from one fit to the next
    slowest_growth: float = 0.05  # with many coordinates, a row is dear and each fit adds this share of components
    held_out: float = 0.5  # times the fitted components that judge the fit
    least_held_out: int = 12  # components that judge a fit at least: a standard error needs about ten
    least_centred: int = 12  # rows whose mean and spread tell whether they are centred, at least
    one_sign: float = 4.0  # mean square over variance of residuals: 1.75 for absolute values of normal ones
    explained_by_chance: float = 1.5  # times what chance explains of the residuals' variance, so that it is no chance
    centred_deviations: float = 2.0  # of the mean square of mean rows that chance may add
    hopeless: float = 1.0  # standard errors by which a solution is higher than the incumbent if it is not asked further
    publication_share: float = 1 / 3  # of the calls so far: what F at the solution for a sample may cost
    generalised: float = 1e-6  # held-out values that spread this much less than at the start: nothing is left to fit
    refit_gain: float = 1e-3  # of the total fall: a fit to more components that gains less changes nothing
    kept_per_nonzero: int = 4  # coordinates that stay, per non-zero: the best support is rarely beyond their ranks
    drop_deviations: float = 1.5  # a coordinate is dropped if its gain plus this many deviations is below the weakest
    quadratic_tolerance: float = 1e-3  # of the predicted fall: a smaller error counts as a quadratic's
    noise_deviations: float = 5.0  # standard deviations of a mean of values that are no error of the model
    rechecks: int = 10  # times that dropped coordinates are reconsidered; two or three were enough wherever seen
    recheck_reserve: int = 4  # calls per component that a fit with reconsidered coordinates may need
    negligible_recheck: float = 1e-9  # of the total fall: a coordinate that promises less is not reconsidered
    max_coordinates: int = 1000  # of the dense model: building its Hessian from 500 rows takes about 0.2 seconds
    certificate_tolerance: float = 1e-3  # of the typical change, for each component; the error of their mean is less
    proven_reach: float = 2.0  # times its distance from the start: how far a test of the form made for another k counts
    certificate_gap: float = 1e-7  # of the total fall: a support that is better by less is not called better
    certificate_nodes: int = 20_000  # of the branch and bound: about a second of own time
    certificate_work: float = 1e8  # coordinates squared times nodes: the same limit where a node costs more
    certificate_coordinates: int = 300  # beyond it a single bound takes too long
    fewest_judging: int = 5  # components that judge a point at least: the error of fewer changes is not known
    standard_errors: float = 3.0  # by which a mean change must be below 0 to be no accident: one in a thousand


@dataclass(frozen=True)
class PartialRowSettings:
    """Screening by single entries of rows. In brackets: true coordinates of 10 found, d = 10,000, 400,000 calls."""

    first_entries: float = 12.0  # per coordinate, that the budget must cover: three full rows take a quarter of them
    first_share: float = 0.05  # of all entries, that the budget must cover: 0.04 finds 1 of 10 (simulated), 0.051 all
    enough_rows: int = 20  # per non-zero: so many whole rows do as well (with 8, d = 2,000, twice the F of entries)
    least_values: int = 40  # of F, that the budget must cover: sampling the components takes 11 of them
    columns: int = 4  # per non-zero, that the budget must cover: not each of them will stand out
    fewest_components: float = 8.0  # times log d: with fewer, no score can stand out clearly
    most_entries: float = 2e8  # components times coordinates: a table of so many bits and bytes is kept
    most_numbers: int = 4_000_000  # in one round of dense points
    directions: int = 3  # random ones along which a component is sampled: the steepest of them is hardly ever flat
    longest_reach: float = 10.0  # times the usual step, where a component is flat along all directions
    prior_entries: float = 3.0  # that the usual size of entries counts as, for the size of one coordinate's (10: same)
    share: float = 0.1  # of the coordinates is asked on one further component per round (0.2: 7.7, 0.05: 9.0; 9.2)
    column_price: float = 1.0  # over the price of a coordinate found at which a column is asked (0.5: 9.1, 2: 9.6)
    likely: float = 0.5  # the probability from which a column is always asked
    kept_values: int = 6  # of F, kept for the last fit


@dataclass(frozen=True)
class CurveSettings:
    """The functions l_i of one variable: where they are sampled, and how the modelled F is minimised."""

    max_nodes: int = 30  # a spline goes through at most this many samples: they reach from near to far
    relative_spacing: float = 0.4  # samples may be sparser away from the centre: spacing over distance
    samples: tuple[float, ...] = (-1.0, 1.0, -2.5, 2.5)  # first samples along a row, in curvature lengths
    far_samples: tuple[float, ...] = (-6.0, 6.0)  # further ones before the last fit, which looks for other supports
    shortest_length: float = 0.03  # in natural lengths: limits of the curvature length, which is a median
    longest_length: float = 3.0
    trust_radius: float = 40.0  # in curvature lengths, at first: so far parabolas beyond the samples are believed
    rounds: int = 40  # of minimising the modelled F and asking for the values there
    negligible: float = 1e-10  # of the total fall: all components are in the model, so that F itself converges
    negligible_dropped: float = 1e-3  # of the total fall: coordinates that were dropped may change more
    negligible_part: float = 1e-2  # of the total fall: with a part of the components, the others will change more
    margin_deviations: float = 2.0  # standard deviations of a mean of values that are no decrease
    poor_prediction: float = 0.1  # actual over predicted fall below which the trust radius shrinks (Conn et al. 2000)
    good_prediction: float = 0.5  # and above which it grows
    shrink: float = 0.3
    grow: float = 2.0
    flattest: float = 1e-4  # of the median curvature: lower limit, so that the Hessian is positive definite
    straight: float = 1e-3  # natural lengths for which a straight piece is assumed to go on, inverted
    straight_quadratic: float = 1e-7  # the same if all l_i seem quadratic
    worth_searching: float = 100.0  # times what is negligible: after a larger fall, values are worth more than search
    newton_steps: int = 20  # damped Newton steps of one descent on the model
    dampings: int = 8  # trials per step: 0.03 times 8^6 is a step that changes nothing
    first_damping: float = 0.03  # of the mean curvature
    damping_growth: float = 8.0
    refit_steps: int = 15  # Newton steps on one support
    refit_dampings: int = 6
    refit_shift: float = 1e-9  # of the mean curvature: keeps the system solvable without changing its solution
    refit_growth: float = 16.0
    converged_step: float = 1e-12  # of the fall on the model: a smaller decrease is rounding
    converged_refit: float = 1e-6  # of the fall on the model: enough to compare two supports
    better_exchange: float = 1e-9  # of the fall on the model that an exchange must gain
    dropped: int = 8  # coordinates of the support that are tried to be dropped, the least useful first
    added: int = 2  # coordinates that are tried in their place
    exchanges: int = 3  # per non-zero: exchanges in a row
    restarts: int = 40  # from a random half of the support; 12 missed the best support of 1 in 8 logistic problems
    work: float = 4e9  # multiplications of all restarts: about two seconds
    same_point: float = 1e-9  # relative: linear algebra with more coordinates gives the same minimiser up to rounding
    rounding: float = 16.0  # units of EPS |F| in which a modelled mean may be wrong


ROWS = RowSettings()
INDEX = IndexSettings()
PARTIAL_ROWS = PartialRowSettings()
CURVES = CurveSettings()


# --- Local descent: differences, quasi-Newton steps, exchanges ------------------------------------------------------


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


# --- Corner swaps and long steps: finite bounds, flat starts --------------------------------------------------------


@dataclass(frozen=True)
class ComponentRaceSettings:
    """How candidates are compared with an iterate on a growing part of the components."""

    first: int = 16  # components in use at first
    passes: int = 30  # calls of each component in use after which their number doubles
    first_leg: float = 0.6  # times the root of the components in use: how many of them a race begins with
    least: int = 2  # components of a first leg, at least (as below: 2: .94, 3: .93, 4: .90)
    floor_last: float = 20.0  # the larger, the later components at their lowest value come in a race
    recent: float = 0.3  # weight of the newest race in the mean change of a component
    deviations: float = 1.0  # of the noise by which F has to fall
    rounding: float = 8.0  # units of rounding of a value up to which a change is none
    least_idle: int = 100  # values of F without a fall, at least, after which a search begins elsewhere
    sure: float = 3.0  # standard errors by which an iterate must be below the start if not all components were seen


COMPONENT_RACE = ComponentRaceSettings()


@dataclass(frozen=True)
class CornerSwapsSettings:
    """How corner values are swapped."""

    trial_races: int = 3  # races between corners, in which one should have lowered F
    # In brackets: success of the attack at 600 calls, seeds 0 to 9, without the spread of components. The values in
    # use gave .94; the standard error is .015, so that most of these differences are not significant.
    candidates: int = 4  # in a race (2: .94, 6: .91)
    share: float = 0.4  # of the coordinates at corners is swapped at first (0.25: .93)
    halving: float = 5.0  # rounds after which half as many coordinates are swapped (2.5: .94, 10: .91)
    failures: int = 8  # failed races in a row after which one more is run side by side
    most_races: int = 16  # side by side
    patience: int = 64  # failed races after which half of the candidates change a value instead
    tries: int = 3  # random choices of which the best by worth is taken (1: .90, 5: .92)
    rate: float = 0.6  # of the normalised least mean squares that learn the worths (1: .94)
    zeros: float = 0.2  # share of the changes of a value that put it to 0
    lengths: int = 8  # halvings of the range from which the length of a change is drawn
    first_ratio: int = 4  # between the numbers of corners that are tried first


CORNER_SWAPS = CornerSwapsSettings()


@dataclass(frozen=True)
class LongStepsSettings:
    """How long steps of groups of coordinates are split, taken and taken back."""

    judged_searches: int = 4  # bisections of all coordinates, in which F should have fallen
    least_steps: int = 8  # coordinates that a budget should be able to find, or this is not for it
    short_length: float = 0.01  # natural length over the start's largest value: there may be jumps below (AUC: 0.005)
    first_groups: int = 4  # of coordinates at first, for each target (prototype, LassoBench, 400 values: 4: 1.1, 8: 14)
    table_share: float = 0.5  # of the calls that are left: what measuring every coordinate once may cost
    negligible: float = 1e-3  # of the largest fall by one step: less neither fills a place nor outdates what is known
    patience: int = 3  # bisections without a fall after which no more coordinates are added for now
    group_room: float = 0.25  # of the room that is left may be filled by a group at once
    recent: float = 0.1  # weight of one call in the recent fall per call of a kind of move
    explore: int = 8  # every so many turns the kind of move with the fewest calls is used
    first_step: float = 0.25  # of the range of a coordinate: the first change of its value
    grow: float = 2.0  # factor of the step of a value after a fall
    shrink: float = 0.5  # and after a failure to both sides
    calm: float = 2.0**-0.25  # factor of the spread of random changes after a failure: one success in five keeps it
    shortest: float = 2.0**-12  # of the range: steps of values below that are of no use
    drops_tried: int = 2  # coordinates of the support that a step may replace
    shares: tuple[float, ...] = (1.0, 0.25)  # of the length where there are no bounds: how long steps are
    best_drops: int = 8  # coordinates of the support that are missed least and may be swapped
    best_adds: int = 64  # coordinates outside that may be swapped for them


LONG_STEPS = LongStepsSettings()


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


# --- Random steps: the last resort ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RandomStepsSettings:
    """How the length of random steps follows their successes."""

    growth: float = 1.5  # of the length after a success (Kern et al. 2004)
    failures: float = 0.25  # a failure shortens by growth to this power: the length is stable at a fifth of successes
    noise_factor: float = 2.0  # standard deviations of F by which a trial must be lower


RANDOM_STEPS = RandomStepsSettings()


# --- Constraints beyond bounds: sums, convex sets, discrete values ---------------------------------------------------


@dataclass(frozen=True)
class FeasibleModelSettings:
    """How a quadratic model is minimised on one support, without calls."""

    rounds_per_coordinate: int = 10  # of the active-set method, which takes about one or two per coordinate
    multiplier_tolerance: float = 1e-12  # relative: a limit whose multiplier is smaller holds nothing back
    least_curvature: float = 1e-10  # relative to the largest: below it a direction counts as flat
    projected_steps: int = 300  # of accelerated projected gradients: enough for condition numbers of some thousands
    settled: float = 1e-13  # relative change of a step that is rounding
    flattest: float = 1e-6  # of the slope: the curvature of a model that has none


FEASIBLE_MODEL = FeasibleModelSettings()


@dataclass(frozen=True)
class FeasibleDescentSettings:
    """How F is minimised on a support within a constraint, and how other supports are tried."""

    # Differences within the set.
    first_step: float = 0.125  # of the typical size of a coordinate: a quadratic is learnt exactly at any step
    shortest_step: float = 1e-3  # of the same: rounding of F divided by its square is still small beside curvature
    step_share: float = 0.25  # of the last step of the iterate: differences follow it, for functions of third order
    least_room: float = 1e-3  # of the step: a coordinate with less room to its limits is not moved
    repeats: int = 4  # more values at the start if the second one differs: its noise is then known up to a half
    random_above: float = 64.0  # units of rounding: values that differ by more are random, as in the diagnosis
    noise_factor: float = 2.0  # standard deviations of F by which a trial must be lower, if values are random

    # Steps on a support.
    most_iterations: int = 30  # of one descent: Newton's method needs about ten
    trial_iterations: int = 2  # of a descent on trial after an exchange: the first step shows nearly all of the gain
    pair_share: float = 0.05  # of the calls left that the mixed second differences of one support may cost
    backtrack: float = 0.25  # of a step that did not lower F
    most_backtracks: int = 3
    trusted: float = 0.1  # actual over predicted fall within this much of 1: the curvature is not measured again
    distrusted: float = 0.5  # and outside of this it is
    negligible: float = 1e-10  # of the whole fall: a predicted gain that is smaller ends the descent
    rounding: float = 4.0  # units of rounding of F that a gain must exceed

    # Exchanges.
    chunk: int = 64  # points of a round: small enough for the race to come in between
    model_share: float = 0.5  # of the calls left that slopes and curvatures of all coordinates may cost
    column_share: float = 0.2  # of the calls left that one stage of mixed second differences may cost
    least_candidates: int = 5  # coordinates outside that are looked at in a stage at least
    least_trials: int = 8  # exchanges, best first by a model without limits, that are solved with limits in any case
    exact_trials: int = 40  # exchanges that are solved at most, if none of the first ones helps
    most_kicks: int = 60  # random changes of the support in a row without a gain, after which the model is searched out
    kick_share: float = 0.34  # of the support that a random change replaces at most
    swap_share: float = (
        0.1  # of the calls left that swaps of one member may cost; beyond it, others are drawn at random
    )
    swap_trials: int = 3  # swaps by value, per coordinate that leaves, that are followed by a descent
    same: float = 1e-9  # of the fall of F so far: gains of the model below this, or below rounding of F, are none


FEASIBLE_DESCENT = FeasibleDescentSettings()


@dataclass(frozen=True)
class FeasibleStepsSettings:
    """How feasible points are drawn and their lengths follow successes, where no model is made."""

    values_per_place: int = 4  # of the support, after which it is fair to judge the search
    drop_share: float = 0.2  # of the swaps in which a place leaves and no other one joins
    transfer_share: float = 0.4  # of the proposals: a part of one member goes to another one
    swap_share: float = 0.4  # a member leaves for another coordinate; the rest: random steps of a few coordinates
    first_length: float = 0.5  # of the typical size of a coordinate
    shortest_length: float = 1e-9  # of the same: then it begins anew with the first one
    tries: int = 20  # proposals in a row that are known or not feasible, after which the point is drawn anew
    most_kept: int = 100_000  # points remembered so that none is asked for twice, where values are not random
    patience: float = 50.0  # failures per place of the support after which a search on a grid begins elsewhere
    kick_share: float = 0.34  # of the support that is drawn anew then, at most


FEASIBLE_STEPS = FeasibleStepsSettings()


@dataclass(frozen=True)
class GridSearchSettings:
    """How a search among discrete values proposes points."""

    first_reach: float = 4.0  # a fourth of the values of a coordinate: the first moves are long
    table_share: float = 0.25  # of the calls left that trying each coordinate alone may cost
    chunk: int = 64  # points of a round
    joins: int = 2  # coordinates, per place, that are tried to join one after the other
    second_share: float = 0.3  # of the moves of a member to another value that also move a second one
    leave_share: float = 0.3  # of the swaps in which a member leaves although there is room for both
    tournament: int = 4  # coordinates of which the most promising one is taken
    most_listed: int = 20_000  # points of a grid that is small enough to be gone through


GRID_SEARCH = GridSearchSettings()


# --- Linearised outputs: calls that return many residuals ------------------------------------------------------------


@dataclass(frozen=True)
class OutputsSettings:
    """How long the linear model of the outputs may go on."""

    steps: int = 10  # calls per non-zero beyond the columns: a support and its minimum take about six (benchmarks)
    doubling: int = 2  # calls since the last gain, over those until then, that are allowed in any case: as for a leader
    least_truth: float = 0.1  # of the falls that it predicts must come about: trust regions shrink below that, too


OUTPUTS = OutputsSettings()


# --- The race -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RaceSettings:
    """How calls are shared between arms."""

    slice_values: int = 8  # values of F in one slice: shorter ones judge by chance, longer ones waste (few_calls/race)
    slices: int = 32  # a small budget is cut into at least so many slices, so that a wrong choice can be corrected
    window: float = 0.25  # share of an arm's calls that count as recent when its rate is measured
    window_slices: int = 4  # slices that count as recent at least: one of them may have gained nothing by chance
    insurance: float = (
        1 / 16
    )  # share of the calls that an arm gets even if it is behind (few_calls/race: 1/8 costs more)
    trial_part: float = 1 / 4  # a trial takes at most this part of the budget
    lead_part: float = 3 / 4  # a confirmed arm that has gained nothing yet leads for at most this part of the budget
    trial_share: float = 1 / 8  # a trial may cost this share of the calls used before, while another arm makes progress
    expensive_part: float = 1 / 2  # of the budget: arms that forecast more than this are tried last
    slow: float = 1e-2  # of the mean fall per call of the run: if all are slower than this, they get equal shares
    doubling: float = 2.0  # a leader may double its calls without a gain: its waste is at most what it has used well
    value_share: float = 4.0  # budget over n from which F at the start and the result is paid for: half is left then
    noise_factor: float = 2.0  # standard deviations of F by which a point must be lower to count as a gain
    negligible: float = 1e-3  # share of the whole fall below which a gain does not renew the user's patience


RACE = RaceSettings()

"""Active subset: few coordinates matter, and how they are found and searched."""

from __future__ import annotations

from dataclasses import dataclass


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
    far_points: int = 3  # before slopes are asked for at the best one: the spread of their values tells what is weak
    kept_points: int = 16  # far points that a search may begin with: each has d entries
    pair_values: int = 4  # values that a pair of points and the first halving of what differs take


ACTIVE_SUBSET = ActiveSubsetSettings()


@dataclass(frozen=True)
class SlopeSettings:
    """How coordinates are found by the slopes of groups where values have no random noise."""

    step: float = 0.3  # times the square root of what values may be off by over their spread: both errors are alike
    resolution: float = 3e-13  # of the spread of F: what values may be off by at least, so that offsets do not matter
    longest_step: float = 1e-2  # of the region: values so coarse that steps are longer tell too little of codes
    longest_code: float = 2.0  # steps: codes lie between 1 and this, so that all steps go to the same side
    spacings: float = 4.0  # of floating-point numbers, by which the codes of neighbours differ
    bends: float = 2.0  # times the second difference along all coordinates: how far a change may be off
    clear: float = 4.0  # errors within which there is one place only: then it is taken without a call of its own
    straight: float = 2.5e-3  # of the spread: how far F may depart from its slope where this is taken for a value
    longest_slope: float = 0.03  # of the region: the longest way over which a slope is taken for a value
    shortest_slope: float = 0.004  # of the region: where it is less, slopes are those of ripples
    rounded: float = 2.0**-16  # of the spread, to which such values are rounded: far finer than `straight`
    weak_slope: float = 2e-3  # of the largest: less is a weak coordinate, or one that matters elsewhere


SLOPES = SlopeSettings()


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

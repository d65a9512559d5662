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
    believed_margin: float = 0.5  # of the noise: how much better a point must be believed to be to replace the last
    region: float = 10.0  # natural lengths per coordinate from the start to each side, where there are no bounds


ACTIVE_SUBSET = ActiveSubsetSettings()


@dataclass(frozen=True)
class GaussianProcessSettings:
    """The priors of the Gaussian process (on the unit cube, values of variance 1), and how long it is fitted."""

    usual_length: float = 0.5  # half of the range: F changes a few times over it
    length_spread: float = 1.0  # of its logarithm: a factor of e
    length_range: tuple[float, float] = (-5.0, 4.0)  # logarithms: beyond them F is noise, or constant
    amplitude_spread: float = 1.5  # of its logarithm; values have variance 1
    amplitude_range: tuple[float, float] = (-3.0, 4.0)
    usual_noise: tuple[float, float] = (2.5e-3, 5e-2)  # without and with random noise, relative to the spread
    noise_spread: float = 2.0  # of its logarithm: weak coordinates and a wrong kernel look like noise, too
    noise_range: tuple[float, float] = (-11.0, 1.0)
    warp_quantile: float = 0.25  # of the values above the lowest: the warp log(1 + y/c) begins to bend there
    first_steps: int = 30  # of L-BFGS from the prior
    later_steps: int = 8  # from the last parameters, which are near
    jitter: float = 1e-9  # of the variance, so that the covariance can be factorised
    least_variance: float = 1e-12  # of the variance: below it rounding decides
    refused: float = 1e10  # the objective where the covariance cannot be factorised
    asymptotic: float = -6.0  # deviations from which the expansion of the expected improvement is exact to 1 %


GAUSSIAN_PROCESS = GaussianProcessSettings()


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
    gain: float = 1e-3  # of the fall from the median to the lowest value: less is no improvement
    patience: int = 8  # calls without improvement that end the first descent, which sees the whole cube
    later_patience: int = 6  # and the later ones, which see a part of it
    later_width: float = 0.35  # half the width of that part
    narrowing: float = 0.85  # factor of the width after a call without improvement
    least_width: float = 0.02
    basin: float = 0.6  # lengths around a bottom within which values are left out of later models
    trusted_weight: float = 4.0  # of the process, where it is smooth or a sum over the coordinates (not on Ackley's)
    first_radius: float = 0.2  # of the cube: the trust region of the quadratic model at first (as for BOBYQA)
    near_radii: tuple[float, float] = (0.01, 0.08)  # the same for descents from the best point, drawn by chance
    last_radius: float = 1e-3  # where it ends
    growing: float = 0.7  # actual over predicted fall above which the radius doubles
    failing: float = 0.1  # and below which it is halved
    largest_radius: float = 0.5  # half of the cube
    misfit: float = 0.1  # of the spread of the values that a model goes near: 0, .03, .1, .3 need on Ackley6 209, 115,
    # 107, 114 calls, and on Rosenbrock4 146, 132, 125, 245
    hope: float = 10.0  # falls as large as the model predicts, after which a descent must have passed the best point
    small_radius: float = 0.05  # from which on descents without hope end
    far: float = 2.0  # radii from which a point of the model is replaced when a step fails (Powell)
    shortest_step: float = 0.1  # radii: a shorter step asks for a smaller region instead of a value
    long_step: float = 0.9  # radii: only a step this long shows that the region is too small
    random_starts: int = 2  # of the minimisation of a model that may be indefinite
    same: float = 1e-7  # of the cube: a point this near to another one tells nothing new


GLOBAL_SEARCH = GlobalSearchSettings()


# --- Grouped slopes: fewer calls than coordinates -------------------------------------------------------------------


# --- Single index: components are losses of linear scores -----------------------------------------------------------


# --- Local descent: differences, quasi-Newton steps, exchanges ------------------------------------------------------


# --- Corner swaps and long steps: finite bounds, flat starts --------------------------------------------------------


# --- Support search: exchanges and restarts with the rest of the budget ---------------------------------------------


# --- The race -------------------------------------------------------------------------------------------------------

"""Every number on which a decision of Gauss-Newton depends, with its reason; all of them are dimensionless."""

from __future__ import annotations

from dataclasses import dataclass

TINY = 1e-300  # lower limit of divisors
UNKNOWN = 1e300  # the age of a column that was never measured


@dataclass(frozen=True)
class LookSettings:
    """How the first runs tell smooth outputs from noisy ones, and the length of a difference step."""

    step: float = 1e-7  # of a coordinate's length: near the square root of the rounding of outputs
    least_change: float = 1e-10  # of the outputs by the first step: below it, rounding would spoil the slope
    most_change: float = 1e-4  # above it, the unit of x is another one, or there is noise
    silent: float = 1e-13  # of the outputs: a column that changes them by less may be rounding
    rescaling: float = 1e6  # the factor between the two: by it a step changes until it is between them
    rescalings: int = 12
    smooth: float = 0.02  # second over first difference of smooth outputs along a short step
    lengthen: float = 10.0  # from one rung of the ladder to the next if the outputs are not smooth
    rungs: int = 9  # from the shortest step to a hundred lengths
    worse: float = 1.5  # a rung this much worse than a good one before ends the ladder
    good: float = 0.5  # second over first difference of a rung where slopes show at all
    longest: float = 0.3  # of a length, for a difference step under noise
    balance: float = 3.0  # noise over curvature in a difference: the minimum of the sum of both errors
    share: float = 0.05  # of the columns that a look ahead may cost; else noise is looked for when it is suspected
    alike: float = 4.0  # standard deviations within which norms and correlations of noise agree
    squares: float = 6.0  # 1 + 4 + 1: the variance of a second difference over that of a value


@dataclass(frozen=True)
class StepSettings:
    """Trust-region steps on a support."""

    first_radius: float = 1.0  # of the length of x: a step may change its sign
    bad: float = 0.1  # actual over predicted reduction below which the Jacobian is refreshed, if it is to blame
    poor: float = 0.25  # below which the radius shrinks
    good: float = 0.7  # above which it grows
    shrink: float = 0.5
    least_shrink: float = 0.1
    grow: float = 2.0
    blame: float = 1.0  # times the curvature's effect that errors of J must have to be refreshed: more is to blame
    huge: float = 100.0  # F above this multiple teaches nothing of the slope
    curved: float = 0.9  # curvature is used if it leaves less than this share of the squared errors of prediction
    remembered: int = 2  # runs per coordinate that show the curvature: with 1 or 4, 1e-5 took 2 to 5 % more runs
    most_remembered: int = 40  # beyond it, the model would take longer than many a run
    forget: float = 0.5  # of the record of prediction errors per step
    forget_falls: float = 0.9  # of the record of predicted and actual falls per step: about ten steps count
    settled: float = 0.03  # share of F that steps after a refresh must gain, or it has confirmed the minimum
    refreshes: int = 3  # full refreshes without progress after which a minimum is reached
    least_gain: float = 1e-3  # predicted share of F below which steps on one support end
    last_gain: float = 1e-12  # the same once no other support is left to try
    crawl: float = 1e-6  # share of F that a window must gain; else other starts are tried before the steps go on
    window: int = 2  # sets of columns and a step whose runs are a window
    least_step: float = 1e-10  # of the length of x
    burst: int = 4  # steps before other supports are considered
    to_minimum: int = 15  # steps on one support before it is looked at again
    unlimited: int = 10**6
    beside: tuple[float, ...] = (0.5, 0.25)  # of a step: others that idle workers try while it is unsure
    unsure: int = 3  # runs that steps must have shown before the next one is sure
    trial: int = 4  # steps that another support is given to come below


@dataclass(frozen=True)
class ExchangeSettings:
    """Other supports: which are considered, and what a trial may cost."""

    model_restarts: int = 12  # of the search in the model, which costs no runs
    first_restarts: int = 8
    few_restarts: int = 2
    rounds: int = 6  # of refreshing entering columns until the model's choice rests on fresh ones
    trials: int = 3  # supports that are tried by runs before the model is corrected
    promise: float = 0.5  # of F that a support must promise before the present one is at its minimum
    least_promise: float = 0.999  # of F at the minimum
    content: float = 0.01  # of F that the present support promises to leave: steps go on before others are looked at
    hopeless: float = 50.0  # F above this multiple of the start: no step will come below from there
    shorter: float = 0.5  # the first fit is tried at this part of the way if F does not fall there, and so on
    shortenings: int = 12  # at a thousandth of the way, F should have fallen
    row_gain: float = 0.25  # of the error without it that scaling rows must leave to be used
    row_ridge: float = 1e-3
    early_restarts: int = 5  # before all columns are refreshed, where that costs more than some restarts
    restarts: int = 20  # that are followed without success, and as many that are not followed
    returns: int = 3  # restarts that lead back to the best point, after which there is hardly a better one
    wide: int = 100  # columns from which refreshing them costs more than some restarts
    batch: int = 2  # columns per non-zero that are measured anew before other supports are looked at
    noise: float = 3.0  # standard deviations of F that a promise must exceed
    aged: float = 4.0  # times the error of a fresh column


@dataclass(frozen=True)
class FitSettings:
    """Sparse least squares in the model."""

    rank: float = 1e-10  # relative singular value below which columns count as dependent
    dependent: float = 1e-9  # squared part of a column outside the others below which it brings nothing
    ridge: float = 1e-12
    gain: float = 1e-9  # of the sum of squares that an exchange must gain: less is rounding
    candidates: int = 5  # best exchanges that are computed exactly before none is found
    extra: int = 10  # exchanges allowed beyond two per non-zero
    solved: float = 1e-20  # of the sum of squares: the model is solved exactly
    reweightings: int = 30  # of a robust loss within the model
    settled: float = 1e-6  # relative change of the loss at which reweighting ends
    sharpening: float = 2.0  # from one rung of the ladder to a robust loss to the next
    sharpenings: int = 30  # rungs at most: a loss that is no square near 0 has no first one
    deviation: float = 1.4826  # standard deviations of a normal variable per median of its absolute values
    exact: float = 1e-8  # of the typical output: a typical error below it leaves nothing to treat robustly
    equal: float = 0.7  # smallest over largest root of a weight that are nearly equal


@dataclass(frozen=True)
class ModelSettings:
    """The curved model of the outputs, its minimiser, and what the Jacobian learns; none of these costs runs."""

    iterations: int = 30  # of Newton's method within the model
    settled: float = 1e-3  # of the gain so far by which an iteration must improve
    halvings: int = 8  # of a step of Newton's method that does not improve the model
    rank: float = 1e-12  # relative singular value below which a direction is not moved along
    close: float = 1e-3  # relative accuracy of the length of a step that the radius limits
    dampings: int = 80  # halvings of the logarithm of the damping
    third: float = 0.1  # effect of third over second derivatives one length away; 0.03 or 0.3 took 1 to 5 % more runs
    jitter: float = 1e-10  # of the variance of each run in the fit of curvature, so that it can be solved
    part: float = 0.1  # of a squared surprise that is taken as curvature at least, whatever the noise is
    largest: float = 1e150  # its square is still a floating-point number


@dataclass(frozen=True)
class PoolSettings:
    """Groups of columns, which are split where the support seems to be."""

    least: float = 16.0  # columns per non-zero from which a group may hold none of the support
    first: float = 1 / 40  # groups per column in the first round
    evidence: float = 2.0  # log-likelihood per logarithm of the number of supports that makes a coordinate stand out
    worth: float = 0.8  # of the columns: a forecast of more runs is not worth the smaller rounds
    trials: float = 0.03  # of the columns: runs that trials of sparse fits may cost
    steps: int = 2  # of a trial at a time
    converging: float = 0.4  # F must fall to this share of the promise with them: a wrong support does not
    found: float = 1e-4  # of F at the start: a support that leaves out even one small coordinate hardly comes below it
    scarce: float = 1.0  # runs per non-zero that must be left after all columns: the first steps need no more
    reserve: float = 4.0  # runs per non-zero that are kept for steps if the budget is below the number of columns
    kept: float = 0.25  # of the budget: more is not kept for steps, because without columns there are none
    look: int = 2  # runs of a look, which share the first wide round with groups
    sure: float = 0.01  # groups that are expected to hold a missing member: below it, the support is complete
    better: float = 0.7  # of what a fit left that failed: one that leaves more has not found another member
    never: float = 700.0  # log-odds beyond which the exponential is no floating-point number
    failures: int = 2  # fits in wide rounds that are followed in vain, each of which costs some rounds
    settled: int = 2  # rounds of splits that leave the best support as it is, before it is tried
    hope: float = 0.7  # of the robust loss that a fit may leave to be tried: one run tells whether F falls
    promise: float = 0.5  # of F: a fit is followed if its run shows that, and steps go on while they keep it


@dataclass(frozen=True)
class NothingLeftSettings:
    """When the sum of losses is as low as it can be told to be."""

    rounding: float = 1e-10  # of the parts of an output: simulators add some rounding of theirs
    deviations: float = 2.0  # standard deviations above the expected sum of squares of noise


LOOK = LookSettings()
STEP = StepSettings()
EXCHANGE = ExchangeSettings()
FIT = FitSettings()
MODEL = ModelSettings()
POOL = PoolSettings()
NOTHING = NothingLeftSettings()

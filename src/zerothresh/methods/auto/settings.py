"""Every number on which a decision of `auto` depends, with its reason or the ablation that chose it.

All of them are dimensionless: ratios of differences of F to noise, of lengths to lengths, of calls to calls. Nothing
here is compared with F itself, so that no decision depends on the unit or the offset of F, nor on the unit of x.
Each part of `auto` has one frozen dataclass, and one instance of it with the values in use.
"""

from __future__ import annotations

from dataclasses import dataclass  # noqa: F401

EPS = 2.0**-52  # relative spacing of floating-point numbers: the only place where |F| itself counts
TINY = 1e-300  # lower limit of divisors


# --- Diagnosis: noise, lengths, kinks -------------------------------------------------------------------------------


# --- Active subset: few coordinates matter --------------------------------------------------------------------------


# --- Grouped slopes: fewer calls than coordinates -------------------------------------------------------------------


# --- Single index: components are losses of linear scores -----------------------------------------------------------


@dataclass(frozen=True)
class RowSettings:
    """Learning the rows of the single-index model, and testing that the components have its form."""

    tested: int = 3  # rows learnt before all others: three estimates of the l2 term show whether two of them agree
    first: int = 16  # components to begin with, or k if that is more: fewer do not show which coordinates matter
    reserve: float = 1.5  # times the first rows that the budget must cover: the fit and its check need calls as well
    weak: float = 1e-2  # a row below this share of the typical norm belongs to a component stationary at the start
    weak_deviations: float = 8.0  # times its noise: a shorter row says more about the noise than about the component
    often_weak: float = 0.1  # share of such components beyond which all others are learnt at another point at once
    form_tolerance: float = 0.05  # relative deviation up to which second differences count as those of one l2 term
    form_deviations: float = 24.0  # standard deviations of noise that a second difference of three values may show
    l2_deviations: float = 6.0  # a second difference of three values has a deviation of 2.5; below 6 it is noise
    l2_share: float = 1e-6  # of the change along a gradient: a smaller second difference is an error of the slopes
    centre_deviations: float = 40.0  # standard deviations allowed where an l2 term centred at 0 is told from others
    shortest_move: float = 1e-6  # of |start|: what is left of it across a row must be longer than rounding
    checked: int = 5  # components on which predicted slopes are compared with measured ones
    prediction_error: float = 0.2  # of a slope: above this, the components have more than one score
    slope_deviations: float = 5.0  # standard deviations of a measured slope that are no error of the prediction
    same_minimum: float = 1e-4  # of the spread of values, up to which minima agree, and of a curvature derived from them
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
    generalised: float = 1e-3  # held-out values that spread this much less than at the start: nothing is left to fit
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
    certificate_gap: float = 1e-7  # of the total fall: a support that is better by less is not called better
    certificate_nodes: int = 20_000  # of the branch and bound: about a second of own time
    certificate_work: float = 1e8  # coordinates squared times nodes: the same limit where a node costs more
    certificate_coordinates: int = 300  # beyond it a single bound takes too long


@dataclass(frozen=True)
class CurveSettings:
    """The functions l_i of one variable: where they are sampled, and how the modelled F is minimised."""

    max_nodes: int = 10  # a spline goes through at most this many samples: those nearest to where it is needed
    relative_spacing: float = 0.3  # samples may be sparser away from the centre: their spacing grows with distance
    samples: tuple[float, ...] = (-1.0, 1.0, -2.5, 2.5)  # first samples along a row, in curvature lengths
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
    restarts: int = 12  # from a random half of the support
    work: float = 4e9  # multiplications of all restarts: about two seconds
    same_point: float = 1e-9  # relative: linear algebra with more coordinates gives the same minimiser up to rounding
    rounding: float = 16.0  # units of EPS |F| in which a modelled mean may be wrong


ROWS = RowSettings()
INDEX = IndexSettings()
CURVES = CurveSettings()


# --- Local descent: differences, quasi-Newton steps, exchanges ------------------------------------------------------


# --- Corner swaps and long steps: finite bounds, flat starts --------------------------------------------------------


# --- Support search: exchanges and restarts with the rest of the budget ---------------------------------------------


# --- The race -------------------------------------------------------------------------------------------------------

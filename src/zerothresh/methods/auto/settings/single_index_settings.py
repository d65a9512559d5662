"""Single index: components are losses of linear scores."""

from __future__ import annotations

from dataclasses import dataclass


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

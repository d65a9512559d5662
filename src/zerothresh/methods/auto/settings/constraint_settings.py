"""Constraints beyond bounds: sums, convex sets, discrete values."""

from __future__ import annotations

from dataclasses import dataclass


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
    promising: int = 2  # coordinates per place, the best of earlier swaps, that are tried before all others
    swap_trials: int = 3  # swaps by value, per coordinate that leaves, that are followed by a descent
    same: float = 1e-9  # of the fall of F so far: gains of the model below this, or below rounding of F, are none


FEASIBLE_DESCENT = FeasibleDescentSettings()


@dataclass(frozen=True)
class FeasibleGaussNewtonSettings:
    """How outputs are linearised within a sum, and when the linear model has said all that it can."""

    difference: float = 1e-3  # of the typical size of a coordinate: its error is corrected by the steps that follow
    steps: int = 3  # beside the derivatives, before it is fair to judge the search
    kicks: int = 20  # random changes of the support that are tried on the model, which cost no calls
    trusted: float = 0.5  # actual over predicted fall: below it the derivatives on the support are measured again
    most_misses: int = 3  # times in a row, before those by all coordinates are
    negligible: float = 1e-10  # of the whole fall: a predicted gain that is smaller is none
    same: float = 1e-6  # of the whole fall: what a pass with fresh derivatives must gain for another one
    rounding: float = 1e-14  # of F itself: gains below it are not believed


FEASIBLE_GAUSS_NEWTON = FeasibleGaussNewtonSettings()


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

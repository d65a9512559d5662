"""Grouped slopes: fewer calls than coordinates."""

from __future__ import annotations

from dataclasses import dataclass


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

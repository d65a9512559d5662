"""Corner swaps and long steps: finite bounds, flat starts."""

from __future__ import annotations

from dataclasses import dataclass


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

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


# --- Local descent: differences, quasi-Newton steps, exchanges ------------------------------------------------------


# --- Corner swaps and long steps: finite bounds, flat starts --------------------------------------------------------


@dataclass(frozen=True)
class ComponentRaceSettings:
    """How candidates are compared with an iterate on a growing part of the components."""

    first: int = 16  # components in use at first
    passes: int = 30  # calls of each component in use after which their number doubles
    first_leg: float = 0.6  # times the root of the components in use: how many of them a race begins with
    least: int = 2  # components of a first leg, at least
    floor_last: float = 20.0  # the larger, the later components at their lowest value come in a race
    recent: float = 0.3  # weight of the newest race in the mean change of a component
    deviations: float = 1.0  # of the noise by which F has to fall
    least_idle: int = 100  # values of F without a fall, at least, after which a search begins elsewhere
    sure: float = 3.0  # standard errors by which an iterate must be below the start if not all components were seen


COMPONENT_RACE = ComponentRaceSettings()


@dataclass(frozen=True)
class CornerSwapsSettings:
    """How corner values are swapped."""

    candidates: int = 4  # in a race
    share: float = 0.4  # of the coordinates at corners is swapped at first
    halving: float = 5.0  # rounds after which half as many coordinates are swapped
    failures: int = 8  # failed races in a row after which one more is run side by side
    most_races: int = 16  # side by side
    patience: int = 64  # failed races after which half of the candidates change a value instead
    tries: int = 3  # random choices of which the best by worth is taken
    rate: float = 0.6  # of the normalised least mean squares that learn the worths
    zeros: float = 0.2  # share of the changes of a value that put it to 0
    lengths: int = 8  # halvings of the range from which the length of a change is drawn
    first_ratio: int = 4  # between the numbers of corners that are tried first


CORNER_SWAPS = CornerSwapsSettings()


@dataclass(frozen=True)
class LongStepsSettings:
    """How long steps of groups of coordinates are split, taken and taken back."""

    first_groups: int = 4  # into which the coordinates are split first, for each target
    patience: int = 3  # bisections without a fall after which no more coordinates are added for now
    group_room: float = 0.25  # of the room that is left may be filled by a group at once
    recent: float = 0.1  # weight of one call in the recent fall per call of a kind of move
    explore: int = 8  # every so many turns the kind of move with the fewest calls is used
    first_step: float = 0.25  # of the range of a coordinate: the first change of its value
    grow: float = 2.0  # factor of the step of a value after a fall
    shrink: float = 0.5  # and after a failure to both sides
    shortest: float = 2.0**-12  # of the range: steps of values below that are of no use
    drops_tried: int = 2  # coordinates of the support that a step may replace
    shares: tuple[float, ...] = (1.0, 0.25)  # of the length where there are no bounds: how long steps are
    best_drops: int = 8  # coordinates of the support that are missed least and may be swapped
    best_adds: int = 64  # coordinates outside that may be swapped for them


LONG_STEPS = LongStepsSettings()


# --- Support search: exchanges and restarts with the rest of the budget ---------------------------------------------


# --- The race -------------------------------------------------------------------------------------------------------

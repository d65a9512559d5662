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


# --- Grouped slopes: fewer calls than coordinates -------------------------------------------------------------------


# --- Single index: components are losses of linear scores -----------------------------------------------------------


# --- Local descent: differences, quasi-Newton steps, exchanges ------------------------------------------------------


# --- Corner swaps and long steps: finite bounds, flat starts --------------------------------------------------------


# --- Support search: exchanges and restarts with the rest of the budget ---------------------------------------------


# --- The race -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RaceSettings:
    """How calls are shared between arms."""

    slice_values: int = 8  # values of F in one slice: shorter ones judge by chance, longer ones waste (few_calls/race)
    slices: int = 32  # a small budget is cut into at least so many slices, so that a wrong choice can be corrected
    window: float = 0.25  # share of an arm's calls that count as recent when its rate is measured
    explore: int = 16  # one slice in so many goes to the arm with the fewest calls: insurance for 6 % of the budget
    doubling: float = 2.0  # a leader may double its calls without a gain: its waste is at most what it has used well
    start_share: float = 8.0  # F at the start is paid for if the budget is at least so many times its price
    noise_factor: float = 2.0  # standard deviations of F by which a point must be lower to count as a gain
    negligible: float = 1e-3  # share of the whole fall below which a gain does not renew the user's patience


RACE = RaceSettings()

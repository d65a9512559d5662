"""The race: how calls are shared between arms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RaceSettings:
    """How calls are shared between arms."""

    slice_values: int = 8  # values of F in one slice: shorter ones judge by chance, longer ones waste (few_calls/race)
    slices: int = 32  # a small budget is cut into at least so many slices, so that a wrong choice can be corrected
    window: float = 0.25  # share of an arm's calls that count as recent when its rate is measured
    window_slices: int = 4  # slices that count as recent at least: one of them may have gained nothing by chance
    insurance: float = (
        1 / 16
    )  # share of the calls that an arm gets even if it is behind (few_calls/race: 1/8 costs more)
    trial_part: float = 1 / 4  # a trial takes at most this part of the budget
    lead_part: float = 3 / 4  # a confirmed arm that has gained nothing yet leads for at most this part of the budget
    trial_share: float = 1 / 8  # a trial may cost this share of the calls used before, while another arm makes progress
    expensive_part: float = 1 / 2  # of the budget: arms that forecast more than this are tried last
    slow: float = 1e-2  # of the mean fall per call of the run: if all are slower than this, they get equal shares
    doubling: float = 2.0  # a leader may double its calls without a gain: its waste is at most what it has used well
    value_share: float = 4.0  # budget over n from which F at the start and the result is paid for: half is left then
    noise_factor: float = 2.0  # standard deviations of F by which a point must be lower to count as a gain
    negligible: float = 1e-3  # share of the whole fall below which a gain does not renew the user's patience


RACE = RaceSettings()

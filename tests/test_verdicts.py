"""The verdicts: the rule, and that they follow the numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from zerothresh.comparison.cell import Curve, Outcome
from zerothresh.comparison.comparing import Candidate
from zerothresh.comparison.summary import Estimate
from zerothresh.reports import verdict
from zerothresh.reproduce.ridge import claims
from zerothresh.reproduce.ridge.experiments import synthetic
from zerothresh.reproduce.ridge.study import RaceResult, Study


def outcome(own, *, end=None):
    curve = Curve(np.array([10, 1000]), np.array([1, 2]), np.array([1.0, own]), np.array([1.0, own]))
    end = own if end is None else end
    return Outcome("BUDGET", True, end, own, 1000, 2, 2, 0, np.array([1.0, 0, 0, 0, 0]), curve)


def invented(owns):
    """A study whose runs end with chosen own-support errors: what must come out is known."""
    experiment = synthetic(quick=True)
    made = Study(experiment)
    rng = np.random.default_rng(0)
    for race in experiment.races:
        if race.protocol.judge and race.entry.name in owns:
            level = owns[race.entry.name]
            runs = tuple(outcome(level * float(rng.uniform(0.9, 1.1))) for _ in race.protocol.judge)
            candidates = tuple(
                Candidate(race.entry.make(eta), runs[: len(race.protocol.choose)]) for eta in experiment.etas
            )
            made.results.append(RaceResult(race, candidates, 0.1, runs, made))
    return made


BETTER = {"FGZOHT": 1e-5, "SZOHT": 1e-1, "VR-SZHT": 1e-3, "SAGA-SZHT": 1e-3, "SARAH-SZHT": 1e-3}


def test_the_verdict_follows_the_numbers_and_turns_with_them():
    assert claims.lower_on_their_support([invented(BETTER)]).outcome == "holds"
    assert claims.lower_by_the_mean([invented(BETTER)]).outcome == "holds"
    worse = {**BETTER, "VR-SZHT": 0.5, "SAGA-SZHT": 0.5, "SARAH-SZHT": 0.5}
    assert claims.lower_on_their_support([invented(worse)]).outcome == "does not hold"
    same = dict.fromkeys(BETTER, 1e-3)
    assert claims.lower_on_their_support([invented(same)]).outcome == "undecided"
    mixed = {**BETTER, "VR-SZHT": 0.5}
    found = claims.lower_on_their_support([invented(mixed)])
    assert found.outcome == "depends"
    assert found.tally == "2 yes, 1 no, 0 unclear"
    assert re.search(
        r"k=3, q=200, the figure of Section 5: \d+ \(0\.\d+ to [\de+]+\), 2 yes and 1 no of 3", found.evidence
    )


def test_shared_directions_are_judged_by_the_switch():
    apart = {**BETTER, "SARAH-SZHT, independent directions": 0.5}
    assert claims.sarah_needs_shared_directions([invented(apart)]).outcome == "holds"
    assert claims.sarah_needs_shared_directions([invented(BETTER)]) is None  # no data, no verdict


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([True] * 4, "holds"),
        ([True] * 3 + [None] * 3, "holds"),
        ([True] * 9 + [False], "holds"),
        ([True] * 3 + [False], "depends"),
        ([True, None, None], "undecided"),
        ([False] * 3, "does not hold"),
        ([False] * 3 + [None] * 3, "does not hold"),
        ([False] * 9 + [True], "does not hold"),
        ([None] * 3, "undecided"),
    ],
)
def test_the_rule(said, expected):
    cases = [verdict.Case("", Estimate(1, 1, 1), says) for says in said]
    assert verdict.combined(cases) == expected


def test_groups_that_contradict_each_other_make_a_claim_depend():
    yes, no = (verdict.Case("", Estimate(1, 1, 1), said, str(said)) for said in (True, False))
    split = verdict.verdict_of("x", "claim", "paper", "measure", [yes, *[no] * 9], split=True)
    assert split.outcome == "depends"
    assert verdict.verdict_of("x", "claim", "paper", "measure", [yes, *[no] * 9]).outcome == "does not hold"

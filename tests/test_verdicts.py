"""The verdicts: the rule, and that they follow the numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pytest

from zerothresh.comparison.cell import Curve, Outcome, Records
from zerothresh.comparison.comparing import Candidate
from zerothresh.comparison.summary import Estimate, ratio
from zerothresh.reports import verdict
from zerothresh.reproduce.ridge import cases, claims
from zerothresh.reproduce.ridge.experiments import LADDER, bodyfat, synthetic
from zerothresh.reproduce.ridge.protocol import LOWEST_MEAN, LOWEST_OWN, Panel
from zerothresh.reproduce.ridge.study import RaceResult, Study


@dataclass(frozen=True)
class Ending:
    """How the invented runs of a race end; errors, values and increases are shares of F(0) - F*.

    Attributes
    ----------
    own: the own-support error.
    gap: F - F*; default: as large as the own-support error.
    rises: the sum of the increases of F.
    calls: after how many calls the own-support error was reached.
    right: whether the support is the best one.
    """

    own: float = 1e-3
    gap: float | None = None
    rises: float = 1.0
    calls: int = 1000
    right: bool = True


def outcome(study, race, place, ending, factor):
    """A run with a known end; the factor is the difference between runs."""
    problem, k = place[0], race.entry.panel.k
    x, best = study.optimum(problem, k)
    scale = study.start(problem, k)
    own = ending.own * scale * factor
    end = best + (own if ending.gap is None else ending.gap * scale * factor)
    nfev = np.array([10, ending.calls])
    curve = Curve(nfev, np.array([1, 2]), np.array([best + scale, end]), np.array([scale, own]))
    point = x if ending.right else np.zeros_like(x)
    records = Records(nfev, np.array([2 * scale, own]))
    rises = ending.rises * scale * factor
    return Outcome("BUDGET", True, end, own, ending.calls, 2, 2, 0, rises, end, point, curve, records)


def invented(experiment, endings):
    """A study whose runs end as ``endings(race)`` says: what must come out is known. None leaves a race out."""
    made = Study(experiment)
    rng = np.random.default_rng(0)
    for race in experiment.races:
        ending = endings(race)
        if ending is None or not race.protocol.judge:
            continue
        runs = tuple(outcome(made, race, place, ending, float(rng.uniform(0.9, 1.1))) for place in race.protocol.judge)
        candidates = (Candidate(race.entry.make(0.1), runs[: len(race.protocol.choose)]),)
        made.results.append(RaceResult(race, candidates, 0.1, runs, made))
    return made


def by_name(owns):
    """The endings of races by the name of their entry: an own-support error, or an `Ending`."""

    def endings(race):
        found = owns.get(race.entry.name) if race.rule == LOWEST_MEAN else None
        return Ending(found) if isinstance(found, float) else found

    return endings


@cache
def experiment_of(name):
    """The whole experiments; they are large, but nothing of them is run."""
    return {"quick": partial(synthetic, quick=True), "ridge": synthetic, "bodyfat": bodyfat}[name]()


def quick(owns):
    return invented(experiment_of("quick"), by_name(owns))


BETTER = {"FGZOHT": 1e-5, "SZOHT": 1e-1, "VR-SZHT": 1e-3, "SAGA-SZHT": 1e-3, "SARAH-SZHT": 1e-3}
WORSE = {**BETTER, "VR-SZHT": 0.5, "SAGA-SZHT": 0.5, "SARAH-SZHT": 0.5}


# Each claim, on invented runs whose answer is known, in both directions.


def test_lower_values_than_szoht_follow_the_numbers_and_turn_with_them():
    for claim in (claims.lower_on_their_support, claims.lower_by_the_mean):
        assert claim([quick(BETTER)]).outcome == "holds"
        assert claim([quick(WORSE)]).outcome == "does not hold"
    assert claims.lower_on_their_support([quick(dict.fromkeys(BETTER, 1e-3))]).outcome == "undecided"
    found = claims.lower_on_their_support([quick({**BETTER, "VR-SZHT": 0.5})])
    assert found.outcome == "depends"
    assert found.tally == "2 yes, 1 no, 0 unclear"
    assert re.search(r"the paper's own panel \(k=3, q=200\): \d+ \(0\.\d+ to [\de+]+\), 2 yes and 1 no", found.evidence)
    assert re.fullmatch(
        r"It depends on the case for ridge at the paper's own panel \(k=3, q=200\) \(2 of 3; SZOHT's error is \d+ times "
        r"theirs\)\.",
        found.sentence,
    )


def test_the_mean_of_f_and_the_own_support_error_are_different_measures():
    apart = {label: Ending(own, gap=1e-3) for label, own in BETTER.items()}
    assert claims.lower_on_their_support([quick(apart)]).outcome == "holds"
    assert claims.lower_by_the_mean([quick(apart)]).outcome == "undecided"


@pytest.mark.parametrize(("calls", "expected"), [(1000, "holds"), (9000, "does not hold")])
def test_cheaper_means_fewer_calls_to_the_level_of_szoht(calls, expected):
    owns = {label: Ending(own, calls=calls if label in claims.REDUCED else 3000) for label, own in BETTER.items()}
    assert claims.cheaper_than_the_full_gradient([quick(owns)]).outcome == expected


def in_all(what):
    """A whole study of the synthetic experiment with the endings of a function of (label, panel)."""
    return invented(
        experiment_of("ridge"),
        lambda race: (
            what(race.entry.label, race.entry.panel)
            if race.rule == LOWEST_MEAN and not race.entry.switch and race.entry.label in cases.PRINTED
            else None
        ),
    )


@pytest.mark.parametrize(("larger", "expected"), [(0.1, "holds"), (0.9, "does not hold")])
def test_larger_k_is_judged_by_f_itself(larger, expected):
    study = in_all(lambda label, panel: Ending(gap={2: 0.5, 3: 0.3, 4: larger}[panel.k]))
    lower = [m.end[0] for k in (2, 4) if (m := study.measures("SZOHT", Panel(k, 50)))]
    assert (lower[1] < lower[0]) == (expected == "holds")
    assert claims.lower_for_larger_k([study]).outcome == expected


def test_larger_k_is_smoother_if_it_is_so_in_most_cases():
    def with_help_for(labels):
        return in_all(lambda label, panel: Ending(rises=0.1 if (panel.k == 4) == (label in labels) else 1.0))

    all_labels = list(cases.PRINTED)
    assert claims.smoother_for_larger_k([with_help_for(all_labels)]).outcome == "holds"
    assert claims.smoother_for_larger_k([with_help_for(all_labels[:4])]).outcome == "holds"  # four of seven: most
    assert claims.smoother_for_larger_k([with_help_for(all_labels[:3])]).outcome == "does not hold"


def test_more_directions_stabilise_some_methods_if_there_is_one():
    def smoother(labels):
        return in_all(lambda label, panel: Ending(rises=0.1 if (panel.q == 200) == (label in labels) else 1.0))

    one = claims.smoother_for_larger_q([smoother(["SARAH-SZHT"])])
    assert one.outcome == "holds"
    assert one.sentence.startswith("It holds for SARAH-SZHT (3 of 3; ratio 10); it does not hold for FGZOHT (0 of 3")
    assert claims.smoother_for_larger_q([smoother([])]).outcome == "does not hold"
    same = claims.smoother_for_larger_q([in_all(lambda label, panel: Ending())])
    assert same.outcome == "undecided"


@pytest.mark.parametrize(("many", "expected"), [(1e-4, "holds"), (1e-2, "does not hold")])
def test_sarah_with_more_directions(many, expected):
    study = in_all(lambda label, panel: Ending(many if panel.q == 200 else 1e-3))
    assert claims.sarah_better_with_more_directions([study]).outcome == expected


@pytest.mark.parametrize(("many", "expected"), [(9000, "holds"), (100, "does not hold")])
def test_the_cost_of_more_directions(many, expected):
    study = in_all(lambda label, panel: Ending(calls=many if panel.q == 200 else 1000))
    assert claims.more_directions_cost_more([study]).outcome == expected


def on_ladders(name, errors):
    """A study with the errors of ladders, of which ``errors(entry)`` returns one for each budget."""

    def endings(race):
        steps = errors(race.entry) if race.rule == LOWEST_OWN else None
        return None if steps is None else Ending(steps[LADDER.index(race.decades)])

    return invented(experiment_of(name), endings)


FALLING, FLAT, STALLED, DONE = (0.1, 0.02, 0.004), (0.02, 0.02, 0.02), (0.5, 0.02, 0.019), (1e-9,) * 3


def test_convergence_is_judged_by_whether_the_error_goes_on_falling():
    for steps, expected in ((FALLING, "holds"), (FLAT, "does not hold"), (STALLED, "does not hold"), (DONE, "holds")):
        assert claims.any_number_of_directions([on_ladders("ridge", lambda entry, s=steps: s)]).outcome == expected
    mixed = claims.any_number_of_directions([on_ladders("ridge", lambda e: FLAT if e.panel.q == 1 else FALLING)])
    assert mixed.outcome == "depends"
    assert re.search(r"ridge, q=1: \S+, 0 yes and 1 no of 1; ridge, q=5: \S+, 1 yes and 0 no", mixed.evidence)


def test_a_high_error_that_falls_has_no_difficulties_and_a_low_one_that_does_not_has():
    high, low = (0.9, 0.3, 0.09), (0.021, 0.0205, 0.02)
    assert claims.sarah_on_real_data([on_ladders("bodyfat", lambda entry: high)]).outcome == "does not hold"
    assert claims.sarah_on_real_data([on_ladders("bodyfat", lambda entry: low)]).outcome == "holds"
    split = claims.sarah_on_real_data([on_ladders("bodyfat", lambda entry: low if entry.switch else high)])
    assert split.outcome == "depends"
    assert "does not hold for shared directions (0 of 2" in split.sentence
    assert "It holds for independent directions (2 of 2" in split.sentence


def test_the_same_bar_holds_for_all_methods():
    for steps in (FALLING, FLAT, STALLED):
        study = on_ladders("bodyfat", lambda entry, s=steps: s)
        vr, sarah = claims.any_number_of_directions([study]), claims.sarah_on_real_data([study])
        assert vr.bar == sarah.bar
        assert {case.says for case in vr.cases} == {not case.says for case in sarah.cases}


def test_no_smaller_learning_rate_to_try_is_no_reason_to_say_no():
    study = on_ladders("ridge", lambda entry: FLAT)
    smallest = min(study.experiment.etas_of(study.results[0].race))
    study.results = [replace(result, eta=smallest) for result in study.results]
    found = claims.any_number_of_directions([study])
    assert {case.says for case in found.cases} == {None}
    nowhere = on_ladders("ridge", lambda entry: (0.9, 0.9, 0.9))
    nowhere.results = [replace(result, eta=smallest) for result in nowhere.results]
    assert claims.any_number_of_directions([nowhere]).outcome == "does not hold"
    falling = on_ladders("ridge", lambda entry: FALLING)
    falling.results = [replace(result, eta=smallest) for result in falling.results]
    assert claims.any_number_of_directions([falling]).outcome == "holds"


def test_the_estimate_of_a_ladder_says_what_its_answer_says():
    for steps in (FALLING, FLAT, STALLED, (0.1, 0.0999, 0.001), (0.5, 0.1, 1e-9)):
        for case in claims.any_number_of_directions([on_ladders("ridge", lambda entry, s=steps: s)]).cases:
            assert case.says == verdict.clear(case.estimate, cases.FALLS)


def test_more_steps_are_not_rougher_by_themselves():
    """With the same increases in each step, the sum grows with the number of steps, and the verdict does not."""
    study = in_all(lambda label, panel: Ending(rises=4.0 if panel.q == 50 else 1.0))
    for at, result in enumerate(study.results):
        steps = 400 if result.race.entry.panel.q == 50 else 100
        study.results[at] = replace(result, judged=tuple(replace(run, nit=steps) for run in result.judged))
    found = claims.smoother_for_larger_q([study])
    assert [case.estimate.value for case in found.cases] == pytest.approx([1.0] * len(found.cases), abs=0.1)


def test_a_ladder_is_no_part_of_the_paper_s_comparison():
    study = on_ladders("ridge", lambda entry: FALLING)
    assert study.compared() == []
    assert study.measures("VR-SZHT", Panel(3, 50)) is None
    assert [step.race.decades for step in next(iter(study.ladders().values()))] == list(LADDER)


@pytest.mark.parametrize(("few", "expected"), [(1e-2, "holds"), (1e-4, "does not hold")])
def test_few_directions_are_compared_with_many(few, expected):
    study = in_all(lambda label, panel: Ending(few if panel.q < 50 else 1e-3))
    assert claims.the_error_depends_on_q([study]).outcome == expected


@pytest.mark.parametrize(("block", "expected"), [(1e-9, "holds"), (1e-4, "does not hold")])
def test_the_orthonormal_block_has_to_be_better_by_orders_of_magnitude(block, expected):
    def endings(race):
        if race.rule != LOWEST_MEAN or race.entry.switch not in ("", "orthonormal block"):
            return None
        return Ending(block if race.entry.switch else 1e-3)

    assert claims.a_block_lowers_the_error([invented(experiment_of("ridge"), endings)]).outcome == expected


def test_shared_directions_are_judged_by_the_switch():
    apart = "SARAH-SZHT, independent directions"
    assert claims.sarah_needs_shared_directions([quick({**BETTER, apart: 0.5})]).outcome == "holds"
    assert claims.sarah_needs_shared_directions([quick({**BETTER, apart: 1e-5})]).outcome == "does not hold"
    assert claims.sarah_needs_shared_directions([quick(BETTER)]) is None  # no data, no verdict


@pytest.mark.parametrize(("finder", "expected"), [("SZOHT", "holds"), ("FGZOHT", "does not hold")])
def test_best_supports_are_counted_run_by_run(finder, expected):
    study = in_all(lambda label, panel: Ending(right=label == finder))
    assert claims.supports_of_szoht_and_fgzoht([study]).outcome == expected


# The rule.


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


def test_settings_that_contradict_each_other_make_a_claim_depend():
    yes, no = (verdict.Case("", Estimate(1, 1, 1), said, str(said)) for said in (True, False))
    assert verdict.combined([yes, *[no] * 19]) == "depends"
    same = [verdict.Case("", Estimate(1, 1, 1), said, "one setting") for said in (True, *[False] * 19)]
    assert verdict.combined(same) == "does not hold"


def test_an_unknown_number_says_nothing():
    nothing = ratio(np.zeros(12), np.zeros(12))
    assert np.isnan(nothing.value)
    assert verdict.clear(nothing, 2.0) is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([True, True, False], "holds"),
        ([True, False], "does not hold"),
        ([False, False, True], "does not hold"),
        ([True, None, None], "undecided"),
        ([None], "undecided"),
    ],
)
def test_the_rule_for_most_cases(said, expected):
    cases = [verdict.Case("", Estimate(1, 1, 1), says) for says in said]
    assert verdict.combined(cases, verdict.MOST) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"a": [True, True], "b": [False]}, "holds"),
        ({"a": [True, True, False], "b": [False]}, "holds"),
        ({"a": [True, False], "b": [False]}, "does not hold"),
        ({"a": [True, None], "b": [False]}, "undecided"),
        ({"a": [False], "b": [False, False]}, "does not hold"),
        ({"a": [None], "b": [False]}, "undecided"),
    ],
)
def test_the_rule_for_some_cases(said, expected):
    cases = [verdict.Case("", Estimate(1, 1, 1), says, place) for place, answers in said.items() for says in answers]
    assert verdict.combined(cases, verdict.SOME) == expected


def test_the_sentence_says_where_a_claim_holds_and_how_strongly():
    def cases(place, *answers):
        return [verdict.Case("", Estimate(2.0, 1, 3), says, f"group of {place}", place) for says in answers]

    every = [*cases("a", True, True), *cases("b", False, None), *cases("c", True), *cases("d", None, None)]
    told = verdict.verdict_of("x", "claim", "paper", "measure", every, strength="x is {}").sentence
    most = verdict.verdict_of("x", "claim", "paper", "measure", cases("a", True, True, False), about=verdict.MOST)
    assert (most.outcome, most.sentence) == ("holds", "It holds for a (2 of 3).")
    assert told == (
        "It holds for a (2 of 2; x is 2) and c (x is 2); it does not hold for b (0 yes, 1 no of 2; x is 2); "
        "it is undecided for d (0 yes, 0 no of 2; x is 2)."
    )

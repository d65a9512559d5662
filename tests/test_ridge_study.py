"""The ridge experiments: the settings are the paper's, and the numbers are what they are said to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_reports import without_drawing

import zerothresh as zt
from zerothresh.comparison.cell import Curve
from zerothresh.comparison.comparing import Candidate
from zerothresh.reproduce.ridge import cases, ridge_figures, study
from zerothresh.reproduce.ridge.experiments import EXPERIMENTS, FIGURE, PAPER, autoprice, bodyfat, synthetic
from zerothresh.reproduce.ridge.protocol import LOWEST_MEAN, LOWEST_OWN, Panel

# The settings are the paper's.


def test_the_synthetic_experiment_has_the_papers_settings():
    experiment = synthetic()
    assert (experiment.n, experiment.d, experiment.budget) == (10, 5, 80_000)
    assert experiment.etas == (0.005, 0.01, 0.05, 0.1, 0.5)
    assert [(p.k, p.q) for p in experiment.panels] == [(k, q) for k in (2, 3, 4) for q in (50, 100, 200)]
    problem = next(iter(experiment.problems.values()))
    assert problem.lam == 0.5
    np.testing.assert_allclose(problem.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(problem.X.std(axis=0), 1)
    plain = [race for race in experiment.races if race.protocol.name == "paper"]
    assert {len(race.protocol.choose) for race in plain} == {3}
    assert [race.entry.label for race in plain][:5] == list(FIGURE)
    for race in plain:
        estimator = race.entry.estimator
        assert (estimator.q, estimator.mu, estimator.directions) == (race.entry.panel.q, 1e-4, "sphere")
        assert (estimator.shared, estimator.common, estimator.difference) == (True, False, "forward")
        assert getattr(race.entry.make(0.1), "m", 10) == 10


@pytest.mark.parametrize(("make", "n", "d"), [(bodyfat, 252, 14), (autoprice, 159, 15)])
def test_the_real_experiments_have_the_papers_settings(make, n, d):
    experiment = make()
    assert (experiment.n, experiment.d, experiment.budget) == (n, d, 100_000)
    np.testing.assert_allclose(experiment.etas, [10.0**-i for i in range(1, 8)])
    assert [(p.k, p.q) for p in experiment.panels] == [(5, 5), (5, 10), (10, 5), (10, 10)]
    compared = [race for race in experiment.races if race.rule == LOWEST_MEAN]
    plain = [race for race in compared if not race.entry.switch]
    for panel in experiment.panels:
        assert [race.entry.label for race in plain if race.entry.panel == panel] == [*FIGURE, "auto"]
    assert {len(race.protocol.choose) for race in compared} == {5}
    assert {(experiment.budget_of(race), experiment.etas_of(race)) for race in compared if race.entry.tuned} == {
        (100_000, experiment.etas)
    }
    assert {race.entry.make(0.1).m for race in plain if race.entry.label in ("VR-SZHT", "SARAH-SZHT")} == {n // 2}
    np.testing.assert_allclose(experiment.problems["data"].X.std(axis=0), 1)


@pytest.mark.parametrize("make", EXPERIMENTS.values())
def test_the_runs_that_judge_did_not_choose(make):
    experiment = make()
    for race in experiment.races:
        assert not set(race.protocol.choose) & set(race.protocol.judge)
        if experiment.name == "ridge" and race.protocol.judge:  # fresh problems, not only fresh seeds
            assert not {p for p, _ in race.protocol.choose} & {p for p, _ in race.protocol.judge}


@pytest.mark.parametrize("make", EXPERIMENTS.values())
def test_ladders_have_budgets_a_decade_apart_and_at_least_the_papers_learning_rates(make):
    experiment = make()
    climbs = {}
    for race in experiment.races:
        if race.rule == LOWEST_OWN:
            climbs.setdefault(race.entry, []).append(race)
            assert set(experiment.etas_of(race)) >= set(experiment.etas)
    assert {"VR-SZHT", "SARAH-SZHT"} <= {entry.label for entry in climbs}
    for races in climbs.values():
        budgets = [experiment.budget_of(race) for race in races]
        assert budgets == [experiment.budget // 10, experiment.budget, 10 * experiment.budget]
        fresh = 30 if (experiment.name, races[0].entry.label) == ("ridge", "VR-SZHT") else 12
        assert {len(race.protocol.judge) for race in races} == {fresh}
    assert not any(race.rule == LOWEST_OWN for race in make(quick=True).races)


def test_a_run_that_races_have_in_common_is_made_once_and_counted_in_each():
    experiment = synthetic(quick=True).with_budget(9_000)
    race = next(race for race in experiment.races if race.entry.name == "SZOHT")
    twice = replace(experiment, races=(race, replace(race, rule=LOWEST_OWN)))
    told = []
    made = study.run(twice, done=lambda cell, outcome, ran: told.append(ran))
    assert len(told) == twice.runs
    assert sum(told) < twice.runs
    first, second = made.results
    assert [run.end for run in first.candidates[0].runs] == [run.end for run in second.candidates[0].runs]


def test_the_rules_choose_by_what_they_say(small):
    result = small.find("SZOHT", Panel(3, 200))
    runs = result.candidates[0].runs
    wrong = Candidate(zt.SZOHT(1.0), tuple(replace(run, end=1.0, own=1e-9) for run in runs))
    right = Candidate(zt.SZOHT(2.0), tuple(replace(run, end=0.5, own=1e-3) for run in runs))
    for rule, best in ((LOWEST_MEAN, right), (LOWEST_OWN, wrong)):
        assert study.best_by(replace(result.race, rule=rule), (wrong, right), small) is best


def test_errors_of_different_problems_are_compared_as_shares(small):
    result = small.find("SZOHT", Panel(3, 200))
    protocol = replace(result.race.protocol, choose=result.race.protocol.judge)
    race = replace(result.race, rule=LOWEST_OWN, protocol=protocol)
    starts = np.array([small.start(problem, 3) for problem, _ in race.protocol.choose])
    even = Candidate(zt.SZOHT(1.0), tuple(replace(result.judged[0], own=0.1 * start) for start in starts))
    # A larger share on the seven problems with the smallest F(0) - F*, and a tiny one on the other five.
    owns = np.where(np.argsort(np.argsort(starts)) < 7, 0.15, 0.01) * starts
    uneven = Candidate(zt.SZOHT(2.0), tuple(replace(result.judged[0], own=own) for own in owns))
    assert np.median(owns) < np.median(0.1 * starts)  # by the errors themselves it would be the better one
    assert study.best_by(race, (uneven, even), small) is even


def test_every_open_choice_is_a_switch():
    found = {(race.entry.label, race.entry.switch) for race in synthetic().races if race.entry.switch}
    for label in ("VR-SZHT", "SARAH-SZHT"):
        for switch in (
            "independent directions",
            "random outgoing iterate",
            "central differences",
            "one block per round",
        ):
            assert (label, switch) in found
    made = {race.entry.switch: race.entry for race in synthetic().races if race.entry.label == "VR-SZHT"}
    assert made["independent directions"].estimator.shared is False
    assert made["random outgoing iterate"].make(0.1).output == "random"
    assert made["central differences"].estimator.difference == "central"
    assert made["orthonormal block"].estimator.directions == "orthogonal"


def test_auto_is_compared_and_has_nothing_to_choose():
    experiment = synthetic(quick=True).with_budget(9_000)
    races = tuple(race for race in experiment.races if race.entry.label == "auto")
    assert len(races) == 2
    assert {race.entry.make(0.1) for race in races} == {zt.methods.Auto()}
    made = study.run(replace(experiment, races=races))
    assert [len(result.candidates) for result in made.results] == [1, 1]
    assert len(made.results[1].judged) == 12


# The numbers.


@pytest.fixture(scope="module")
def small():
    """Two methods in one panel, kept in memory."""
    experiment = synthetic(quick=True).with_budget(20_000)
    races = tuple(race for race in experiment.races if race.entry.name in ("FGZOHT", "SZOHT"))
    return study.run(replace(experiment, races=races))


def test_a_chosen_learning_rate_has_the_lowest_mean_and_the_fresh_runs_use_it(small):
    for result in small.results:
        means = [np.mean([run.end for run in trial.runs]) for trial in result.candidates]
        assert result.eta == small.experiment.etas[int(np.argmin(means))]
    result = small.find("SZOHT", Panel(3, 200))
    problem, seed = result.race.protocol.judge[0]
    subject = small.experiment.problems[problem]
    alone = zt.minimize(
        subject, None, 3, budget=20_000, method=zt.SZOHT(result.eta), estimator=replace(PAPER, q=200), seed=seed,
        monitor=subject.F,
    )  # fmt: skip
    assert alone.trace.fun[-1] == result.judged[0].end
    assert alone.nfev == result.judged[0].nfev


def test_gaps_supports_and_own_errors_are_those_of_the_enumerated_optimum(small):
    for result in small.results:
        measures = result.measures(fresh=bool(result.judged))
        for (name, _), run, gap, own in zip(measures.places, measures.runs, measures.gap, measures.own, strict=True):
            problem = small.experiment.problems[name]
            best_x, best = problem.optimum(3)
            end, start = problem.F(run.x), problem.F(np.zeros(5))
            floor = problem.F(problem.minimum_on(run.support))
            if end > start:  # diverged: counts as staying at the start
                assert gap == own == pytest.approx(start - best, abs=1e-12)
                continue
            assert gap == pytest.approx(end - best, abs=1e-12)
            assert own == pytest.approx(end - floor, abs=1e-12)
            assert gap >= own - 1e-12
            if np.array_equal(run.support, np.flatnonzero(best_x)):
                assert gap == pytest.approx(own, abs=1e-12)
        for place, run in enumerate(measures.runs):
            assert measures.on_best_support(place)[-1] == measures.right[place]
            assert len(measures.on_best_support(place)) == len(run.trace.fun)


def test_a_run_that_ends_above_its_start_has_diverged(small):
    result = small.find("SZOHT", Panel(3, 200))
    far = replace(result.judged[0], end=1e9, own=1e9)
    broken = replace(result.judged[1], success=False)
    measures = replace(result, judged=(far, broken, *result.judged[2:])).measures(fresh=True)
    assert measures.diverged[:2].all()
    np.testing.assert_array_equal(measures.gap[:2], measures.start[:2])
    np.testing.assert_array_equal(measures.relative[:2], 1.0)
    assert np.isinf(measures.rises[:2]).all()


def test_the_increases_count_from_the_start_and_per_step(small):
    measures = small.measures("SZOHT", Panel(3, 200))
    run, start, best = measures.runs[0], measures.start[0], measures.best[0]
    fun = np.concatenate([[start + best], run.trace.fun])
    assert run.trace.fun.size == run.nit  # the curve is not thinned
    assert measures.rises[0] == pytest.approx(np.maximum(np.diff(fun), 0).sum() / start)
    assert measures.roughness[0] == pytest.approx(measures.rises[0] / run.nit)


def test_the_calls_to_a_level_are_read_off_the_curve(small):
    measures = small.measures("FGZOHT", Panel(3, 200))
    assert np.isinf(measures.calls_to(-1.0)).all()
    calls = measures.calls_to(0.1)
    for run, start, found in zip(measures.runs, measures.start, calls, strict=True):
        below = run.trace.nfev[run.trace.own <= 0.1 * start]  # few steps, so that the curve is not thinned
        assert len(run.trace.nfev) == run.nit
        assert found == (below[0] if below.size else np.inf)


def test_only_runs_of_the_same_problem_and_seed_are_paired(small):
    whole = small.find("SZOHT", Panel(3, 200)).measures(fresh=True)
    part = replace(whole, places=whole.places[2:5], runs=whole.runs[2:5])
    one, other = cases.paired(part, whole, "own")
    np.testing.assert_array_equal(one, other)
    assert len(one) == 3


def test_runs_without_a_step_are_left_out_of_the_curves(small):
    none = np.array([], int)
    idle = [
        replace(run, trace=Curve(none, none, none.astype(float), none.astype(float)))
        for run in small.results[-1].judged
    ]
    some = study.Study(small.experiment)
    some.results = [*small.results[:-1], replace(small.results[-1], judged=(*idle[:-1], small.results[-1].judged[-1]))]
    all_idle = study.Study(small.experiment)
    all_idle.results = [*small.results[:-1], replace(small.results[-1], judged=tuple(idle))]
    with without_drawing():
        alts = [[drawn.alt for drawn in ridge_figures.figures(which)] for which in (small, some, all_idle)]
    label = small.results[-1].race.entry.label
    assert [label in alt for alt in alts[0]] == [label in alt for alt in alts[1]] == [True] * 3
    assert [label in alt for alt in alts[2]] == [True, False, False]  # no fresh run that could be drawn

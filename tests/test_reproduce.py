"""The paper's experiments, the verdicts, and the report."""

from __future__ import annotations

import csv
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.cli.app import app
from zerothresh.comparison.cell import Curve, Outcome
from zerothresh.comparison.comparing import Candidate
from zerothresh.comparison.summary import Estimate
from zerothresh.reports import report_folder, verdict
from zerothresh.reports.tables import ReportTable
from zerothresh.reproduce.ridge import claims, study
from zerothresh.reproduce.ridge.experiments import EXPERIMENTS, FIGURE, PAPER, autoprice, bodyfat, synthetic
from zerothresh.reproduce.ridge.protocol import Panel
from zerothresh.reproduce.ridge.study import RaceResult, Study

SMALL = 6_000
RIDGE = [f"ridge-{name}" for name in ("fresh", "grid", "paper", "runs", "switches", "traces")]
CSV = ("cases", "verdicts", *RIDGE)


def command(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env={"COLUMNS": "80"})


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A whole report, with a small budget: (folder, what the command printed)."""
    where = tmp_path_factory.mktemp("report") / "ridge"
    outcome = command("ridge", "--quick", "--budget", SMALL, "--jobs", 2, "--out", where)
    assert outcome.exit_code == 0, outcome.output
    return where, outcome


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
    plain = [race for race in experiment.races if not race.entry.switch]
    for panel in experiment.panels:
        assert [race.entry.label for race in plain if race.entry.panel == panel] == [*FIGURE, "auto"]
    assert {len(race.protocol.choose) for race in experiment.races} == {5}
    assert {race.entry.make(0.1).m for race in plain if race.entry.label in ("VR-SZHT", "SARAH-SZHT")} == {n // 2}
    np.testing.assert_allclose(experiment.problems["data"].X.std(axis=0), 1)


@pytest.mark.parametrize("make", EXPERIMENTS.values())
def test_the_runs_that_judge_did_not_choose(make):
    experiment = make()
    for race in experiment.races:
        assert not set(race.protocol.choose) & set(race.protocol.judge)
        if experiment.name == "ridge" and race.protocol.judge:  # fresh problems, not only fresh seeds
            assert not {p for p, _ in race.protocol.choose} & {p for p, _ in race.protocol.judge}


def test_every_open_choice_is_a_switch():
    found = {(race.entry.label, race.entry.switch) for race in synthetic().races if race.entry.switch}
    for label in ("VR-SZHT", "SARAH-SZHT"):
        for switch in ("independent directions", "random outgoing iterate", "central differences", "one block per round"):
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


def test_the_calls_to_a_level_are_read_off_the_curve(small):
    measures = small.measures("FGZOHT", Panel(3, 200))
    assert np.isinf(measures.calls_to(-1.0)).all()
    calls = measures.calls_to(0.1)
    for run, start, found in zip(measures.runs, measures.start, calls, strict=True):
        below = run.trace.nfev[run.trace.own <= 0.1 * start]
        assert found == (below[0] if below.size else np.inf)


# The verdicts.


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
            candidates = tuple(Candidate(race.entry.make(eta), runs[: len(race.protocol.choose)]) for eta in experiment.etas)
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


def test_only_runs_of_the_same_problem_and_seed_are_paired(small):
    whole = small.find("SZOHT", Panel(3, 200)).measures(fresh=True)
    part = replace(whole, places=whole.places[2:5], runs=whole.runs[2:5])
    one, other = claims.paired(part, whole, "own")
    np.testing.assert_array_equal(one, other)
    assert len(one) == 3


# The report.


def test_the_command_speaks_in_80_columns_and_tells_the_verdicts(made):
    where, outcome = made
    lines = outcome.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith(("Report: ", "own support")))
    for label in FIGURE:
        assert label in outcome.stdout
    assert "Verdicts" in outcome.stdout
    assert f"Report: {where / 'index.html'}" in outcome.stdout
    assert "476 of 476 runs" in outcome.stderr


def test_the_manifest_names_every_file_and_says_how_to_do_it_again(made):
    where, _ = made
    manifest = json.loads((where / "manifest.json").read_text())
    assert sorted(p.name for p in where.iterdir() if p.is_file()) == manifest["files"]
    assert (manifest["seed"], manifest["quick"], manifest["budgets"]) == (0, True, [SMALL])
    assert manifest["versions"]["zerothresh"] == zt.__version__
    races = manifest["studies"][0]["races"]
    assert races[0]["chosen"].startswith("FGZOHT(eta=")
    assert races[0]["choose"] == [["draw 0", 0], ["draw 0", 1], ["draw 0", 2]]
    assert manifest["seconds_of_this_session"] > 0


def test_the_verdicts_of_page_table_and_manifest_are_the_same(made):
    where, _ = made
    manifest = json.loads((where / "manifest.json").read_text())["verdicts"]
    page = (where / "index.html").read_text()
    table = rows_of(where / "verdicts.csv")
    assert [row["claim"] for row in table] == [verdict["claim"] for verdict in manifest]
    for told, row in zip(manifest, table, strict=True):
        assert told["verdict"] == row["verdict"]
        assert page.count(f"<strong>{row['claim']}</strong>".replace("'", "&#x27;")) == 1
        assert f'id="figure-{row["figure"]}"' in page
        assert (where / f"{row['figure']}.pdf").is_file()


def test_every_verdict_can_be_computed_again_from_the_table_of_runs(made):
    where, _ = made
    runs = rows_of(where / "ridge-runs.csv")
    own = {}
    for row in runs:
        assert (where / row["file"]).is_file()
        if not row["switch"]:
            own.setdefault(row["method"], {})[row["problem"]] = float(row["own"]), float(row["F"]), row["problem"]
    cases = [row for row in rows_of(where / "cases.csv") if "on the support that they end with" in row["claim"]]
    assert len(cases) == 3
    for case in cases:
        label = case["case"].split(", ")[-1]
        problems = {problem: zt.problems.ridge(seed=int(problem.split()[1])) for problem in own[label]}
        ratios = []
        for problem, made_ in problems.items():
            start = made_.F(np.zeros(5))
            pair = []
            for method in ("SZOHT", label):
                error, end, _ = own[method][problem]
                pair.append(error if end <= start else start - made_.optimum(3)[1])
            ratios.append(pair[0] / pair[1])
        assert float(case["value"]) == pytest.approx(np.median(ratios), rel=1e-9)


def test_a_shortened_report_says_so(made):
    where, _ = made
    assert "This is a shortened version (one panel and fewer runs; another budget)" in (where / "index.html").read_text()


def test_every_figure_of_the_paper_table_is_computed_from_the_traces(made):
    where, _ = made
    ends: dict[str, dict[str, float]] = {}
    for row in rows_of(where / "ridge-traces.csv"):
        ends.setdefault(row["method"], {})[row["seed"]] = float(row["F"])  # the last row of a run stays
    for row in rows_of(where / "ridge-paper.csv"):
        last = list(ends[row["method"]].values())
        assert len(last) == int(row["runs"]) == 3
        assert float(row["F_mean"]) == pytest.approx(np.mean(last), rel=1e-12)
        assert float(row["F_sd"]) == pytest.approx(np.std(last), abs=1e-12)


def test_the_page_stands_alone(made):
    where, _ = made
    page = (where / "index.html").read_text()
    assert not re.search(r'(src|href)="?(https?:)?//', page)
    images = re.findall(r'<img src="data:image/svg\+xml;base64,[^"]+" alt="([^"]+)"', page)
    assert len(images) == page.count("<img") == 4 + len(rows_of(where / "verdicts.csv"))
    assert all(len(alt) > 60 for alt in images)
    for needed in ('name="viewport"', "prefers-color-scheme: dark", "@media print", 'lang="en"'):
        assert needed in page
    for name in re.findall(r'href="([^"#:]+)"', page):
        assert (where / name).is_file(), name
    for name in ("ridge-k3", "ridge-k3-own", "ridge-k3-right", "ridge-switches"):
        assert (where / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (where / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_seed_gives_the_same_bytes_with_one_job_or_two(made, tmp_path):
    where, _ = made
    again = command("ridge", "--quick", "--budget", SMALL, "--jobs", 1, "--out", tmp_path / "again")
    assert again.exit_code == 0, again.output
    for name in CSV:
        assert (tmp_path / "again" / f"{name}.csv").read_bytes() == (where / f"{name}.csv").read_bytes(), name
    for name in ("index.html", "ridge-k3.png", "verdicts.tex"):
        assert (tmp_path / "again" / name).read_bytes() == (where / name).read_bytes(), name


def test_latex_is_escaped():
    table = ReportTable("t", "T", ("#IZO", "η"), [["50 % & more_", "1 ± 2"]], ("a",), [])
    latex = table.latex()
    assert r"\#IZO & $\eta$ \\" in latex
    assert r"50 \% \& more\_ & 1 $\pm$ 2 \\" in latex


# Going on, and what is refused.


def test_what_is_done_is_not_done_again_and_a_lost_cell_is(made, tmp_path):
    where, _ = made
    copy = tmp_path / "copy"
    shutil.copytree(where, copy)
    cells = sorted((copy / "cells").iterdir())
    kept = {path: path.stat().st_mtime_ns for path in cells[3:]}
    for path in cells[:3]:
        path.unlink()
    again = command("ridge", "--quick", "--budget", SMALL, "--jobs", 1, "--out", copy)
    assert again.exit_code == 0
    assert "continuing the work in" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert all(path.exists() for path in cells[:3])
    for name in CSV:
        assert (copy / f"{name}.csv").read_bytes() == (where / f"{name}.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ridge", "--quick", "--budget", SMALL, "--seed", 1], "holds results with seed = 0, not 1"),
        (["ridge", "--quick", "--budget", 7000], r"holds results with budgets = \[6000\], not \[7000\]"),
        (["ridge", "--budget", SMALL], "holds results with quick = True, not False"),
        (["bodyfat", "--quick", "--budget", SMALL], r"holds results with experiments = \['ridge'\], not \['bodyfat'\]"),
    ],
)
def test_a_folder_of_another_run_is_refused_and_left_alone(made, arguments, sentence):
    where, _ = made
    before = {path: path.stat().st_mtime_ns for path in where.rglob("*")}
    refused = command(*arguments, "--out", where)
    assert refused.exit_code == 2
    assert re.search(sentence, " ".join(refused.stderr.split())), refused.stderr
    assert {path: path.stat().st_mtime_ns for path in where.rglob("*")} == before


@pytest.mark.parametrize("content", [{"thesis.tex": "years"}, {"study.json": "no json"}, {"study.json": "[1]"}])
def test_a_folder_with_something_else_is_refused_and_left_alone(content, tmp_path):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    refused = command("ridge", "--quick", "--out", tmp_path)
    assert refused.exit_code == 2
    assert "holds other files" in refused.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == content


def test_a_start_that_was_killed_is_no_obstacle(tmp_path):
    (tmp_path / ".study.json.123.part").write_text("{")
    assert report_folder.prepare(tmp_path, {"seed": 0}) is False
    assert report_folder.prepare(tmp_path, {"seed": 0}) is True


def test_bad_input_gets_a_sentence(tmp_path):
    for arguments, sentence in (
        (["rigde"], "there is no experiment 'rigde': choose ridge, bodyfat, autoprice or all"),
        (["ridge", "--quick", "--budget", "100"], "budget = 100 is too small"),
        (["ridge", "--quick", "--jobs", "0"], "jobs must be at least 1"),
        (["ridge", "--quick", "--seed", "-1"], "seed must be at least 0"),
    ):
        refused = command(*arguments, "--out", tmp_path / "new")
        assert refused.exit_code == 2, refused.output
        assert sentence in " ".join(refused.stderr.split())
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
    (tmp_path / "file").write_text("")
    refused = command("ridge", "--quick", "--out", tmp_path / "file" / "report")
    assert refused.exit_code == 2
    assert "cannot be made" in refused.stderr


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"pip install 'zerothresh\[plot\]'"):
        report_folder.prepare(tmp_path, {})


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child process")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_stops_it_and_the_same_command_goes_on(jobs, made, tmp_path):
    where, _ = made
    out = tmp_path / "out"
    arguments = ["reproduce", "ridge", "--quick", "--budget", str(SMALL), "--jobs", str(jobs), "--out", str(out)]
    code = "from zerothresh.cli.app import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        until(lambda: len(list(out.glob("cells/*.npz"))) >= 5 or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)  # to all of them, as a terminal does
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not (out / "index.html").exists()
    assert 5 <= len(list(out.glob("cells/*.npz"))) < 476
    again = command(*arguments[1:])
    assert again.exit_code == 0, again.output
    for name in CSV:
        assert (out / f"{name}.csv").read_bytes() == (where / f"{name}.csv").read_bytes()


# The documentation.


def test_the_pages_have_the_verdicts_of_the_last_full_reproduction():
    root = Path(__file__).parents[1]
    manifest = json.loads((root / "docs" / "reproduction.json").read_text())
    assert manifest["experiments"] == ["ridge", "bodyfat", "autoprice"]
    assert manifest["quick"] is False
    assert manifest["budgets"] == [80_000, 100_000, 100_000]
    script = runpy.run_path(str(root / "scripts" / "put_verdicts.py"))
    readme = (root / "README.md").read_text()
    assert readme.split("<!-- verdicts -->")[1].strip() == script["summary"](manifest["verdicts"])
    shown = (root / "docs" / "reproduction.md").read_text().split("<!-- table of verdicts -->")[1]
    rows = [line for line in shown.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) == len(manifest["verdicts"]) > 8
    page = (root / "docs" / "reproduction.md").read_text().replace("F\\*", "F*")
    for row, told in zip(rows, manifest["verdicts"], strict=True):
        assert f"({told['cases']}). {told['evidence']}\n" in page
        assert row == f"| {told['claim']} | {told['source']} | {told['verdict']} | {told['cases']} |"

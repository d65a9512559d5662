"""The paper's experiment on CIFAR-10, in `zerothresh.reproduce.cifar`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from attack_victims import command

import zerothresh as zt
from zerothresh.reports import figures
from zerothresh.reproduce.cifar import experiment
from zerothresh.reproduce.cifar import report as attack_report
from zerothresh.reproduce.live_display import BarDisplay


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder for the runs, which both studies keep there, with one learning rate and a small budget."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "ETAS", (0.05,))
        patch.setattr(experiment, "BUDGET", 250)
        yield tmp_path_factory.mktemp("runs")


def report(folder, plan, of):
    """Write the report; its verdicts."""
    (folder / "study.json").write_text("{}")  # as `prepare` leaves it
    return attack_report.write(folder, plan, [of], experiment.identity(plan), 1.0)


def hopeless():
    """The short runs of these tests cannot tell which of all supports is the best one, and `auto` says so."""
    return pytest.warns(
        UserWarning, match="budget = (250|300) is too small to tell which 60 of 3072 coordinates matter"
    )


def test_the_paper_attack_is_reported_with_pictures_labels_and_intervals(runs, tmp_path):
    plan = experiment.AttackPlan(("dog",), 0, 1, {250: 2}, {}, None, True)
    bar = BarDisplay("dog", plan.runs, plan.queries)
    with hopeless():
        of = experiment.run(plan, "dog", jobs=1, folder=runs, done=bar.done)
    assert (bar.count, bar.past) == (plan.runs, plan.queries)
    assert of.victims.right.tolist() == [True] * 5 + [False] + [True] * 4  # image 42, as the model card says
    assert not any(entry.score.fooled[5] for entry in of.entries)
    assert {verdict.name for verdict in report(tmp_path, plan, of)} == {"exists", "loss-rate", "best"}
    page = (tmp_path / "index.html").read_text()
    for word in ("attack-dog-pictures.png", "attack-dog-curves.png", "SARAH-SZHT", "p-SAGA-SZHT", "the paper&#x27;s"):
        assert word in page
    listed = json.loads((tmp_path / "manifest.json").read_text())["files"]
    assert set(listed) <= {path.name for path in tmp_path.iterdir()}
    rows = (tmp_path / "attack-dog-care.csv").read_text().splitlines()
    assert len(rows) == 1 + len(experiment.LABELS)
    runs_of_the_table = (tmp_path / "attack-dog-runs.csv").read_text().splitlines()
    assert len(runs_of_the_table) == 1 + 2 * len(experiment.LABELS)
    again = experiment.run(plan, "dog", jobs=1, folder=runs)  # from what was kept
    assert np.array_equal(again.entry("best").score.theta, of.entry("best").score.theta)


def test_all_images_of_a_class_are_attacked_where_the_data_set_is_at_hand(runs, tmp_path, monkeypatch):
    loaded = []

    def load(path, *, split="test"):  # the paper's images stand for the whole data set
        loaded.append((path, split))
        return zt.datasets.load_cifar10_paper()

    monkeypatch.setattr(experiment, "load_cifar10", load)
    for module in (figures, attack_report):  # how figures are drawn is tested above
        monkeypatch.setattr(module, "saved", lambda figure: (b"<svg/>", b"", b""))
    plan = experiment.AttackPlan(("dog",), 0, 1, {250: 2}, {300: 2}, tmp_path, False)
    with hopeless():
        of = experiment.run(plan, "dog", jobs=1, folder=runs)
    assert {split for _, split in loaded} == {"test", "train"}
    assert of.victims.others.n == 0  # the ten are all that there is
    assert (of.crowd.stack.n, of.crowd.others.n) == (9, 9)
    assert 42 not in of.crowd.ids
    table = attack_report.for_all(of)
    assert len(table.rows) == len(experiment.LABELS)
    assert "all 9 test images" in table.note
    for entry in of.entries:
        assert [score.rate for score in entry.crowd[300]] == [score.transfer for score in entry.crowd[300]]
    report(tmp_path, plan, of)
    assert (tmp_path / "attack-dog-all.csv").exists()
    assert "all of dog, 300 queries" in (tmp_path / "index.html").read_text()


def test_the_labels_of_the_paper_are_there_and_its_bold_ones_that_are_right_do_not_count():
    assert all(len(row.split()) == 10 for rows in experiment.PRINTED.values() for row in rows.values())
    assert attack_report._printed("airplane", "SARAH-SZHT")[0] == "6 of 10"  # the text says 7
    assert attack_report._printed("bird", "FGZOHT")[0] == "6 of 10"
    assert attack_report._printed("dog", "best") == ("-", "-")


def test_larger_budgets_are_left_out_on_request():
    plan = experiment.plan_of(["dog"], quick=False, seed=0, cifar10=Path("cifar"), most=6000)
    assert list(plan.judging) == [600, 6000]
    assert plan.crowded == {}
    whole = experiment.plan_of(["dog"], quick=False, seed=0, cifar10=Path("cifar"))
    assert list(whole.judging) == [600, 6000, 60_000]
    assert list(whole.crowded) == [60_000]
    assert experiment.identity(plan) != experiment.identity(whole)


def test_the_command_knows_the_classes_of_the_paper(tmp_path):
    for words, said in [
        (["--class", "cat"], "there is no class 'cat'"),
        (["--budget", "599"], "--budget must be at least 600 queries"),
        (["--class", "dog", "--quick", "--cifar10", tmp_path / "nowhere"], "holds no CIFAR-10"),
    ]:
        done = command("reproduce", "attack", *words, "--out", tmp_path / "out")
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.output.split())

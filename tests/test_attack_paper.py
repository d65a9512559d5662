"""The paper's experiment on CIFAR-10, in `zerothresh.reproduce.cifar`."""

from __future__ import annotations

import json

import numpy as np
from attack_victims import command

import zerothresh as zt


def test_the_paper_attack_is_reported_with_pictures_labels_and_intervals(tmp_path, monkeypatch):
    from zerothresh.reproduce.cifar import experiment as attack
    from zerothresh.reproduce.cifar import report as attack_report
    from zerothresh.reproduce.live_display import BarDisplay

    monkeypatch.setattr(attack, "ETAS", (0.05,))
    monkeypatch.setattr(attack, "BUDGET", 250)
    plan = attack.Plan(("dog",), 0, 1, {250: 2}, {}, None, True)
    bar = BarDisplay("dog", plan.runs, plan.queries)
    of = attack.run(plan, "dog", jobs=1, folder=tmp_path, done=bar.done)
    assert (bar.count, bar.past) == (plan.runs, plan.queries)
    assert of.victims.right.tolist() == [True] * 5 + [False] + [True] * 4  # image 42, as the model card says
    assert not any(entry.score.fooled[5] for entry in of.entries)
    (tmp_path / "study.json").write_text("{}")  # as `prepare` leaves it
    found = attack_report.write(tmp_path, plan, [of], attack.identity(plan), 1.0)
    assert {verdict.name for verdict in found} == {"reduced", "saga", "best"}
    page = (tmp_path / "index.html").read_text()
    for word in ("attack-dog-pictures.png", "attack-dog-curves.png", "SARAH-SZHT", "p-SAGA-SZHT", "the paper&#x27;s"):
        assert word in page
    listed = json.loads((tmp_path / "manifest.json").read_text())["files"]
    assert set(listed) <= {path.name for path in tmp_path.iterdir()}
    rows = (tmp_path / "attack-dog-care.csv").read_text().splitlines()
    assert len(rows) == 1 + len(attack.LABELS)
    again = attack.run(plan, "dog", jobs=1, folder=tmp_path)  # from what was kept
    assert np.array_equal(again.entry("best").score.theta, of.entry("best").score.theta)


def test_all_images_of_a_class_are_attacked_where_the_data_set_is_at_hand(tmp_path, monkeypatch):
    from zerothresh.reproduce.cifar import experiment as attack
    from zerothresh.reproduce.cifar import report as attack_report

    loaded = []

    def load(path, *, split="test"):  # the paper's images stand for the whole data set
        loaded.append((path, split))
        return zt.datasets.load_cifar10_paper()

    monkeypatch.setattr(attack, "load_cifar10", load)
    monkeypatch.setattr(attack, "ETAS", (0.05,))
    monkeypatch.setattr(attack, "BUDGET", 250)
    plan = attack.Plan(("dog",), 0, 1, {250: 2}, {300: 2}, tmp_path, False)
    of = attack.run(plan, "dog", jobs=1, folder=None)
    assert {split for _, split in loaded} == {"test", "train"}
    assert of.victims.others.n == 0  # the ten are all that there is
    assert (of.crowd.stack.n, of.crowd.others.n) == (9, 9)
    assert 42 not in of.crowd.ids
    table = attack_report.for_all(of)
    assert len(table.rows) == len(attack.LABELS)
    assert "All 9 test images" in table.note
    for entry in of.entries:
        assert [score.rate for score in entry.crowd[300]] == [score.transfer for score in entry.crowd[300]]
    (tmp_path / "study.json").write_text("{}")
    attack_report.write(tmp_path, plan, [of], attack.identity(plan), 1.0)
    assert (tmp_path / "attack-dog-all.csv").exists()
    assert "all of dog, 300 queries" in (tmp_path / "index.html").read_text()


def test_the_labels_of_the_paper_are_there_and_its_bold_ones_that_are_right_do_not_count():
    from zerothresh.reproduce.cifar.experiment import PRINTED
    from zerothresh.reproduce.cifar.report import _printed

    assert all(len(row.split()) == 10 for rows in PRINTED.values() for row in rows.values())
    assert _printed("airplane", "SARAH-SZHT")[0] == "6 of 10"  # the text says 7
    assert _printed("bird", "FGZOHT")[0] == "6 of 10"
    assert _printed("dog", "best") == ("-", "-")


def test_the_command_knows_the_classes_of_the_paper(tmp_path):
    for words, said in [
        (["--class", "cat"], "there is no class 'cat'"),
        (["--budget", "100"], "leave --budget out"),
        (["--class", "dog", "--quick", "--cifar10", tmp_path / "nowhere"], "holds no CIFAR-10"),
    ]:
        done = command("reproduce", "attack", *words, "--out", tmp_path / "out")
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.output.split())

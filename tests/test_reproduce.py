"""`zerothresh reproduce`: the report, continuing after a stop, what is refused, and the verdicts in the pages."""

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
from pathlib import Path

import numpy as np
import pytest
from small_reports import BUDGET, command, memory_folder, small_experiment, small_report, whole_report, without_drawing
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.reports import report_folder
from zerothresh.reports.tables import ReportTable
from zerothresh.reproduce.ridge.experiments import FIGURE

CSV = [
    f"{name}.csv"
    for name in ("cases", "verdicts", "ridge-fresh", "ridge-grid", "ridge-paper", "ridge-runs", "ridge-traces")
]


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The report of the quick experiment with a small budget."""
    return whole_report(tmp_path_factory)


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The report of a small experiment."""
    return small_report(tmp_path_factory)


@pytest.fixture
def tmp_path():
    """Reports are computed in memory, where hundreds of runs need not wait for the disk."""
    with memory_folder() as folder:
        yield folder


# The report.


def test_the_command_speaks_in_80_columns_and_tells_the_verdicts(whole):
    where = whole.folder
    lines = whole.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("Report: "))
    for label in FIGURE:
        assert label in whole.stdout
    assert "Verdicts" in whole.stdout
    assert f"Report: {where / 'index.html'}" in whole.stdout
    assert "476 of 476 runs" in whole.stderr


def test_the_manifest_names_every_file_and_says_how_to_do_it_again(whole):
    where = whole.folder
    manifest = json.loads((where / "manifest.json").read_text())
    assert sorted(p.name for p in where.iterdir() if p.is_file()) == manifest["files"]
    assert (manifest["seed"], manifest["quick"], manifest["budgets"]) == (0, True, [BUDGET])
    assert manifest["versions"]["zerothresh"] == zt.__version__
    races = manifest["studies"][0]["races"]
    assert races[0]["chosen"].startswith("FGZOHT(eta=")
    assert races[0]["choose"] == [["draw 0", 0], ["draw 0", 1], ["draw 0", 2]]
    assert manifest["seconds_of_this_session"] > 0


def test_the_verdicts_of_page_table_and_manifest_are_the_same(whole):
    where = whole.folder
    manifest = json.loads((where / "manifest.json").read_text())["verdicts"]
    page = (where / "index.html").read_text()
    table = rows_of(where / "verdicts.csv")
    assert [row["claim"] for row in table] == [verdict["claim"] for verdict in manifest]
    for told, row in zip(manifest, table, strict=True):
        assert told["verdict"] == row["verdict"]
        assert page.count(f"<strong>{row['claim']}</strong>".replace("'", "&#x27;")) == 1
        assert f'id="figure-{row["figure"]}"' in page
        assert (where / f"{row['figure']}.pdf").is_file()


def test_every_verdict_can_be_computed_again_from_the_table_of_runs(whole):
    where = whole.folder
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


def test_a_shortened_report_says_so(whole):
    where = whole.folder
    assert (
        "This is a shortened version (one panel and fewer runs; another budget)" in (where / "index.html").read_text()
    )


def test_every_figure_of_the_paper_table_is_computed_from_the_traces(whole):
    where = whole.folder
    ends: dict[str, dict[str, float]] = {}
    for row in rows_of(where / "ridge-traces.csv"):
        ends.setdefault(row["method"], {})[row["seed"]] = float(row["F"])  # the last row of a run stays
    for row in rows_of(where / "ridge-paper.csv"):
        last = list(ends[row["method"]].values())
        assert len(last) == int(row["runs"]) == 3
        assert float(row["F_mean"]) == pytest.approx(np.mean(last), rel=1e-12)
        assert float(row["F_sd"]) == pytest.approx(np.std(last), abs=1e-12)


def test_the_page_stands_alone(whole):
    where = whole.folder
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_with_one_job_or_two(small, tmp_path):
    with small_experiment():
        again = command("ridge", "--quick", "--budget", BUDGET, "--jobs", 2, "--out", tmp_path / "again")
    assert again.exit_code == 0, again.output
    for name in (*CSV, "index.html", "ridge-k3.png", "ridge-k3-own.pdf", "verdicts.tex"):
        assert (tmp_path / "again" / name).read_bytes() == (small / name).read_bytes(), name


def test_latex_is_escaped():
    table = ReportTable("t", "T", ("#IZO", "η"), [["50 % & more_", "1 ± 2"]], ("a",), [])
    latex = table.latex()
    assert r"\#IZO & $\eta$ \\" in latex
    assert r"50 \% \& more\_ & 1 $\pm$ 2 \\" in latex


# Continuing, and what is refused.


def test_what_is_done_is_not_done_again_and_a_lost_cell_is(small, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(small, copy)
    cells = sorted((copy / "cells").iterdir())
    kept = {path: path.stat().st_mtime_ns for path in cells[3:]}
    for path in cells[:3]:
        path.unlink()
    with small_experiment(), without_drawing():
        again = command("ridge", "--quick", "--budget", BUDGET, "--jobs", 1, "--out", copy)
    assert again.exit_code == 0, again.output
    assert "continuing the work in" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert all(path.exists() for path in cells[:3])
    for name in CSV:
        assert (copy / name).read_bytes() == (small / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ridge", "--quick", "--budget", BUDGET, "--seed", 1], "holds results with seed = 0, not 1"),
        (["ridge", "--quick", "--budget", 7000], r"holds results with budgets = \[4200\], not \[7000\]"),
        (["ridge"], "holds results with quick = True, not False"),
        (
            ["bodyfat", "--quick", "--budget", BUDGET],
            r"holds results with experiments = \['ridge'\], not \['bodyfat'\]",
        ),
    ],
)
def test_a_folder_of_another_run_is_refused_and_left_alone(whole, arguments, sentence):
    where = whole.folder
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
        (["ridge", "--quick", "--budget", "100", "--jobs", "1"], "budget = 100 is too small"),
        (["ridge", "--budget", BUDGET], "for k=3, q=50 VR-SZHT, 420 calls: budget = 420 is too small"),
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


# Runs the small experiment, and stalls for ever after some calls in each process: there it can be stopped.
STALLING = """
import os, sys, time
from pathlib import Path

from small_reports import small_ridge
from waiting import PATIENCE

from zerothresh.problems import Ridge
from zerothresh.reproduce.ridge import experiments

experiments.EXPERIMENTS["ridge"] = small_ridge
values, made = Ridge.values, 0

def stalling(self, points, components):
    global made
    made += 1
    if made > 60:
        Path(sys.argv[1], str(os.getpid())).touch()
        time.sleep(PATIENCE)
    return values(self, points, components)

Ridge.values = stalling

if __name__ == "__main__":
    from zerothresh.cli.app import app

    app(sys.argv[2:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child process")
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_stops_it_and_the_same_command_goes_on(jobs, small, tmp_path):
    out, stalled, script = tmp_path / "out", tmp_path / "stalled", tmp_path / "stalling.py"
    stalled.mkdir()
    script.write_text(STALLING)
    arguments = ["ridge", "--quick", "--budget", str(BUDGET), "--jobs", str(jobs), "--out", str(out)]
    places = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, str(script), str(stalled), "reproduce", *arguments],
        env={**os.environ, "PYTHONPATH": places},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        until(lambda: len(os.listdir(stalled)) == jobs or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)  # to all of them, as a terminal does
        if jobs == 1:  # the run is in this process: it would wait for the call in progress, which stalls
            until(lambda: "press Ctrl-C again" in process.stderr.readline())
            os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not (out / "index.html").exists()
    assert 0 < len(list(out.glob("cells/*.npz"))) < len(list(small.glob("cells/*.npz")))
    with small_experiment(), without_drawing():
        again = command(*arguments)
    assert again.exit_code == 0, again.output
    for name in CSV:
        assert (out / name).read_bytes() == (small / name).read_bytes()


# The documentation.


def test_the_pages_have_the_verdicts_of_the_last_full_reproduction():
    root = Path(__file__).parents[1]
    manifest = json.loads((root / "docs" / "reproduction.json").read_text())
    assert manifest["experiments"] == ["ridge", "bodyfat", "autoprice"]
    assert manifest["quick"] is False
    assert manifest["budgets"] == [80_000, 100_000, 100_000]
    script = runpy.run_path(str(root / "scripts" / "put_verdicts.py"))
    readme = (root / "README.md").read_text().split("<!-- verdicts -->")[1].strip()
    assert readme == f"{script['summary'](manifest['verdicts'])}\n\n{script['short_table'](manifest['verdicts'])}"
    shown = (root / "docs" / "reproduction.md").read_text().split("<!-- table of verdicts -->")[1]
    rows = [line for line in shown.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) == len(manifest["verdicts"]) > 8
    page = (root / "docs" / "reproduction.md").read_text().replace("F\\*", "F*")
    for row, told in zip(rows, manifest["verdicts"], strict=True):
        assert f"({told['cases']}). {told['evidence']}\n" in page
        told_row = f"| {told['claim']} | {told['source']} | {told['verdict']} | {told['sentence']} |"
        assert row.replace("F\\*", "F*") == told_row
        assert (told_row.split(" | ")[0] in readme) == told["source"].startswith("paper")
        assert not told["source"].startswith("paper") or told["sentence"] in readme.replace("F\\*", "F*")

"""The ridge comparison and its report."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import zerothresh as zt
from zerothresh import report
from zerothresh.cli import app
from zerothresh.reproduce import ridge_report
from zerothresh.reproduce.compare import Setting, compare, end_of
from zerothresh.reproduce.ridge import ETAS, METHODS, RidgeComparison, eta_of, run_ridge

FILES = {"curves.csv", "grid.csv", "index.html", "izo.png", "manifest.json", "nht.png", "table.csv"}


@pytest.fixture(scope="module")
def comparison() -> RidgeComparison:
    """All methods with a small budget."""
    return run_ridge(runs=2, seed=1, budget=9_000, etas=(0.05, 0.5))


@pytest.fixture(scope="module")
def folder(comparison: RidgeComparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its report."""
    folder = tmp_path_factory.mktemp("report")
    report.prepare(folder, ridge_report.EXPERIMENT)
    ridge_report.write(comparison, folder)
    return folder


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# The comparison.


def test_the_settings_are_the_papers() -> None:
    assert ETAS == (0.005, 0.01, 0.05, 0.1, 0.5)
    small = run_ridge(runs=1, etas=[0.1], methods=["FGZOHT"])
    assert (small.problem.n, small.problem.d, small.problem.lam) == (10, 5, 0.5)
    estimator = small.setting.estimator
    assert (small.setting.k, small.setting.budget) == (3, 80_000)
    assert (estimator.q, estimator.mu, estimator.s2, estimator.directions) == (200, 1e-4, 5, "sphere")
    assert [METHODS[label](0.1).m for label in ("VR-SZHT", "SARAH-SZHT")] == [10, 10]
    assert small.contenders[0].best.nfev == 39 * 10 * 201  # as many full gradients as fit


def test_every_method_of_the_figure_is_compared(comparison: RidgeComparison) -> None:
    labels = [contender.label for contender in comparison.contenders]
    assert labels[:5] == ["FGZOHT", "SZOHT", "VR-SZHT", "SAGA-SZHT", "SARAH-SZHT"]
    assert labels[5:] == ["p-SAGA-SZHT", "LSVRG-SZHT"]


def test_the_best_learning_rate_has_the_lowest_mean_at_the_end(comparison: RidgeComparison) -> None:
    for contender in comparison.contenders:
        means = [np.mean([end_of(run) for run in trial.runs]) for trial in contender.trials]
        assert contender.best.mean == min(means)
        assert eta_of(contender.best.method) == comparison.etas[int(np.argmin(means))]


def test_no_run_beats_the_enumerated_optimum_or_the_budget(comparison: RidgeComparison) -> None:
    for contender in comparison.contenders:
        for trial in contender.trials:
            assert trial.ends.min() >= comparison.optimum - 1e-12
            assert all(run.nfev <= 9_000 for run in trial.runs)


def test_the_number_of_processes_changes_nothing(comparison: RidgeComparison) -> None:
    again = run_ridge(runs=2, seed=1, budget=9_000, etas=(0.05, 0.5), jobs=2)
    for one, other in zip(comparison.contenders, again.contenders, strict=True):
        for mine, theirs in zip(one.trials, other.trials, strict=True):
            assert mine.method == theirs.method
            assert [run.seed for run in mine.runs] == [run.seed for run in theirs.runs] == [1, 2]
            assert all(a.trace == b.trace for a, b in zip(mine.runs, theirs.runs, strict=True))


def test_a_run_that_diverges_counts_as_infinity_and_breaks_nothing(tmp_path: Path) -> None:
    small = run_ridge(runs=2, budget=20_000, etas=(1e3, 0.05), methods=["FGZOHT", "SZOHT"])
    far = run_ridge(runs=2, budget=20_000, etas=(1e200,), methods=["FGZOHT", "SZOHT"])
    assert [eta_of(contender.best.method) for contender in small.contenders] == [0.05, 0.05]
    assert all(np.isinf(contender.best.mean) for contender in far.contenders)
    for number, outcome in enumerate((small, far)):
        folder = tmp_path / str(number)
        report.prepare(folder, ridge_report.EXPERIMENT)
        ridge_report.write(outcome, folder)
        assert "nan" not in (folder / "index.html").read_text().split("How it was done")[0].lower().split("base64")[0]
    assert ridge_report.rows(far)[0][2] == "diverged"


def test_every_run_is_told_as_it_comes() -> None:
    told: list[tuple[str, int]] = []
    run_ridge(
        runs=2, budget=3_000, etas=[0.1], methods=["SZOHT"], done=lambda cell, _: told.append((cell.label, cell.seed))
    )
    assert told == [("SZOHT", 0), ("SZOHT", 1)]


def test_any_problem_and_any_grid_of_methods_can_be_compared() -> None:
    problem = zt.problems.quadratic(d=8, seed=3)
    setting = Setting(problem, 2, 2_000, zt.Estimator(q=8))
    grid = [zt.VRSZHT(eta=0.1, m=m) for m in (2, 5)]
    (contender,) = compare(setting, {"VR": grid}, seeds=[4, 5])
    assert [trial.method for trial in contender.trials] == grid
    assert contender.best in contender.trials


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="runs must be at least 1"):
        run_ridge(runs=0)
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        run_ridge(jobs=0)
    with pytest.raises(ValueError, match="a method must be one of 'FGZOHT', 'SZOHT'"):
        run_ridge(methods=["VR-SZTH"])


# The report.


def test_the_folder_holds_the_page_the_figures_the_numbers_and_the_manifest(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    assert json.loads((folder / "manifest.json").read_text())["files"] == sorted(FILES)


def test_the_page_stands_alone(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    assert not re.search(r'(src|href)="?(https?:)?//', page)
    images = re.findall(r'<img src="data:image/svg\+xml;base64,[^"]+" alt="([^"]+)"', page)
    assert len(images) == page.count("<img") == 2
    assert all("Means at the end: FGZOHT" in alt for alt in images)
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    for name in re.findall(r"href='([^']+)'", page):
        assert (folder / name).is_file()


def test_every_figure_of_the_table_is_computed_from_the_curves(folder: Path, comparison: RidgeComparison) -> None:
    ends: dict[str, dict[str, float]] = {}
    for row in table(folder / "curves.csv"):
        ends.setdefault(row["method"], {})[row["run"]] = float(row["fun"])  # the last row of a run stays
    rows = table(folder / "table.csv")
    assert [row["method"] for row in rows] == list(METHODS)
    page = (folder / "index.html").read_text()
    for row, shown in zip(rows, ridge_report.rows(comparison), strict=True):
        last = list(ends[row["method"]].values())
        assert float(row["F_mean"]) == pytest.approx(np.mean(last), rel=1e-12)
        assert float(row["F_sd"]) == pytest.approx(np.std(last), abs=1e-12)
        assert float(row["gap"]) == pytest.approx(np.mean(last) - comparison.optimum, abs=1e-12)
        assert f"<td>{shown[2]}</td>" in page


def test_the_grid_has_a_row_a_run(folder: Path) -> None:
    assert len(table(folder / "grid.csv")) == len(METHODS) * 2 * 2


def test_the_figures_have_150_dots_an_inch(folder: Path) -> None:
    for name in ("izo.png", "nht.png"):
        data = (folder / name).read_bytes()
        assert data.startswith(b"\x89PNG")
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
        assert (width, height) == (1200, 720)


def test_the_manifest_says_how_to_do_it_again(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["experiment"] == "ridge"
    assert manifest["seeds"] == [1, 2]
    assert manifest["problem"]["seed"] == 1
    assert manifest["versions"]["zerothresh"] == zt.__version__
    assert manifest["options"]["estimator"]["q"] == 200
    assert manifest["seconds"] > 0


def test_the_same_runs_give_the_same_bytes(folder: Path, comparison: RidgeComparison, tmp_path: Path) -> None:
    ridge_report.write(comparison, tmp_path)
    for name in FILES - {"manifest.json"}:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


# The folder.


def test_an_earlier_report_of_the_same_experiment_is_replaced_and_notes_beside_it_stay(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"experiment": "ridge"}')
    (tmp_path / "notes.txt").write_text("mine")
    report.prepare(tmp_path, "ridge")
    ridge_report.write(run_ridge(runs=1, budget=3_000, etas=[0.1], methods=["SZOHT"]), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("thesis.tex", "years of work", "holds other files"),
        ("manifest.json", "not json", "holds other files"),
        ("manifest.json", "[1]", "holds other files"),
        ("manifest.json", '{"experiment": 3}', "holds other files"),
        ("manifest.json", '{"experiment": "attack"}', "holds a report of the experiment 'attack'"),
    ],
)
def test_a_folder_with_something_else_is_refused(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=sentence):
        report.prepare(tmp_path, "ridge")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be made"):
        report.prepare(tmp_path / "file" / "report", "ridge")
    with pytest.raises(ValueError, match="cannot be made"):
        report.prepare(tmp_path / "file", "ridge")


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"pip install 'zerothresh\[plot\]'"):
        report.prepare(tmp_path, "ridge")


# The command.


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["reproduce", "ridge", *map(str, arguments)], env={"COLUMNS": "80"})


def test_the_command_prints_the_table_in_80_columns_and_writes_the_report(tmp_path: Path) -> None:
    outcome = run("--out", tmp_path / "r", "--runs", 1, "--budget", 5_000, "--jobs", 1)
    assert outcome.exit_code == 0, outcome.output
    lines = outcome.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("Report: "))
    for label in METHODS:
        assert label in outcome.stdout
    assert "35 of 35 runs" in outcome.stderr
    assert {path.name for path in (tmp_path / "r").iterdir()} == FILES


def test_the_command_refuses_before_it_computes(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    outcome = run("--out", tmp_path)
    assert outcome.exit_code == 2
    assert "holds other files" in outcome.stderr
    assert "runs;" not in outcome.stderr
    outcome = run("--out", tmp_path / "new", "--budget", 100)
    assert outcome.exit_code == 2
    assert "budget = 100 is too small" in outcome.stderr
    assert run("--out", tmp_path / "new", "--runs", 0).exit_code == 2
    assert run("--out", tmp_path / "new", "--seed", -1).exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child process")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_the_whole_comparison(tmp_path: Path, jobs: int) -> None:
    code = "from zerothresh.cli import main; main()"
    command = [sys.executable, "-c", code, "reproduce", "ridge", "--out", str(tmp_path), "--runs", "99"]
    command += ["--jobs", str(jobs)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        time.sleep(4)
        os.killpg(process.pid, signal.SIGINT)  # to all of them, as a terminal does
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []

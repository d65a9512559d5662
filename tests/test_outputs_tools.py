"""One call returns everything: the command, comparisons, timeouts and the live display take it too."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pytest
from test_outputs import D, F, K, M, many, residuals, same, solve
from typer.testing import CliRunner

import zerothresh as zt
from zerothresh.cli.app import app

BOX = """
import numpy as np
A = np.random.default_rng(1).normal(size=(30, 12))
best = np.zeros(12)
best[[2, 5, 9]] = 1, -2, 1.5

def spectrum(x):
    return (A * x).sum(axis=1) - A @ best

def squares(x):
    return spectrum(x) ** 2

def short(x):
    return spectrum(x)[: 30 if not x.any() else 29]

def holes(x):
    return np.where(np.arange(30) == 4, np.nan, spectrum(x))

class Model:
    d = 12
    def outputs(self, points):
        return np.stack([spectrum(x) for x in points])

model = Model()
"""
SOLVE = ["-k", "3", "--budget", "200", "--seed", "3"]


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run the command in a folder with an objective."""
    (tmp_path / "box.py").write_text(BOX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])

    def run(*arguments, code=0):
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == code, found.output
        return found.output

    yield run
    sys.modules.pop("box", None)


def test_solve_takes_residuals_and_writes_them(command, tmp_path):
    command(
        "solve", "box:spectrum", "--dim", "12", *SOLVE, "--outputs", "residuals", "--out", "r.json", "--run", "runs/a"
    )
    written = json.loads((tmp_path / "r.json").read_text())
    found = solve()
    assert (written["fun"], written["nfev"]) == (found.fun, found.nfev)
    assert written["residuals"] == found.residuals.tolist()
    shown = command("show", "runs/a")
    assert "residuals, all of them by each call; loss Squared()" in shown
    assert f"{found.nfev} of 200" in shown
    command("export", "runs/a", "--best", "best.npy")
    assert np.array_equal(np.load(tmp_path / "best.npy"), found.x)


@pytest.mark.parametrize(
    ("given", "loss"),
    [("huber", "huber"), ("huber:0.3", zt.losses.Huber(0.3)), ("quantile:0.9", zt.losses.Quantile(0.9))],
)
def test_solve_takes_a_loss_with_its_parameter(command, tmp_path, given, loss):
    options = ["--outputs", "residuals", "--loss", given, "--out", "r.json"]
    command("solve", "box:spectrum", "--dim", "12", *SOLVE, *options)
    assert json.loads((tmp_path / "r.json").read_text())["fun"] == solve(loss=loss).fun


def test_solve_takes_components_models_and_missing_outputs(command, tmp_path):
    options = ["--out", "r.json", "--force"]
    command("solve", "box:squares", "--dim", "12", *SOLVE, "--outputs", "components", *options)
    assert json.loads((tmp_path / "r.json").read_text())["fun"] == pytest.approx(solve().fun, abs=1e-12)
    said = command("solve", "box:model", *SOLVE, "--outputs", "residuals", *options)
    assert "standard error" in said
    assert len(json.loads((tmp_path / "r.json").read_text())["standard_errors"]) == K
    assert json.loads((tmp_path / "r.json").read_text())["fun"] == solve().fun
    command("solve", "box:holes", "--dim", "12", *SOLVE, "--outputs", "residuals", "--on-nan", "mask", *options)
    assert json.loads((tmp_path / "r.json").read_text())["residuals"][4] is None


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--outputs", "vector"], "--outputs must be one of 'residuals', 'components'", 2),
        (["--loss", "huber"], "--loss goes with --outputs residuals", 2),
        (["--outputs", "residuals", "--loss", "poisson"], "needs the counts", 2),
        (["--outputs", "residuals", "--loss", "huber:x"], "--loss must be a name, or a name and a number", 2),
        (["--outputs", "residuals", "--loss", "squared:2"], "--loss squared takes no parameter", 2),
        (["--on-nan", "mask"], "--on-nan mask goes with --outputs", 2),
        (["--outputs", "residuals"], "returned 29 outputs per call, where 30 were expected", 1),
    ],
)
def test_solve_says_what_is_wrong(command, options, message, code):
    assert message in command("solve", "box:short", "--dim", "12", *SOLVE, *options, code=code)


def test_show_names_no_component_count_for_outputs(command):
    command("solve", "box:spectrum", "--dim", "12", *SOLVE, "--outputs", "residuals", "--run", "runs/a")
    assert "n = " not in command("show", "runs/a")


# Comparisons.


def test_compare_runs_methods_on_outputs(tmp_path):
    options = {"x0": D, "outputs": "residuals", "budget": 80, "runs": 2, "F": F}
    methods = ["auto", zt.FGZOHT(eta=0.02)]
    found = zt.compare(residuals, methods, K, folder=tmp_path / "c", **options)
    best = found.contenders[0].best
    assert all(outcome.nfev <= 80 for outcome in best.runs)
    again = zt.compare(residuals, methods, K, folder=tmp_path / "c", **options)
    assert again.rows() == found.rows()
    alone = zt.minimize(residuals, D, K, outputs="residuals", budget=80, seed=0, monitor=F)
    assert best.runs[0].end == pytest.approx(F(alone.x))
    with pytest.raises(ValueError, match="loss"):
        zt.compare(residuals, methods, K, folder=tmp_path / "c", loss="huber", **options)


@pytest.mark.slow
def test_compare_takes_an_object_with_outputs_and_several_processes():
    class Model:
        d = D

        def outputs(self, points):
            return many(points)

    found = zt.compare(Model(), ["htp"], K, outputs="residuals", budget=60, runs=2)
    other = zt.compare(residuals, ["htp"], K, x0=D, outputs="residuals", budget=60, runs=2, jobs=2)
    ends = [[outcome.end for outcome in one.contenders[0].best.runs] for one in (found, other)]
    assert ends[0] == ends[1]


def test_compare_refuses_what_minimize_refuses_before_any_call():
    with pytest.raises(ValueError, match="outputs must be one of"):
        zt.compare(residuals, ["auto"], K, x0=D, outputs="all", budget=60)


# Faults that take time.


def test_a_call_that_hangs_is_given_up_and_made_again():
    calls = []

    def slow(x):
        calls.append(x)
        if len(calls) == 5:
            time.sleep(5.0)
        return residuals(x)

    options = {"method": zt.FGZOHT(eta=0.02), "budget": 40}
    found = solve(slow, timeout=2.0, retries=1, backoff=0.0, **options)
    assert found.nfev == len(calls)
    assert np.array_equal(found.x, solve(**{**options, "budget": 39}).x)


def test_time_may_be_up_before_the_first_call():
    found = solve(max_time=1e-9)
    assert found.status is zt.Status.TIME
    assert found.nfev == 0


def test_the_display_shows_calls(capsys):
    assert same(solve(progress=True), solve(progress=False))


def test_the_number_of_outputs_may_be_large():
    wide = np.random.default_rng(0).normal(size=(20_000, D))

    def fun(x):
        return wide @ x - wide[:, 3]

    found = solve(fun, budget=60, k=1)
    assert found.support.tolist() == [3]
    assert found.residuals.shape == (20_000,)
    assert M < 20_000

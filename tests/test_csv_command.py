"""A sparse linear model of a CSV file from the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from zerothresh.cli.app import app


@pytest.fixture
def call(tmp_path, monkeypatch):
    """A function that runs the command in a folder with the table data.csv: y = 4 + 2 a - 30 c, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5)) * [1, 5, 0.1, 1, 1] + [10, 0, 0, 3, 0]
    y = 4 + 2 * X[:, 0] - 30 * X[:, 2] + 0.05 * rng.standard_normal(80)
    lines = ["a,b,c,d,e,y,kind"]
    for row, value in zip(X, y, strict=True):
        lines.append(",".join(map(str, [*row, value, "yes" if value > 24 else "no"])))
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n")
    cut = [line.rsplit(",", 1)[0] for line in lines]
    (tmp_path / "data.csv").write_text("\n".join(cut) + "\n")
    (tmp_path / "kinds.csv").write_text("\n".join(",".join([*row.split(",")[:5], row.split(",")[6]]) for row in lines))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


@pytest.mark.parametrize("loss", ["mse", "mae", "huber:0.1"])
def test_a_model_has_the_coefficients_of_the_data_in_their_own_units(call, tmp_path, loss):
    done = call("solve", "--csv", "data.csv", "--target", "y", "-k", 2, "--loss", loss, "--budget", 20_000, "--seed", 0,
                "--out", "m.json")  # fmt: skip
    assert done.exit_code == 0, done.output
    model = json.loads((tmp_path / "m.json").read_text())["model"]
    assert model.keys() == {"intercept", "a", "c"}
    assert [model["a"], model["c"], model["intercept"]] == pytest.approx([2, -30, 4], abs=0.6)
    assert "model of y:" in done.output


def test_a_path_over_the_columns_chooses_k(call):
    done = call("path", "--csv", "data.csv", "--target", "y", "--ks", "1:4", "--cv", 4, "--budget", 30_000, "--seed", 0)
    assert done.exit_code == 0, done.output
    assert "* k = 2, " in done.output
    assert "a c intercept" in done.output


def test_classes_are_fitted_by_the_logistic_loss(call, tmp_path):
    done = call("solve", "--csv", "kinds.csv", "--target", "kind", "-k", 1, "--loss", "logistic", "--budget", 4000,
                "--seed", 0, "--out", "m.json")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "log-odds of 'yes'" in done.output
    model = json.loads((tmp_path / "m.json").read_text())["model"]
    assert set(model) in ({"intercept", "a"}, {"intercept", "c"})


def test_columns_are_included_and_excluded_by_name(call, tmp_path):
    done = call("solve", "--csv", "data.csv", "--target", "y", "-k", 2, "--include", "b", "--exclude", "c,4", "--budget",
                20_000, "--seed", 0, "--out", "m.json")  # fmt: skip
    assert done.exit_code == 0, done.output
    model = json.loads((tmp_path / "m.json").read_text())["model"]
    assert model.keys() == {"intercept", "a", "b"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--csv", "none.csv", "--target", "y"), "does not exist"),
        (("--csv", "data.csv"), "--csv needs --target"),
        (("--csv", "data.csv", "--target", "z"), "no column 'z'"),
        (("--csv", "all.csv", "--target", "y"), "column 'kind' in line 2"),
        (("--csv", "data.csv", "--target", "y", "--loss", "logistic"), "two values"),
        (("--csv", "data.csv", "--target", "y", "--loss", "hinge"), "hinge"),
        (("box:loss", "--csv", "data.csv", "--target", "y"), "name a function"),
        ((), "name a function"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(call, arguments, message):
    done = call("solve", *arguments, "-k", 1, "--budget", 100)
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "Traceback" not in done.output


def test_more_columns_than_there_are_are_refused(call):
    done = call("solve", "--csv", "data.csv", "--target", "y", "-k", 6, "--budget", 100)
    assert done.exit_code == 2
    assert "5 columns" in done.output

"""A sparse linear model of a CSV file from the command."""

from __future__ import annotations

import json
import re

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


def test_bounds_hold_for_the_coefficients_in_the_units_of_the_table_alone(call, tmp_path):
    def model(*arguments):
        done = call("solve", "--csv", "data.csv", "--target", "y", "-k", 2, "--budget", 20_000, "--seed", 0, "--out",
                    "m.json", "--force", *arguments)  # fmt: skip
        assert done.exit_code == 0, done.output
        return json.loads((tmp_path / "m.json").read_text())["model"]

    free = model()
    found = model("--bounds", 0, "inf")
    assert "c" not in found
    assert found["a"] == pytest.approx(2, abs=1)
    assert found["intercept"] != 0
    assert free["c"] < -25
    assert model("--bounds", -20, 20)["c"] == pytest.approx(-20, rel=1e-9)
    (tmp_path / "limits.txt").write_text("0 1.5\n0 0\n-12 0\n0 0\n0 0\n")
    found = model("--bounds-file", "limits.txt")
    assert [found["a"], found["c"]] == pytest.approx([1.5, -12], rel=1e-9)


@pytest.mark.parametrize(("command", "sizes"), [("solve", ("-k", 1)), ("path", ("--ks", "1,2"))])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--simplex", 1), "--simplex does not go with --csv"),
        (("--values", "0,1"), "--values does not go with --csv"),
        (("--groups", "g.txt"), "--groups does not go with --csv"),
        (("--bounds-file", "two.txt"), "--bounds-file has 2 lines, but the table has 5 columns"),
        (("--bounds", 1, 2), "the lower bound of column 'a' is 1: bounds must contain 0"),
        (("--include", "a,b"), "--include names 2 columns, but k = 1"),
        (("--include", "nope"), "--include names 'nope', but the columns are a, b, c, d, e"),
        (("--exclude", "nope"), "--exclude names 'nope', but the columns are a, b, c, d, e"),
        (("--exclude", "5"), "--exclude names column 5, but columns go from 0 to 4"),
        (("--exclude", "intercept"), "always in the model"),
        (("--include", "b", "--exclude", "b"), "column 'b' is in both --include and --exclude"),
    ],
)
def test_messages_about_a_table_speak_of_its_columns(call, tmp_path, command, sizes, arguments, message):
    (tmp_path / "g.txt").write_text("1\n" * 5)
    (tmp_path / "two.txt").write_text("0 1\n0 1\n")
    done = call(command, "--csv", "data.csv", "--target", "y", *sizes, "--budget", 1000, *arguments)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.output.split())


def test_the_summary_counts_and_names_columns_and_says_what_the_model_is_worth(call):
    done = call(
        "solve", "--csv", "data.csv", "--target", "y", "-k", 2, "--loss", "mae", "--budget", 20_000, "--seed", 0
    )
    said = " ".join(done.output.split())
    assert "2 of at most 2, in 5 columns" in said
    assert "support a c" in said
    worth, alone = re.search(r"mae on the rows of the table: (\S+); with the intercept alone: (\S+)", said).groups()
    assert float(worth) < 0.2 < 2 < float(alone)


def test_a_model_that_is_no_better_than_the_intercept_is_a_failure_that_says_so(call):
    done = call("solve", "--csv", "data.csv", "--target", "y", "-k", 2, "--loss", "mae", "--budget", 100, "--seed", 0)
    said = " ".join(done.output.split())
    worth, alone = re.search(r"mae on the rows of the table: (\S+); with the intercept alone: (\S+)", said).groups()
    assert float(worth) >= float(alone)
    assert done.exit_code == 1, done.output
    assert "no better than the intercept alone: a call is the loss of one row" in said or "nothing better" in said


def test_only_the_logistic_loss_is_said_to_model_log_odds(call):
    done = call(
        "solve", "--csv", "kinds.csv", "--target", "kind", "-k", 1, "--loss", "mae", "--budget", 4000, "--seed", 0
    )
    assert "log-odds" not in done.output
    assert "model of kind, which is 1 for 'yes' and 0 for 'no':" in " ".join(done.output.split())


@pytest.mark.parametrize("separator", [";", "\t"])
def test_tables_of_other_programs_are_read_as_well(call, tmp_path, separator):
    table = [line.split(",") for line in (tmp_path / "data.csv").read_text().splitlines()]
    decimal = "," if separator == ";" else "."
    lines = [
        separator.join([label, *(cell.replace(".", decimal) for cell in row)])
        for label, row in zip(["", *"r" * (len(table) - 1)], table, strict=True)
    ]
    (tmp_path / "other.csv").write_text("\n".join(lines) + "\n")
    usual, other = (
        call("solve", "--csv", name, "--target", "y", "-k", 2, "--budget", 3000, "--seed", 0)
        for name in ("data.csv", "other.csv")
    )
    assert usual.output.split("model of y:")[1] == other.output.split("model of y:")[1]
    assert "labels of the rows, and left out" in " ".join(other.output.split())


def test_a_column_without_a_name_is_refused(call, tmp_path):
    (tmp_path / "nameless.csv").write_text("a,,y\n1,2,1\n2,1,3\n4,2,2\n")
    done = call("solve", "--csv", "nameless.csv", "--target", "y", "-k", 1, "--budget", 100)
    assert done.exit_code == 2
    assert "column 2 has no name in the first line" in " ".join(done.output.split())


def test_a_constant_column_is_named(call, tmp_path):
    (tmp_path / "flat.csv").write_text("a,flat,y\n1,0.1,1\n2,0.1,3\n4,0.1,2\n")
    done = call("solve", "--csv", "flat.csv", "--target", "y", "-k", 1, "--budget", 100)
    assert done.exit_code == 2
    assert "column 'flat' has the same value in all rows" in " ".join(done.output.split())


def test_the_summary_of_a_table_counts_columns_and_names_them(call):
    told = ("solve", "--csv", "data.csv", "--target", "y", "-k", 2, "--budget", 4000, "--seed", 0)
    done = call(*told)
    assert done.exit_code == 0, done.output
    assert "2 of at most 2, in 5 columns" in done.output
    assert next(line for line in done.output.splitlines() if line.startswith("support")).split() == [
        "support",
        "a",
        "c",
    ]
    refused = call(*told, "--loss", "nope")
    assert refused.exit_code == 2
    assert "'mse', 'mae', 'mape', 'logistic'" in " ".join(refused.output.split())

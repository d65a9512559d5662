"""`zerothresh path`, and the options of constraints, as a user types them."""

from __future__ import annotations

import json
import textwrap

import numpy as np
import pytest
from typer.testing import CliRunner

from zerothresh.cli.app import app

LOSS = """
    import numpy as np
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, [0, 2, 5]] @ [2.0, -1.5, 0.8] + 0.3 * rng.standard_normal(60)
    def loss(x, i):
        return float((X[i] @ x - y[i]) ** 2)
    def whole(x):
        return float(((x - np.arange(len(x))) ** 2).sum())
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """A function that runs the command in a folder with the file box.py."""
    (tmp_path / "box.py").write_text(textwrap.dedent(LOSS))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


ARGUMENTS = ("path", "box.py:loss", "--dim", 8, "--components", 60, "--budget", 20_000, "--seed", 0)


def test_a_path_is_shown_in_80_columns_and_written(call, tmp_path):
    done = call(*ARGUMENTS, "--ks", "1:3,5", "--cv", 4, "--out", "p.json", "--plot", "p.png", "--run", "runs/p")
    assert done.exit_code == 0, done.output
    assert "* k = 3, the smallest" in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    content = json.loads((tmp_path / "p.json").read_text())
    assert content["ks"] == [1, 2, 3, 5]
    assert content["best_k"] == 3
    assert content["path"][2]["x"]["indices"] == [0, 2, 5]
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    again = call(*ARGUMENTS, "--ks", "1:3,5", "--cv", 4, "--run", "runs/p")
    assert again.output.splitlines()[:6] == done.output.splitlines()[:6]


def test_show_says_what_a_path_has_found(call):
    assert call(*ARGUMENTS, "--ks", "1,3", "--run", "runs/p").exit_code == 0
    shown = call("show", "runs/p")
    assert shown.exit_code == 0
    assert "a path over k = 1, 3" in shown.output
    assert "k = 3: F = 0.08" in shown.output
    as_json = json.loads(call("show", "runs/p", "--json").output)
    assert as_json["path"]["segments"][0]["ks"] == [1, 3]
    assert as_json["calls"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ks", "1:x"), "--ks takes whole numbers"),
        (("--ks", "5:1"), "ends before it begins"),
        (("--ks", "1,9"), "larger than the dimension"),
        (("--ks", "1", "--include", "0,1"), "include"),
        (("--ks", "1", "--out", "a", "--plot", "a"), "both name"),
        (("--ks", "1", "--bounds-file", "none.npy"), "does not exist"),
        (("--ks", "1", "--likelihood", "normal"), "likelihood"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, arguments, message):
    done = call(*ARGUMENTS, *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_solve_takes_included_excluded_and_grouped_coordinates_and_bounds(call, tmp_path):
    (tmp_path / "bounds.csv").write_text("\n".join(["-1,2.5"] * 6))
    base = ("solve", "box.py:whole", "--dim", 6, "--budget", 400, "--seed", 0, "--out", "r.json", "--force")
    assert call(*base, "-k", 2, "--include", "1", "--exclude", "4:5", "--bounds-file", "bounds.csv").exit_code == 0
    x = json.loads((tmp_path / "r.json").read_text())["x"]
    assert x["indices"] == [1, 3]
    assert x["values"] == pytest.approx([1, 2.5], abs=1e-4)
    (tmp_path / "groups.txt").write_text("a\na\nb\nb\nc\nc\n")
    assert call(*base, "-k", 1, "--groups", "groups.txt").exit_code == 0
    assert json.loads((tmp_path / "r.json").read_text())["x"]["indices"] == [4, 5]
    np.save(tmp_path / "labels.npy", np.array([0, 0, 1, 1, 2, 2]))
    assert call(*base, "-k", 1, "--groups", "labels.npy").exit_code == 0
    both = call(*base, "-k", 1, "--bounds", 0, 1, "--bounds-file", "bounds.csv")
    assert both.exit_code == 2
    assert "give one of the two" in both.output


def test_a_path_that_finds_nothing_fails_and_says_so(call, tmp_path):
    (tmp_path / "flat.py").write_text("def one(x):\n    return 1.0\n")
    done = call("path", "flat.py:one", "--dim", 4, "--ks", "1,2", "--budget", 200, "--seed", 0)
    assert done.exit_code == 1
    assert "nothing better than the start was found for k = 1, 2" in done.output


def test_a_likelihood_that_is_not_that_of_the_tables_loss_is_refused(call, tmp_path):
    rows = [f"{i % 7},{(3 * i) % 5},{(i % 7) * 2 + (i % 3) * 0.1}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]))
    base = ("path", "--csv", "t.csv", "--target", "y", "--ks", "1,2", "--budget", 4000, "--seed", 0, "--likelihood")
    for loss in ("mae", "huber"):
        done = call(*base, "gaussian", "--loss", loss)
        assert done.exit_code == 2, done.output
        assert "--likelihood gaussian goes with --loss mse" in " ".join(done.output.split())
    for likelihood in ("logistic", "poisson"):
        assert call(*base, likelihood).exit_code == 2
    assert call(*base, "gaussian").exit_code == 0
    assert call(*base, "gaussian", "--loss", "squared").exit_code == 0

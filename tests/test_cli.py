"""The `zerothresh` command."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.cli.app import app
from zerothresh.cli.solve_command import solve

BOX = """
import sys, time
from pathlib import Path
import numpy as np
import zerothresh as zt

goal = np.zeros(30)
goal[[3, 7, 9]] = 1, -2, 3
problem = zt.problems.ridge()
made = 0

def plain(x):
    Path("queried").touch()
    return ((x - goal) ** 2).sum()

def component(x, i):
    return (1 + i) * ((x - goal) ** 2).sum()

def many(X, I):
    return (1 + I) * ((X - goal) ** 2).sum(axis=1)

def slow(x):
    with open("queried", "a") as ledger:
        ledger.write("x")
    time.sleep(0.005)
    return ((x - goal) ** 2).sum()

def fails(x):
    global made
    made += 1
    return plain(x) if made < 40 else licence(x)

def licence(x):
    raise RuntimeError("the licence [server] is down")

def nan(x):
    return float("nan")

def flat(x):
    return 7.0

def bent(x):
    return np.log1p(((x - goal) ** 2).sum()) + (1 - np.cos(3 * (x - goal))).sum() / 10
"""

PLAIN = ["--dim", "30", "-k", "3", "--budget", "2000", "--method", "szoht", "--set", "eta=0.1", "--seed", "1"]
COMMAND = [sys.executable, "-c", "from zerothresh.cli.app import main; main()"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an objective, as a user would have it."""
    (tmp_path / "box.py").write_text(BOX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    sys.modules.pop("box", None)
    sys.modules.pop("zerothresh_objective_box", None)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def refused(*arguments: str) -> str:
    """The sentence of a refusal: exit code 2, no traceback, nothing queried."""
    outcome = run(*arguments)
    assert outcome.exit_code == 2, outcome.output
    assert "Traceback" not in outcome.stderr
    assert not Path("queried").exists()
    assert outcome.stdout == ""
    return " ".join(outcome.stderr.split())


# What there is.


def test_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"zerothresh {zt.__version__}\n"


def test_methods_lists_every_method_with_its_parameters_in_80_columns() -> None:
    outcome = run("methods")
    assert outcome.exit_code == 0
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    for name, method in zt.methods.available().items():
        assert name in outcome.stdout
        assert method.__name__ in outcome.stdout
    for text in ("eta (required)", "m=10", "law=FixedSize(p=1)", "calls"):
        assert text in outcome.stdout


def test_methods_as_json_can_be_read_by_a_program() -> None:
    listed = {entry["name"]: entry for entry in json.loads(run("methods", "--json").stdout)}
    assert set(listed) == set(zt.methods.available())
    vr = listed["vr-szht"]
    assert vr["class"] == "VRSZHT"
    assert "calls per epoch" in vr["summary"]
    assert [p["name"] for p in vr["parameters"]] == ["eta", "m", "batch", "output"]
    assert [p["required"] for p in vr["parameters"]] == [True, False, False, False]


def test_every_option_of_solve_has_a_help_text() -> None:
    outcome = run("solve", "--help")
    assert outcome.exit_code == 0
    assert "zerothresh solve box:loss" in outcome.stdout
    for parameter in inspect.signature(solve, eval_str=True).parameters.values():
        (info,) = parameter.annotation.__metadata__
        assert len(info.help) > 10, parameter.name


@pytest.mark.parametrize(
    ("flags", "given"), [([], {}), (["--q", "4"], {"q": 4}), (["--independent"], {"shared": False})]
)
def test_what_the_command_is_not_told_is_as_the_estimator_has_it(flags: list[str], given: dict[str, Any]) -> None:
    assert run("solve", "box:plain", *PLAIN, *flags, "--out", "r.json").exit_code == 0
    assert json.loads(Path("r.json").read_text())["estimator"] == dataclasses.asdict(zt.Estimator(**given))


def test_the_help_tells_the_defaults_of_the_estimator() -> None:
    own, given = inspect.signature(solve, eval_str=True).parameters, zt.Estimator()
    shown = {name: own[name].annotation.__metadata__[0].help for name in ("q", "mu", "directions", "difference")}
    assert f"(default: {given.q})" in shown["q"]
    assert float(shown["mu"].split("(default: ")[1].split(";")[0]) == given.mu
    assert f"{given.directions} (default)" in shown["directions"]
    assert f"{given.difference} (default)" in shown["difference"]


# What it solves.


def test_solve_does_what_minimize_does() -> None:
    options = ["--dim", "30", "-k", "3", "--components", "4", "--budget", "9000", "--method", "vr-szht"]
    settings = ["--set", "eta=0.02", "--set", "m=5", "--q", "7", "--mu", "1e-4", "--s2", "20", "--seed", "5"]
    outcome = run("solve", "box:component", *options, *settings, "--out", "r.json", "--trace", "t.csv")
    assert outcome.exit_code == 0, outcome.output
    import box  # type: ignore[import-not-found]

    expected = zt.minimize(
        box.component,
        30,
        3,
        n=4,
        budget=9000,
        method=zt.VRSZHT(eta=0.02, m=5),
        estimator=zt.Estimator(q=7, mu=1e-4, s2=20),
        seed=5,
        progress=False,
    )
    written = json.loads(Path("r.json").read_text())
    assert written["x"]["indices"] == expected.support.tolist() == [3, 7, 9]
    assert written["x"]["values"] == expected.x[expected.support].tolist()
    for key in ("fun", "nfev", "nht", "nit", "seed", "message", "success", "budget"):
        assert written[key] == expected[key]
    assert written["status"] == "BUDGET"
    assert written["method"] == {"name": "vr-szht", "eta": 0.02, "m": 5, "batch": 1, "output": "last"}
    assert written["estimator"]["s2"] == 20
    assert (written["d"], written["k"], written["failure"]) == (30, 3, None)
    assert Path("t.csv").read_text() == expected.trace.to_csv()
    shown = " ".join(outcome.stdout.split())
    for text in ("3 7 9", f"#IZO {expected.nfev:,} of 9,000", f"#NHT {expected.nht}", "the budget is spent"):
        assert text in shown
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_without_a_method_the_command_takes_auto_and_tells_what_it_found() -> None:
    options = ["--dim", "30", "-k", "3", "--budget", "2000", "--seed", "5"]
    outcome = run("solve", "box:plain", *options, "-v", "--out", "r.json")
    assert outcome.exit_code == 0, outcome.output
    import box

    expected = zt.minimize(box.plain, 30, 3, budget=2000, seed=5, progress=False)
    written = json.loads(Path("r.json").read_text())
    assert written["method"] == {"name": "auto", "patience": None}
    assert written["x"]["indices"] == expected.support.tolist() == [3, 7, 9]
    assert written["message"] == expected.message
    assert written["remarks"] == [{"nfev": calls, "message": words} for calls, words in expected.remarks]
    assert written["stages"] == [{"nfev": calls, "name": name} for calls, name in expected.stages]
    assert written["stages"][0] == {"nfev": 0, "name": "diagnosis"}
    assert written["success"] is True
    shown = " ".join(outcome.stdout.split())
    for calls, words in expected.remarks:
        assert f"after {calls:,} calls: {words}" in shown
    assert expected.message in shown
    listed = re.search(r"calls by strategy: ((?:[a-z ]+ [\d,]*\d(?:, )?)+)", shown)
    assert listed is not None
    assert sum(int(calls.replace(",", "")) for calls in re.findall(r"\d[\d,]*(?=, |$)", listed[1])) == expected.nfev


def test_patience_ends_a_run_and_is_kept_with_it() -> None:
    options = ["--dim", "30", "-k", "3", "--budget", "3000", "--seed", "5", "--patience", "50"]
    outcome = run("solve", "box:bent", *options, "--out", "r.json", "--run", "folder")
    assert outcome.exit_code == 0, outcome.output
    written = json.loads(Path("r.json").read_text())
    assert written["method"] == {"name": "auto", "patience": 50}
    assert written["status"] == "CONVERGED"
    assert "Nothing was gained in the last 50 calls, which is the given patience" in written["message"]
    assert written["nfev"] < 3000
    again = run("solve", "box:bent", *options, "--run", "folder")
    assert again.exit_code == 0
    other = run("solve", "box:bent", *options[:-1], "60", "--run", "folder")
    assert other.exit_code == 2
    assert "patience" in other.stderr


def test_a_run_that_found_nothing_says_so() -> None:
    outcome = run("solve", "box:flat", "--dim", "30", "-k", "3", "--budget", "200", "--out", "r.json")
    written = json.loads(Path("r.json").read_text())
    assert written["success"] is False
    assert "nothing better than the start was found" in written["message"]
    assert "nothing better than the start was found" in " ".join(outcome.stdout.split())
    assert outcome.exit_code == 1
    assert "nothing better than the start was found" in outcome.stderr


def test_verbose_says_so_where_a_method_chooses_nothing() -> None:
    assert "szoht makes no choices of its own" in run("solve", "box:plain", *PLAIN, "-v").stdout
    assert "szoht makes no choices of its own" not in run("solve", "box:plain", *PLAIN).stdout


def test_vectorised_functions_threads_and_estimator_flags_reach_the_engine() -> None:
    options = ["--dim", "30", "-k", "3", "--components", "4", "--budget", "3000", "--method", "sarah-szht"]
    flags = ["--directions", "sphere", "--difference", "central", "--independent", "--per-component", "--workers", "2"]
    given = [*options, *flags, "--set", "eta=0.01", "--vectorized", "--bounds", "-1", "1", "--out", "r.json"]
    outcome = run("solve", "box:many", *given)
    assert outcome.exit_code == 0, outcome.output
    written = json.loads(Path("r.json").read_text())
    estimator = written["estimator"]
    assert (estimator["directions"], estimator["difference"]) == ("sphere", "central")
    assert (estimator["shared"], estimator["common"]) == (False, False)
    assert max(map(abs, written["x"]["values"])) <= 1


def test_a_problem_object_knows_its_own_dimension_and_components() -> None:
    options = ["-k", "3", "--budget", "9000", "--method", "fgzoht", "--set", "eta=0.1", "--quiet", "--out", "r.json"]
    outcome = run("solve", "box:problem", *options)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output == ""
    assert json.loads(Path("r.json").read_text())["d"] == 5


def test_a_file_in_another_folder_can_be_named_and_imports_the_files_beside_it(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "helper.py").write_text("goal = 2.0\n")
    (folder / "deep" / "json.py").write_text("import helper\ndef f(x):\n    return ((x - helper.goal) ** 2).sum()\n")
    outcome = run("solve", "deep/json.py:f", *PLAIN)
    assert outcome.exit_code == 0, outcome.output
    assert json.dumps(1) == "1"  # the standard library's module of the same name is unharmed


def test_the_start_can_be_read_from_a_file() -> None:
    start = np.zeros(30)
    start[[3, 7, 9]] = 1, -2, 3
    np.save("start.npy", start)
    outcome = run("solve", "box:plain", *PLAIN[2:], "--x0", "start.npy", "--out", "r.json")
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(Path("r.json").read_text())["fun"] < 1e-4


# What it refuses, before the first query.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["box", *PLAIN], "must be module:function or path/to/file.py:function, not 'box'"),
        (["nowhere:f", *PLAIN], "there is no module 'nowhere'"),
        (["nowhere.py:f", *PLAIN], "there is no file nowhere.py"),
        (["box:plian", *PLAIN], "box has nothing named 'plian'; did you mean 'plain'?"),
        (["box:goal", *PLAIN], "the objective must be a function of x"),
        (["box:component", *PLAIN], "add --components N if it takes a component"),
        (["box:plain", *PLAIN[2:]], "--dim is needed"),
        (["box:plain", *PLAIN, "--set", "speed=3"], "of szoht must be one of 'eta', 'batch', not 'speed'"),
        (["box:plain", *PLAIN, "--set", "eta=1"], "given twice"),
        (["box:plain", *PLAIN, "--set", "eta"], "--set takes key=value"),
        (["box:plain", *PLAIN[:-4], "--set", "eta=fast"], "eta must be a number above 0"),
        (["box:plain", *PLAIN[:6], "--method", "szoth", "--set", "eta=1"], "did you mean 'szoht'"),
        (["box:plain", *PLAIN[:6], "--method", "vr-szht"], "vr-szht needs eta: add --set eta=..."),
        (["box:plain", *PLAIN[:6], "--set", "eta=1"], "a hyper-parameter of auto must be one of 'patience', not 'eta'"),
        (
            ["box:plain", *PLAIN[:6], "--method", "index", "--set", "eta=1"],
            "index has no hyper-parameters, but 'eta' was given",
        ),
        (["box:plain", *PLAIN, "--patience", "9"], "patience goes with method='auto'; szoht runs until"),
        (["box:plain", *PLAIN[:6], "--patience", "0"], "patience must be"),
        (
            ["box:plain", *PLAIN[:6], "--method", "outside", "--set", "solver=cma", "--set", "algorithm=foo"],
            "not 'foo'",
        ),
        (["box:plain", *PLAIN, "--out", "x" * 300], "cannot be written (File name too long)"),
        (["box:plain", *PLAIN, "--out", "x" * 250], "cannot be written (File name too long)"),
        (["box:plain", *PLAIN, "--run", "x" * 300], "cannot be used (File name too long)"),
        (["box:plain", *PLAIN, "--run", "r", "--out", "x" * 300], "cannot be written (File name too long)"),
        (["box:plain", *PLAIN, "--q", "0"], "q must be at least 1"),
        (["box:plain", *PLAIN, "--directions", "cube"], "directions must be one of"),
        (["box:plain", *PLAIN, "--workers", "0"], "workers must be at least 1"),
        (["box:plain", *PLAIN, "--x0", "none.npy"], "--x0 none.npy does not exist"),
        (["box:plain", *PLAIN, "--out", "none/r.json"], "the folder none does not exist"),
        (["box:plain", *PLAIN, "--out", "box.py/r.json"], "box.py is not a folder"),
        (["box:plain", *PLAIN, "--out", "."], ". is not a regular file"),
        (["box:plain", *PLAIN, "--out", "box.py"], "box.py exists already"),
        (["box:plain", *PLAIN, "--trace", "box.py"], "box.py exists already"),
        (["box:plain", *PLAIN, "--trace", "a", "--out", "a"], "--out and --trace both name a"),
        (["box:plain", *PLAIN[:4], "--budget", "5", *PLAIN[6:]], "budget = 5 is too small"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_before_the_first_query(arguments: list[str], sentence: str) -> None:
    assert sentence in refused("solve", *arguments)


def test_a_solver_whose_package_is_missing_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zerothresh.methods.external.outside.find_spec", lambda name: None)
    sentence = refused("solve", "box:plain", *PLAIN[:6], "--method", "outside", "--set", "solver=cma")
    assert "needs the package cma, which is not installed" in sentence


def test_a_start_of_another_length_is_refused() -> None:
    np.save("start.npy", np.zeros(4))
    assert "has shape (4,), but --dim is 30" in refused("solve", "box:plain", *PLAIN, "--x0", "start.npy")


def test_pickles_are_never_loaded_as_a_start() -> None:
    np.save("start.npy", np.array([print], dtype=object), allow_pickle=True)
    assert "is not a .npy file of numbers: write one with numpy.save" in refused(
        "solve", "box:plain", *PLAIN[2:], "--x0", "start.npy"
    )


@pytest.mark.parametrize("source", ["1 / 0\n", "def f(:\n", "import nowhere_at_all\n", "raise SystemExit(3)\n"])
def test_a_module_that_breaks_shows_its_own_traceback(folder: Path, source: str) -> None:
    (folder / "broken_box.py").write_text(source)
    outcome = run("solve", "broken_box:f", *PLAIN)
    assert outcome.exit_code == 2
    assert "broken_box could not be imported" in outcome.stderr
    assert "broken_box.py" in outcome.stderr
    assert "importlib" not in outcome.stderr


def test_an_existing_file_is_overwritten_only_by_force() -> None:
    Path("r.json").write_text("mine")
    assert "--force" in refused("solve", "box:plain", *PLAIN, "--out", "r.json")
    assert Path("r.json").read_text() == "mine"
    assert run("solve", "box:plain", *PLAIN, "--out", "r.json", "--force").exit_code == 0
    assert json.loads(Path("r.json").read_text())["success"]
    assert not list(Path().glob(".*.part"))


# What happens when things go wrong on the way.


def test_an_objective_that_raises_shows_its_own_traceback_and_the_result_is_kept() -> None:
    outcome = run("solve", "box:fails", *PLAIN, "--out", "r.json")
    assert outcome.exit_code == 1
    assert "in licence" in outcome.stderr
    assert "the licence [server] is down" in outcome.stderr
    assert "zerothresh/evaluate" not in outcome.stderr.replace("\\", "/")
    written = json.loads(Path("r.json").read_text())
    assert (written["status"], written["success"]) == ("FAILED", False)
    assert written["failure"]["type"] == "RuntimeError"
    assert "in licence" in written["failure"]["traceback"]
    assert len(written["failure"]["point"]["indices"]) > 3
    assert written["x"]["indices"]


def test_not_a_number_is_null_in_the_result() -> None:
    outcome = run("solve", "box:nan", *PLAIN, "--out", "r.json", "--quiet")
    assert outcome.exit_code == 1
    assert "the function returned nan" in outcome.stderr
    written = json.loads(Path("r.json").read_text())
    assert (written["status"], written["fun"], written["nfev"]) == ("BAD_VALUE", None, 1)


def test_a_result_that_cannot_be_written_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    outcome = run("solve", "box:plain", *PLAIN, "--quiet", "--out", "r.json")
    assert outcome.exit_code == 1
    assert "No space left on device" in outcome.stderr
    assert json.loads(outcome.stdout)["success"]
    assert not list(Path().glob(".*.part"))


def test_a_warning_is_one_line() -> None:
    options = ["--dim", "30", "-k", "30", "--budget", "100", "--method", "szoht", "--set", "eta=0.1", "--quiet"]
    done = subprocess.run([*COMMAND, "solve", "box:plain", *options], capture_output=True, text=True, check=True)
    assert done.stderr == "warning: k = d = 30: all coordinates may be non-zero, so nothing is thresholded\n"
    options = ["--dim", "30", "-k", "3", "--budget", "10", "--quiet"]
    done = subprocess.run([*COMMAND, "solve", "box:plain", *options], capture_output=True, text=True)
    line, *_ = done.stderr.splitlines()
    assert line.startswith("warning: budget = 10 is too small to tell which 3 of 30 coordinates matter: that takes at ")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child process")
@pytest.mark.parametrize(
    ("number", "background"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_ctrl_c_and_sigterm_write_the_best_point_and_exit_with_130(number: signal.Signals, background: bool) -> None:
    options = ["--dim", "30", "-k", "3", "--budget", "1000000", "--method", "szoht", "--set", "eta=0.1"]
    command = [*COMMAND, "solve", "box:slow", *options, "--out", "r.json"]
    if background:  # a shell that is not interactive lets its background jobs ignore SIGINT
        command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        ledger = Path("queried")
        until(lambda: (ledger.exists() and ledger.stat().st_size > 40) or process.poll() is not None)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "stopped by Ctrl-C or SIGTERM" in " ".join(out.split())
    written = json.loads(Path("r.json").read_text())
    assert written["status"] == "INTERRUPTED"
    assert 0 < written["nfev"] < 1_000_000


# Constraints and discrete values.


def test_solve_takes_shares_and_discrete_values() -> None:
    given = ["solve", "box:plain", "--dim", "30", "-k", "3", "--budget", "400", "--seed", "0", "--quiet"]
    outcome = run(*given, "--simplex", "2", "--strict", "--out", "shares.json")
    assert outcome.exit_code == 0, outcome.output
    shares = json.loads(Path("shares.json").read_text())
    assert abs(sum(shares["x"]["values"]) - 2) < 1e-9
    outcome = run(*given, "--values", "-2,0,1,3", "--out", "grid.json")
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(Path("grid.json").read_text())["fun"] == 0


def test_constraints_that_cannot_be_are_refused() -> None:
    given = ["solve", "box:plain", "--dim", "30", "-k", "3", "--budget", "400"]
    assert "total must be a finite number above 0" in refused(*given, "--simplex", "-1")
    assert "--values must be integers, bytes, on/off" in refused(*given, "--values", "1;2")
    assert "values='integers' needs bounds" in refused(*given, "--values", "integers")

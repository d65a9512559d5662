"""`zt.advise` and `zerothresh advise`: what they say, and that following their advice converges."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import zerothresh as zt
from zerothresh import theory
from zerothresh.advice.forecast import Question, forecast, smallest
from zerothresh.advice.practice import Curvature, of_the_paper
from zerothresh.cli.app import app

# Three kinds of function: least squares with rank-one components, a logistic loss, a saturated response
# (neither quadratic nor convex). As a user would have them, in a file.
BOX = """
import numpy as np
import zerothresh as zt

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 50))
goal = np.zeros(50)
goal[[3, 17, 29, 41]] = 1.5, -1.2, 1.0, -2.0
y = X @ goal
seen = 0

def squares(x, i):
    global seen
    seen += 1
    return (X[i] @ x - y[i]) ** 2

logistic = zt.problems.logistic(n=60, d=20, k_true=3, seed=3)

wide = rng.standard_normal((60, 20)) / 2
answer = np.tanh(wide @ np.where(np.arange(20) % 9 == 2, 1.0, 0.0))

def saturated(P, I):
    return (np.tanh((P * wide[I]).sum(axis=1)) - answer[I]) ** 2

def fails(x):
    raise OSError("the licence server is down")
"""


@pytest.fixture(autouse=True)
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "box.py").write_text(BOX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(entry for entry in sys.path if entry)])
    sys.modules.pop("box", None)
    import box

    yield box
    sys.modules.pop("box", None)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def gap_left(F: Any, x: np.ndarray, lowest: float) -> float:
    """F - F* over what it was at 0."""
    return (F(x) - lowest) / (F(np.zeros(x.size)) - lowest)


def cases(box: Any) -> dict[str, tuple[Any, Any, int, dict[str, Any], Any]]:
    """fun, x0, k, how it is called, F."""
    squares = lambda x: float(((box.X @ x - box.y) ** 2).mean())
    saturated = lambda x: float(((np.tanh(box.wide @ x) - box.answer) ** 2).mean())
    many = {"n": 30, "vectorized": True}
    least = lambda P, I: ((P * box.X[I]).sum(axis=1) - box.y[I]) ** 2
    return {
        "squares": (least, 50, 5, many, squares),
        "logistic": (box.logistic, None, 4, {}, box.logistic.F),
        "saturated": (box.saturated, 20, 4, {"n": 60, "vectorized": True}, saturated),
    }


@pytest.mark.parametrize("name", ["squares", "logistic", "saturated"])
@pytest.mark.parametrize("which", ["settings", "paper_settings"])
def test_following_the_advice_converges(box, name, which):
    fun, x0, k, how, F = cases(box)[name]
    advice = zt.advise(fun, x0, k, probe=2000, seed=1, **how)
    assert advice.probe is not None
    assert advice.probe.queries <= 2000
    settings = getattr(advice, which)
    result = zt.minimize(fun, x0, k, seed=2, **how, **settings)
    assert result.success
    assert result.nfev <= settings["budget"]
    # A hard-thresholding method may end on a support of its own; converged means: at the best point of that support.
    lowest = F(fun.minimum_on(result.support)) if name == "logistic" else 0.0
    assert gap_left(F, result.x, lowest) < 1e-3
    assert gap_left(F, result.x, lowest) < 10 * advice.asked.eps


def test_the_command_of_the_issue_gives_a_line_that_solves(box):
    words = ["--dim", "50", "-k", "5", "--components", "30", "--probe", "2000", "--seed", "0"]
    done = run("advise", "box:squares", *words, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["probe"]["queries"] == box.seen <= 2000
    for one in found["practice"]:
        solved = run(*shlex.split(one["command"])[1:], "--seed", "0", "--out", f"{one['method']}.json", "--quiet")
        assert solved.exit_code == 0, solved.output
        result = json.loads(Path(f"{one['method']}.json").read_text())
        assert {3, 17, 29, 41} <= set(result["x"]["indices"])
        assert result["fun"] < 1e-3 * found["probe"]["start"]


def test_the_line_repeats_how_the_function_is_called(box):
    np.save("start.npy", np.zeros(20))
    words = ["--components", "60", "--vectorized", "--x0", "start.npy", "-k", "4", "--seed", "0", "--json"]
    done = run("advise", "box:saturated", *words)
    assert done.exit_code == 0, done.output
    for one in json.loads(done.stdout)["practice"]:
        assert "--vectorized --x0 start.npy" in one["command"]
        solved = run(*shlex.split(one["command"])[1:], "--quiet", "--seed", "0")
        assert solved.exit_code == 0, solved.output
    advice = zt.advise(box.saturated, np.zeros(20), 4, n=60, vectorized=True, seed=0)
    assert advice.command().startswith("zt.minimize(fun, x0, 4, n=60, vectorized=True, budget=")


def test_tables_are_eighty_columns_wide_and_say_what_json_says(box):
    words = ["advise", "box:squares", "--dim", "50", "-k", "5", "--components", "30", "--seed", "0"]
    shown, found = run(*words), json.loads(run(*words, "--json").stdout)
    assert shown.exit_code == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    text = " ".join(shown.stdout.split())
    for part in (
        "In theory",
        "The gap between theory and practice",
        "In practice",
        "Calls by the orders of the papers",
    ):
        assert part in text
    for one in found["theory"]:
        assert one["method"] in text
    for one in found["practice"]:
        assert one["command"] in text
    assert [one["method"] for one in found["theory"]] == ["szoht", "fgzoht", "vr-szht", "sarah-szht", "saga-szht"]


def test_python_and_the_command_say_the_same(box):
    words = ["advise", "box:squares", "--dim", "50", "-k", "5", "--components", "30", "--seed", "3", "--json"]
    advice = zt.advise(box.squares, 50, 5, n=30, seed=3)
    assert json.loads(run(*words).stdout) == json.loads(replace(advice, objective="box:squares").to_json())
    assert "zt.minimize(fun, 50, 5, n=30, budget=" in advice.command()
    assert str(advice).count("In theory") == 1


def test_the_python_line_is_python(box):
    fun = box.squares
    advice = zt.advise(fun, 50, 5, n=30, seed=3)
    for which in (0, 1):
        line = advice.command(which)
        made = eval(line.replace("zt.minimize(", "dict(fun=", 1).replace("fun=fun, 50, 5", "fun=fun, d=50, k=5"))
        settings = advice.practice[which].settings
        assert made["budget"] == settings["budget"]
        if which:
            assert made["method"] == settings["method"]
            assert made["estimator"] == settings["estimator"]


def test_where_theory_promises_something_it_names_settings_that_hold_its_conditions():
    advice = zt.advise(n=30, d=4000, k=400, k_star=1, rho_minus=1.0, rho_plus=1.2, eps=1e-3)
    by_name = {one.method: one for one in advice.theory}
    szoht = by_name["szoht"]
    assert szoht.converges
    assert not by_name["vr-szht"].converges
    assert not by_name["saga-szht"].converges
    size = {"d": 4000, "s2": szoht.s2, "k_star": 1, "kappa": 1.2}
    assert 400 in theory.szoht_k(q=szoht.q, **size)
    assert 400 not in theory.szoht_k(q=szoht.least_q - 1, **size)
    eps_I = theory.eps_I(d=4000, q=szoht.q, s=801, s2=szoht.s2)
    rate = theory.szoht_rate(k=400, k_star=1, eps_I=eps_I, kappa=1.2)
    steps = szoht.queries / (szoht.q + 1)
    assert rate ** (2 * steps) <= 1e-3 < rate ** (2 * (steps - 1))
    assert by_name["fgzoht"].queries == 30 * szoht.queries


def test_in_a_million_dimensions_vr_and_sarah_are_promised_to_converge():
    asked = Question(100, 20_000_000, 2_500_000, 1, 1.0, 1.0, 1e-3)
    for name, saved in (("vr-szht", 0), ("sarah-szht", 1)):
        found = forecast(name, asked)
        assert found.converges
        assert found.eta_low < found.eta < found.eta_high
        curve = {"eps_I": asked.eps_I(found.q, found.s2), "rho_minus": 1.0, "rho_plus": 1.0}
        setting = {"eta": found.eta, "m": found.m, "alpha": theory.alpha(k=asked.k, k_star=1), **curve}
        gamma, delta = (theory.sarah_gamma, theory.sarah_delta) if saved else (theory.vr_gamma, theory.vr_delta)
        ratio = gamma(**setting) / delta(**setting)
        epochs = found.queries / ((100 + 2 * (found.m - saved)) * (found.q + 1))
        assert ratio**epochs <= 1e-3 < ratio ** (epochs - 1)


def test_saga_is_promised_to_converge_only_with_a_single_component():
    one = Question(1, 20_000_000, 2_500_000, 1, 1.0, 1.0, 1e-3)
    found = forecast("saga-szht", one)
    assert found.converges
    assert found.eta_low < found.eta < found.eta_high
    curve = {"eps_I": one.eps_I(found.q, found.s2), "rho_minus": 1.0, "rho_plus": 1.0}
    rate = theory.pm_gamma(eta=found.eta, alpha=theory.alpha(k=one.k, k_star=1), p=1, n=1, **curve)
    assert rate ** (found.queries / (found.q + 1)) <= 1e-3
    assert not forecast("saga-szht", replace(one, n=2)).converges


def test_how_far_apart_is_counted_on_the_smallest_problem_that_theory_covers():
    advice = zt.advise(n=20, d=50, k=6, k_star=2, rho_minus=1.0, rho_plus=2.0)
    other = smallest(advice.asked)
    assert other is not None
    assert other.k == 2 * theory.szoht_least_k(k_star=2, kappa=2.0)
    rows = {one.what: one for one in advice.apart}
    assert rows["calls"].theory == forecast("szoht", other).queries
    assert rows["least k, vr-szht"].share == theory.vr_least_k(k_star=2, kappa=2.0) / 6
    assert all(one.share > 1 for one in advice.apart)
    assert not any(one.converges for one in advice.theory)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"k": 3, "k_star": 3}, "needs k > k*"),
        ({"k": 25, "k_star": 2}, "needs s = 2k + k* <= d"),
        ({"k": 5, "k_star": 2}, "needs k >= "),
    ],
)
def test_what_is_broken_is_named(asked, why):
    advice = zt.advise(n=4, d=50, rho_minus=1.0, rho_plus=3.0, **asked)
    assert why in advice.theory[0].why
    assert not any(one.converges for one in advice.theory)
    json.loads(advice.to_json())


def test_a_function_without_convexity_gets_advice_all_the_same():
    advice = zt.advise(lambda x: float(np.cos(3 * x).sum() + 0.01 * (x**2).sum()), 30, 3, seed=0)
    assert advice.asked.kappa == math.inf
    assert advice.apart == ()
    assert "not convex" in advice.theory[0].why
    assert json.loads(advice.to_json())["problem"]["kappa"] is None
    assert "In practice" in str(advice)


def test_many_components_are_sampled():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 15))
    problem = zt.problems.Ridge(X, X[:, 2] - X[:, 7], lam=0.1)
    advice = zt.advise(problem, None, 3, probe=800, seed=0)
    assert advice.probe.queries <= 800
    assert 1 < advice.probe.components < 100
    assert 1.5 < advice.probe.whole.rho_plus < 6  # that of F is 2.1


def test_random_values_get_wider_steps_and_central_differences():
    rng = np.random.default_rng(0)
    advice = zt.advise(lambda x: float(((x - 1) ** 2).sum() + 1e-3 * rng.standard_normal()), 20, 3, seed=0)
    assert advice.paper_settings["estimator"].difference == "central"
    assert advice.paper_settings["estimator"].mu > 1e-3
    assert 1 < advice.asked.rho_plus < 8


def test_kinks_are_told():
    advice = zt.advise(lambda x: float(np.abs(x - 0.5).sum() + np.abs(x).sum()), 30, 3, seed=0)
    assert "curvatures mean little for such a function" in " ".join(str(advice).split())


def test_trials_follow_both_recommendations(box):
    fun, x0, k, how, F = cases(box)["saturated"]
    advice = zt.advise(fun, x0, k, seed=1, trial=4000, **how)
    assert [one.name for one in advice.trials] == [one.name for one in advice.practice]
    for one in advice.trials:
        assert one.calls <= 4000
        assert one.end < one.start == advice.probe.start == pytest.approx(F(np.zeros(20)), rel=0.2)
    assert "Trial of auto" in str(advice)


def test_the_cheaper_of_two_methods_is_chosen():
    alike = Curvature(rho_minus=1.0, whole=1.0, component=1.0)
    rough = Curvature(rho_minus=1.0, whole=1.0, component=500.0)
    assert of_the_paper(n=100, d=20, curvature=alike, eps=1e-3).name == "vr-szht"
    assert of_the_paper(n=100, d=20, curvature=rough, eps=1e-3).name == "fgzoht"
    assert of_the_paper(n=1, d=20, curvature=alike, eps=1e-3).name == "fgzoht"
    few = of_the_paper(n=1, d=5000, curvature=alike, eps=1e-3)
    assert few.estimator.q == 1000
    assert few.method.eta == pytest.approx(0.2)
    noisy = of_the_paper(n=1, d=20, curvature=replace(alike, central=True), eps=1e-3)
    assert noisy.estimator.difference == "central"
    assert "--difference central" in " ".join(noisy.solve_options())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--dim", "30", "-k", "3"], "without a function to probe, d, rho_minus and rho_plus are required"),
        (["box:squares", "--dim", "50", "-k", "5", "--components", "30", "--probe", "9"], "probing takes at least"),
        (["box:squares", "--dim", "50", "-k", "5", "--components", "30", "--rho-plus", "2"], "not both"),
        (["--dim", "3", "-k", "5", "--rho-minus", "1", "--rho-plus", "2"], "larger than the dimension"),
        (["--dim", "30", "-k", "5", "--rho-minus", "3", "--rho-plus", "2"], "rho_s^- <= rho_s^+"),
        (["--dim", "30", "-k", "5", "--rho-minus", "1", "--rho-plus", "2", "--eps", "2"], "eps < 1"),
        (["--dim", "30", "-k", "5", "--rho-minus", "1", "--rho-plus", "2", "--s2", "31"], "s2 = 31 is larger"),
        (["box:nothing", "--dim", "30", "-k", "5"], "has nothing named 'nothing'"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(words, sentence):
    done = run("advise", *words)
    assert done.exit_code == 2
    assert sentence in " ".join(done.output.split())


def test_a_function_that_fails_shows_its_own_traceback():
    done = run("advise", "box:fails", "--dim", "20", "-k", "2")
    assert done.exit_code == 1
    assert "licence server" in done.output
    assert "Traceback" in done.output


def test_help_teaches():
    text = " ".join(run("advise", "--help").stdout.replace("│", " ").split())
    for part in ("--probe", "zerothresh advise box:loss --dim 50 -k 5", "How to read the output", "k*, the number of"):
        assert part in text


def test_neither_rich_nor_typer_is_imported_by_the_library():
    code = "import sys, zerothresh; sys.exit(bool({'rich', 'typer'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"trial": -1}, "trial must be at least 0"),
        ({"trial": "many"}, "trial must be a whole number"),
        ({"s2": 4}, "s2 = 4 is larger than the dimension d = 3"),
        ({"k": 4}, "k = 4 is larger than the dimension d = 3"),
        ({"k_star": 0}, "k_star must be at least 1"),
        ({"eps": 2}, "eps < 1"),
        ({"seed": -1}, "seed must be"),
        ({"vectorized": "no"}, "vectorized must be True or False"),
        ({"probe": 50}, "probing takes at least"),
    ],
)
def test_wrong_arguments_are_refused_before_the_first_call(wrong, words):
    calls = []
    with pytest.raises(ValueError, match=words):
        zt.advise(calls.append, 3, **{"k": 1, "probe": 200, "seed": 0, **wrong})
    assert not calls


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rho_minus": 1e-300}, "the curvatures, from 1e-300 to 2, are too small or too large to compute with: scale"),
        ({"rho_plus": 1e300}, "too large to compute with"),
        ({"d": 10**30}, "n and d must be at most"),
        ({"n": 10**30}, "n and d must be at most"),
    ],
)
def test_numbers_beyond_all_measure_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        zt.advise(**{"n": 30, "d": 1000, "k": 20, "rho_minus": 1.0, "rho_plus": 2.0, **wrong})


@pytest.mark.parametrize(
    ("scale", "words"), [(1e200, "too curved to compute with"), (1e-200, "too small or too large")]
)
def test_a_function_beyond_all_measure_is_refused_with_a_sentence(scale, words):
    with pytest.raises(ValueError, match=words):
        zt.advise(lambda x: scale * float(((x - 1) ** 2).sum()), 3, 1, probe=200, seed=0)


def test_a_trial_that_has_too_few_calls_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match=r"there is no trial of (auto|fgzoht): budget = 2 is too small"):
        found = zt.advise(lambda x: float(((x - 1) ** 2).sum()), 3, 1, probe=200, seed=0, trial=2)
    assert found.trials == ()


def test_a_command_is_quoted_for_the_shell():
    found = replace(zt.advise(n=30, d=1000, k=20, rho_minus=1.0, rho_plus=2.0), objective="a b.py:f")
    assert found.command().startswith("zerothresh solve 'a b.py:f' --dim 1000 -k 20 ")
    with pytest.raises(ValueError, match="which must be 0 or 1"):
        found.command(2)


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_function_that_returns_vectors_is_probed_as_F_and_every_call_counts_once(vectorized):
    rng, calls = np.random.default_rng(0), [0]
    A = rng.normal(size=(30, 20))
    truth = np.where(np.arange(20) < 2, 1.0, 0.0)

    def fun(x):
        calls[0] += len(x) if vectorized else 1
        return (x - truth) @ A.T

    form = {"outputs": "residuals", "loss": "huber", "vectorized": vectorized}
    found = zt.advise(fun, 20, 4, probe=300, trial=150, seed=0, **form)
    assert calls[0] == found.probe.queries + sum(one.calls for one in found.trials)
    assert found.probe.queries <= 300
    assert (found.asked.n, found.components) == (1, None)
    assert "outputs='residuals', loss='huber'" in found.command()
    result = zt.minimize(fun, 20, 4, seed=0, vectorized=vectorized, **found.settings)
    assert np.allclose(result.x, truth, atol=1e-5)


def test_outputs_without_a_function_or_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="outputs goes with a function"):
        zt.advise(d=20, k=4, rho_minus=1.0, rho_plus=2.0, outputs="residuals")
    with pytest.raises(ValueError, match="outputs"):
        zt.advise(lambda x: x, 20, 4, outputs="vectors")


def test_the_line_says_what_the_function_returns(box):
    Path("spectrum.py").write_text("def misfit(x):\n    return (x[:5] - 1) ** 2 + x[:5]\n")
    shown = run(
        "advise", "spectrum:misfit", "--dim", "8", "-k", "3", "--outputs", "residuals", "--probe", "200", "--json"
    )
    assert shown.exit_code == 0, shown.output
    assert "--outputs residuals" in json.loads(shown.stdout)["practice"][0]["command"]

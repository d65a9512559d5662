"""Comparisons, attacks and the command line with arguments of all kinds: a valid result, or a sentence, nothing else.

Wrong arguments are answered by ValueError or TypeError with a sentence of ours, before the first call; the command
answers with an exit code, one sentence and no traceback. The slow variants run 20,000 examples in all.
"""

from __future__ import annotations

import contextlib
import dis
import os
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import zerothresh as zt
from zerothresh.advice import ProbeFailed
from zerothresh.attack.predictions import AttackStopped
from zerothresh.cli.app import app
from zerothresh.comparison.cell import CellFailed
from zerothresh.comparison.comparing import MOST_RUNS, Comparison

PACKAGE = str(Path(zt.__file__).parent)
NET = Path(zt.attack.__file__).parent / "nets" / "cifar10_small.onnx"
ANOTHER_KIND: tuple[Any, ...] = (
    *(None, True, False, "", "abc", "3", "\x1b[31mred", "\udcff", b"x", 1j, object(), lambda: 0, set(), {}, (), []),
    *(float("nan"), float("inf"), -float("inf"), -1, 0, 1.5, 1e300, 1e-300, 2**63, 10**30, -(10**30), 10**400),
    *(np.int64(3), np.float32(2), np.array(3), np.array([1, 2]), np.array(["a"]), np.zeros((0, 2)), [None], {1}),
    *([[1], [2, 3]], {"a": 1}, "x" * 300, "a\0b", range(3), int, Path("/proc/nowhere"), np.datetime64("2020-01-01")),
)


def anything() -> st.SearchStrategy[Any]:
    """Values of all kinds, most of them wrong."""
    numbers = st.integers() | st.floats() | st.integers(-3, 12)
    return st.sampled_from(ANOTHER_KIND) | numbers | st.text(max_size=5) | st.lists(numbers, max_size=3)


def many(examples: int) -> Any:
    """Settings that give the same examples each time."""
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    return settings(max_examples=examples, derandomize=True, database=None, deadline=None, suppress_health_check=checks)


@contextlib.contextmanager
def only_own_warnings() -> Iterator[None]:
    """Let NumPy's warnings fail a test, and the library's own pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings("ignore", "the search ended early", RuntimeWarning)
        yield


def is_a_sentence_of_ours(error: Exception) -> bool:
    """Whether an exception was raised by a `raise` of the package, with words in it."""
    last = error.__traceback__
    assert last is not None
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    raised = code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raised and code.co_filename.startswith(PACKAGE) and len(str(error).split()) >= 4


def answer(
    ask: Callable[[], Any], calls: Callable[[], int], *, late: tuple[str, ...] = (), other: tuple[Any, ...] = ()
) -> Any:
    """Return what was answered, or None if it was refused properly.

    Arguments
    ---------
    ask: makes the call.
    calls: says how many calls of the user's function have been made.
    late: words of refusals that can come only when calls have been made.
    other: exceptions that are allowed because they are the user's own, or say that the user's function failed.
    """
    try:
        with only_own_warnings():
            return ask()
    except other as error:
        event(type(error).__name__)
        return None
    except (ValueError, TypeError) as error:
        refusal = error
    note(f"{type(refusal).__name__}: {refusal}")
    assert is_a_sentence_of_ours(refusal), "".join(traceback.format_exception(refusal))
    assert not calls() or any(words in str(refusal) for words in late), f"late: {refusal}"
    event("refused")
    return None


def changed(draw: Any, arguments: dict[str, Any], wrong: dict[str, Any]) -> dict[str, Any]:
    """Replace up to two arguments; ``wrong`` says which values each may get."""
    names = draw(st.lists(st.sampled_from(sorted(wrong)), max_size=2, unique=True))
    return arguments | {name: draw(wrong[name]) for name in names}


# Comparisons.


class Counted:
    """A small ridge problem that counts its calls, and misbehaves on demand."""

    def __init__(self, value: Callable[[Any], Any] | None = None) -> None:
        own = zt.problems.ridge(n=4, d=3)
        self.d, self.n, self.calls = own.d, own.n, 0
        self.own, self.value = own, value

    fingerprint = "counted"

    def values(self, points: Any, components: Any) -> Any:
        self.calls += len(points)
        return self.own.values(points, components) if self.value is None else self.value(len(points))


def up_to(largest: int) -> Any:
    """Values of all kinds that do not make a run endless."""
    return anything().map(lambda value: value % largest if isinstance(value, int) and value > largest else value)


VALUES = (None, None, None, None, None, lambda size: np.zeros(size), lambda size: np.full(size, np.nan),
          lambda size: None, lambda size: 1 / 0,
          lambda size: np.full(size, 1e308) * (-1.0) ** np.arange(size))  # fmt: skip
METHODS = (["szoht"], "szoht", ["fgzoht", "szoht"], {"a": "szoht", "b": [zt.FGZOHT(eta=0.1)]}, zt.SZOHT,
           [zt.SZOHT(eta=0.01)])  # fmt: skip
WRONG_METHODS = (["nope"], [], {}, ["szoht", "szoht"], {1: "szoht"}, {"a": []}, ["auto"], zt.VRSZHT, {"szoht", "auto"},
                 (method for method in [5]), np.array(["szoht"]), {"\x1b[2J[/red]": "szoht"})  # fmt: skip
WRONG_GRIDS = (None, {}, {"eta": []}, {"q": [2]}, {"eta": ["x"]}, {"eta": [np.nan]}, {"eta": [0]}, {"eta": 0.1},
               {1: [2]}, {"eta": range(10**30)}, {"eta": [[]]}, {"eta": [None]}, {"batch": [1, 2], "eta": [0.1]},
               "eta", [("eta", [1])], {"eta": [1e300]}, {"eta": [1e-300]}, {"eta": list(range(1, 400)),
               "batch": list(range(1, 400))})  # fmt: skip


@st.composite
def comparisons(draw: Any) -> dict[str, Any]:
    """Arguments of `compare`, of which up to two are of any kind."""
    arguments = {
        "methods": draw(st.sampled_from(METHODS)),
        "k": draw(st.integers(1, 3)),
        "budget": draw(st.sampled_from([60, 100, 300])),
        "grid": draw(st.sampled_from([{"eta": [0.01]}, {"eta": [0.1, 0.01]}, {"eta": np.array([0.1])}])),
        "runs": draw(st.integers(1, 2)),
        "fresh": draw(st.integers(0, 1)),
        "seed": draw(st.integers(0, 3)),
        "progress": False,
    }
    few = anything().map(lambda value: value % 3 if isinstance(value, int) and 3 < value <= MOST_RUNS else value)
    wrong = dict.fromkeys(("k", "seed", "estimator", "x0", "n", "vectorized", "F"), anything())
    wrong |= {"budget": up_to(1000), "runs": few, "fresh": few, "jobs": up_to(1), "folder": no_text()}
    wrong |= {"methods": st.sampled_from(WRONG_METHODS) | anything(), "grid": st.sampled_from(WRONG_GRIDS) | anything()}
    wrong["progress"] = anything().filter(lambda value: value is not True)
    return changed(draw, arguments, wrong)


def no_text() -> Any:
    """Values of all kinds except a text that would be a path in the current folder."""
    return anything().map(lambda value: b"a path" if isinstance(value, str) and "\0" not in value and value else value)


def check_comparison(arguments: dict[str, Any], value: Any) -> None:
    problem = Counted(value)
    given = dict(arguments)
    methods, k = given.pop("methods"), given.pop("k")
    found = answer(lambda: zt.compare(problem, methods, k, **given), lambda: problem.calls, other=(CellFailed,))
    if found is None:
        return
    assert isinstance(found, Comparison)
    runs = [run for one in found.contenders for tried in one.candidates for run in tried.runs]
    assert all(run.nfev <= found.budget and np.count_nonzero(run.x) <= k for run in runs if run.success)
    assert len(found.rows()) == len(found.contenders)
    assert str(found).count("\n") >= len(found.contenders)
    assert found.to_csv().count("\n") > len(runs)
    event("compared")


@many(80)
@given(comparisons(), st.sampled_from(VALUES))
def test_a_comparison_is_made_or_refused_with_a_sentence(arguments, value):
    check_comparison(arguments, value)


@pytest.mark.slow
@many(7000)
@given(comparisons(), st.sampled_from(VALUES))
def test_thousands_of_comparisons_are_made_or_refused_with_a_sentence(arguments, value):
    check_comparison(arguments, value)


# Attacks.

WEIGHTS = np.random.default_rng(0).normal(size=(9, 3))
IMAGES = np.random.default_rng(1).uniform(size=(5, 3, 3)).astype(np.float32)
LABELS = (IMAGES.reshape(5, -1) @ WEIGHTS).argmax(axis=1)


class Model:
    """A linear classifier that counts its images, and misbehaves on demand."""

    def __init__(self, scores: Callable[[Any], Any] | None = None) -> None:
        self.scores, self.seen = scores, 0

    def __call__(self, images: Any) -> Any:
        self.seen += len(images)
        return images.reshape(len(images), -1) @ WEIGHTS if self.scores is None else self.scores(len(images))


SCORES = (None, None, None, None, None, None, None, None, lambda size: np.zeros((size, 3)), lambda size: np.full((size, 3), np.nan),
          lambda size: None, lambda size: 1 / 0, lambda size: np.zeros(size), lambda size: [[1], [2, 3]] * size,
          lambda size: np.full((size, 3), -np.inf), lambda size: "abc", lambda size: np.full((size, 2), 1e308))  # fmt: skip
WRONG_IMAGES = (IMAGES[:0], IMAGES[:1], IMAGES * 100, IMAGES.astype(int), IMAGES[0], np.full_like(IMAGES, np.nan),
                IMAGES.reshape(5, -1), IMAGES[:, :0], IMAGES[..., None], IMAGES - 7, IMAGES.astype(np.float16),
                IMAGES.astype(np.longdouble) * np.longdouble("1e4000"))  # fmt: skip
WRONG_LABELS = (LABELS[:3], LABELS + 50, -LABELS - 1, LABELS.astype(float), np.eye(3)[LABELS], LABELS[:, None],
                [str(label) for label in LABELS], LABELS.astype(np.uint64) + 2**63)  # fmt: skip
SPECIAL: dict[str, list[Any]] = {
    "images": list(WRONG_IMAGES),
    "labels": list(WRONG_LABELS),
    "k": [9, 10, 0],
    "ks": [None, [1, 2], [], "x"],
    "budget": [10, 11, 5, 1],
    "bounds": [None, (1, 0), (0, 0), (0, 1e300), (0, 1e-60), (np.nan, 1), (0, 1, 2), "01", (0, 255)],
    "granularity": ["pixel", "channel", "x"],
    "targeted": [1, 99, -1, [1] * 5, np.eye(3)[[1] * 5], [0, 1, 2, 0, 1]],
    "layout": ["HW", "NHWC", "flat", "x"],
    "scores": ["logits", "probabilities", "x"],
    "attack": ["auto", "szoht", zt.SZOHT(eta=0.1), "nope", zt.attack.FewPixel((3, 3, 3, 1)), zt.FGZOHT(eta=1e300)],
    "retries": [0, 1],
    "on_nan": ["stop", "worst", "retry", "x"],
    "workers": [1, 2],
    "exclude": [[0], [9], []],
    "callback": [lambda progress: None],
    "options": [{}, {"eta": 0.1}],
    "monitor": [lambda x: 0.0, lambda x: 1 / 0],
    "cost": [lambda i: 1, lambda i: -1, lambda i: None, lambda: 1],
}
NOT_OF_AN_ATTACK = ("groups", "method", "n", "vectorized", "fun", "nothing")


@st.composite
def attacks(draw: Any) -> dict[str, Any]:
    """Arguments of `attack.universal`, of which up to two are of any kind."""
    arguments = {"images": IMAGES, "labels": LABELS, "bounds": (0, 1), "seed": 0}
    arguments |= {"k": draw(st.integers(1, 3)), "budget": draw(st.sampled_from([40, 100]))}
    others = ("seed", "chunk", "max_cost", "estimator", "fsync", "include", *NOT_OF_AN_ATTACK)
    wrong = dict.fromkeys(others, anything())
    wrong |= {name: st.sampled_from(values) | anything() for name, values in SPECIAL.items()}
    wrong |= {"budget": st.sampled_from(SPECIAL["budget"]) | up_to(1000), "retries": up_to(2), "workers": up_to(3)}
    # A short time would make the outcome depend on the machine.
    seconds = anything().filter(lambda value: not isinstance(value, (int, float)) or not 0 < value < np.inf)
    wrong |= {"run": no_text(), "backoff": seconds, "timeout": seconds, "max_time": seconds}
    wrong["progress"] = anything().filter(lambda value: value is not True)
    return changed(draw, arguments, wrong)


# What only the answers for the images can tell: the number of classes, the kind of scores, how many are attacked.
AFTER_THE_EVALUATION = (
    *("name class", "the classifier returned", "scores were declared", "too little for the search"),
    "max_cost = ",
)


def check_attack(arguments: dict[str, Any], scores: Any) -> None:
    model, given = Model(scores), dict(arguments)
    images, labels = given.pop("images"), given.pop("labels")
    own = (AttackStopped, ZeroDivisionError)
    found = answer(
        lambda: zt.attack.universal(model, images, labels, **given),
        lambda: model.seen,
        late=AFTER_THE_EVALUATION,
        other=own,
    )
    if found is None:
        return
    assert all(found.promises().values())
    assert model.seen <= found.queries <= given["budget"]
    assert np.shape(found.images) == np.shape(images)
    event("attacked")


@many(120)
@given(attacks(), st.sampled_from(SCORES))
def test_an_attack_is_made_or_refused_with_a_sentence(arguments, scores):
    check_attack(arguments, scores)


@pytest.mark.slow
@many(7000)
@given(attacks(), st.sampled_from(SCORES))
def test_thousands_of_attacks_are_made_or_refused_with_a_sentence(arguments, scores):
    check_attack(arguments, scores)


# The adviser, problems, and the smaller functions of attacks and data sets.

CURVATURES = {"n": 30, "d": 1000, "k": 20, "k_star": 1, "rho_minus": 1.0, "rho_plus": 2.0}


@st.composite
def questions(draw: Any) -> dict[str, Any]:
    """Arguments of `advise`, with curvatures or with a function, of which up to two are of any kind."""
    probed = draw(st.booleans())
    arguments: dict[str, Any] = {"x0": 3, "k": 1, "probe": 200, "seed": 0} if probed else dict(CURVATURES)
    names = (
        "k",
        "n",
        "d",
        "k_star",
        "rho_minus",
        "rho_plus",
        "s2",
        "eps",
        "seed",
        "vectorized",
        *(("x0",) if probed else ()),
    )
    wrong = dict.fromkeys(names, anything()) | {"probe": up_to(1000), "trial": up_to(200)}
    return changed(draw, arguments | {"probed": probed}, wrong)


def check_question(arguments: dict[str, Any]) -> None:
    given, calls = dict(arguments), 0

    def fun(*x: Any) -> float:
        nonlocal calls
        calls += 1
        return float(((x[0] - 1) ** 2).sum())

    probed = given.pop("probed")
    found = answer(lambda: zt.advise(fun if probed else None, **given), lambda: calls, other=(ProbeFailed,))
    if found is not None:
        assert "In practice" in str(found)
        assert found.to_json()
        assert found.command(0) != found.command(1)
        event("advised")


MAKERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ridge": (zt.problems.ridge, {"n": 4, "d": 3, "lam": 0.5, "seed": 0}),
    "logistic": (zt.problems.logistic, {"n": 4, "d": 3, "k_true": 2, "lam": 0.5, "seed": 0}),
    "quadratic": (zt.problems.quadratic, {"d": 3, "k_true": 2, "condition": 2, "n": 2, "spread": 1, "seed": 0}),
    "Ridge": (zt.problems.Ridge, {"X": np.ones((2, 3)), "y": [1, 2], "lam": 0}),
    "Logistic": (zt.problems.Logistic, {"X": np.ones((2, 3)), "y": [1, -1], "lam": 0}),
    "Quadratic": (zt.problems.Quadratic, {"A": np.eye(2), "centres": np.ones((1, 2))}),
    "standardise": (zt.problems.standardise, {"X": np.arange(6.0).reshape(2, 3)}),
    "values": (zt.problems.ridge().values, {"points": np.zeros((2, 5)), "components": [0, 9]}),
    "F": (zt.problems.logistic(d=5).F, {"x": np.zeros(5)}),
    "gradient": (zt.problems.ridge().gradient, {"x": np.zeros(5)}),
    "component_gradient": (zt.problems.quadratic(d=5).component_gradient, {"x": np.zeros(5), "i": 0}),
    "minimum_on": (zt.problems.ridge().minimum_on, {"support": [0, 2]}),
    "optimum": (zt.problems.ridge().optimum, {"k": 2}),
    "FewPixel": (zt.attack.FewPixel, {"grid": (3, 3, 3, 1), "candidates": 4, "first": 16, "passes": 30, "share": 0.4, "mixed": True}),
    "Classifier": (
        zt.attack.Classifier,
        {"predict": len, "bounds": (0, 1), "shape": (3, 3), "layout": "HW", "scores": "logits", "classes": ("a", "b"),
         "name": "a", "batch": 5, "codes": np.arange(2), "mark": ""},
    ),
    "wrap": (zt.attack.wrap, {"model": len, "bounds": (0, 1), "layout": "HW", "scores": "logits"}),
    "load_bodyfat": (zt.datasets.load_bodyfat, {"return_X_y": True}),
    "load_cifar10_paper": (zt.datasets.load_cifar10_paper, {"name": "dog"}),
}  # fmt: skip


@st.composite
def makings(draw: Any) -> tuple[str, dict[str, Any]]:
    """A function and its arguments, of which up to two are of any kind."""
    name = draw(st.sampled_from(sorted(MAKERS)))
    right = MAKERS[name][1]
    sized = ("n", "d", "k_true")  # a problem with millions of numbers is allowed, and takes its time
    wrong = {argument: up_to(50) if argument in sized else anything() for argument in right}
    return name, changed(draw, dict(right), wrong)


def check_making(making: tuple[str, dict[str, Any]]) -> None:
    name, arguments = making
    answer(lambda: MAKERS[name][0](**arguments), lambda: 0)


@many(60)
@given(questions(), makings())
def test_advice_and_problems_are_given_or_refused_with_a_sentence(question, making):
    check_question(question)
    check_making(making)


@pytest.mark.slow
@many(2000)
@given(questions(), makings())
def test_much_advice_and_many_problems_are_given_or_refused_with_a_sentence(question, making):
    check_question(question)
    check_making(making)


# The command line.

OBJECTIVES = """
import numpy as np

def f(x): return float(((x - 1) ** 2).sum())
def g(x, i): return float(((x - i) ** 2).sum())
def many(X): return ((X - 1) ** 2).sum(axis=1)
def fails(x): raise RuntimeError("\\\\x1b[31m[red]boom[/] \\\\u202e \\\\udcff")
def nothing(x): return None
def not_a_number(x): return float("nan")
def huge(x): return 1e300 * f(x)
def leaves(x): raise SystemExit(5)
number = 5

class Problem:
    d, n = 3, 2
    def values(self, points, components): return (points ** 2).sum(axis=1)

    @property
    def broken(self): raise RuntimeError("broken")

problem = Problem()
"""
TARGETS = ("f", "f", "f", "f", "f", "g", "many", "problem", "problem", "huge", "fails", "nothing", "not_a_number")
WRONG_TARGETS = (
    *("objectives.py:leaves", "objectives.py:number", "objectives.py:Problem", "objectives.py:", ":f", "nowhere.py:f"),
    *("objectives:f", "os:getcwd", "objectives.py:f.x", "objectives.py:nope", "math:sin", "é.py:f", "a b:c", "..a:f"),
    *(
        "objectives.py",
        "os.path:join",
        "objectives.py:problem.broken",
        "pipe.py:f",
        "broken.py:f",
        "exits.py:f",
        "",
        ":",
    ),
    *("\udcff.py:f", "objectives.py:\x1b[31m", "folder.py:f", "a" * 300 + ".py:f", "json.nope:f", "__main__:f"),
)
NUMBERS = (
    "0",
    "1",
    "3",
    "-1",
    "1e3",
    "abc",
    "",
    "9" * 30,
    "9" * 400,
    "nan",
    "inf",
    "-inf",
    "2.5",
    "100",
    "1e-300",
    "1e300",
)
PATHS = ("pipe", "loop", "folder.py", "objectives.py", "/dev/null", "/proc/nowhere", ".", "", "x" * 300, "\udcff",
         "a\nb", "\x1b[31mred", "/proc/self/mem", "run", "empty", "link", "new")  # fmt: skip
ARRAYS = ("x0.npy", "text.npy", "bomb.npy", "objects.npy", "images.npz", "pipe", "loop", "nowhere.npy", "empty", "/dev/zero",
          "/etc/passwd", "matrix.npy", "nan.npy", "cut.npy", "")  # fmt: skip
STACKS = ("images.npz", "images.npz", "bomb.npz", "text.npz", "x0.npy", "pipe", "loop", "objects.npz", "nothing.npz",
          "/dev/zero", "odd.npz", "nowhere", "", "names.npz", "declared.npz")  # fmt: skip
NETS = (
    str(NET),
    str(NET),
    str(NET),
    "text.npy",
    "pipe",
    "loop",
    "nowhere.onnx",
    "",
    "/dev/zero",
    "folder.py",
    "x" * 300,
)
OPTIONS: dict[str, dict[str, Any]] = {
    "solve": {
        "--method": ["auto", "szoht", "SZOHT", "fgzoht", "nope", "", "index", "ada-zoro", "cma-es"],
        "--set": ["eta=0.1", "eta=", "=1", "eta", "eta=abc", "m=3", "eta=nan", "batch=1e999", "eta=0.1=2", "eta=1e300"],
        **dict.fromkeys(("--q", "--mu", "--s2", "--seed", "--retries", "--backoff", "--components"), NUMBERS),
        "--workers": ["1", "2", "0", "-1", "abc", "9" * 30],
        "--timeout": ["60", "0", "-1", "nan", "abc", "inf"],
        "--max-time": ["60", "0", "-1", "nan", "abc", "inf"],
        "--x0": ARRAYS,
        "--bounds": [("0", "1"), ("1", "0"), ("nan", "1"), ("-1", "1e300"), ("a", "b")],
        "--directions": ["sphere", "gaussian", "nope"],
        "--difference": ["central", "nope"],
        "--on-nan": ["worst", "stop", "retry", "nope"],
        "--fsync": ["value", "never", "nope"],
        **dict.fromkeys(("--out", "--trace", "--run"), PATHS),
        **{flag: [()] for flag in ("--vectorized", "--force", "--quiet", "-v", "--independent", "--nope")},
    },
    "advise": {
        **dict.fromkeys(("--components", "--k-star", "--rho-minus", "--rho-plus", "--s2", "--eps", "--seed"), NUMBERS),
        "--probe": ["200", "122", *NUMBERS],
        "--trial": ["100", *NUMBERS],
        "--x0": ARRAYS,
        "--vectorized": [()],
        "--json": [()],
    },
    "show": {"--json": [()], "--nope": [()]},
    "export": {"--trace": [*PATHS, "t.csv", "t.json"], "--best": [*PATHS, "b.npy"], "--force": [()]},
    "methods": {"--json": [()], "--nope": [()]},
    "attack": {
        **dict.fromkeys(("-k", "--seed", "--target"), NUMBERS),
        "--budget": ["30", "0", "-5", "9" * 30, "abc"],
        "--ks": ["1,2", "2:4", "0", "x", ""],
        "--granularity": ["pixel", "channel", "nope"],
        "--bounds": [("-0.5", "0.5"), ("0", "1"), ("1", "0"), ("nan", "1")],
        "--layout": ["NHWC", "NCHW", "flat", "nope"],
        "--scores": ["logits", "probabilities", "nope"],
        "--attack": ["best", "auto", "szoht", "nope"],
        **dict.fromkeys(("--run", "--out"), PATHS),
        "--model": NETS,
        "--images": STACKS,
    },
}
UNUSABLE = ("pipe", "loop", "objectives.py", "objectives.py/x", "/dev/null", "/proc/nowhere", "x" * 300, "run")
REFUSED_AT_ONCE = tuple(  # a report that is begun takes minutes, so that each of these has to be refused
    ["reproduce", *words]
    for words in (
        *([""], ["nope"], ["\x1b[31m"], ["ridge", "--seed", "-1"], ["ridge", "--seed", "a"], ["ridge", "--jobs", "0"]),
        *(["ridge", "--quick", "--budget", budget] for budget in ("0", "5", "-1", "a")),
        *(["ridge", "--quick", "--out", path] for path in UNUSABLE),
        *(["attack", "--class", "nope"], ["attack", "--budget", "5"], ["attack", "--cifar10", "nowhere"]),
        *(["attack", "--quick", "--cifar10", path] for path in (*UNUSABLE[:4], "bad.tar", "x" * 300, "run")),
    )
)


def remove(path: Path) -> None:
    """Remove what a command has written."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def set_scene() -> None:
    """Fill the current folder with objectives, a run folder, and files that nobody should trust."""
    for entry in Path().iterdir():
        remove(entry)
    Path("objectives.py").write_text(OBJECTIVES)
    Path("broken.py").write_text("import nothing_of_this_name")
    Path("exits.py").write_text("import sys; sys.exit(3)")
    Path("folder.py").mkdir()
    Path("empty").touch()
    os.mkfifo("pipe")
    os.mkfifo("pipe.py")
    Path("loop").symlink_to("loop")
    Path("link").symlink_to("objectives.py")
    for name, array in {"x0": np.ones(3), "matrix": np.ones((2, 2)), "nan": np.full(3, np.nan)}.items():
        np.save(name, array)
    np.save("objects", np.array([print], dtype=object))
    Path("text.npy").write_text("text")
    Path("text.npz").write_text("text")
    Path("bad.tar").write_text("text")
    Path("cut.npy").write_bytes(Path("x0.npy").read_bytes()[:-5])
    header = Path("x0.npy").read_bytes().replace(b"(3,), }        ", b"(3000000000000,), }", 1)
    Path("bomb.npy").write_bytes(header[: len(Path("x0.npy").read_bytes())])
    images = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2, 32, 32, 3)).astype(np.float32)
    np.savez("images", images=images, labels=[0, 1])
    np.savez("declared", x=images, y=[0, 1], bounds=[-0.5, 0.5])
    np.savez("odd", images=images, labels=[0, 1], bounds=np.array(["a", "b"]))
    np.savez("objects", images=np.array([print], dtype=object), labels=[0])
    np.savez("nothing")
    np.savez("names", **{"\x1b[31m": images, "labels": [0, 1]})
    np.savez_compressed("bomb", images=np.zeros((1, 32, 32, 3000)), labels=[0])
    zt.minimize(lambda x: float(x @ x), 3, 1, budget=100, method=zt.FGZOHT(eta=0.1), seed=0, run="run", progress=False)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A folder of its own for the commands."""
    home = tmp_path_factory.mktemp("command")
    before = Path.cwd()
    os.chdir(home)
    set_scene()
    yield home
    os.chdir(before)


@pytest.fixture
def undrawn(monkeypatch):
    """Leave pictures empty, because drawing takes longer than all else."""
    monkeypatch.setattr("zerothresh.reports.attack_page.pictures.draw", lambda rows: None)
    monkeypatch.setattr("zerothresh.reports.attack_page.saved", lambda figure: (b"", b"", b""))


def rarely(wrong: Any, right: str) -> Any:
    """The right value in most cases."""
    return st.integers(0, 7).flatmap(lambda chance: wrong if chance == 0 else st.just(right))


@st.composite
def commands(draw: Any) -> list[str]:
    """The words of a command."""
    name = draw(st.sampled_from(["solve", "solve", "solve", "advise", "show", "export", "methods", "attack", "other"]))
    if name == "other":
        return draw(st.sampled_from(REFUSED_AT_ONCE) | st.lists(st.sampled_from(PATHS), max_size=2))
    words = [name]
    number = st.sampled_from(NUMBERS)
    if name in ("solve", "advise"):
        target = draw(st.sampled_from(TARGETS))
        words.append(draw(rarely(st.sampled_from(WRONG_TARGETS), f"objectives.py:{target}")))
        words += ["-k", draw(rarely(number, "1"))]
        words += [] if target == "problem" else ["--dim", draw(rarely(number, "3"))]
        words += ["--components", "2"] if target == "g" else ["--vectorized"] if target == "many" else []
        words += ["--budget", draw(rarely(number, "100"))] if name == "solve" else ["--probe", "200"]
    elif name in ("show", "export"):
        words.append(draw(st.just("run") | st.sampled_from(PATHS)))
    elif name == "attack":
        words += ["--model", str(NET), "--images", "images.npz", "--out", "report", "-k", "2", "--budget", "40"]
    options = OPTIONS[name]
    for option in draw(st.lists(st.sampled_from(sorted(options)), max_size=2, unique=True)):
        value = draw(st.sampled_from(list(options[option])))
        words += [option, *([value] if isinstance(value, str) else value)]
    return words


def check_command(words: list[str]) -> None:
    own = {entry.name for entry in Path().iterdir()}
    endless = "9" * 30 in words and words[0] in ("solve", "attack")  # as a budget, which is allowed
    if endless and "--budget" in words and words[len(words) - 1 - words[::-1].index("--budget") + 1] == "9" * 30:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(app, words, env={"COLUMNS": "100"})
    said = done.stdout + done.stderr
    note(f"{done.exit_code}: {said[-500:]}")
    trouble = "".join(traceback.format_exception(done.exception)) if done.exception else ""
    assert done.exception is None or isinstance(done.exception, SystemExit), trouble
    assert done.exit_code in (0, 1, 2, 130)
    assert done.exit_code == 0 or done.stderr.strip() or "Usage: " in said
    # The user sees the traceback of his own code: of a function that failed, or of a module that cannot be imported.
    own_code_failed = done.exit_code == 1 or any(word in " ".join(words) for word in ("broken", "exits"))
    assert "Traceback" not in said or own_code_failed
    assert all(character.isprintable() or character in "\n\t" for character in said), repr(said)
    event(f"{words[0] if words and words[0] in OPTIONS else 'other'}: {done.exit_code}")
    if {"--force", "--run"} & set(words):
        set_scene()  # a file may have been overwritten, as was asked
    for entry in {entry.name for entry in Path().iterdir()} - own:
        remove(Path(entry))


@many(80)
@given(words=commands())
def test_a_command_is_answered_by_a_result_or_a_sentence(scene, undrawn, words):
    check_command(words)


@pytest.mark.slow
@many(4000)
@given(words=commands())
def test_thousands_of_commands_are_answered_by_a_result_or_a_sentence(scene, undrawn, words):
    check_command(words)

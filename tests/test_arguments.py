"""Every argument of every public function meets everything that nobody should pass."""

from __future__ import annotations

import inspect
import os
import re

import numpy as np
import pytest
from fuzzing import JUNK, Counted, check_refusal, complaint, no_foreign_warnings, text_of

import zerothresh as zt
from zerothresh import theory
from zerothresh.basics import capacity, check
from zerothresh.methods.external.outside import Outside
from zerothresh.methods.paper.laws import AllOrNothing, FixedSize
from zerothresh.objective.forms import BadValue, scalar, vector
from zerothresh.theory import errata


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path, monkeypatch):
    """What is passed as ``run`` may be a name: let no test make folders in the repository."""
    monkeypatch.chdir(tmp_path)


def wrong_answers(call, names, junk=JUNK):
    """Call a function with each piece of junk; return what is wrong with its refusals, which must name the argument."""
    wrong = []
    for value in junk:
        try:
            with no_foreign_warnings():
                call(value)
        except Exception as error:
            why = complaint(error)
            if why is None and not re.search(rf"(?<!\w)({names})(?!\w)", str(error)):
                why = f"the message does not say {names}: {error}"
            if why is not None:
                wrong.append(f"{text_of(value)}: {why} ({type(error).__name__}: {str(error)[:300]})")
        except BaseException as error:
            wrong.append(f"{text_of(value)}: {type(error).__name__}")
    return wrong


# What a message may say instead of the name of the argument.
ALSO = {
    "x0": "x0|dimension d",
    "n": "n|component",
    "options": "options|hyper-parameters?",
    "on_nan": "on_nan",
    "on_error": "on_error",
    "fun": "fun",
    "max_cost": "max_cost|cost",
    "exclude": "exclude|start",
}


def names_of(argument):
    return ALSO.get(argument, argument)


def minimised(argument, value):
    objective = Counted("squares", 6, None)
    named = {"x0": 6, "k": 2, "budget": 60, "seed": 0, "progress": False, "fun": objective.form(), "fsync": "never"}
    named |= {"method": "szoht", "options": {"eta": 0.05}} if argument == "options" else {"method": "auto"}
    if argument == "max_cost":
        named["cost"] = lambda i: 1
    if argument == "per_second":
        named["max_time"] = 0.1  # some of the rates are very low
    if argument == "n":
        named["fun"] = Counted("squares", 6, 5).form()
    named[argument] = value
    try:
        result = zt.minimize(**named)
    except Exception:
        if objective.calls:
            pytest.fail(f"{argument} = {text_of(value)} was refused after {objective.calls} calls")
        raise
    assert isinstance(result, zt.Result)
    assert len(result.message) > 10


@pytest.mark.parametrize("argument", list(inspect.signature(zt.minimize).parameters))
def test_minimize_answers_junk_with_a_sentence_that_names_the_argument(argument):
    assert wrong_answers(lambda value: minimised(argument, value), names_of(argument)) == []


def opened(argument, value):
    named = {"x0": 6, "k": 2, "budget": 60, "seed": 0, "method": "auto", "fsync": "never"}
    if argument == "fingerprint":
        named["run"] = f"kept-{len(os.listdir())}"
    if argument == "max_cost":
        named["cost"] = lambda i: 1
    named[argument] = value
    with zt.Optimizer(**named) as optimizer:
        assert len(optimizer.ask()) >= 1


@pytest.mark.parametrize("argument", list(inspect.signature(zt.Optimizer).parameters))
def test_the_optimizer_answers_junk_with_a_sentence_that_names_the_argument(argument):
    assert wrong_answers(lambda value: opened(argument, value), names_of(argument)) == []


def test_what_is_told_and_asked_for_is_checked():
    optimizer = zt.Optimizer(6, 2, budget=60, seed=0)
    batch = optimizer.ask()
    assert wrong_answers(lambda value: optimizer.tell(value, np.zeros(len(batch))), "batch") == []
    assert optimizer.nfev == 0
    values = [value for value in JUNK if np.shape(check.array(value)) != (len(batch),)]
    assert wrong_answers(lambda value: optimizer.tell(batch, value), "tell", values) == []
    assert optimizer.nfev == 0


@pytest.mark.parametrize("argument", list(inspect.signature(zt.iterate).parameters))
def test_iterate_answers_junk_with_a_sentence_that_names_the_argument(argument):
    def begun(value):
        objective = Counted("squares", 6, 5 if argument == "n" else None)
        named = {"fun": objective.form(), "x0": 6, "k": 2, "budget": 60, "seed": 0, argument: value}
        if argument == "per_second":
            named["max_time"] = 0.1  # some of the rates are very low
        if argument == "arguments":  # the rest, by name
            del named["arguments"]
            named["on_nan"] = value
        steps = zt.iterate(**named)
        try:
            next(steps, None)
        except RuntimeError as error:  # the junk was accepted, and is no good as an objective
            if "this object" in str(error):
                raise
        finally:
            steps.close()

    assert wrong_answers(begun, "on_nan" if argument == "arguments" else names_of(argument)) == []


@pytest.mark.parametrize("argument", list(inspect.signature(zt.Estimator).parameters))
def test_the_estimator_answers_junk_with_a_sentence_that_names_the_argument(argument):
    assert wrong_answers(lambda value: zt.Estimator(**{argument: value}), argument) == []


CLASSES = {*zt.methods.available().values(), Outside, FixedSize, AllOrNothing, zt.methods.Ball}
FIELDS = [
    (made, name)
    for made in sorted(CLASSES, key=lambda one: one.__name__)
    for name in inspect.signature(made).parameters
]


@pytest.mark.parametrize(("made", "argument"), FIELDS, ids=[f"{made.__name__}-{name}" for made, name in FIELDS])
def test_a_method_answers_junk_with_a_sentence_that_names_the_argument(made, argument):
    needed = {
        name: 1.0
        for name, parameter in inspect.signature(made).parameters.items()
        if parameter.default is parameter.empty
    }
    also = {"p": "p|batch", "batch": "batch|p"}.get(argument, argument)
    assert wrong_answers(lambda value: made(**{**needed, argument: value}), also) == []


def formulas():
    """All public formulas of the theory, and all of their arguments."""
    found = {name: getattr(theory, name) for name in theory.__all__}
    found |= {name: getattr(errata, name) for name in vars(errata) if name.startswith("printed_")}
    for name, function in found.items():
        if callable(function) and not isinstance(function, type):
            yield from ((name, function, argument) for argument in inspect.signature(function).parameters)


# Values at which all formulas hold.
SOUND = {
    "d": 100_000_000, "q": 10**9, "s": 12, "s2": 100_000_000, "k": 3_000_000, "k_star": 1, "n": 10, "m": 4, "r": 5, "t": 3, "p": 10, "supports": 10,
    "eta": 1e-3, "alpha": 1.001, "beta": 1.1, "kappa": 1.0, "rho_minus": 1.0, "rho_plus": 1.0, "tau": 1.0, "omega": 0.5, "eps": 0.1, "eps_I": 2.0,
    "rate": 0.5, "A": np.eye(12), "curvatures": np.arange(8.0)[None], "samples": np.arange(8.0), "gaps": np.arange(8.0), "at_optimum": theory.AtOptimum(),
}  # fmt: skip
CASES = list(formulas())


@pytest.mark.parametrize(
    ("name", "function", "argument"), CASES, ids=[f"{name}-{argument}" for name, _, argument in CASES]
)
def test_a_formula_answers_junk_with_a_sentence_that_names_the_argument(name, function, argument):
    parameters = inspect.signature(function).parameters
    given = {other: SOUND.get(other, 1.0) for other, one in parameters.items() if one.default is one.empty}
    if name in ("memory_weights", "printed_memory_weights"):
        given["q" if "q" in given else "p"] = 1

    def call(value):
        function(**{**given, argument: value})

    assert wrong_answers(call, f"{argument}|the theory") == []  # a condition has the symbols of the paper


@pytest.mark.parametrize("argument", ["low", "high"])
def test_an_interval_has_numbers_as_its_ends(argument):
    assert wrong_answers(lambda value: theory.Interval(**{"low": 0, "high": 1, argument: value}), argument) == []
    assert wrong_answers(lambda value: theory.AtOptimum(F_inf=value), "F_inf") == []


def test_hard_thresholding_answers_junk_with_a_sentence():
    assert wrong_answers(lambda value: zt.hard_threshold(value, 2), "v") == []
    assert wrong_answers(lambda value: zt.hard_threshold([1.0, 2.0], value), "k") == []
    assert zt.hard_threshold([3, 1, 2], np.int64(2)).tolist() == [3, 0, 2]
    assert zt.hard_threshold(np.arange(6.0)[::2], 1).tolist() == [0, 0, 4]


def test_registering_and_making_answer_junk_with_a_sentence():
    known = list(zt.methods.available())

    def registered(value):
        made = zt.register(value)
        assert isinstance(value, str)
        made(3)

    assert wrong_answers(registered, "name|method") == []
    no_methods = [value for value in JUNK if value is not zt.SZOHT]
    assert wrong_answers(lambda value: zt.register("junk")(value), "method|class", no_methods) == []
    assert wrong_answers(zt.methods.make, "method|needs") == []
    assert wrong_answers(lambda value: zt.methods.make("szoht", value), "options|szoht") == []
    assert list(zt.methods.available()) == known


def test_plots_answer_junk_with_a_sentence():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    result = zt.minimize(lambda x: float(((x - 1) ** 2).sum()), 6, 2, budget=60, seed=0)

    def drawn(results, **named):
        try:
            zt.plot.compare(results, **named)
        finally:
            pyplot.close("all")

    assert wrong_answers(drawn, "results?") == []
    assert wrong_answers(lambda value: drawn({"a": value}), "results?") == []
    for argument in ("optimum", "log", "title", "axes"):
        assert wrong_answers(lambda value, name=argument: drawn([result], **{name: value}), argument) == []


# Scalars of NumPy, arrays without dimensions, lists and other numbers stay what they are: numbers.


@pytest.mark.parametrize("eta", [np.float32(0.0625), np.array(0.0625), np.float64(0.0625), np.longdouble("0.0625")])
def test_numbers_of_numpy_are_hyper_parameters(eta, tmp_path):
    def found(value):
        named = {"budget": 200, "seed": 1, "run": tmp_path / "kept", "fsync": "never"}
        return zt.minimize(lambda x: float(((x - 1) ** 2).sum()), 6, 2, method=zt.SZOHT(eta=value), **named)

    result = found(eta)
    assert result.method == zt.SZOHT(eta=0.0625)
    again = found(0.0625)  # the run folder takes them for the same
    assert np.array_equal(result.x, again.x)
    assert result.nfev == again.nfev


@pytest.mark.parametrize(
    "named",
    [
        {"k": np.array(2)},
        {"k": np.uint8(2)},
        {"budget": np.int64(100)},
        {"budget": 10**30},
        {"seed": np.array(3)},
        {"bounds": [-1, 1]},
        {"bounds": (np.float32(-1), np.array(1))},
        {"bounds": (-(10**30), 10**400)},
        {"include": (0,)},
        {"exclude": np.array([1], np.uint8)},
        {"exclude": range(3, 5)},
        {"groups": ["a", "a", "b", "b", "c", "c"]},
        {"groups": np.array([True, False] * 3)},
        {"x0": [10**19, 0, 0, 0, 0, 0]},
        {"x0": np.zeros(6, np.float16)},
        {"workers": np.int64(2)},
        {"vectorized": np.bool_(False)},
        {"progress": np.bool_(False)},
        {"timeout": np.array(60)},
        {"options": {}},
    ],
    ids=str,
)
def test_numbers_of_other_kinds_are_numbers(named):
    result = zt.minimize(lambda x: float(((x - 1) ** 2).sum()), **{"x0": 6, "k": 2, "budget": 100, "seed": 0, **named})
    assert result.success


# What is too large.


def test_a_smoothing_radius_beyond_the_largest_coordinate_is_refused():
    with pytest.raises(ValueError, match=r"mu must be at most 1e\+300 \(the smoothing radius\), not 1e\+301"):
        zt.Estimator(mu=1e301)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"x0": 10**12}, r"the dimension d = 1000000000000 needs at least 32 TB of memory, and this machine has .*: take fewer"),
        ({"x0": 10**30}, r"needs at least 3.2e\+13 EB of memory"),
        ({"estimator": zt.Estimator(q=10**12), "budget": 10**13}, r"a round of szoht with 1000000000001 calls.* needs at least .* of memory"),
        ({"estimator": zt.Estimator(q=10**12)}, r"budget = 100 is too small: the first step of szoht needs at least 1000000000001 calls"),
        ({"n": 10**14, "budget": 10**15}, r"a round of all n = 100000000000000 components needs at least 1.6 PB of memory"),
        ({"n": 2**53 + 1}, r"n must be at most 2\*\*53 \(the number of components\), not 9007199254740993"),
        ({"n": 2**53, "cost": lambda i: 1}, r"the cost of each of n = 9007199254740992 components needs at least 72.1 PB of memory"),
        ({"workers": 10**6}, r"workers must be at most 4096 \(threads\), not 1000000: .*pass a concurrent.futures.Executor"),
        ({"x0": np.full(6, 1e300)}, r"x0 must have entries of a size below 1e\+300, but x0\[0\] is 1e\+300: measure the variable in a larger unit"),
    ],
)  # fmt: skip
def test_what_is_too_large_is_refused_before_anything_is_allocated(named, words, monkeypatch):
    monkeypatch.setattr(capacity, "installed", lambda: 64 * 10**9)
    calls = []

    def component(x, i=0):
        calls.append(i)
        return 0.0

    with pytest.raises(ValueError, match=words):
        zt.minimize(component, **{"x0": 6, "k": 2, "budget": 100, "method": zt.SZOHT(eta=0.1), "seed": 0, **named})
    assert calls == []


def test_a_method_that_draws_a_few_components_may_have_more_than_fit_into_memory():
    result = zt.minimize(
        lambda x, i: float(((x - 1) ** 2).sum()),
        6,
        2,
        n=2**53,
        budget=100,
        method=zt.SZOHT(0.01),
        monitor=lambda x: 0.0,
        seed=0,
    )
    assert result.success
    with pytest.raises(ValueError, match="a round of 9007199254740992 components needs at least"):
        zt.minimize(
            lambda x, i: 0.0, 6, 2, n=2**53, budget=10**30, method=zt.FGZOHT(0.01), monitor=lambda x: 0.0, seed=0
        )


def test_a_machine_that_does_not_say_how_much_memory_it_has_is_taken_for_a_large_one(monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert capacity.installed() == 2**46
    with pytest.raises(ValueError, match=r"this machine has 70\.4 TB"):
        capacity.need(2**47, "all of this", "take less")


CONSTRAINTS = [{}, {"groups": [0, 1, 2]}, {"bounds": (-1e308, 1e308)}, {"bounds": (0, None)}, {"include": [0]}]


@pytest.mark.parametrize("named", CONSTRAINTS, ids=str)
def test_a_start_at_the_end_of_the_numbers_is_refused_under_every_constraint(named):
    given = {"k": 1, "budget": 100, "method": "zo-adamm", "options": {"eta": 0.1}, **named}
    with pytest.raises(ValueError, match="x0 must have entries of a size below"):
        zt.minimize(lambda x: 0.0, np.full(3, 1e300), **given)
    for size in (1e299, 1e155, 1e100):
        with (
            pytest.warns(UserWarning, match="x0 has 3 non-zero"),
            pytest.raises(ValueError, match=r"mu = 0\.001 is so small"),
        ):
            zt.minimize(lambda x: 0.0, np.full(3, size), **given)


@pytest.mark.parametrize("size", [1e299, 1e200, 1e155, 1e-170, 1e-300])
@pytest.mark.parametrize("named", CONSTRAINTS, ids=str)
def test_a_start_of_any_other_size_can_be_gone_on_from(named, size):
    objective = Counted("waves", 3, None)
    result = zt.minimize(objective.form(), np.array([0.0, size, 0.0]), 2, budget=100, seed=0, **named)
    assert result.nfev == objective.calls > 0
    assert not objective.complaints
    assert result.status is not zt.Status.METHOD_FAILED


@pytest.mark.parametrize(
    "method", ["szoht", "fgzoht", "vr-szht", "sarah-szht", "saga-szht", "p-saga-szht", "lsvrg-szht", "pm-szht", "auto"]
)
@pytest.mark.parametrize("named", [{}, {"bounds": (-1e308, 1e308)}, {"groups": [0, 0, 1, 1]}])
@pytest.mark.parametrize("difference", ["forward", "central"])
def test_values_at_the_end_of_the_numbers_end_a_run_without_a_warning(method, named, difference):
    options = {} if method == "auto" else {"eta": 1e300}
    objective = Counted("cliff", 4, None)
    result = zt.minimize(
        objective.form(),
        4,
        2,
        budget=200,
        seed=0,
        method=method,
        options=options,
        estimator=zt.Estimator(difference=difference),
        **named,
    )
    assert result.nfev == objective.calls
    assert result.status in (zt.Status.BUDGET, zt.Status.CONVERGED, zt.Status.DIVERGED)
    assert not objective.complaints


def test_a_batch_beyond_n_is_refused_even_where_the_first_step_does_not_draw_it():
    objective = Counted("squares", 6, 2)
    for method in (zt.SARAHSZHT(0.1, batch=3), zt.VRSZHT(0.1, batch=3), zt.methods.ZOSPIDER(0.1, batch=3)):
        with pytest.raises(
            ValueError, match="cannot draw 3 different components out of n = 2: take a batch of at most 2"
        ):
            zt.minimize(objective.form(), 6, 2, n=2, budget=600, method=method, seed=0)
    assert objective.calls == 0


# What an objective returns.


def test_returned_values_of_any_kind_are_numbers_or_refused_with_a_sentence():
    assert scalar(10**30) == 1e30
    assert scalar(np.float32(0.5)) == 0.5
    assert scalar(np.ma.masked_array([2.0], [False])) == 2.0
    assert vector([10**30, 1], 2).tolist() == [1e30, 1.0]
    for value in JUNK:
        for read in (scalar, lambda value: vector(value, 5)):
            try:
                read(value)
            except BadValue as refusal:
                check_refusal(refusal)


def test_a_problem_class_instead_of_a_problem_is_refused():
    class Own:
        d, n = 3, 2

        def values(self, points, components):
            return np.zeros(len(points))

    with pytest.raises(ValueError, match="fun must be a problem object, not the class Own: pass an instance"):
        zt.minimize(Own, 3, 1, budget=60)
    assert zt.minimize(Own(), None, 1, budget=60, seed=0).status.success


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (
            {"monitor": lambda: 0.0},
            r"monitor has the signature <lambda>\(\), but it is called as monitor\(x\): too many",
        ),
        (
            {"callback": lambda: 0.0},
            r"callback has the signature <lambda>\(\), but it is called as callback\(progress\)",
        ),
        ({"cost": lambda: 0.0}, r"cost has the signature <lambda>\(\), but it is called as cost\(i\)"),
        ({"cost": lambda i: 1 / 0}, r"cost\(0\) raised ZeroDivisionError"),
        ({"cost": lambda i: None}, r"cost\(0\) is None; a cost must be a finite number of at least 0"),
    ],
)
def test_functions_that_cannot_be_called_as_they_will_be_are_refused(named, words):
    with pytest.raises(ValueError, match=words):
        zt.minimize(lambda x: 0.0, 3, 1, budget=60, **named)

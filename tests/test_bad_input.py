"""Every wrong argument gets a sentence that says what was given and what is allowed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from zoo import OF_VALUES, instance

import zerothresh as zt


def f(x):
    return float(((x - 1) ** 2).sum())


def component(x, i):
    return float(((x - i) ** 2).sum())


def go(fun=f, x0=6, k=2, **options):
    made: dict = {"budget": 500, "method": zt.SZOHT(eta=0.05), "seed": 0}
    return zt.minimize(fun, x0, k, **{**made, **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, r"k must be at least 1 .*, not 0"),
        ({"k": -3}, r"k must be at least 1 .*, not -3"),
        ({"k": 2.5}, r"k must be a whole number of at least 1 .*, not 2.5"),
        ({"k": True}, r"k must be a whole number"),
        ({"k": 7}, r"k = 7 is larger than the dimension d = 6: take k from 1 to 6"),
        ({"fun": component, "n": 0}, r"n must be at least 1 .*, not 0"),
        ({"fun": component, "n": -1}, r"n must be at least 1"),
        ({"fun": component, "n": 2.5}, r"n must be a whole number"),
        ({"budget": 0}, r"budget must be at least 1"),
        ({"budget": 1e3}, r"budget must be a whole number of at least 1 .*, not 1000.0"),
        ({"budget": 11}, r"budget = 11 is too small: the first step of szoht needs 11 calls, and F at the result 1 more"),
        ({"x0": 0}, r"the dimension d .* must be at least 1"),
        ({"x0": -4}, r"the dimension d .* must be at least 1, .*not -4"),
        ({"x0": 2.5}, r"x0 must be a vector of shape \(d,\) or the dimension d as a whole number, not 2.5"),
        ({"x0": "30"}, r"not '30'"),
        ({"x0": True}, r"not True"),
        ({"method": "COBYLA"}, r"not 'COBYLA'"),
        ({"backoff": -1}, r"backoff must be a finite number of at least 0 \(seconds\), not -1"),
        ({"bounds": (1, -1)}, r"the lower bound is above the upper one"),
        ({"bounds": (np.nan, 1)}, r"NaN is not allowed"),
        ({"bounds": [(-1, 1)] * 6}, r"convert a list of d pairs"),
        ({"run": 3}, r"run must be the path of a folder, not 3"),
        ({"run": b"x"}, r"run must be the path of a folder, not b'x'"),
        ({"run": "a\0b"}, r"it contains a null character"),
        ({"run": ""}, r"run must be the path of a folder, not ''"),
        ({"run": "x" * 300}, r"the run folder x+ cannot be used \(File name too long\)"),
        ({"x0": np.zeros((2, 3))}, r"x0 must be a vector of shape \(d,\) .* not of shape \(2, 3\)"),
        ({"x0": []}, r"x0 must be a vector .* not of shape \(0,\)"),
        ({"x0": np.zeros(6, complex)}, r"x0 must hold real numbers, not complex128"),
        ({"x0": ["a"] * 6}, r"x0 must hold real numbers"),
        ({"x0": np.array([None] * 6)}, r"x0 must hold real numbers, not object"),
        ({"x0": [[1.0], [1.0, 2.0]]}, r"x0 must be a vector of d numbers .* ragged"),
        ({"x0": [0, 1, np.nan, 0, 0, 0]}, r"x0 must be finite, but x0\[2\] is nan"),
        ({"x0": [0, np.inf, 0, 0, 0, 0]}, r"x0 must be finite, but x0\[1\] is inf"),
        ({"x0": None}, r"x0 must be the start"),
        ({"method": "vr-shzt"}, r"method must be one of .* did you mean 'vr-szht'"),
        ({"method": "SZHOT"}, r"did you mean 'szoht'"),
        ({"method": "vr-szht"}, r"vr-szht needs eta: pass an instance, method=zt.VRSZHT\(eta=...\)"),
        ({"method": "vr-szht", "options": {"eta": 0.1, "M": 3}}, r"a hyper-parameter of vr-szht must be one of 'eta', 'm'"),
        ({"method": zt.SZOHT(0.1), "options": {"eta": 1}}, r"options are the hyper-parameters for a method that is given by name"),
        ({"method": "auto", "options": {"eta": 0.1}}, r"a hyper-parameter of auto must be one of 'patience', not 'eta'"),
        ({"method": "index", "options": {"eta": 0.1}}, r"index has no hyper-parameters, but 'eta' was given: leave it out"),
        ({"patience": 0}, r"patience must be .*calls without a gain"),
        ({"method": "htp", "patience": 9}, r"patience goes with method='auto'; htp runs until its budget is spent"),
        ({"method": "niht", "options": {"step": "fast"}}, r"step must be one of 'exact', 'bb', not 'fast'"),
        ({"method": 3}, r"method must be a name .* not 3"),
        ({"estimator": "sphere"}, r"estimator must be a zt.Estimator"),
        ({"estimator": zt.Estimator(s2=7)}, r"s2 = 7 is larger than the dimension d = 6: take s2 from 1 to 6"),
        ({"estimator": zt.Estimator(mu=1e-18), "x0": [1.0, 0, 0, 0, 0, 0]}, r"mu = 1e-18 is so small that theta \+ mu u = theta"),
        ({"estimator": zt.Estimator(mu=1e-309)}, r"mu = 1e-309 is so small"),
        ({"seed": -1}, r"seed must be a whole number of at least 0, not -1"),
        ({"seed": "x"}, r"seed must be a whole number"),
        ({"workers": 0}, r"workers must be at least 1 \(threads\), or a concurrent.futures.Executor, not 0"),
        ({"workers": "two"}, r"workers must be a whole number"),
        ({"fun": 3}, r"fun must be a function of x \(or of x and i\), or a problem object"),
        ({"fun": component}, r"fun has the signature component\(x, i\), but it is called as component\(x\).*pass n="),
        ({"n": 4}, r"fun has the signature f\(x\), but it is called as f\(x, i\).*leave n out"),
        ({"fun": lambda: 0.0}, r"but it is called as"),
        ({"fun": component, "n": 3, "method": zt.SZOHT(0.1, batch=4)}, r"cannot draw 4 different components out of n = 3"),
        ({"chunk": 0, "vectorized": True}, r"chunk must be at least 1"),
        ({"bounds": (1, 2)}, r"bounds of coordinate 0 are \[1, 2\]; they must contain 0"),
    ],
)  # fmt: skip
def test_a_wrong_argument_raises_before_any_call(options, words):
    with pytest.raises(ValueError, match=words):
        go(**options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: zt.Estimator(q=0), r"q must be at least 1 .*, not 0"),
        (lambda: zt.Estimator(q=1.5), r"q must be a whole number"),
        (lambda: zt.Estimator(mu=0), r"mu must be a finite number above 0 .*, not 0.0"),
        (lambda: zt.Estimator(mu=-1), r"mu must be a finite number above 0"),
        (lambda: zt.Estimator(mu=np.nan), r"mu must be a finite number above 0"),
        (lambda: zt.Estimator(mu="small"), r"mu must be a number above 0"),
        (lambda: zt.Estimator(s2=0), r"s2 must be at least 1"),
        (lambda: zt.Estimator(difference="backward"), r"difference must be one of 'forward', 'central', not 'backward'"),
        (lambda: zt.Estimator(directions="spere"), r"directions must be one of .* did you mean 'sphere'"),
        (lambda: zt.Estimator(directions="coordinate", s2=2), r"s2 = 2 does not fit directions='coordinate'"),
        (lambda: zt.Estimator(shared="yes"), r"shared must be True or False"),
        (lambda: zt.SZOHT(eta=0), r"eta must be a finite number above 0 .*, not 0.0"),
        (lambda: zt.FGZOHT(eta=-0.1), r"eta must be a finite number above 0"),
        (lambda: zt.VRSZHT(eta=np.inf), r"eta must be a finite number above 0"),
        (lambda: zt.SARAHSZHT(eta="0.1"), r"eta must be a number above 0 .*, not '0.1'"),
        (lambda: zt.SZOHT(0.1, batch=0), r"batch must be at least 1"),
        (lambda: zt.VRSZHT(0.1, m=0), r"m must be at least 1 .*, not 0"),
        (lambda: zt.VRSZHT(0.1, output="first"), r"output must be one of 'last', 'random', not 'first'"),
        (lambda: zt.SARAHSZHT(0.1, m=1.5), r"m must be a whole number"),
        (lambda: zt.PSAGASZHT(0.1, p=0), r"p must be at least 1"),
        (lambda: zt.PSAGASZHT(0.1, p=2, batch=3), r"batch = 3 is larger than p = 2"),
        (lambda: zt.LSVRGSZHT(0.1, p=0), r"p must be a finite number above 0"),
        (lambda: zt.PMSZHT(0.1, law="saga"), r"law must have a function sample"),
        (lambda: zt.methods.NIHT(step="fast"), r"step must be one of 'exact', 'bb', not 'fast'"),
        (lambda: zt.methods.NIHT(momentum=1), r"momentum must be True or False, not 1"),
        (lambda: zt.methods.HTP(exchanges=-1), r"exchanges must be at least 0 .*, not -1"),
        (lambda: zt.methods.HTP(exchanges=1.5), r"exchanges must be a whole number"),
    ],
)  # fmt: skip
def test_a_wrong_hyper_parameter_raises_when_the_object_is_made(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("name", OF_VALUES)
def test_a_budget_too_small_for_one_step_says_how_much_one_step_needs(name):
    program = (
        issubclass(zt.methods.available()[name], zt.Program) or name == "ada-zoro"
    )  # what a step takes is not known before
    method = instance(name)
    problem = zt.problems.ridge(seed=0)
    with pytest.raises(ValueError, match=r"take a budget of at least (\d+)") as error:
        zt.minimize(problem, None, 2, budget=3, method=method, seed=0)
    needed = int(str(error.value).split("budget of at least ")[1].split(",")[0])
    result = zt.minimize(problem, None, 2, budget=needed, method=method, seed=0)
    assert result.nit >= (0 if program else 1)
    assert result.nfev == needed or (program and result.nfev < needed)  # which may know F at the result by then
    with pytest.raises(ValueError, match="is too small"):
        zt.minimize(problem, None, 2, budget=needed - 1, method=method, seed=0)


def test_without_a_method_or_with_none_it_is_auto():
    assert zt.minimize(f, 6, 2, budget=200, seed=0).method == zt.methods.Auto()
    assert go(method=None).method == zt.methods.Auto()
    assert zt.Optimizer(6, 2, budget=200, seed=0).task.method == zt.methods.Auto()


def test_k_equal_to_d_is_allowed_and_says_that_nothing_is_thresholded():
    with pytest.warns(UserWarning, match="k = d = 6: all coordinates may be non-zero, so nothing is thresholded"):
        result = go(k=6, budget=2000)
    assert result.fun < 1e-2


def test_a_start_denser_than_k_is_thresholded_with_a_warning():
    with pytest.warns(
        UserWarning, match="x0 has 6 non-zero coordinates, more than k = 2 allows: only its k largest entries are kept"
    ):
        result = go(x0=np.arange(1.0, 7.0))
    assert np.count_nonzero(result.x) <= 2


def test_a_start_outside_the_bounds_is_moved_with_a_warning():
    with pytest.warns(UserWarning, match="x0 is outside the bounds"):
        go(x0=[5.0, 0, 0, 0, 0, 0], bounds=(-1, 1))


def test_rademacher_directions_that_tie_are_warned_of():
    with pytest.warns(UserWarning, match="many coordinates of an estimate are equal in size"):
        go(x0=64, estimator=zt.Estimator(q=4, directions="rademacher"))


def test_the_users_start_is_not_changed():
    x0 = np.array([0.0, 0, 0, 2.0, 0, 0])
    go(x0=x0)
    assert x0.tolist() == [0, 0, 0, 2, 0, 0]
    assert x0.flags.writeable


@pytest.mark.parametrize("x0", [[0, 0, 1, 0, 0, 0], np.zeros(6, np.float32), np.zeros(6, int), (0.0,) * 6])
def test_starts_of_other_kinds_are_understood(x0):
    assert go(x0=x0).success


def test_a_problem_that_disagrees_with_the_arguments_is_refused():
    problem = zt.problems.ridge(seed=0)
    with pytest.raises(ValueError, match="x0 has length 6, but the problem has d = 5"):
        go(problem, 6)
    with pytest.raises(ValueError, match="n = 3 was given, but the problem has n = 10"):
        go(problem, None, n=3)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda opt, batch: opt.tell(batch, [1.0]), r"tell received shape \(1,\) for 11 points; it takes shape \(11,\)"),
        (lambda opt, batch: opt.tell(batch, None), r"None"),
        (lambda opt, batch: opt.tell(batch, np.full(11, np.nan)), r"nan .*can be told again"),
        (lambda opt, batch: opt.tell(batch, ["a"] * 11), r"tell received dtype <U1; it takes real numbers"),
        (lambda opt, batch: opt.tell(np.zeros(11), batch), r"tell takes the batch that this optimiser's ask\(\) gave"),
        (lambda opt, batch: opt.tell(zt.Optimizer(6, 2, budget=99, method=zt.SZOHT(0.1)).ask(), np.zeros(11)), r"this optimiser's"),
    ],
)  # fmt: skip
def test_a_wrong_tell_changes_nothing(act, words):
    opt = zt.Optimizer(6, 2, budget=99, method=zt.SZOHT(0.1), seed=0)
    batch = opt.ask()
    with pytest.raises(ValueError, match=words):
        act(opt, batch)
    assert opt.ask() is batch
    assert opt.nfev == 0
    opt.tell(batch, [f(x) for x in batch.points])
    assert opt.nfev == 11


def test_telling_twice_and_asking_after_the_end_are_refused():
    opt = zt.Optimizer(6, 2, budget=23, method=zt.SZOHT(0.1), seed=0)
    batch = opt.ask()
    opt.tell(batch, np.ones(len(batch)))
    with pytest.raises(ValueError, match="has been told already"):
        opt.tell(batch, np.ones(len(batch)))
    while not opt.done:
        batch = opt.ask()
        opt.tell(batch, np.ones(len(batch)))
    with pytest.raises(RuntimeError, match="the run has ended"):
        opt.ask()
    assert opt.nfev == 23


def test_good_arguments_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert go().success

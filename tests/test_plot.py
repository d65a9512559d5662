from __future__ import annotations

import builtins
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot
import numpy as np
import pytest

import zerothresh as zt

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    """No figure stays open: matplotlib warns of more than 20."""
    yield
    matplotlib.pyplot.close("all")


def runs(method, count=3):
    problem = zt.problems.ridge(seed=0)
    return [zt.minimize(problem, None, 3, budget=2000, method=method, seed=s, monitor=problem.F) for s in range(count)]


def test_a_result_draws_value_against_izo_and_nht():
    figure = runs(zt.SZOHT(0.02), 1)[0].plot()
    left, right = figure.axes
    assert "IZO" in left.get_xlabel()
    assert "NHT" in right.get_xlabel()
    assert left.lines[0].get_xdata()[-1] > right.lines[0].get_xdata()[-1]


def line(axis, label):
    """The line of a legend's label."""
    return {found.get_label(): found for found in axis.lines}[label]


def test_a_result_draws_the_lowest_value_so_far_beside_the_trace():
    result = runs(zt.SZOHT(0.1), 1)[0]
    fun = result.trace.fun
    assert (np.diff(fun) > 0).any()  # otherwise the two lines would be the same
    figure = result.plot(title="a run")
    labels = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert labels == ["szoht", "best so far"]
    for axis, column in zip(figure.axes, ("nfev", "nht"), strict=True):
        trace, best = line(axis, "szoht"), line(axis, "best so far")
        assert np.array_equal(trace.get_ydata(), fun)
        assert best.get_ydata().tolist() == [fun[: step + 1].min() for step in range(fun.size)]
        assert np.array_equal(best.get_xdata(), getattr(result.trace, column))
        assert best.get_linewidth() < trace.get_linewidth()
        assert best.get_drawstyle() == "steps-post"
    without = result.plot(best=False)
    assert [found.get_label() for found in without.axes[0].lines] == ["szoht"]


def test_unknown_values_are_left_out_of_both_lines():
    values = iter([3.0, np.nan, 2.0, np.inf, 2.5, np.nan, 1.0])
    result = runs(zt.SZOHT(0.02), 1)[0]
    trace = zt.Trace()
    for step, value in enumerate(values, start=1):
        trace.append(step=step, nfev=11 * step, nht=step, fun=value, support=np.array([0]))
    result.trace = trace
    axis = result.plot().axes[0]
    assert line(axis, "szoht").get_ydata().tolist() == [3.0, 2.0, 2.5, 1.0]
    assert line(axis, "best so far").get_ydata().tolist() == [3.0, 2.0, 2.0, 1.0]
    assert line(axis, "best so far").get_xdata().tolist() == [11, 33, 55, 77]


def test_an_empty_trace_is_refused_with_the_reason():
    result = runs(zt.SZOHT(0.02), 1)[0]
    result.trace = zt.Trace()
    with pytest.raises(ValueError, match="made no step: there is nothing to draw"):
        result.plot()


def test_the_best_so_far_of_several_runs_is_the_mean_of_their_lowest_values():
    results = runs(zt.SZOHT(0.1))
    figure = zt.plot.compare(results + runs(zt.VRSZHT(0.02)), best=True)
    drawn = line(figure.axes[0], "szoht, best so far")
    at = drawn.get_xdata()[-1]
    lowest = [r.trace.fun[r.trace.nfev <= at].min() for r in results]
    assert drawn.get_ydata()[-1] == pytest.approx(np.mean(lowest))
    assert len(figure.axes[0].lines) == 4


def test_compare_draws_mean_and_standard_deviation_over_the_runs_of_a_method():
    results = runs(zt.SZOHT(0.02)) + runs(zt.VRSZHT(0.02))
    figure = zt.plot.compare(results)
    labels = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert labels == ["szoht", "vr-szht"]
    at, mean, deviation = zt.plot.curve(results[:3], "nfev")
    last = [r.trace.fun[np.searchsorted(r.trace.nfev, at[-1], side="right") - 1] for r in results[:3]]
    assert mean[-1] == pytest.approx(np.mean(last))
    assert deviation[-1] == pytest.approx(np.std(last))
    assert len(figure.axes[0].collections) == 2  # two bands


def test_a_band_on_a_logarithmic_axis_lies_between_quantiles_and_does_not_reach_for_zero():
    results = runs(zt.SZOHT(0.1), 6)
    lowest = min(r.trace.fun.min() for r in results) - 1e-9  # the deviation is then larger than the mean
    figure = zt.plot.compare({"mine": results}, optimum=lowest, log=True)
    drawn = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    at = zt.plot.curve(results, "nfev")[0]
    rows = [r.trace.fun[np.searchsorted(r.trace.nfev, at, side="right") - 1] - lowest for r in results]
    low, high = np.percentile(rows, [10, 90], axis=0)
    assert drawn.min() == pytest.approx(low.min())
    assert drawn.max() == pytest.approx(high.max())
    linear = zt.plot.compare({"mine": results}, optimum=lowest, log=False)
    _, mean, deviation = zt.plot.curve(results, "nfev", lowest)
    band = linear.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx((mean + deviation).max())


def invented(status, *points):
    """A run with a trace of pairs of calls and values."""
    trace = zt.Trace()
    for step, (nfev, value) in enumerate(points, start=1):
        trace.append(step=step, nfev=nfev, nht=step, fun=value, support=np.array([0]))
    return SimpleNamespace(trace=trace, status=status)


LONG = [invented("BUDGET", (10, 5.0), (500, 3.0), (1000, 2.0))]


def test_a_method_that_stopped_by_itself_goes_on_at_what_its_runs_have_found():
    early = [invented("CONVERGED", (10, 4.0), (100, 0.5)), invented("CONVERGED", (10, 4.0), (100, 1.0), (400, 0.1))]
    axis = zt.plot.compare({"early": early, "long": LONG}, best=True).axes[0]
    drawn, mark = line(axis, "early"), next(found for found in axis.lines if found.get_marker() == "o")
    assert drawn.get_xdata()[-1] == 1000
    assert drawn.get_ydata()[-1] == pytest.approx((0.5 + 0.1) / 2)  # not the mean where the first of them stopped
    assert line(axis, "early, best so far").get_xdata()[-1] == 1000
    assert mark.get_xdata()[0] == (100 + 400) / 2
    assert mark.get_ydata()[0] == pytest.approx((0.5 + 1.0) / 2)
    assert sum(found.get_marker() == "o" for found in axis.lines) == 1
    single = zt.plot.compare({"early": early[:1], "long": LONG}).axes[0]
    assert line(single, "early").get_xdata().tolist() == [10, 100, 1000]


@pytest.mark.parametrize("status", ["BUDGET", "DIVERGED", "INTERRUPTED", "FAILED"])
def test_a_run_that_ended_otherwise_is_not_continued(status):
    axis = zt.plot.compare({"early": [invented(status, (10, 4.0), (100, 0.5))], "long": LONG}).axes[0]
    assert line(axis, "early").get_xdata().tolist() == [10, 100]
    assert not any(found.get_marker() == "o" for found in axis.lines)


def test_results_of_auto_are_continued():
    problem = zt.problems.ridge(seed=0)
    early = [zt.minimize(problem, None, 3, budget=2000, method="auto", seed=s, monitor=problem.F) for s in range(3)]
    assert {result.status for result in early} == {zt.Status.CONVERGED}
    long = runs(zt.SZOHT(0.02))
    axis = zt.plot.compare({"auto": early, "szoht": long}).axes[0]
    assert line(axis, "auto").get_xdata()[-1] == max(r.trace.nfev[-1] for r in long)


def test_labels_can_be_given_and_the_optimum_taken_off():
    problem = zt.problems.ridge(seed=0)
    _, lowest = problem.optimum(3)
    figure = zt.plot.compare({"mine": runs(zt.FGZOHT(0.05))}, optimum=lowest, title="ridge")
    assert figure.axes[0].get_yscale() == "log"
    assert "F^*" in figure.axes[0].get_ylabel()


def test_runs_without_values_say_what_to_do():
    result = zt.minimize(lambda x, i: float(x @ x), 4, 2, n=3, budget=200, method=zt.SZOHT(0.1), seed=0)
    with pytest.raises(ValueError, match="pass monitor=F to minimize"):
        result.plot()
    with pytest.raises(ValueError, match="no results to draw"):
        zt.plot.compare([])


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    real = builtins.__import__

    def missing(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    result = runs(zt.SZOHT(0.02), 1)[0]
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"zerothresh\[plot\]"):
        result.plot()


def bent(x):
    goal = np.linspace(-1.0, 2.0, 30)
    return float(np.log1p(((x - goal) ** 2).sum()) + (1 - np.cos(x - goal)).sum())


@pytest.fixture(scope="module")
def raced():
    return zt.minimize(bent, 30, 4, budget=600, seed=0)


def test_the_arms_of_auto_are_drawn_below_the_lowest_value(raced):
    figure = raced.plot(kind="arms")
    above, below = figure.axes
    fun = raced.trace.fun
    drawn = above.lines[0]
    assert drawn.get_ydata().tolist() == [*np.minimum.accumulate(fun), fun.min()]
    assert drawn.get_xdata().tolist() == [*raced.trace.nfev, raced.nfev]
    names = list(dict.fromkeys(name for _, name in raced.stages))
    assert [text.get_text() for text in below.get_yticklabels()] == names
    assert above.get_xlim() == (0, raced.nfev)
    numbers = [int(text.get_text().split()[0].replace(",", "")) for text in below.texts]
    assert sum(numbers) == raced.nfev  # each call was made for one strategy
    wide = [
        bar.vertices[:, 0].max() - bar.vertices[:, 0].min() for bars in below.collections for bar in bars.get_paths()
    ]
    assert sum(wide) == raced.nfev


def test_each_new_lowest_value_has_a_dot_in_the_colour_of_the_strategy_that_found_it(raced):
    above, below = raced.plot(kind="arms").axes
    dots = {found.get_color(): found.get_xdata().tolist() for found in above.lines[1:]}
    lowest = np.minimum.accumulate(raced.trace.fun)
    assert (
        sorted(at for found in dots.values() for at in found)
        == raced.trace.nfev[np.append(True, np.diff(lowest) < 0)].tolist()
    )
    colours = {text.get_text(): text.get_color() for text in below.get_yticklabels()}
    begins = np.array([begin for begin, _ in raced.stages])
    for name, colour in colours.items():
        found_by = [raced.stages[int(np.searchsorted(begins, calls)) - 1][1] for calls in dots[colour]]
        assert set(found_by) <= {name}


def test_the_arms_are_drawn_above_a_known_optimum_and_on_either_scale(raced):
    low = raced.fun - 1e-3
    above = zt.plot.arms(raced, optimum=low).axes[0]
    assert above.lines[0].get_ydata()[-1] == pytest.approx(1e-3)
    assert "F^*" in above.get_ylabel()
    assert above.get_yscale() == "log"
    assert zt.plot.arms(raced, optimum=raced.fun - 1e6).axes[0].get_yscale() == "linear"  # less than a decade
    assert zt.plot.arms(raced, optimum=raced.fun + 1.0).axes[0].get_yscale() == "linear"  # some values are below 0
    assert zt.plot.arms(raced, optimum=low, log=False).axes[0].get_yscale() == "linear"
    assert raced.plot(kind="arms", optimum=low, log=True).axes[0].get_yscale() == "log"


def test_arms_that_cannot_be_drawn_are_refused_with_the_reason(raced, monkeypatch):
    other = runs(zt.SZOHT(0.02), 1)[0]
    with pytest.raises(ValueError, match="no strategies to draw: only runs of method='auto' have them"):
        other.plot(kind="arms")
    with pytest.raises(ValueError, match="no strategies to draw"):
        zt.plot.arms(SimpleNamespace(trace=zt.Trace(), nfev=3))
    with pytest.raises(ValueError, match="kind must be one of 'history', 'arms'"):
        raced.plot(kind="legs")
    with pytest.raises(ValueError, match="optimum must be"):
        raced.plot(kind="arms", optimum=np.nan)
    with pytest.raises(ValueError, match="log must be"):
        raced.plot(kind="arms", log="yes")
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'zerothresh\[plot\]'"):
        raced.plot(kind="arms")


def test_a_run_of_auto_whose_values_are_unknown_still_shows_its_arms(raced):
    unknown = zt.Trace()
    unknown.append(step=1, nfev=40, nht=1, fun=np.nan, support=np.array([0]))
    shown = SimpleNamespace(stages=raced.stages, nfev=raced.nfev, trace=unknown)
    above, below = zt.plot.arms(shown).axes
    assert not above.lines
    assert below.collections

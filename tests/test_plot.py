from __future__ import annotations

import builtins

import matplotlib
import numpy as np
import pytest

import zerothresh as zt

matplotlib.use("Agg")


def runs(method, count=3):
    problem = zt.problems.ridge(seed=0)
    return [zt.minimize(problem, None, 3, budget=2000, method=method, seed=s, monitor=problem.F) for s in range(count)]


def test_a_result_draws_value_against_izo_and_nht():
    figure = runs(zt.SZOHT(0.02), 1)[0].plot()
    left, right = figure.axes
    assert "IZO" in left.get_xlabel()
    assert "NHT" in right.get_xlabel()
    assert left.lines[0].get_xdata()[-1] > right.lines[0].get_xdata()[-1]


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

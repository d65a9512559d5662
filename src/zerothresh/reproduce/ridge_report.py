"""The ridge comparison in words and numbers: for the terminal and for the report folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from zerothresh import report
from zerothresh.reproduce.compare import Trial
from zerothresh.reproduce.ridge import RidgeComparison, eta_of

EXPERIMENT = "ridge"
HEADER = ("method", "eta", "F at the end", "F - F*", "#IZO", "#NHT", "support")


def rows(comparison: RidgeComparison) -> list[list[str]]:
    """A row a method, under `HEADER`, as text."""
    out = []
    for contender in comparison.contenders:
        best = contender.best
        right = f"{best.with_support(comparison.optimum_x)} of {len(best.runs)}"
        gap = best.mean - comparison.optimum
        counts = [f"{best.nfev:,.0f}", f"{best.nht:,.0f}"]
        out.append([contender.label, f"{eta_of(best.method):g}", _end(best), _short(gap), *counts, right])
    return out


def write(comparison: RidgeComparison, folder: Path) -> list[Path]:
    """Write the report folder, which `report.prepare` has accepted."""
    return report.write(folder, _report(comparison))


def _report(comparison: RidgeComparison) -> report.Report:
    problem, setting, estimator = comparison.problem, comparison.setting, comparison.setting.estimator
    support = ", ".join(str(j) for j in np.flatnonzero(comparison.optimum_x))
    runs = len(comparison.seeds)
    etas = ", ".join(f"{eta:g}" for eta in comparison.etas)
    lead = [
        f"The synthetic ridge regression of Yuan et al. (ICLR 2024, Section 5): n = {problem.n} components, "
        f"d = {problem.d} coordinates of which at most k = {setting.k} may be non-zero, λ = {problem.lam:g}. Every "
        f"method has {setting.budget:,} calls of a single component (#IZO), and the best of {len(comparison.etas)} "
        f"learning rates, by F at the end averaged over {runs} runs.",
        f"The best k-sparse point, found by trying every support, has F* = {comparison.optimum:.6f} and the "
        f"support {{{support}}}. “Support” counts the runs that end with it.",
    ]
    apart = "the same for all components of a round" if estimator.common else "drawn afresh for each component"
    shared = "shared by" if estimator.shared else "independent in"
    notes = [
        f"One problem, drawn with seed {comparison.seed}, serves all methods and runs; the runs differ in the seed of "
        f"the algorithm ({', '.join(map(str, comparison.seeds))}). The paper does not say whether it draws anew.",
        f"Estimates: q = {estimator.q}, μ = {estimator.mu:g}, s2 = {estimator.s2}, directions from the family "
        f"{estimator.directions!r}, {apart}; {shared} the two estimates inside a difference, on which the paper is "
        "silent.",
        f"η is chosen from {{{etas}}}: the lowest mean of F at the last iterate. A run that diverges has F = ∞.",
        "VR-SZHT and SARAH-SZHT have m = 10; p-SAGA-SZHT refreshes p = 2 rows a step; LSVRG-SZHT refreshes all rows "
        "with probability 1/n. The last two are not in the paper's figure.",
        "F is computed exactly for the curves; these calls are not counted. A round that would exceed the budget is "
        "not begun, so #IZO ends a little below it.",
        "± is the standard deviation over the runs (their number, not one less, is the divisor).",
        f"Computing took {comparison.seconds:.1f} seconds.",
    ]
    return report.Report(
        experiment=EXPERIMENT,
        title="Ridge regression: hard thresholding from values alone",
        lead=lead,
        notes=notes,
        tables=[_results(comparison), _grid(comparison)],
        runs={contender.label: contender.best.runs for contender in comparison.contenders},
        optimum=comparison.optimum,
        manifest={
            "problem": {"n": problem.n, "d": problem.d, "lambda": problem.lam, "seed": comparison.seed},
            "seeds": list(comparison.seeds),
            "options": {
                "k": setting.k,
                "budget": setting.budget,
                "etas": list(comparison.etas),
                "methods": {c.label: repr(c.best.method) for c in comparison.contenders},
                "estimator": asdict(estimator),
            },
            "optimum": {"F": comparison.optimum, "theta": comparison.optimum_x.tolist()},
            "seconds": round(comparison.seconds, 3),
        },
    )


def _results(comparison: RidgeComparison) -> report.Table:
    data = []
    for contender in comparison.contenders:
        best = contender.best
        gap = best.mean - comparison.optimum
        right = best.with_support(comparison.optimum_x)
        numbers = [best.mean, best.deviation, gap, best.nfev, best.nht, right, len(best.runs)]
        data.append([contender.label, eta_of(best.method), *numbers])
    header = ("method", "eta", "F_mean", "F_sd", "gap", "nfev", "nht", "right_support", "runs")
    shown = ("method", "η", "F at the end", "F - F*", "#IZO", "#NHT", "support")
    return report.Table("table.csv", "Results", shown, rows(comparison), header, data)


def _grid(comparison: RidgeComparison) -> report.Table:
    shown, data = [], []
    for contender in comparison.contenders:
        marks = ["* " if trial is contender.best else "" for trial in contender.trials]
        gaps = [_short(trial.mean - comparison.optimum) for trial in contender.trials]
        shown.append([contender.label, *(mark + gap for mark, gap in zip(marks, gaps, strict=True))])
        for trial in contender.trials:
            for run, end in zip(trial.runs, trial.ends, strict=True):
                data.append([contender.label, eta_of(trial.method), run.seed, end, run.status.name, run.nfev, run.nht])
    header = ("method", "eta", "seed", "F_end", "status", "nfev", "nht")
    columns = ("method", *(f"η = {eta:g}" for eta in comparison.etas))
    return report.Table(
        "grid.csv", "The grid search: mean of F - F* at the end (* chosen)", columns, shown, header, data
    )


def _end(trial: Trial) -> str:
    if not np.isfinite(trial.mean):
        return "diverged"
    mean = f"{trial.mean:.6f}" if trial.mean < 1e3 else f"{trial.mean:.3g}"
    return f"{mean} ± {trial.deviation:.1e}"


def _short(gap: float) -> str:
    return f"{gap:.1e}" if np.isfinite(gap) else "diverged"

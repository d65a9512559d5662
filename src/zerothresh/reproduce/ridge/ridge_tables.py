"""The tables of a ridge study: as in the paper, fresh runs, switches, the search for the learning rates, all runs."""

from __future__ import annotations

import numpy as np

from zerothresh.comparison.cell import Subject
from zerothresh.comparison.summary import UNKNOWN, mean, median, ratio, share
from zerothresh.reports.tables import ReportTable, interval, short, with_deviation
from zerothresh.reproduce.ridge.cases import paired
from zerothresh.reproduce.ridge.study import RaceResult, Study, cell_of

_ESTIMATE = ("own", "low", "high")  # the columns of an own-support error with its interval


def tables(study: Study) -> list[ReportTable]:
    """Return all tables of a study that have rows."""
    built = [as_in_the_paper(study), with_fresh_runs(study), switches(study), ladders(study), grid(study), runs(study)]
    return [table for table in built if table.data]


def _rate(eta: float) -> str:
    """Format a learning rate; `auto` has none, which NaN stands for."""
    return f"{eta:g}" if eta == eta else "-"


def _plain(study: Study, fresh: bool) -> list[RaceResult]:
    """Return the results without a switch in the panels of the paper, with or without fresh runs."""
    results = []
    for panel in study.experiment.panels:
        for label in study.labels():
            result = study.find(label, panel, fresh=fresh)
            if result is not None:
                results.append(result)
    return results


def as_in_the_paper(study: Study) -> ReportTable:
    """Return the table of the runs that chose the learning rates, which is all that the paper has."""
    rows, data = [], []
    for result in _plain(study, fresh=False):
        entry, measures = result.race.entry, result.measures(fresh=False)
        ends = np.array([run.end for run in measures.runs])
        nfev, nht = np.mean([run.nfev for run in measures.runs]), np.mean([run.nht for run in measures.runs])
        F_mean, F_sd = ends.mean(), ends.std() if np.isfinite(ends).all() else np.nan
        gap, own, right = measures.gap.mean(), measures.own.mean(), int(measures.right.sum())
        rows.append(
            [
                str(entry.panel),
                entry.label,
                _rate(result.eta),
                with_deviation(F_mean, F_sd),
                short(gap),
                short(own),
                f"{right} of {len(measures.runs)}",
                f"{nfev:,.0f}",
                f"{nht:,.0f}",
            ]
        )
        numbers = map(float, (F_mean, F_sd, gap, own))
        head = [entry.panel.k, entry.panel.q, entry.label, result.eta]
        data.append([*head, *numbers, right, len(measures.runs), float(nfev), float(nht)])
    return ReportTable(
        f"{study.experiment.name}-paper",
        "As in the paper",
        ("panel", "method", "η", "F at the end", "F - F*", "own-support error", "best support", "#IZO", "#NHT"),
        rows,
        ("k", "q", "method", "eta", "F_mean", "F_sd", "gap_mean", "own_mean", "right", "runs", "nfev", "nht"),
        data,
        "η has the lowest mean of F at the end, by the same runs that are shown. ± is one standard deviation over the "
        "runs. “Best support” counts the runs that end with the best support, which was found by trying all of them.",
    )


def with_fresh_runs(study: Study) -> ReportTable:
    """Return the table of fresh runs of the chosen learning rates, with intervals."""
    rows, data = [], []
    for result in _plain(study, fresh=True):
        entry, measures = result.race.entry, result.measures(fresh=True)
        diverged = int(measures.diverged.sum())
        estimates = [mean(measures.gap), median(measures.own), share(int(measures.right.sum()), len(measures.runs))]
        rows.append(
            [
                str(entry.panel),
                entry.label,
                _rate(result.eta),
                interval(estimates[0]),
                interval(estimates[1]),
                interval(estimates[2], "{:.0%}"),
                str(diverged or ""),
            ]
        )
        numbers = [number for e in estimates for number in (e.value, e.low, e.high)]
        head = [entry.panel.k, entry.panel.q, entry.label, result.eta]
        data.append([*head, *numbers, diverged, len(measures.runs)])
    triples = [f"{name}{end}" for name in ("gap_mean", "own_median", "right_share") for end in ("", "_low", "_high")]
    return ReportTable(
        f"{study.experiment.name}-fresh",
        "With more care: fresh runs",
        ("panel", "method", "η", "mean of F - F*", "median own-support error", "best support", "diverged"),
        rows,
        ("k", "q", "method", "eta", *triples, "diverged", "runs"),
        data,
        "Means, medians and shares with 95 % intervals, over runs that did not choose η. The own-support error is F "
        "minus its minimum on the support that the run ends with, so that wrong supports do not enter it. A run that "
        "ends above F(0) has diverged, and counts as a run that ends at F(0).",
    )


def switches(study: Study) -> ReportTable:
    """Return the table of the open choices, one at a time, each against the same entry without the switch."""
    rows, data = [], []
    for result in study.compared():
        entry = result.race.entry
        few_directions = not entry.switch and entry.panel not in study.experiment.panels
        if not result.judged or not (entry.switch or few_directions):
            continue
        measures = result.measures(fresh=True)
        base = study.measures(entry.label, entry.panel) if entry.switch else None
        own, right = median(measures.relative), share(int(measures.right.sum()), len(measures.runs))
        better = UNKNOWN if base is None else ratio(*paired(base, measures, "relative"))
        rows.append(
            [
                str(entry.panel),
                entry.label,
                entry.switch or "few directions",
                _rate(result.eta),
                interval(own),
                "" if base is None else interval(better, "{:.2g}"),
                interval(right, "{:.0%}"),
            ]
        )
        numbers = [n for e in (own, right, better) for n in (e.value, e.low, e.high)]
        head = [entry.panel.k, entry.panel.q, entry.label, entry.switch, result.eta]
        data.append([*head, *numbers, int(measures.diverged.sum()), len(measures.runs)])
    names = [f"{name}{end}" for name in ("own_relative", "right_share", "ratio") for end in ("", "_low", "_high")]
    return ReportTable(
        f"{study.experiment.name}-switches",
        "What the paper leaves open",
        ("panel", "method", "switch", "η", "own-support error / (F(0) - F*)", "times lower", "best support"),
        rows,
        ("k", "q", "method", "switch", "eta", *names, "diverged", "runs"),
        data,
        "Without a switch, the two estimates of a difference share their directions, an epoch returns its last "
        "iterate, differences are forward, and each component has directions of its own. “Times lower” compares the "
        "own-support error with that, run by run: a value above 1 speaks for the switch. η is chosen separately for "
        "each row.",
    )


def ladders(study: Study) -> ReportTable:
    """Return the table of the entries that were run with budgets a decade apart."""
    rows, data = [], []
    for entry, steps in study.ladders().items():
        for result in steps:
            measures, budget = result.measures(fresh=True), study.experiment.budget_of(result.race)
            own = median(measures.relative)
            rows.append([str(entry.panel), entry.name, f"{budget:,}", _rate(result.eta), interval(own)])
            etas, lowest = study.experiment.etas_of(result.race), min(study.experiment.etas_of(result.race))
            head = [entry.panel.k, entry.panel.q, entry.label, entry.switch, budget, result.eta, result.eta == lowest]
            diverged = int(measures.diverged.sum())
            data.append([*head, len(etas), own.value, own.low, own.high, diverged, len(measures.runs)])
    return ReportTable(
        f"{study.experiment.name}-ladders",
        "Budgets a decade apart: does the error go on falling?",
        ("panel", "method", "#IZO", "η", "median own-support error / (F(0) - F*)"),
        rows,
        (
            *("k", "q", "method", "switch", "budget", "eta", "eta_is_the_smallest", "etas"),
            *_ESTIMATE,
            "diverged",
            "runs",
        ),
        data,
        "For each budget, η has the lowest median of the own-support error over the runs that choose it: the question "
        "is whether some η converges. Medians with 95 % intervals over fresh runs.",
    )


def runs(study: Study) -> ReportTable:
    """Return the table of all fresh runs behind the verdicts, with the files that hold their curves; CSV only."""
    data = []
    for result in study.results:
        entry, protocol = result.race.entry, result.race.protocol
        for (problem, seed), run in zip(protocol.judge, result.judged, strict=True):
            cell = cell_of(study.experiment, result.race, result.eta, (problem, seed))
            head = [entry.panel.k, entry.panel.q, entry.label, entry.switch, cell.budget, result.race.rule, result.eta]
            numbers = [run.end, run.own, study.optimum(problem, entry.panel.k)[1], run.rises, run.status]
            file = cell.name(Subject.of(study.experiment.problems[problem]))
            support = " ".join(map(str, run.support))
            data.append([*head, problem, seed, *numbers, run.nfev, run.nht, support, f"cells/{file}.npz"])
    settings = ("k", "q", "method", "switch", "budget", "rule", "eta", "problem", "seed")
    columns = (*settings, "F", "own", "F_best", "rises", "status", "nfev", "nht", "support", "file")
    return ReportTable(f"{study.experiment.name}-runs", "All fresh runs", (), [], columns, data)


def grid(study: Study) -> ReportTable:
    """Return the table of the search for the learning rates."""
    rows, data = [], []
    for result in study.compared():
        entry, protocol = result.race.entry, result.race.protocol
        means = []
        for eta, candidate in zip(study.experiment.etas_of(result.race), result.candidates, strict=True):
            means.append(("* " if eta == result.eta else "") + short(candidate.mean))
            for (problem, seed), run in zip(protocol.choose, candidate.runs, strict=True):
                head = [protocol.name, entry.panel.k, entry.panel.q, entry.label, entry.switch, eta]
                data.append([*head, problem, seed, run.end, run.own, run.status, run.nfev, run.nht])
        rows.append([protocol.name, str(entry.panel), entry.name, *means])
    return ReportTable(
        f"{study.experiment.name}-grid",
        "The search for η: mean of F at the end (* marks the chosen value)",
        ("runs", "panel", "method", *(f"η = {eta:g}" for eta in study.experiment.etas)),
        rows,
        ("runs", "k", "q", "method", "switch", "eta", "problem", "seed", "F", "own", "status", "nfev", "nht"),
        data,
        folded=True,
    )

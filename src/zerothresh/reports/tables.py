"""The tables of a study: for the page as text, as numbers in CSV, and in LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.comparison.cell import Subject
from zerothresh.comparison.summary import UNKNOWN, Estimate, mean, median, ratio, share
from zerothresh.reports.verdict import Verdict
from zerothresh.reproduce.ridge.claims import paired
from zerothresh.reproduce.ridge.study import Raced, Study, cell_of


@dataclass(frozen=True)
class Table:
    """A table: on the page as text, in its own files as numbers."""

    name: str  # of its files
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    data_header: Sequence[str]
    data: Sequence[Sequence[Any]]
    note: str = ""
    folded: bool = False  # too long to be shown at once

    def csv(self) -> str:
        """The numbers."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.data_header)
        writer.writerows(self.data)
        return out.getvalue()

    def latex(self) -> str:
        """The table as shown, for the package booktabs."""
        lines = [r"\begin{tabular}{" + "l" * len(self.header) + "}", r"\toprule"]
        lines.append(" & ".join(map(_latex, self.header)) + r" \\")
        lines.append(r"\midrule")
        lines += [" & ".join(map(_latex, row)) + r" \\" for row in self.rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _rate(eta: float) -> str:
    """A learning rate; auto has none."""
    return f"{eta:g}" if eta == eta else "-"


_LETTERS = {"η": r"$\eta$", "±": r"$\pm$", "∞": r"$\infty$", "λ": r"$\lambda$", "μ": r"$\mu$", "θ": r"$\theta$"}
_SIGNS = {c: f"\\{c}" for c in "#%&_${}"} | {"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}"}


def _latex(text: str) -> str:
    return "".join((_LETTERS | _SIGNS).get(c, c) for c in text)


def tables(study: Study) -> list[Table]:
    """All tables of a study."""
    made = [as_in_the_paper(study), with_more_care(study), switches(study), grid(study), runs(study)]
    return [table for table in made if table.data]


def _plain(study: Study, fresh: bool) -> list[Raced]:
    """The paper's own entries, under the protocol that is asked for, in panels of the paper."""
    out = []
    for panel in study.experiment.panels:
        for label in study.labels():
            raced = study.find(label, panel, fresh=fresh)
            if raced is not None:
                out.append(raced)
    return out


def as_in_the_paper(study: Study) -> Table:
    """The runs that chose the learning rates."""
    rows, data = [], []
    for raced in _plain(study, fresh=False):
        entry, measures = raced.race.entry, raced.measures(fresh=False)
        ends = np.array([run.end for run in measures.runs])
        counts = [np.mean([run.nfev for run in measures.runs]), np.mean([run.nht for run in measures.runs])]
        numbers = [
            ends.mean(),
            ends.std() if np.isfinite(ends).all() else np.nan,
            measures.gap.mean(),
            measures.own.mean(),
        ]
        rows.append(
            [
                str(entry.panel),
                entry.label,
                _rate(raced.eta),
                short_end(numbers[0], numbers[1]),
                short(numbers[2]),
                short(numbers[3]),
                f"{measures.right.sum()} of {len(measures.runs)}",
                f"{counts[0]:,.0f}",
                f"{counts[1]:,.0f}",
            ]
        )
        data.append(
            [
                entry.panel.k,
                entry.panel.q,
                entry.label,
                raced.eta,
                *map(float, numbers),
                int(measures.right.sum()),
                len(measures.runs),
                *map(float, counts),
            ]
        )
    return Table(
        f"{study.experiment.name}-paper",
        "As in the paper",
        ("panel", "method", "η", "F at the end", "F - F*", "own-support error", "support", "#IZO", "#NHT"),
        rows,
        ("k", "q", "method", "eta", "F_mean", "F_sd", "gap_mean", "own_mean", "right", "runs", "nfev", "nht"),
        data,
        "η by the lowest mean of F at the end, from the same runs that are shown. ± is one standard deviation over the "
        "runs. “Support” counts the runs that end with the best support, which was found by trying them all.",
    )


def with_more_care(study: Study) -> Table:
    """Fresh runs of the chosen learning rates, with intervals."""
    rows, data = [], []
    for raced in _plain(study, fresh=True):
        entry, measures = raced.race.entry, raced.measures(fresh=True)
        estimates = [mean(measures.gap), median(measures.own), share(int(measures.right.sum()), len(measures.runs))]
        rows.append(
            [
                str(entry.panel),
                entry.label,
                _rate(raced.eta),
                interval(estimates[0]),
                interval(estimates[1]),
                interval(estimates[2], "{:.0%}"),
                str(measures.diverged.sum() or ""),
            ]
        )
        numbers = [number for e in estimates for number in (e.value, e.low, e.high)]
        data.append(
            [
                entry.panel.k,
                entry.panel.q,
                entry.label,
                raced.eta,
                *numbers,
                int(measures.diverged.sum()),
                len(measures.runs),
            ]
        )
    triples = [f"{name}{end}" for name in ("gap_mean", "own_median", "right_share") for end in ("", "_low", "_high")]
    return Table(
        f"{study.experiment.name}-fresh",
        "With more care: fresh runs",
        ("panel", "method", "η", "mean of F - F*", "median own-support error", "right support", "diverged"),
        rows,
        ("k", "q", "method", "eta", *triples, "diverged", "runs"),
        data,
        "Means, medians and shares with 95 % intervals, over runs that did not choose η. The own-support error is F "
        "less its minimum on the support that the run ends with: wrong supports do not enter it. A run that ends above "
        "F(0) has diverged, and counts as one that ends there.",
    )


def switches(study: Study) -> Table:
    """The open choices, one at a time, against the same entry without the switch."""
    rows, data = [], []
    for raced in study.raced:
        entry = raced.race.entry
        plain_sweep = not entry.switch and entry.panel not in study.experiment.panels
        if not raced.judged or not (entry.switch or plain_sweep):
            continue
        measures = raced.measures(fresh=True)
        base = study.measures(entry.label, entry.panel) if entry.switch else None
        own, right = median(measures.relative), share(int(measures.right.sum()), len(measures.runs))
        better = UNKNOWN if base is None else ratio(*paired(base, measures, "relative"))
        rows.append(
            [
                str(entry.panel),
                entry.label,
                entry.switch or "few directions",
                _rate(raced.eta),
                interval(own),
                "" if base is None else interval(better, "{:.2g}"),
                interval(right, "{:.0%}"),
            ]
        )
        numbers = [n for e in (own, right, better) for n in (e.value, e.low, e.high)]
        head = [entry.panel.k, entry.panel.q, entry.label, entry.switch, raced.eta]
        data.append([*head, *numbers, int(measures.diverged.sum()), len(measures.runs)])
    names = [f"{name}{end}" for name in ("own_relative", "right_share", "ratio") for end in ("", "_low", "_high")]
    return Table(
        f"{study.experiment.name}-switches",
        "What the paper leaves open",
        ("panel", "method", "switch", "η", "own error / (F(0) - F*)", "times lower", "right support"),
        rows,
        ("k", "q", "method", "switch", "eta", *names, "diverged", "runs"),
        data,
        "Without a switch: directions shared by the two estimates of a difference, the last iterate goes out, forward "
        "differences, each component with directions of its own. “Times lower” compares with that, run for run: above "
        "1 speaks for the switch. η is chosen anew for each.",
    )


def runs(study: Study) -> Table:
    """Every run behind the verdicts, with the file that has its curve."""
    data = []
    for raced in study.raced:
        entry, protocol = raced.race.entry, raced.race.protocol
        for (problem, seed), run in zip(protocol.judge, raced.judged, strict=True):
            cell = cell_of(study.experiment, entry, raced.eta, (problem, seed))
            head = [entry.panel.k, entry.panel.q, entry.label, entry.switch, raced.eta, problem, seed]
            numbers = [run.end, run.own, study.optimum(problem, entry.panel.k)[1], run.status, run.nfev, run.nht]
            file = cell.name(Subject.of(study.experiment.problems[problem]))
            data.append([*head, *numbers, " ".join(map(str, run.support)), f"cells/{file}.npz"])
    columns = (
        "k",
        "q",
        "method",
        "switch",
        "eta",
        "problem",
        "seed",
        "F",
        "own",
        "F_best",
        "status",
        "nfev",
        "nht",
        "support",
        "file",
    )
    return Table(f"{study.experiment.name}-runs", "Every fresh run", (), [], columns, data)


def grid(study: Study) -> Table:
    """The search for the learning rates."""
    rows, data = [], []
    for raced in study.raced:
        entry, protocol = raced.race.entry, raced.race.protocol
        means = []
        for eta, trial in zip(study.experiment.etas_of(entry), raced.trials, strict=True):
            means.append(("* " if eta == raced.eta else "") + short(trial.mean))
            for (problem, seed), run in zip(protocol.choose, trial.runs, strict=True):
                name = [protocol.name, entry.panel.k, entry.panel.q, entry.label, entry.switch, eta]
                data.append([*name, problem, seed, run.end, run.own, run.status, run.nfev, run.nht])
        rows.append([protocol.name, str(entry.panel), entry.name, *means])
    return Table(
        f"{study.experiment.name}-grid",
        "The search for η: mean of F at the end (* chosen)",
        ("runs", "panel", "method", *(f"η = {eta:g}" for eta in study.experiment.etas)),
        rows,
        ("runs", "k", "q", "method", "switch", "eta", "problem", "seed", "F", "own", "status", "nfev", "nht"),
        data,
        folded=True,
    )


def verdict_table(found: Sequence[Verdict]) -> Table:
    """The verdicts."""
    rows = [[v.claim, v.source, v.outcome, v.tally] for v in found]
    counts = [[sum(case.says is said for case in v.cases) for said in (True, False, None)] for v in found]
    data = [
        [v.claim, v.source, v.outcome, *count, v.evidence, f"claim-{v.name}"]
        for v, count in zip(found, counts, strict=True)
    ]
    header = ("claim", "source", "verdict", "yes", "no", "unclear", "evidence", "figure")
    return Table("verdicts", "Verdicts", ("claim", "source", "verdict", "cases"), rows, header, data)


def case_table(found: Sequence[Verdict]) -> Table:
    """Every case behind the verdicts."""
    words = {True: "yes", False: "no", None: "unclear"}
    rows = [[v.claim, c.where, interval(c.estimate), words[c.says]] for v in found for c in v.cases]
    data = [
        [v.claim, c.where, c.estimate.value, c.estimate.low, c.estimate.high, words[c.says]]
        for v in found
        for c in v.cases
    ]
    header, data_header = ("claim", "case", "estimate", "says"), ("claim", "case", "value", "low", "high", "says")
    return Table("cases", "Every case behind the verdicts", header, rows, data_header, data, folded=True)


def short(number: float) -> str:
    """A number in few letters."""
    return f"{number:.1e}" if np.isfinite(number) else "diverged"


def short_end(value: float, deviation: float) -> str:
    """F at the end, with its deviation."""
    if not np.isfinite(value):
        return "diverged"
    return f"{value:.6f} ± {deviation:.1e}" if value < 1e3 else f"{value:.6g} ± {deviation:.1e}"


def interval(estimate: Estimate, form: str = "{:.1e}") -> str:
    """A number with its interval."""
    value, low, high = (_sign(number, form) for number in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def _sign(number: float, form: str) -> str:
    if np.isnan(number):
        return "—"
    return form.format(number) if np.isfinite(number) else "∞" if number > 0 else "-∞"

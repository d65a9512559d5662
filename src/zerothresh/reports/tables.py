"""Tables of a report: as text for the page, as numbers for CSV files, and in LaTeX; and how numbers are formatted."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.basics.foreign_text import printable
from zerothresh.comparison.summary import Estimate
from zerothresh.reports.latex import latex_text
from zerothresh.reports.verdict import Verdict


@dataclass(frozen=True)
class ReportTable:
    """A table, shown on the page as text and written to files of its own.

    Attributes
    ----------
    name: the name of its files, without the suffix.
    title: the heading on the page.
    header, rows: what the page and the LaTeX file show.
    data_header, data: what the CSV file holds, with numbers in full precision.
    note: an explanation that is shown below the table.
    folded: whether the page shows it only on demand, because it is long.
    """

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    data_header: Sequence[str]
    data: Sequence[Sequence[Any]]
    note: str = ""
    folded: bool = False

    def csv(self) -> str:
        """Return the data as comma-separated values."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        for row in (self.data_header, *self.data):
            writer.writerow([printable(cell) if isinstance(cell, str) else cell for cell in row])
        return out.getvalue()

    def latex(self) -> str:
        """Return the table as it is shown on the page, for the LaTeX package booktabs."""
        lines = [r"\begin{tabular}{" + "l" * len(self.header) + "}", r"\toprule"]
        lines.append(" & ".join(map(latex_text, self.header)) + r" \\")
        lines.append(r"\midrule")
        lines += [" & ".join(map(latex_text, row)) + r" \\" for row in self.rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def verdict_table(verdicts: Sequence[Verdict]) -> ReportTable:
    """Return a table with one row per verdict."""
    rows = [[v.claim, v.source, v.outcome, v.sentence] for v in verdicts]
    counts = [[sum(case.says is answer for case in v.cases) for answer in (True, False, None)] for v in verdicts]
    data = [
        [v.claim, v.source, v.outcome, v.sentence, *count, v.evidence, f"claim-{v.name}"]
        for v, count in zip(verdicts, counts, strict=True)
    ]
    header = ("claim", "source", "verdict", "sentence", "yes", "no", "unclear", "evidence", "figure")
    return ReportTable("verdicts", "Verdicts", ("claim", "source", "verdict", "in one sentence"), rows, header, data)


def case_table(verdicts: Sequence[Verdict]) -> ReportTable:
    """Return a table with one row per case behind the verdicts."""
    answers = {True: "yes", False: "no", None: "unclear"}
    rows = [[v.claim, c.where, interval(c.estimate), answers[c.says]] for v in verdicts for c in v.cases]
    data = [
        [v.claim, c.where, c.estimate.value, c.estimate.low, c.estimate.high, answers[c.says]]
        for v in verdicts
        for c in v.cases
    ]
    header, data_header = ("claim", "case", "estimate", "says"), ("claim", "case", "value", "low", "high", "says")
    return ReportTable("cases", "All cases behind the verdicts", header, rows, data_header, data, folded=True)


def short(number: float) -> str:
    """Format a number with two digits; a number that is not finite comes from runs that diverged."""
    return f"{number:.1e}" if np.isfinite(number) else "diverged"


def with_deviation(value: float, deviation: float) -> str:
    """Format a value of F together with its standard deviation."""
    if not np.isfinite(value):
        return "diverged"
    return f"{value:.6f} ± {deviation:.1e}" if value < 1e3 else f"{value:.6g} ± {deviation:.1e}"


def interval(estimate: Estimate, form: str = "{:.1e}") -> str:
    """Format an estimate with its interval; ``form`` is the format of each number."""
    value, low, high = (_number(number, form) for number in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def _number(number: float, form: str) -> str:
    """Format a number that may be infinite or unknown."""
    if np.isnan(number):
        return "—"
    return form.format(number) if np.isfinite(number) else "∞" if number > 0 else "-∞"

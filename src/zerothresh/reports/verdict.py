"""Verdicts on claims: cases, what each case says, and the rule that combines them into one outcome.

A claim is examined in many cases, for example one method in one panel. In each case two quantities are
compared by fresh runs, and the case says yes or no if its 95 % interval excludes the value that separates
the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from zerothresh.comparison.summary import Estimate

HOLDS, DEPENDS, FAILS, UNDECIDED = "holds", "depends", "does not hold", "undecided"
CLEAR = 0.5  # the share of all cases that must be clear; with fewer, a claim is undecided
MOST = 0.9  # the share of the clear cases that must agree for a claim to hold, or not to hold


@dataclass(frozen=True)
class Case:
    """One comparison: where it was made, the estimate, and what that says (None if it is unclear)."""

    where: str
    estimate: Estimate
    says: bool | None
    group: str = ""  # the evidence summarises the cases of a group together


@dataclass(frozen=True)
class Verdict:
    """A claim, its outcome, and the cases that the outcome follows from."""

    name: str  # part of the name of its figure
    claim: str
    source: str  # where the claim was made
    outcome: str
    measure: str  # what the estimates measure
    cases: tuple[Case, ...]
    bar: float  # the value that the estimates are compared with

    @property
    def tally(self) -> str:
        """How many cases say yes and no, and how many are unclear."""
        answers = [case.says for case in self.cases]
        return f"{answers.count(True)} yes, {answers.count(False)} no, {answers.count(None)} unclear"

    @property
    def evidence(self) -> str:
        """What was measured, and a summary of each group of cases."""
        summaries = [_summary(group, members) for group, members in grouped(self.cases).items()]
        return f"{self.measure}: {'; '.join(summaries)}."


def clear(estimate: Estimate, at: float = 1.0) -> bool | None:
    """Return whether an estimate is above ``at``, or None if its interval contains that value."""
    return True if estimate.low > at else False if estimate.high < at else None


def combined(cases: Sequence[Case]) -> str:
    """Return the outcome of a claim from its cases.

    A claim is undecided if fewer than half of its cases are clear. Otherwise it holds if at least nine
    tenths of the clear cases say yes, does not hold if as many say no, and depends in between.

    >>> one = Estimate(2.0, 1.5, 3.0)
    >>> combined([Case("", one, True)] * 3 + [Case("", one, None)])
    'holds'
    """
    answers = [case.says for case in cases if case.says is not None]
    if len(answers) < CLEAR * len(cases):
        return UNDECIDED
    if answers.count(True) >= MOST * len(answers):
        return HOLDS
    return FAILS if answers.count(False) >= MOST * len(answers) else DEPENDS


def grouped(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the cases by group, in the order of their first occurrence."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    return groups


def _summary(group: str, cases: Sequence[Case]) -> str:
    """Summarise a group: the median of its estimates, their range, and how many cases say yes and no."""
    values = [case.estimate.value for case in cases if not np.isnan(case.estimate.value)]
    if not values:
        return f"{group}: not reached"
    spread = "" if len(values) == 1 else f" ({_short(min(values))} to {_short(max(values))})"
    yes, no = sum(case.says is True for case in cases), sum(case.says is False for case in cases)
    return f"{group}: {_short(float(np.median(values)))}{spread}, {yes} yes and {no} no of {len(cases)}"


def _short(number: float) -> str:
    """Format a number with two digits."""
    return f"{number:.2g}" if np.isfinite(number) else "∞"


def verdict_of(
    name: str, claim: str, source: str, measure: str, cases: list[Case], bar: float = 1.0, *, split: bool = False
) -> Verdict | None:
    """Return the verdict on a claim, or None if there are no cases.

    With ``split``, the outcome is "depends" as soon as the claim holds in one group and does not hold in
    another, whatever all cases together say.
    """
    if not cases:
        return None
    outcomes = {combined(members) for members in grouped(cases).values()} if split else set()
    outcome = DEPENDS if {HOLDS, FAILS} <= outcomes else combined(cases)
    return Verdict(name, claim, source, outcome, measure, tuple(cases), bar)

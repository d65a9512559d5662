"""A verdict: cases, what they say, and the rule that makes one word of them.

A claim is looked at in many cases: a method in a panel, say. In each, two things are compared by fresh
runs, and the case says yes or no if the 95 % interval leaves no doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from zerothresh.comparison.summary import Estimate

HOLDS, DEPENDS, FAILS, OPEN = "holds", "depends", "does not hold", "undecided"
CLEAR, MOST = 0.5, 0.9  # of the cases have to be clear, and of these so many have to say the same


@dataclass(frozen=True)
class Case:
    """One look: where, what was estimated, and what that says (None: not clear)."""

    where: str
    estimate: Estimate
    says: bool | None
    group: str = ""  # cases that the evidence tells together


@dataclass(frozen=True)
class Verdict:
    """What became of a claim."""

    name: str  # of its figure
    claim: str
    source: str  # where the paper says so; "rough study" for what an earlier look found
    outcome: str
    measure: str  # what the numbers are
    cases: tuple[Case, ...]
    bar: float  # what the numbers are compared with

    @property
    def tally(self) -> str:
        """The cases in words."""
        said = [case.says for case in self.cases]
        return f"{said.count(True)} yes, {said.count(False)} no, {said.count(None)} unclear"

    @property
    def evidence(self) -> str:
        """What was measured, and what came out in each group of cases."""
        return f"{self.measure}: {'; '.join(_told(group, members) for group, members in grouped(self.cases).items())}."


def clear(estimate: Estimate, at: float = 1.0) -> bool | None:
    """Whether a number is above a value; None if its interval contains it."""
    return True if estimate.low > at else False if estimate.high < at else None


def outcome_of(cases: Sequence[Case]) -> str:
    """Undecided if fewer than half of the cases are clear; else by what nine tenths of the clear ones say.

    >>> one = Estimate(2.0, 1.5, 3.0)
    >>> outcome_of([Case("", one, True)] * 3 + [Case("", one, None)])
    'holds'
    """
    said = [case.says for case in cases if case.says is not None]
    if len(said) < CLEAR * len(cases):
        return OPEN
    if said.count(True) >= MOST * len(said):
        return HOLDS
    return FAILS if said.count(False) >= MOST * len(said) else DEPENDS


def grouped(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """The cases by group, in their order."""
    out: dict[str, list[Case]] = {}
    for case in cases:
        out.setdefault(case.group, []).append(case)
    return out


def _told(group: str, cases: Sequence[Case]) -> str:
    """The middle of a group's estimates and their range, and what the cases say."""
    values = [case.estimate.value for case in cases if not np.isnan(case.estimate.value)]
    if not values:
        return f"{group}: not reached"
    middle = "" if len(values) == 1 else f" ({_short(min(values))} to {_short(max(values))})"
    yes, no = sum(case.says is True for case in cases), sum(case.says is False for case in cases)
    return f"{group}: {_short(float(np.median(values)))}{middle}, {yes} yes and {no} no of {len(cases)}"


def _short(number: float) -> str:
    return f"{number:.2g}" if np.isfinite(number) else "∞"


def verdict_of(
    name: str, claim: str, source: str, measure: str, cases: list[Case], bar: float = 1.0, *, split: bool = False
) -> Verdict | None:
    """With ``split``, groups that differ in their outcomes make the claim depend on what the groups are."""
    if not cases:
        return None
    outcomes = {outcome_of(members) for members in grouped(cases).values()} if split else set()
    outcome = DEPENDS if {HOLDS, FAILS} <= outcomes else outcome_of(cases)
    return Verdict(name, claim, source, outcome, measure, tuple(cases), bar)

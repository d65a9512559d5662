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
AGREE = 0.9  # the share of the clear cases that must agree for a claim about all cases to hold, or not to hold
MAJORITY = 0.5  # the share of all cases that must say yes, and more than it, for a claim about most cases to hold

# What a claim says of its cases. "Some" is about settings: one is enough in whose most cases the claim holds.
ALL, MOST, SOME = "all", "most", "some"


@dataclass(frozen=True)
class Case:
    """One comparison: where it was made, the estimate, and what that says (None if it is unclear)."""

    where: str
    estimate: Estimate
    says: bool | None
    group: str = ""  # the evidence summarises the cases of a group together
    setting: str = ""  # the sentence summarises the cases of a setting together; if it is empty, those of a group

    @property
    def place(self) -> str:
        """The setting, or else the group."""
        return self.setting or self.group


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
    strength: str = ""  # says what an estimate means, with {} in the place of the number
    about: str = ALL  # what the claim says of its cases

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

    @property
    def sentence(self) -> str:
        """The verdict in one sentence: in which settings the claim holds and in which not, and how strongly."""
        places: dict[str, list[str]] = {}
        about = ALL if self.about == ALL else MOST
        for place, cases in grouped(self.cases, by="place").items():
            places.setdefault(combined(cases, about), []).append(f"{place} ({self._counted(cases)})")
        words = {HOLDS: "holds for", DEPENDS: "depends on the case for", FAILS: "does not hold for"}
        words |= {UNDECIDED: "is undecided for"}
        parts = [f"{words[outcome]} {_listed(places[outcome])}" for outcome in words if outcome in places]
        return f"It {'; it '.join(parts)}."

    def _counted(self, cases: Sequence[Case]) -> str:
        """Return how many cases of a setting say yes and no, and the median of their estimates in words."""
        yes, no = (sum(case.says is answer for case in cases) for answer in (True, False))
        count = f"{yes} of {len(cases)}" if yes + no == len(cases) else f"{yes} yes, {no} no of {len(cases)}"
        values = [case.estimate.value for case in cases if not np.isnan(case.estimate.value)]
        if not self.strength or not values:
            return count
        strength = self.strength.format(_short(_middle(values)))
        return strength if len(cases) == 1 else f"{count}; {strength}"


def clear(estimate: Estimate, at: float = 1.0) -> bool | None:
    """Return whether an estimate is above ``at``, or None if its interval contains that value or it is unknown."""
    if np.isnan(estimate.value):
        return None
    return True if estimate.low > at else False if estimate.high < at else None


def combined(cases: Sequence[Case], about: str = ALL) -> str:
    """Return the outcome of a claim from its cases.

    A claim about all cases is undecided if fewer than half of them are clear. It holds if at least nine tenths of the
    clear ones say yes, and does not hold if as many say no; it depends in between, and also if it holds in one setting
    and does not hold in another. A claim about most cases holds if more than half of all say yes, does not hold if at
    least half say no, and is undecided otherwise. A claim about some settings holds if it holds for most cases of one
    of them, does not hold if it does not hold for most of any, and is undecided otherwise.

    >>> one = Estimate(2.0, 1.5, 3.0)
    >>> combined([Case("", one, True)] * 3 + [Case("", one, None)])
    'holds'
    >>> combined([Case("", one, True)] * 2 + [Case("", one, False)], MOST)
    'holds'
    """
    places = list(grouped(cases, by="place").values())
    if about == SOME:
        some = {combined(members, MOST) for members in places}
        return next((outcome for outcome in (HOLDS, UNDECIDED) if outcome in some), FAILS)
    outcomes = {combined(members) for members in places} if len(places) > 1 and about == ALL else set()
    answers = [case.says for case in cases if case.says is not None]
    if about == MOST:
        if answers.count(True) > MAJORITY * len(cases):
            return HOLDS
        return FAILS if answers.count(False) >= (1 - MAJORITY) * len(cases) else UNDECIDED
    if {HOLDS, FAILS} <= outcomes:
        return DEPENDS
    if not answers or len(answers) < CLEAR * len(cases):
        return UNDECIDED
    if answers.count(True) >= AGREE * len(answers):
        return HOLDS
    return FAILS if answers.count(False) >= AGREE * len(answers) else DEPENDS


def grouped(cases: Iterable[Case], by: str = "group") -> dict[str, list[Case]]:
    """Return the cases by group (or by place), in the order of their first occurrence."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(getattr(case, by), []).append(case)
    return groups


def _listed(parts: Sequence[str]) -> str:
    """Join parts by commas and an "and"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _middle(values: Sequence[float]) -> float:
    """Return the median; values may be infinite."""
    with np.errstate(invalid="ignore"):
        return float(np.median(values))


def _summary(group: str, cases: Sequence[Case]) -> str:
    """Summarise a group: the median of its estimates, their range, and how many cases say yes and no."""
    values = [case.estimate.value for case in cases if not np.isnan(case.estimate.value)]
    if not values:
        return f"{group}: not reached"
    spread = "" if len(values) == 1 else f" ({_short(min(values))} to {_short(max(values))})"
    yes, no = sum(case.says is True for case in cases), sum(case.says is False for case in cases)
    return f"{group}: {_short(_middle(values))}{spread}, {yes} yes and {no} no of {len(cases)}"


def _short(number: float) -> str:
    """Format a number with two digits."""
    return f"{number:.2g}" if np.isfinite(number) else "∞"


def verdict_of(
    name: str,
    claim: str,
    source: str,
    measure: str,
    cases: list[Case],
    bar: float = 1.0,
    *,
    about: str = ALL,
    strength: str = "",
) -> Verdict | None:
    """Return the verdict on a claim, or None if there are no cases.

    Arguments
    ---------
    name, claim, source, measure, cases, bar, strength: as in `Verdict`.
    about: what the claim says of its cases: all, most or some.
    """
    if not cases:
        return None
    return Verdict(name, claim, source, combined(cases, about), measure, tuple(cases), bar, strength, about)

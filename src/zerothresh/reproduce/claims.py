"""A verdict on each of the paper's claims, computed from the runs; no number in it is written by hand.

A claim is looked at in many cases (a method in a panel, say). In each, two things are compared by fresh
runs, and the case says yes or no if the 95 % interval leaves no doubt. The claim holds if at least three
quarters of the cases say yes and at most a tenth say no. If at most a quarter say yes, it does not hold if
more than a quarter say no, and is not shown if not. Else it depends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from zerothresh.comparison.statistics import Estimate, difference_of_means, median, ratio_of_medians, share
from zerothresh.reproduce.protocol import Panel
from zerothresh.reproduce.study import Measures, Study

REDUCED = ("VR-SZHT", "SAGA-SZHT", "SARAH-SZHT")
HOLDS, DEPENDS, FAILS, OPEN = "holds", "depends", "does not hold", "not shown"
CONVERGED = 1e-2  # of F(0) - F*: an own-support error below it is called converged


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

    claim: str
    source: str  # "paper", or "rough study" for what an earlier look found
    outcome: str
    evidence: str
    figure: str  # the figure that shows it, by the name of its file
    cases: tuple[Case, ...] = field(default=())

    @property
    def tally(self) -> str:
        """The cases in words."""
        said = [case.says for case in self.cases]
        return f"{said.count(True)} yes, {said.count(False)} no, {said.count(None)} unclear"


def verdicts(studies: Sequence[Study]) -> list[Verdict]:
    """All that the studies have data for."""
    claims: Sequence[Callable[[Sequence[Study]], Verdict | None]] = (
        lower_by_the_mean,
        lower_on_their_support,
        cheaper_than_the_full_gradient,
        lower_for_larger_k,
        more_stable_for_larger_k,
        sarah_better_with_more_directions,
        more_directions_cost_more,
        sarah_on_real_data,
        any_number_of_directions,
        sarah_needs_shared_directions,
        a_block_lowers_the_floor,
        noise_finds_supports,
    )
    return [verdict for claim in claims if (verdict := claim(studies)) is not None]


# What the cases say.


def clear(estimate: Estimate, at: float = 1.0) -> bool | None:
    """Whether a number is above a value; None if its interval contains it."""
    return True if estimate.low > at else False if estimate.high < at else None


def outcome_of(cases: Sequence[Case]) -> str:
    """The rule at the top of this file.

    >>> one = Estimate(2.0, 1.5, 3.0)
    >>> outcome_of([Case("", one, True)] * 3 + [Case("", one, None)])
    'holds'
    """
    yes = sum(case.says is True for case in cases) / len(cases)
    no = sum(case.says is False for case in cases) / len(cases)
    if yes >= 0.75 and no <= 0.1:
        return HOLDS
    if yes > 0.25:
        return DEPENDS
    return FAILS if no > 0.25 else OPEN


def _verdict(claim: str, source: str, cases: list[Case], words: str, figure: str) -> Verdict | None:
    if not cases:
        return None
    return Verdict(claim, source, outcome_of(cases), words, figure, tuple(cases))


def _grouped(cases: Iterable[Case], form: str = "{:.2g}") -> str:
    """The middle estimate of each group of cases, and its range."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    out = []
    for group, members in groups.items():
        values = [case.estimate.value for case in members]
        middle = form.format(float(np.median(values)))
        spread = "" if len(values) == 1 else f" ({form.format(min(values))} to {form.format(max(values))})"
        yes, no = sum(case.says is True for case in members), sum(case.says is False for case in members)
        out.append(f"{group}: {middle}{spread}, {yes} yes and {no} no of {len(members)}")
    return "; ".join(out)


def _panels(studies: Sequence[Study], labels: Sequence[str]) -> Iterator[tuple[Study, Panel, str]]:
    for study in studies:
        for panel in study.experiment.panels:
            for label in labels:
                yield study, panel, label


def _both(study: Study, panel: Panel, one: str, other: str) -> tuple[Measures, Measures] | None:
    first, second = study.measures(one, panel), study.measures(other, panel)
    return None if first is None or second is None else (first, second)


def _relative(measures: Measures) -> np.ndarray:
    """The own-support error as a share of F(0) - F*."""
    return np.asarray(measures.own / measures.start)


def _figure(studies: Sequence[Study], kind: str = "") -> str:
    """The figure of the first study, and of its middle k."""
    study = studies[0]
    ks = sorted({panel.k for panel in study.experiment.panels})
    middle = f"-k{ks[len(ks) // 2]}" if study.experiment.name == "ridge" else ""
    return f"{study.experiment.name}{middle}{kind}"


# The paper's claims.


def lower_by_the_mean(studies: Sequence[Study]) -> Verdict | None:
    """By the paper's measure, the mean of F at the end."""
    cases = []
    for study, panel, label in _panels(studies, REDUCED):
        if (pair := _both(study, panel, "SZOHT", label)) is not None:
            scale = float(np.median(pair[0].start))
            found = difference_of_means(pair[0].gap / scale, pair[1].gap / scale)
            cases.append(Case(f"{study.experiment.name}, {panel}, {label}", found, clear(found, 0.0), label))
    words = (
        "The mean of F at the end of SZOHT less that of the other, as a share of F(0) - F*, the middle panel (and the "
        f"range over panels): {_grouped(cases, '{:.1e}')}."
    )
    claim = "Variance-reduced methods reach lower values than SZOHT, by the mean of F at the end"
    return _verdict(claim, "paper, Section 5", cases, words, _figure(studies))


def lower_on_their_support(studies: Sequence[Study]) -> Verdict | None:
    """By the own-support error, which wrong supports do not drown."""
    cases = []
    for study, panel, label in _panels(studies, REDUCED):
        if (pair := _both(study, panel, "SZOHT", label)) is not None:
            found = ratio_of_medians(pair[0].own, pair[1].own)
            cases.append(Case(f"{study.experiment.name}, {panel}, {label}", found, clear(found), label))
    words = f"SZOHT's own-support error (median) over the other's: {_grouped(cases)}."
    claim = "Variance-reduced methods reach lower values than SZOHT, on the support that they end with"
    return _verdict(claim, "paper, Section 5", cases, words, _figure(studies, "-own"))


def cheaper_than_the_full_gradient(studies: Sequence[Study]) -> Verdict | None:
    """Calls until the level where SZOHT ends."""
    cases = []
    for study, panel, label in _panels(studies, REDUCED):
        pair, plain = _both(study, panel, "FGZOHT", label), study.measures("SZOHT", panel)
        if pair is None or plain is None:
            continue
        level = float(np.median(_relative(plain)))
        found = ratio_of_medians(pair[0].calls_to(level), pair[1].calls_to(level))
        cases.append(Case(f"{study.experiment.name}, {panel}, {label}", found, clear(found), f"{label} at q={panel.q}"))
    words = (
        "FGZOHT's #IZO until the own-support error at which SZOHT ends, over the other's (medians; above 1: the other "
        f"is cheaper): {_grouped(cases)}."
    )
    claim = "Variance-reduced methods are cheaper than FGZOHT"
    return _verdict(claim, "paper, Section 5", cases, words, _figure(studies, "-own"))


def _pairs_of(study: Study, what: str) -> Iterator[tuple[Panel, Panel]]:
    """Panels that differ only in k (or in q), the smallest and the largest."""
    panels = study.experiment.panels
    for fixed in sorted({(p.q if what == "k" else p.k) for p in panels}):
        row = sorted(
            (p for p in panels if (p.q if what == "k" else p.k) == fixed), key=lambda p: p.k if what == "k" else p.q
        )
        if len(row) > 1:
            yield row[0], row[-1]


def lower_for_larger_k(studies: Sequence[Study]) -> Verdict | None:
    """F itself, not F - F*."""
    cases = []
    for study in studies:
        for small, large in _pairs_of(study, "k"):
            for label in study.labels():
                one, other = study.measures(label, small), study.measures(label, large)
                if one is not None and other is not None:
                    first, second = (np.array([run.end for run in m.runs]) for m in (one, other))
                    found = difference_of_means(first / one.start, second / one.start)
                    where = f"{study.experiment.name}, q={small.q}, {label}"
                    cases.append(Case(where, found, clear(found, 0.0), f"{study.experiment.name} at q={small.q}"))
    words = (
        f"F at the end for the smallest k less F for the largest, as a share of F(0) - F*: {_grouped(cases, '{:.1e}')}."
    )
    return _verdict("Larger k gives lower values", "paper, appendix", cases, words, _figure(studies))


def more_stable_for_larger_k(studies: Sequence[Study]) -> Verdict | None:
    """By how much F rises on its way down."""
    cases = []
    for study in studies:
        for small, large in _pairs_of(study, "k"):
            for label in study.labels():
                one, other = study.measures(label, small), study.measures(label, large)
                if one is not None and other is not None:
                    found = ratio_of_medians([r.rises for r in one.runs], [r.rises for r in other.runs])
                    where = f"{study.experiment.name}, q={small.q}, {label}"
                    cases.append(Case(where, found, clear(found), f"{study.experiment.name}, {label}"))
    words = (
        "The sum of all rises of F over its fall, a measure of roughness, for the smallest k over that for the largest "
        f"(medians; above 1: the larger k is smoother): {_grouped(cases)}."
    )
    return _verdict("Larger k is more stable", "paper, appendix", cases, words, _figure(studies))


def sarah_better_with_more_directions(studies: Sequence[Study]) -> Verdict | None:
    """SARAH-SZHT at the largest q against the smallest."""
    cases = []
    for study in studies:
        for small, large in _pairs_of(study, "q"):
            one, other = study.measures("SARAH-SZHT", small), study.measures("SARAH-SZHT", large)
            if one is not None and other is not None:
                found = ratio_of_medians(one.own, other.own)
                name = f"{study.experiment.name}, q={small.q} over q={large.q}"
                cases.append(Case(f"{name}, k={small.k}", found, clear(found), name))
    words = f"SARAH-SZHT's own-support error at the smaller q over that at the larger (medians): {_grouped(cases)}."
    claim = "SARAH-SZHT converges better with more directions"
    return _verdict(claim, "paper, appendix", cases, words, _figure(studies, "-own"))


def more_directions_cost_more(studies: Sequence[Study]) -> Verdict | None:
    """Calls until the level that both reach."""
    cases = []
    for study in studies:
        for small, large in _pairs_of(study, "q"):
            for label in study.labels():
                one, other = study.measures(label, small), study.measures(label, large)
                if one is not None and other is not None:
                    level = max(float(np.median(_relative(m))) for m in (one, other))
                    found = ratio_of_medians(other.calls_to(level), one.calls_to(level))
                    where = f"{study.experiment.name}, k={small.k}, {label}"
                    cases.append(Case(where, found, clear(found), f"{study.experiment.name}, {label}"))
    words = (
        "#IZO until the own-support error that both end below, at the larger q over that at the smaller (medians; "
        f"above 1: more directions cost more): {_grouped(cases)}."
    )
    return _verdict("More directions cost more #IZO", "paper, appendix", cases, words, _figure(studies, "-own"))


def sarah_on_real_data(studies: Sequence[Study]) -> Verdict | None:
    """The own-support error that SARAH-SZHT ends with, against VR-SZHT's, with shared and independent directions."""
    real = [study for study in studies if study.experiment.name != "ridge"]
    cases = []
    for study in real:
        for panel in study.experiment.panels:
            for switch in ("", "independent directions"):
                sarah = study.measures("SARAH-SZHT", panel, switch=switch)
                other = study.measures("VR-SZHT", panel, switch=switch)
                if sarah is None or other is None:
                    continue
                found = median(_relative(sarah))
                compared = ratio_of_medians(sarah.own, other.own)
                says = True if found.low > CONVERGED and compared.low > 1 else False if found.high < CONVERGED else None
                kind = switch or "shared directions"
                cases.append(Case(f"{study.experiment.name}, {panel}, {kind}", found, says, kind))
    words = (
        f"SARAH-SZHT's own-support error at the end as a share of F(0) - F* (median; yes: above {CONVERGED:g} and "
        f"above VR-SZHT's; no: below {CONVERGED:g}): {_grouped(cases, '{:.1e}')}."
    )
    claim = "SARAH-SZHT has difficulties converging on real data"
    return _verdict(claim, "paper, appendix", cases, words, _figure(real or studies, "-own"))


def any_number_of_directions(studies: Sequence[Study]) -> Verdict | None:
    """VR-SZHT for every q that was run."""
    cases = []
    for study in studies:
        for raced in study.raced:
            entry = raced.race.entry
            if entry.label == "VR-SZHT" and not entry.switch and raced.judged:
                measures = raced.measures(fresh=True)
                found = median(_relative(measures))
                says = False if measures.diverged or found.low > CONVERGED else True if found.high < CONVERGED else None
                name = f"{study.experiment.name}, q={entry.panel.q}"
                cases.append(Case(f"{name}, k={entry.panel.k}", found, says, name))
    if len({case.group for case in cases}) < 2:
        return None  # one q tells nothing about any q
    words = (
        "VR-SZHT's own-support error at the end as a share of F(0) - F* (median; yes: below "
        f"{CONVERGED:g}, and no run diverged): {_grouped(cases, '{:.1e}')}."
    )
    return _verdict("VR-SZHT converges for any q", "paper, Section 4", cases, words, _figure(studies, "-own"))


# What an earlier, rough study found.


def sarah_needs_shared_directions(studies: Sequence[Study]) -> Verdict | None:
    """Independent against shared directions inside a difference."""
    cases = []
    for study in studies:
        for raced in study.raced:
            entry = raced.race.entry
            if entry.switch != "independent directions" or entry.label != "SARAH-SZHT" or not raced.judged:
                continue
            base = study.measures(entry.label, entry.panel)
            if base is not None:
                apart = raced.measures(fresh=True)
                count = min(len(apart.runs), len(base.runs))
                found = ratio_of_medians(apart.own[:count], base.own[:count])
                cases.append(
                    Case(f"{study.experiment.name}, {entry.panel}", found, clear(found), study.experiment.name)
                )
    words = f"SARAH-SZHT's own-support error with independent directions over that with shared ones: {_grouped(cases)}."
    claim = "SARAH-SZHT needs the same directions in both estimates of a difference"
    return _verdict(claim, "rough study", cases, words, f"{studies[0].experiment.name}-switches")


def a_block_lowers_the_floor(studies: Sequence[Study]) -> Verdict | None:
    """Random directions against an orthonormal block of the same size, q = d."""
    cases = []
    for study in studies:
        for raced in study.raced:
            entry = raced.race.entry
            if entry.switch != "orthonormal block" or not raced.judged:
                continue
            most = max(panel.q for panel in study.experiment.panels)
            base = study.measures(entry.label, Panel(entry.panel.k, most))
            if base is None:
                continue
            block = raced.measures(fresh=True)
            count = min(len(block.runs), len(base.runs))
            found = ratio_of_medians(base.own[:count], block.own[:count])
            name = f"{study.experiment.name}, {entry.label}: q={most} random over q={entry.panel.q} orthonormal"
            cases.append(Case(name, found, clear(found), name))
    words = f"The own-support error (median) at the end: {_grouped(cases, '{:.1e}')}."
    claim = "An orthonormal block of q = d directions reaches a lower floor than many random ones"
    return _verdict(claim, "rough study", cases, words, f"{studies[0].experiment.name}-switches")


def noise_finds_supports(studies: Sequence[Study]) -> Verdict | None:
    """How often the best support is found."""
    cases = []
    for study in studies:
        if study.experiment.name != "ridge":
            continue
        for panel in study.experiment.panels:
            pair = _both(study, panel, "SZOHT", "FGZOHT")
            if pair is not None:
                rates = [share(m.right, len(m.runs)) for m in pair]
                difference = Estimate(
                    rates[0].value - rates[1].value,
                    rates[0].value
                    - rates[1].value
                    - np.hypot(rates[0].value - rates[0].low, rates[1].high - rates[1].value),
                    rates[0].value
                    - rates[1].value
                    + np.hypot(rates[0].high - rates[0].value, rates[1].value - rates[1].low),
                )  # Newcombe's interval
                cases.append(Case(f"{panel}", difference, clear(difference, 0.0), f"q={panel.q}"))
    words = f"The share of runs that end with the best support, SZOHT less FGZOHT: {_grouped(cases)}."
    claim = "SZOHT's noise helps it out of wrong supports: it finds the best one more often than FGZOHT"
    return _verdict(claim, "rough study", cases, words, _figure(studies))

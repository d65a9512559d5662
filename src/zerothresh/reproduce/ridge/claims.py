"""The claims as short functions: what the paper says, what is compared in each case, and how the answer reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from zerothresh.comparison.summary import difference, ratio
from zerothresh.reports.verdict import MOST, SOME, Case, Verdict, clear, verdict_of
from zerothresh.reproduce.ridge.cases import FALLS, FAR, across, both, in_panels, judged, ladders, paired
from zerothresh.reproduce.ridge.protocol import Panel
from zerothresh.reproduce.ridge.study import Study

REDUCED = ("VR-SZHT", "SAGA-SZHT", "SARAH-SZHT")
OURS = "our own question"
ORDERS = 100.0  # the ratio from which on we speak of orders of magnitude


def verdicts_on(studies: Sequence[Study]) -> list[Verdict]:
    """Return the verdicts on all claims that the studies have data for."""
    claims: Sequence[Callable[[Sequence[Study]], Verdict | None]] = (
        lower_by_the_mean,
        lower_on_their_support,
        cheaper_than_the_full_gradient,
        lower_for_larger_k,
        smoother_for_larger_k,
        smoother_for_larger_q,
        sarah_better_with_more_directions,
        more_directions_cost_more,
        sarah_on_real_data,
        any_number_of_directions,
        the_error_depends_on_q,
        a_block_lowers_the_error,
        sarah_needs_shared_directions,
        supports_of_szoht_and_fgzoht,
    )
    return [verdict for claim in claims if (verdict := claim(studies)) is not None]


# The paper's claims.


def lower_by_the_mean(studies: Sequence[Study]) -> Verdict | None:
    """Compare with SZOHT by the paper's measure, the mean of F at the end."""
    cases = []
    for study, panel, label, setting in in_panels(studies, REDUCED):
        if (pair := both(study, panel, "SZOHT", label)) is not None:
            found = difference(pair[0].gap / pair[0].start, pair[1].gap / pair[1].start)
            cases.append(Case(f"{study.experiment.name}, {panel}, {label}", found, clear(found, 0.0), setting))
    return verdict_of(
        "lower-mean",
        "Variance-reduced methods reach lower values than SZOHT, by the mean of F at the end",
        "paper, Section 5",
        "Mean over runs of (F - F*) / (F(0) - F*) at the end, that of SZOHT minus that of the other method "
        "(above 0: the other is lower)",
        cases,
        0.0,
        strength="the mean of SZOHT minus theirs is {} of F(0) - F*",
    )


def lower_on_their_support(studies: Sequence[Study]) -> Verdict | None:
    """Compare with SZOHT by the own-support error, which does not depend on wrong supports."""
    cases = []
    for study, panel, label, setting in in_panels(studies, REDUCED):
        if (pair := both(study, panel, "SZOHT", label)) is not None:
            found = ratio(pair[0].own, pair[1].own)
            cases.append(Case(f"{study.experiment.name}, {panel}, {label}", found, clear(found), setting))
    return verdict_of(
        "lower-own",
        "Variance-reduced methods reach lower values than SZOHT, on the support that they end with",
        "paper, Section 5, by our measure",
        "Median over runs of the own-support error of SZOHT divided by that of the other method (above 1: the "
        "other is lower)",
        cases,
        strength="SZOHT's error is {} times theirs",
    )


def cheaper_than_the_full_gradient(studies: Sequence[Study]) -> Verdict | None:
    """Compare with FGZOHT by the calls needed to reach the level where SZOHT ends."""
    cases = []
    for study, panel, label, setting in in_panels(studies, REDUCED):
        pair, plain = both(study, panel, "FGZOHT", label), study.measures("SZOHT", panel)
        if pair is None or plain is None:
            continue
        level = float(np.median(plain.relative))
        found = ratio(pair[0].calls_to(level), pair[1].calls_to(level))
        name = f"{study.experiment.name}, {panel}, {label}"
        cases.append(Case(name, found, clear(found), f"{study.experiment.name} at q={panel.q}", setting))
    return verdict_of(
        "cheaper",
        "Variance-reduced methods are cheaper than FGZOHT",
        "paper, Section 5",
        "Median over runs of the #IZO that FGZOHT needs to reach the own-support error where SZOHT ends, divided "
        "by what the other method needs (above 1: the other is cheaper)",
        cases,
        strength="FGZOHT needs {} times their calls",
    )


def lower_for_larger_k(studies: Sequence[Study]) -> Verdict | None:
    """Compare F itself, not F - F*, at the smallest and the largest k."""
    cases = []
    for study, label, one, other in across(studies, "k"):
        found = difference(one.end / one.start, other.end / one.start)
        cases.append(
            Case(f"{study.experiment.name}, q={one.panel.q}, {label}", found, clear(found, 0.0), study.experiment.name)
        )
    return verdict_of(
        "larger-k",
        "Larger k gives lower values",
        "paper, appendix",
        "Mean over runs of F at the end for the smallest k minus that for the largest, relative to F(0) - F* "
        "(above 0: the larger k is lower)",
        cases,
        0.0,
        strength="F at the smallest k minus F at the largest is {} of F(0) - F*",
    )


def smoother_for_larger_k(studies: Sequence[Study]) -> Verdict | None:
    """Compare how much F increases along the way, at the smallest and the largest k; the paper says "often"."""
    cases = []
    for study, label, one, other in across(studies, "k"):
        found = ratio(one.roughness, other.roughness)
        name = f"{study.experiment.name}, q={one.panel.q}, {label}"
        cases.append(Case(name, found, clear(found), f"{study.experiment.name}, {label}", study.experiment.name))
    return verdict_of(
        "smoother-k",
        "A larger k often gives smoother convergence",
        "paper, appendix",
        "Median over runs of the increases of F per step (of all steps), relative to F(0) - F*, for the "
        "smallest k divided by that for the largest (above 1: the larger k is smoother)",
        cases,
        about=MOST,
        strength="the ratio of the increases is {}",
    )


def smoother_for_larger_q(studies: Sequence[Study]) -> Verdict | None:
    """Compare how much F increases along the way, at the smallest and the largest q; the paper says "some"."""
    cases = []
    for study, label, one, other in across(studies, "q"):
        found = ratio(one.roughness, other.roughness)
        name = f"{study.experiment.name}, q={one.panel.q} over q={other.panel.q}, k={one.panel.k}, {label}"
        cases.append(Case(name, found, clear(found), f"{study.experiment.name}, {label}", label))
    return verdict_of(
        "smoother-q",
        "More directions stabilise some methods",
        "paper, appendix",
        "Median over runs of the increases of F per step (of all steps), relative to F(0) - F*, at the smallest "
        "q divided by that at the largest (above 1: more directions are smoother)",
        cases,
        about=SOME,
        strength="ratio {}",
    )


def sarah_better_with_more_directions(studies: Sequence[Study]) -> Verdict | None:
    """Compare SARAH-SZHT at the largest and the smallest q."""
    cases = []
    for study, label, one, other in across(studies, "q"):
        if label == "SARAH-SZHT" and study.experiment.name == "ridge":  # which is what the paper says it of
            found = ratio(one.own, other.own)
            name = f"{study.experiment.name}, q={one.panel.q} over q={other.panel.q}"
            cases.append(Case(f"{name}, k={one.panel.k}", found, clear(found), name))
    return verdict_of(
        "sarah-q",
        "SARAH-SZHT converges better with more directions",
        "paper, appendix, for ridge",
        "Median over runs of its own-support error at the smaller q divided by that at the larger (above 1: more "
        "directions are better)",
        cases,
        strength="the ratio of the errors is {}",
    )


def more_directions_cost_more(studies: Sequence[Study]) -> Verdict | None:
    """Compare the calls needed to reach a level that every method reaches, at the largest and the smallest q."""
    cases = []
    for study, label, one, other in across(studies, "q"):
        found = ratio(other.calls_to(FAR), one.calls_to(FAR))
        name = f"{study.experiment.name}, k={one.panel.k}, {label}"
        cases.append(Case(name, found, clear(found), f"{study.experiment.name}, {label}", study.experiment.name))
    return verdict_of(
        "cost-q",
        "More directions cost more #IZO",
        "paper, appendix",
        f"Median over runs of the #IZO needed to bring the own-support error down to {FAR:g} of F(0) - F*, at the "
        "largest q divided by that at the smallest (above 1: more directions cost more)",
        cases,
        strength="the largest q needs {} times the calls of the smallest",
    )


def sarah_on_real_data(studies: Sequence[Study]) -> Verdict | None:
    """Examine shared and independent directions, because the paper does not say which it uses."""
    cases = []
    for study, entry, found, falls, name in ladders(studies, "SARAH-SZHT"):
        if study.experiment.name != "ridge":
            kind = entry.switch or "shared directions"
            cases.append(Case(name, found, None if falls is None else not falls, kind))
    return verdict_of(
        "sarah-real",
        "SARAH-SZHT has difficulties converging on real data",
        "paper, appendix",
        _FALL_MEASURE + f" (below {FALLS:g}: difficulties)",
        cases,
        FALLS,
        strength=_FALL_STRENGTH,
    )


def any_number_of_directions(studies: Sequence[Study]) -> Verdict | None:
    """Examine whether the error of VR-SZHT goes on falling, for every q with budgets a decade apart."""
    cases = []
    for study, entry, found, falls, name in ladders(studies, "VR-SZHT"):
        group = f"{study.experiment.name}, q={entry.panel.q}"
        cases.append(Case(name, found, falls, group, study.experiment.name))
    return verdict_of(
        "any-q",
        "VR-SZHT converges for any q: with a suitable η, its error goes on falling",
        "paper, Section 4, which allows a floor (so that this test is stricter) and asks for k > k*",
        _FALL_MEASURE + f" (above {FALLS:g}: it goes on falling)",
        cases,
        FALLS,
        strength=_FALL_STRENGTH,
    )


_FALL_MEASURE = (
    "With a tenth, once and ten times the budget, and the η that is best for each of them: median over runs of the "
    "own-support error divided by that with ten times the calls, in the slower of the two decades"
)
_FALL_STRENGTH = "ten times the calls divide the error by {} in the slower decade"


# Questions of our own.


def the_error_depends_on_q(studies: Sequence[Study]) -> Verdict | None:
    """Compare few random directions with many, for the methods with variance reduction and with the full gradient."""
    cases = []
    for study in studies:
        most = max(panel.q for panel in study.experiment.panels)
        for _, result in judged([study]):
            entry = result.race.entry
            many = study.measures(entry.label, Panel(entry.panel.k, most))
            if entry.panel.q >= most / 10 or many is None or entry.label == "SZOHT":
                continue
            few = result.measures(fresh=True)
            found = ratio(*paired(few, many, "own"))
            group = f"{study.experiment.name}, q={entry.panel.q} over q={most}"
            cases.append(Case(f"{group}, {entry.label}", found, clear(found), group))
    return verdict_of(
        "floor-q",
        "Few directions leave a larger error at the paper's budget, with variance reduction and with the full gradient",
        OURS,
        "Median over runs of the own-support error at the end with few directions, divided by that with many "
        "(above 1: few directions leave more). η was chosen on more draws for many directions than for few",
        cases,
        strength="the ratio of the errors is {}",
    )


def a_block_lowers_the_error(studies: Sequence[Study]) -> Verdict | None:
    """Compare an orthonormal block of q = d with random directions: as many, and the most that were tried."""
    cases = []
    for study, result in judged(studies, switch="orthonormal block"):
        entry = result.race.entry
        for q in sorted({entry.panel.q, max(panel.q for panel in study.experiment.panels)}):
            base = study.measures(entry.label, Panel(entry.panel.k, q))
            if base is not None and q >= entry.panel.q:
                found = ratio(*paired(base, result.measures(fresh=True), "own"))
                group = f"{study.experiment.name}, {entry.label}, q={q} random over q={entry.panel.q} orthonormal"
                cases.append(Case(group, found, clear(found, ORDERS), group, entry.label))
    return verdict_of(
        "block",
        "An orthonormal block of q = d directions lowers the error at the paper's budget by orders of magnitude",
        OURS,
        "Median over runs of the own-support error at the end with random directions, divided by that with the "
        f"block (above {ORDERS:g}: orders of magnitude)",
        cases,
        ORDERS,
        strength="random directions leave {} times the error",
    )


def sarah_needs_shared_directions(studies: Sequence[Study]) -> Verdict | None:
    """Compare independent with shared directions inside a difference."""
    cases = []
    for study, result in judged(studies, "SARAH-SZHT", "independent directions"):
        base = study.measures("SARAH-SZHT", result.race.entry.panel)
        if base is not None:
            found = ratio(*paired(result.measures(fresh=True), base, "own"))
            name = study.experiment.name
            cases.append(Case(f"{name}, {result.race.entry.panel}", found, clear(found), name))
    return verdict_of(
        "sarah-shared",
        "SARAH-SZHT needs the same directions in both estimates of a difference",
        OURS,
        "Median over runs of its own-support error at the end with independent directions, divided by that with "
        "shared ones (above 1: shared ones are better)",
        cases,
        strength="independent directions leave {} times the error",
    )


def supports_of_szoht_and_fgzoht(studies: Sequence[Study]) -> Verdict | None:
    """Compare how often the best support is found, run by run."""
    cases = []
    for study in studies:
        for panel in study.experiment.panels:
            pair = both(study, panel, "SZOHT", "FGZOHT")
            # On real data several supports are nearly equally good, so that only synthetic data can tell.
            if pair is not None and study.experiment.name == "ridge":
                found = difference(pair[0].right.astype(float), pair[1].right.astype(float))
                cases.append(Case(f"{panel}", found, clear(found, 0.0), f"q={panel.q}"))
    return verdict_of(
        "supports",
        "SZOHT finds the best support more often than FGZOHT",
        OURS,
        "Share of runs that end with the best support, that of SZOHT minus that of FGZOHT (above 0: SZOHT's is larger)",
        cases,
        0.0,
        strength="the difference of the shares is {}",
    )

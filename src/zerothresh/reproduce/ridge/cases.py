"""Where the claims on the ridge experiments are examined: panels, pairs of panels, and budgets a decade apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from zerothresh.comparison.summary import Estimate, ratio
from zerothresh.reports.verdict import clear
from zerothresh.reproduce.ridge.experiments import BESIDE, FIGURE, FIGURED, PAPER
from zerothresh.reproduce.ridge.protocol import Entry, Panel
from zerothresh.reproduce.ridge.study import Measures, RaceResult, Study

Array = NDArray[np.float64]

PRINTED = (*FIGURE, *BESIDE)  # the methods that the paper's claims are about
FAR = 0.1  # the share of F(0) - F* that every method reaches
# An error goes on falling if ten times the calls divide it at least by this. A floor would leave it as it is, and the
# best eta of a noisy method for each budget divides it by up to ten.
FALLS = 2.0
# A share of F(0) - F* below which an error need not fall any further: the order of the theorems' system error, which
# comes from the difference step mu, where curvatures are about 1.
SYSTEM_ERROR = PAPER.mu**2


def in_panels(studies: Sequence[Study], labels: Sequence[str]) -> Iterator[tuple[Study, Panel, str, str]]:
    """Yield study, panel, method and setting: the experiment, with the figure of Section 5 as a setting of its own."""
    for study in studies:
        for panel in sorted(study.experiment.panels, key=lambda panel: panel != FIGURED):  # the paper's figure first
            for label in labels:
                yield study, panel, label, _setting(study, panel)


def _setting(study: Study, panel: Panel) -> str:
    """Return where a case belongs in the sentence of a verdict."""
    if study.experiment.name != "ridge":
        return study.experiment.name
    return f"ridge at the paper's own panel ({panel})" if panel == FIGURED else "the other ridge panels"


def both(study: Study, panel: Panel, one: str, other: str) -> tuple[Measures, Measures] | None:
    """Return the measures of two methods in a panel, or None if one is missing."""
    first, second = study.measures(one, panel), study.measures(other, panel)
    return None if first is None or second is None else (first, second)


def _ends(study: Study, what: str) -> Iterator[tuple[Panel, Panel]]:
    """Yield pairs of panels that differ only in k (or q): the smallest and the largest."""
    other = "q" if what == "k" else "k"
    for fixed in sorted({getattr(panel, other) for panel in study.experiment.panels}):
        row = [panel for panel in study.experiment.panels if getattr(panel, other) == fixed]
        row.sort(key=lambda panel: int(getattr(panel, what)))
        if len(row) > 1:
            yield row[0], row[-1]


def across(studies: Sequence[Study], what: str) -> Iterator[tuple[Study, str, Measures, Measures]]:
    """Yield study, method of the paper, and its measures at the smallest and the largest k (or q)."""
    for study in studies:
        for small, large in _ends(study, what):
            for label in (label for label in study.labels() if label in PRINTED):
                one, other = study.measures(label, small), study.measures(label, large)
                if one is not None and other is not None:
                    yield study, label, one, other


def judged(studies: Sequence[Study], label: str | None = None, switch: str = "") -> Iterator[tuple[Study, RaceResult]]:
    """Yield the results that have fresh runs."""
    for study in studies:
        for result in study.compared():
            entry = result.race.entry
            if result.judged and entry.switch == switch and label in (None, entry.label):
                yield study, result


def _falling(steps: Sequence[RaceResult]) -> tuple[Estimate, bool | None]:
    """Return by what ten times the calls divide the error in the slower decade of a ladder, and if it goes on falling.

    Each end of the interval is the lower one of the two decades, so that it is above `FALLS` if both decades clearly
    are, and below if one clearly is. If the smallest learning rate is the best for the largest budget, the error may
    have stopped falling for want of a smaller one: then the answer is not no, but unclear. This excuses only a method
    that gets somewhere with the smallest learning rate: a smaller one would move even less.
    """
    runs = [step.measures(fresh=True) for step in steps]
    decades = []
    for few, many in pairwise(runs):
        before, after = paired(few, many, "relative")
        decades.append(ratio(np.where(after <= SYSTEM_ERROR, np.inf, before), after))
    found = Estimate(*(min(getattr(decade, part) for decade in decades) for part in ("value", "low", "high")))
    says = clear(found, FALLS)
    last = steps[-1]
    at_the_edge = last.eta == min(last.study.experiment.etas_of(last.race))
    excused = at_the_edge and float(np.median(runs[-1].relative)) < FAR
    return found, None if says is False and excused else says


def ladders(studies: Sequence[Study], label: str) -> Iterator[tuple[Study, Entry, Estimate, bool | None, str]]:
    """Yield study, entry, by what its error falls per decade, if it goes on falling, and the name of the case."""
    for study in studies:
        for entry, steps in study.ladders().items():
            if entry.label == label:
                found, falls = _falling(steps)
                (middle,) = (step for step in steps if step.race.decades == 0)
                error = float(np.median(middle.measures(fresh=True).relative))
                name = f"{study.experiment.name}, {entry.panel}{f', {entry.switch}' if entry.switch else ''}"
                yield study, entry, found, falls, f"{name} (error {error:.1g} after {study.experiment.budget:,} calls)"


def paired(one: Measures, other: Measures, what: str) -> tuple[Array, Array]:
    """Return a measure of the runs that both have in common, matched by problem and seed."""
    places = {place: at for at, place in enumerate(other.places)}
    rows = [(at, places[place]) for at, place in enumerate(one.places) if place in places]
    return getattr(one, what)[[a for a, _ in rows]], getattr(other, what)[[b for _, b in rows]]

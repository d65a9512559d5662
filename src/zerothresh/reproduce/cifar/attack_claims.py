"""The paper's claims on its attacks as short functions: in which cases each is examined, and what is compared there.

All claims of the paper are about its ten images and its budget, the smallest that is run. They are examined by fresh
runs, which are paired by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from zerothresh.comparison.summary import LEVEL, RESAMPLES, UNKNOWN, Estimate, difference
from zerothresh.reports.verdict import MOST, Case, Verdict, clear, verdict_of
from zerothresh.reproduce.cifar.experiment import BEST, LABELS, REDUCED, VANILLA, AttackEntry, Attacks, Score
from zerothresh.reproduce.ridge.experiments import FIGURE

Array = NDArray[np.float64]

# What the paper says of single methods: the class, the method, and the methods that it is said to be better than. In
# Section 5 the loss of SAGA-SZHT is the lowest and that of SARAH-SZHT the next (airplane). The appendix names the
# other two as examples of methods that are better than the vanilla ones.
NAMED = (
    ("airplane", "SAGA-SZHT", (*VANILLA, "VR-SZHT", "SARAH-SZHT")),
    ("airplane", "SARAH-SZHT", (*VANILLA, "VR-SZHT")),
    ("ship", "SARAH-SZHT", VANILLA),
    ("bird", "SAGA-SZHT", VANILLA),
)
MOST_SUCCESSFUL = ("airplane", "SARAH-SZHT")  # which method has the highest success rate, and where
# Ranks of independent values have a correlation whose transform artanh has this variance times 1 / (n - 3): 1 for
# Pearson's correlation, and 1.06 for Spearman's (Fieller, Hartley and Pearson, Biometrika 1957).
RANK_VARIANCE = 1.06


def verdicts_on(attacked: Sequence[Attacks]) -> list[Verdict]:
    """Return the verdicts on all claims that the attacked classes have data for."""
    claims: Sequence[Callable[[Sequence[Attacks]], Verdict | None]] = (
        some_reduced_method_is_lower,
        the_named_methods_are_lower,
        sarah_fools_the_most_airplanes,
        lower_losses_fool_more,
        best_fools_more,
    )
    return [verdict for claim in claims if (verdict := claim(attacked)) is not None]


# The scores.


def papers_scores(entry: AttackEntry) -> list[Score]:
    """Return the scores of the fresh runs with the paper's budget, which is the smallest."""
    return entry.more[min(entry.more)]


def losses(of: Attacks, label: str) -> Array:
    """Return the losses at the end of the fresh runs of a method, with the paper's budget."""
    return np.array([score.loss for score in papers_scores(of.entry(label))])


def rates(of: Attacks, label: str) -> Array:
    """Return the success rates of the fresh runs of a method, with the paper's budget."""
    return np.array([score.rate for score in papers_scores(of.entry(label))])


def gain(of: Attacks, label: str, other: str) -> Estimate:
    """Return by how much the loss of a method is lower than that of another, over pairs of fresh runs."""
    return difference(losses(of, other), losses(of, label))


def candidate(of: Attacks) -> str:
    """Return the variance-reduced method with the lowest mean loss over the runs that chose the learning rates.

    It is judged by other runs. If the same runs named the best of several methods and judged it, luck would count in
    its favour.
    """
    return min(REDUCED, key=lambda label: float(np.mean([score.loss for score in of.entry(label).choosing])))


def shares_of_lowest(of: Attacks) -> dict[str, Array]:
    """Return, for each of the paper's methods and each seed, whether its loss is the lowest; a tie is divided."""
    table = np.array([losses(of, label) for label in FIGURE])
    lowest = table == table.min(axis=0)
    return dict(zip(FIGURE, lowest / lowest.sum(axis=0), strict=True))


# The paper's claims.


def some_reduced_method_is_lower(attacked: Sequence[Attacks]) -> Verdict | None:
    """Examine "in most cases there is a variance-reduced algorithm" that is better than the vanilla ones.

    A class says yes if the candidate is clearly lower than both vanilla methods. It says no only if each of the
    variance-reduced methods is clearly higher than one of the vanilla ones, because the claim is that there is one.
    """
    cases = []
    for of in attacked:
        gains = {label: {other: gain(of, label, other) for other in VANILLA} for label in REDUCED}
        chosen = candidate(of)
        other = min(VANILLA, key=lambda label: gains[chosen][label].value)  # the one that is harder to beat
        parts = [(found.value, found.low, found.high) for found in gains[chosen].values()]
        least = Estimate(*(min(part) for part in zip(*parts, strict=True)))
        yes = least.low > 0
        no = all(any(found.high < 0 for found in each.values()) for each in gains.values())
        where = f"{of.victims.name}, {chosen} and {other}"
        cases.append(Case(where, least, True if yes else False if no else None, f"the class {of.victims.name}"))
    return verdict_of(
        "exists",
        "In most classes, a variance-reduced method reaches a lower loss than FGZOHT and SZOHT",
        "paper, Section 5 and appendix, attacks",
        "Mean over fresh runs of the loss of FGZOHT or SZOHT, whichever is harder to beat, minus that of the "
        "variance-reduced method that was the lowest in other runs (above 0: variance reduction is lower)",
        cases,
        0.0,
        about=MOST,
        strength="the vanilla loss minus theirs is {}",
    )


def the_named_methods_are_lower(attacked: Sequence[Attacks]) -> Verdict | None:
    """Compare the methods that the paper names for a class with those that it says they beat."""
    cases = []
    for name, label, others in NAMED:
        for of in _of_class(attacked, name):
            for other in others:
                found = gain(of, label, other)
                cases.append(Case(f"{name}, {label} and {other}", found, clear(found, 0.0), f"{label} on {name}"))
    return verdict_of(
        "named",
        "The variance-reduced methods that the paper names for a class reach lower losses than the others",
        "paper, Section 5 and appendix, attacks",
        "Mean over fresh runs of the loss of the other method minus that of the named one (above 0: the named one is "
        "lower)",
        cases,
        0.0,
        strength="the other loss minus its own is {}",
    )


def sarah_fools_the_most_airplanes(attacked: Sequence[Attacks]) -> Verdict | None:
    """Compare the success rate of SARAH-SZHT on airplane with those of the paper's other methods."""
    name, label = MOST_SUCCESSFUL
    cases = []
    for of in _of_class(attacked, name):
        for other in (other for other in FIGURE if other != label):
            found = difference(rates(of, label), rates(of, other))
            cases.append(Case(f"{name}, {label} and {other}", found, clear(found, 0.0), f"the comparison with {other}"))
    return verdict_of(
        "sarah-rate",
        "On airplane, SARAH-SZHT has the highest success rate of the paper's methods",
        "paper, Section 5, attacks",
        "Mean over fresh runs of the success rate of SARAH-SZHT minus that of the other method (above 0: SARAH-SZHT "
        "fools more)",
        cases,
        0.0,
        strength="the difference of the rates is {}",
    )


def lower_losses_fool_more(attacked: Sequence[Attacks]) -> Verdict | None:
    """Correlate loss and success rate within a class, over the runs of the paper's methods."""
    cases = []
    for of in attacked:
        tables = [np.array([pick(of, label) for label in FIGURE]) for pick in (losses, rates)]
        found = rank_correlation(-tables[0], tables[1])
        cases.append(Case(of.victims.name, found, clear(found, 0.0), f"the class {of.victims.name}"))
    return verdict_of(
        "loss-rate",
        "Overall, attacks with a lower loss have a higher success rate",
        "paper, appendix, attacks",
        "Rank correlation of minus the loss and the success rate, over the fresh runs of the paper's five methods "
        "(above 0: a lower loss goes with a higher rate). Both are computed from the same scores of the net",
        cases,
        0.0,
        strength="the rank correlation is {}",
    )


def rank_correlation(one: Array, other: Array) -> Estimate:
    """Return Spearman's rank correlation of two tables of methods by runs.

    The interval is the wider, on each side, of the normal one after the transform artanh, and the bootstrap's
    percentiles. The bootstrap draws whole columns, because the runs of a column share a seed. The correlation is
    unknown if one of the tables is constant or if there are fewer than four values.

    >>> str(rank_correlation(np.arange(40.0).reshape(4, 10), np.arange(40.0).reshape(4, 10) ** 3))
    '1 [1, 1]'
    """
    columns, count = one.shape[1], one.size
    chosen = np.random.default_rng(0).integers(columns, size=(RESAMPLES, columns))
    chosen = np.concatenate([np.arange(columns)[None], chosen])  # first the runs themselves
    tables = [table[:, chosen].transpose(1, 0, 2).reshape(len(chosen), -1) for table in (one, other)]
    found = _correlations(*tables)
    if count < 4 or np.isnan(found[0]):
        return UNKNOWN
    value, draws = float(np.clip(found[0], -1, 1)), found[1:][np.isfinite(found[1:])]
    from scipy.special import ndtri

    half = ndtri(0.5 + LEVEL / 2) * np.sqrt(RANK_VARIANCE / (count - 3))
    with np.errstate(divide="ignore"):
        ends = np.tanh(np.arctanh(value) + np.array([-half, half]))
    low, high = np.percentile(draws, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Estimate(value, float(min(low, ends[0])), float(max(high, ends[1])))


def _correlations(one: Array, other: Array) -> Array:
    """Return the rank correlation of each row of a table with the same row of another; NaN if one is constant."""
    from scipy.stats import rankdata

    ranks = [rankdata(table, axis=1) for table in (one, other)]
    a, b = (table - table.mean(axis=1, keepdims=True) for table in ranks)
    with np.errstate(invalid="ignore"):
        found = (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return np.asarray(found, float)


# A claim of our own.


def best_fools_more(attacked: Sequence[Attacks]) -> Verdict | None:
    """Compare the success rates of `best` and every other method, at all budgets, also on all images of a class."""
    cases = []
    for of in attacked:
        for other in (label for label in LABELS if label != BEST):
            for where, mine, theirs in _pairs(of, BEST, other):
                found = difference([s.rate for s in mine], [s.rate for s in theirs])
                cases.append(
                    Case(f"{where}, {BEST} and {other}", found, clear(found, 0.0), f"the comparison with {other}")
                )
    return verdict_of(
        "best",
        "'best' fools more images than every other method",
        "zerothresh",
        "Mean over fresh runs of the success rate of 'best' minus that of the other method",
        cases,
        0.0,
        strength="the difference of the rates is {}",
    )


def _pairs(of: Attacks, one: str, other: str) -> Iterator[tuple[str, list[Score], list[Score]]]:
    """Yield where two methods are compared (the ten images, and all of the class) and their scores there."""
    mine, theirs = of.entry(one), of.entry(other)
    for budget, scores in mine.more.items():
        yield f"{of.victims.name}, {budget:,} queries", scores, theirs.more[budget]
    for budget, scores in mine.crowd.items():
        yield f"all of {of.victims.name}, {budget:,} queries", scores, theirs.crowd[budget]


def _of_class(attacked: Sequence[Attacks], name: str) -> list[Attacks]:
    """Return the results on a class, if it was attacked."""
    return [of for of in attacked if of.victims.name == name]

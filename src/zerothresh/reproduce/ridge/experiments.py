"""The paper's ridge experiments (Section 5, and "Extra experiments" in the appendix) with their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.datasets import load_autoprice, load_bodyfat
from zerothresh.methods import FGZOHT, LSVRGSZHT, PSAGASZHT, SAGASZHT, SARAHSZHT, SZOHT, VRSZHT
from zerothresh.methods.registry import available, make
from zerothresh.problems import Ridge, ridge
from zerothresh.problems.ridge_regression import standardise
from zerothresh.reproduce.ridge.protocol import LOWEST_OWN, Entry, Experiment, Panel, Protocol, Race
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method

PAPER = Estimator.paper(q=1)  # eq. (3) to the letter; each panel sets its q
LAMBDA = 0.5

Array = NDArray[np.float64]
Maker = Callable[[float, int], Method]  # from eta and m

FIGURE: dict[str, Maker] = {  # the five methods of the paper's figures
    "FGZOHT": lambda eta, m: FGZOHT(eta),
    "SZOHT": lambda eta, m: SZOHT(eta),
    "VR-SZHT": lambda eta, m: VRSZHT(eta, m=m),
    "SAGA-SZHT": lambda eta, m: SAGASZHT(eta),
    "SARAH-SZHT": lambda eta, m: SARAHSZHT(eta, m=m),
}
BESIDE: dict[str, Maker] = {  # two more laws of J that the paper describes but does not run
    "p-SAGA-SZHT": lambda eta, m: PSAGASZHT(eta, p=2),
    "LSVRG-SZHT": lambda eta, m: LSVRGSZHT(eta, p=1.0),
}
RANDOM: dict[str, Maker] = {  # methods whose epochs may return a random iterate
    "VR-SZHT": lambda eta, m: VRSZHT(eta, m=m, output="random"),
    "SARAH-SZHT": lambda eta, m: SARAHSZHT(eta, m=m, output="random"),
}
PAPER_NAME, FRESH_NAME = "paper", "fresh"
_APART = "independent directions"  # in the two estimates of a difference
FIGURED = Panel(3, 200)  # the panel in the figure of Section 5
SWITCHED = Panel(3, 50)  # where the open choices are tried, because few directions show them best
LADDER = (-1, 0, 1)  # the budgets of a ladder: the paper's times 10 to these powers
_BESIDE_VR = ("FGZOHT", "SZOHT", "SARAH-SZHT")  # methods whose errors are shown for budgets a decade apart
_FEW = (4, 12)  # draws that choose and judge where many entries are run: few directions, and budgets ten times as long
_FEW_REAL = (3, 12)  # the same on real data, where the runs differ by their seed alone
_SMALLER = (0.001, 0.0005, 0.0001, 0.00005)  # below the paper's grid: ten times its budget leaves time for them


def _entry(label: str, maker: Maker, panel: Panel, m: int, estimator: Estimator = PAPER, switch: str = "") -> Entry:
    """Return an entry with the panel's number of directions."""
    return Entry(label, panel, lambda eta: maker(eta, m), replace(estimator, q=panel.q), switch)


def _others(panel: Panel) -> Iterator[Entry]:
    """Yield `auto`, if it is registered; it has no learning rate to choose."""
    if "auto" in available():
        yield Entry("auto", panel, lambda eta: make("auto"), replace(PAPER, q=panel.q), tuned=False)


def _switched(panel: Panel, m: int, labels: Sequence[str]) -> Iterator[Entry]:
    """Yield entries with the choices that the paper leaves open, one at a time."""
    for label in labels:
        maker = FIGURE[label]
        if label in RANDOM:
            apart = replace(PAPER, shared=False)
            yield _entry(label, maker, panel, m, apart, switch=_APART)
            yield _entry(label, RANDOM[label], panel, m, switch="random outgoing iterate")
        yield _entry(label, maker, panel, m, replace(PAPER, difference="central"), switch="central differences")
        if label != "SZOHT":
            yield _entry(label, maker, panel, m, replace(PAPER, common=True), switch="one block per round")


def _swept(k: int, d: int, m: int, labels: Sequence[str]) -> Iterator[Entry]:
    """Yield entries with few directions, and with one orthonormal block of d directions."""
    block = replace(PAPER, directions="orthogonal")
    for label in labels:
        for q in (1, 2, d):
            yield _entry(label, FIGURE[label], Panel(k, q), m)
        yield _entry(label, FIGURE[label], Panel(k, d), m, block, switch="orthonormal block")


def _ladder(protocol: Protocol, entries: Sequence[Entry], etas: tuple[float, ...]) -> Iterator[Race]:
    """Yield the races of entries with budgets a decade apart, with a learning rate of its own for each budget."""
    for entry in entries:
        for decades in LADDER:
            yield Race(protocol, entry, decades, etas, LOWEST_OWN)


def synthetic(*, quick: bool = False, seed: int = 0) -> Experiment:
    """Return the experiment on synthetic data: n = 10 components, d = 5 coordinates."""
    n, d, m = 10, 5, 10
    panels = (FIGURED,) if quick else tuple(Panel(k, q) for k, q in product((2, 3, 4), (50, 100, 200)))
    choosing, judging = (4, 12) if quick else (10, 30)
    etas = (0.005, 0.01, 0.05, 0.1, 0.5)
    check.count("seed", seed, low=0)
    one = f"draw {seed}"
    problems = {one: ridge(n=n, d=d, lam=LAMBDA, seed=seed)}

    def draws(first: int, count: int) -> tuple[tuple[str, int], ...]:
        numbers = [1000 * (seed + 1) + first + i for i in range(count)]
        problems.update({f"draw {number}": ridge(n=n, d=d, lam=LAMBDA, seed=number) for number in numbers})
        return tuple((f"draw {number}", number) for number in numbers)

    paper = Protocol(PAPER_NAME, tuple((one, seed + run) for run in range(3)), ())
    fresh = Protocol(FRESH_NAME, draws(0, choosing), draws(500, judging))
    small = Protocol(FRESH_NAME, fresh.choose[: _FEW[0]], fresh.judge[: _FEW[1]])
    entries = [_entry(label, maker, panel, m) for panel in panels for label, maker in {**FIGURE, **BESIDE}.items()]
    entries += [entry for panel in panels for entry in _others(panel)]
    races = [Race(protocol, entry) for protocol in (paper, fresh) for entry in entries]
    if quick:
        races += [Race(small, entry) for entry in _switched(FIGURED, m, ["SARAH-SZHT"])]
    else:
        races += [Race(fresh, entry) for entry in _switched(SWITCHED, m, list(FIGURE))]
        races += [Race(small, entry) for entry in _swept(3, d, m, ["FGZOHT", "SZOHT", "VR-SZHT", "SARAH-SZHT"])]
        # The claim is about VR-SZHT, which is judged on all fresh draws; the others are shown beside it.
        judged = Protocol(FRESH_NAME, small.choose, fresh.judge)
        climbed = [_entry("VR-SZHT", FIGURE["VR-SZHT"], Panel(3, q), m) for q in (1, d, 50)]
        races += _ladder(judged, climbed, (*_SMALLER, *etas))
        beside = [_entry(label, FIGURE[label], Panel(3, q), m) for label, q in product(_BESIDE_VR, (d, 50))]
        races += _ladder(small, beside, (*_SMALLER, *etas))
    swept = (
        ""
        if quick
        else f" For few directions and the orthonormal block, {_FEW[0]} and {_FEW[1]} of these draws choose and judge."
    )
    description = (
        f"Synthetic ridge regression (Section 5 and the appendix): n = {n} components, d = {d} coordinates, λ = "
        f"{LAMBDA:g}; x_i uniform in the unit ball, y = x θ* with θ* standard normal, then the columns of x are "
        f"standardised. μ = {PAPER.mu:g}, s2 = {d}, m = {m}. All runs start at 0.",
        f"As in the paper: one problem, drawn with seed {seed}, and {len(paper.choose)} runs, which also choose η.",
        f"With more care: η is chosen on {choosing} other draws of the problem and judged on {judging} fresh ones, "
        f"with one run per draw and the same draws for all methods.{swept}",
        f"The switches are tried at {FIGURED if quick else SWITCHED}.",
        *([] if quick else [_about_ladders(", ".join(f"{eta:g}" for eta in (*_SMALLER, *etas)), _FEW)]),
    )
    title = "Synthetic ridge regression"
    return Experiment("ridge", title, description, etas, 80_000, panels, problems, tuple(races), seed, quick, 80_000)


def _real(name: str, title: str, problems: dict[str, Ridge], quick: bool, seed: int) -> Experiment:
    """Return an experiment on real data: k in {5, 10}, q in {5, 10}, m = floor(n/2)."""
    check.count("seed", seed, low=0)
    n, d = problems["data"].n, problems["data"].d
    m = n // 2
    panels = (Panel(5, 5),) if quick else tuple(Panel(k, q) for k, q in product((5, 10), (5, 10)))
    etas = (0.1, 0.01, 0.001) if quick else tuple(10.0**-i for i in range(1, 8))
    choosing, judging = (2, 6) if quick else (5, 12)
    both = Protocol(
        PAPER_NAME,
        tuple(("data", seed + run) for run in range(choosing)),
        tuple(("data", 1000 * (seed + 1) + run) for run in range(judging)),
    )
    scaled = Protocol(PAPER_NAME, tuple(("y", s) for _, s in both.choose), tuple(("y", s) for _, s in both.judge))
    races = [Race(both, _entry(label, maker, panel, m)) for panel in panels for label, maker in FIGURE.items()]
    races += [Race(both, entry) for panel in panels for entry in _others(panel)]
    apart, block = replace(PAPER, shared=False), replace(PAPER, directions="orthogonal")
    first, full = panels[0], Panel(panels[0].k, d)
    for label, maker in FIGURE.items():
        if label not in RANDOM:
            continue
        for panel in panels:
            races.append(Race(both, _entry(label, maker, panel, m, apart, _APART)))
        races.append(Race(both, _entry(label, RANDOM[label], first, m, switch="random outgoing iterate")))
        if not quick:
            races.append(Race(both, _entry(label, maker, full, m)))
            races.append(Race(both, _entry(label, maker, full, m, block, "orthonormal block")))
            central = replace(PAPER, difference="central")
            races.append(Race(both, _entry(label, maker, first, m, central, "central differences")))
            races.append(Race(both, _entry(label, maker, first, m, replace(PAPER, common=True), "one block per round")))
    if not quick:
        climbed = [_entry(label, FIGURE[label], panel, m) for label in RANDOM for panel in panels[:2]]
        climbed += [_entry("SARAH-SZHT", FIGURE["SARAH-SZHT"], p, m, apart, _APART) for p in panels[:2]]
        climbed.append(_entry("VR-SZHT", FIGURE["VR-SZHT"], panels[2], m))
        races += _ladder(Protocol(both.name, both.choose[: _FEW_REAL[0]], both.judge[: _FEW_REAL[1]]), climbed, etas)
        for label, maker in FIGURE.items():
            races.append(Race(scaled, _entry(label, maker, first, m, switch="y standardised")))
    description = (
        f"{title}: n = {n} rows, d = {d} columns, standardised; y as it is; λ = {LAMBDA:g}. μ = {PAPER.mu:g}, "
        f"s2 = {d}, m = {m}. All runs start at 0.",
        f"As in the paper: {choosing} runs, which also choose η{' (the paper has 5)' if quick else ''}.",
        f"With more care: the chosen η is judged by {judging} fresh runs on the same data.",
        f"The switches are tried at {first}, and independent directions in all panels.",
        *([] if quick else [_about_ladders("the whole grid", _FEW_REAL)]),
    )
    return Experiment(name, title, description, etas, 100_000, panels, problems, tuple(races), seed, quick, 100_000)


def _about_ladders(etas: str, runs: tuple[int, int]) -> str:
    """Return the paragraph on the budgets that are a decade apart."""
    return (
        f"Whether an error goes on falling is examined with a tenth, once and ten times the budget, and for "
        f"each of them with the η (of {etas}) that has the lowest own-support error over {runs[0]} runs; "
        f"{runs[1]} fresh runs judge it{', and all those above judge VR-SZHT' if runs is _FEW else ''}."
    )


def bodyfat(*, quick: bool = False, seed: int = 0) -> Experiment:
    """Return the experiment on body fat: 252 rows, 14 columns."""
    return _real("bodyfat", "Body fat", _forms(*load_bodyfat(return_X_y=True)), quick, seed)


def autoprice(*, quick: bool = False, seed: int = 0) -> Experiment:
    """Return the experiment on car prices: 159 rows, 15 columns."""
    return _real("autoprice", "Car prices", _forms(*load_autoprice(return_X_y=True)), quick, seed)


def _forms(X: Array, y: Array) -> dict[str, Ridge]:
    """Return the problem with y as it is, and with y standardised like the columns: the paper does not say which."""
    return {
        "data": Ridge(standardise(X), y, LAMBDA),
        "y": Ridge(standardise(X), standardise(y[:, None])[:, 0], LAMBDA),
    }


EXPERIMENTS: dict[str, Callable[..., Experiment]] = {"ridge": synthetic, "bodyfat": bodyfat, "autoprice": autoprice}

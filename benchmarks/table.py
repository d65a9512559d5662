"""What the runs come to: ratios a problem, their geometric mean, and data profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from pathlib import Path
from typing import Any

import numpy as np
from suite import Instance, make
from tracker import TOLERANCES, Hits, ert
from tuning import best_of


@dataclass
class Score:
    """An expected running time: of whom, out of which calls."""

    ert: float = inf
    who: str = "-"
    calls: list[float] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)
    known: bool = True  # there were runs

    def total(self, budget: int, seeds: int) -> float:
        """All calls that were made, if nothing was reached."""
        return float(budget * max(len(self.calls), seeds))


@dataclass(eq=False)
class Row:
    """All that is known of a problem."""

    problem: Instance
    own: list[Hits]
    paper: dict[str, dict[str, Any]]
    peers: dict[str, list[Hits]]

    def contestant(self, place: int, view: str = "either") -> Score:
        """The method that is judged."""
        return Score(ert(self.own, place, view), "own", [getattr(h, view)[place] for h in self.own])

    def best_paper(self, place: int, only: Sequence[str] = ()) -> Score:
        """The best method of the paper with its best setting."""
        best = Score(known=bool(set(only or self.paper) & set(self.paper)))
        for method, kept in self.paper.items():
            top = best_of(kept, TOLERANCES[place])
            if top is not None and top["ert"] < best.ert and (not only or method in only):
                best = Score(top["ert"], method, top["calls"], {"eta": top["eta"], "q": top["setting"]["q"]})
        return best

    def best_peer(self, place: int) -> Score:
        """The best peer."""
        scores = [Score(ert(runs, place), name, [h.either[place] for h in runs]) for name, runs in self.peers.items()]
        best = min(scores, key=lambda score: score.ert, default=Score(known=False))
        return best if best.ert < inf else replace(best, who="-")

    def ratio(self, other: Score, own: Score) -> tuple[float, str]:
        """How many times more calls the other needs; '>' and '<' mark bounds, NaN that nobody got there."""
        if not other.known or (own.ert == inf and other.ert == inf):
            return np.nan, ""
        if other.ert == inf:
            return other.total(self.problem.budget, len(own.calls)) / own.ert, ">"
        if own.ert == inf:
            return other.ert / own.total(self.problem.budget, len(own.calls)), "<"
        return other.ert / own.ert, ""


def short(number: float) -> str:
    """Three digits in at most six places."""
    if number == inf or number != number:
        return "-"
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{number:.0f}"


def show(rows: list[Row], label: str) -> None:
    """A table for each tolerance, and what follows from it."""
    for place in (1, 0, 2):
        print(f"\nCalls until F - F* <= {TOLERANCES[place]:g} (F(x0) - F*), expected running time")
        head = f"{'problem':16s}{label[:6]:>7s} |{'paper':>6s} {'method':6s}{'q':>4s}{'eta':>7s}{'ratio':>8s} |"
        print(head + f"{'peer':>6s} {'':6s}{'ratio':>8s}")
        for row in rows:
            own, paper, peer = row.contestant(place), row.best_paper(place), row.best_peer(place)
            name, method = row.problem.name.replace("quadratic", "quad"), paper.who.removesuffix("-szht")
            eta = f"{paper.detail['eta']:.2g}" if paper.detail else "-"
            line = f"{name:16s}{short(own.ert):>7s} |{short(paper.ert):>6s} {method:6s}"
            line += f"{paper.detail.get('q', '-')!s:>4s}{eta:>7s}{_ratio(row, paper, own):>8s} |"
            print(line + f"{short(peer.ert):>6s} {peer.who:6s}{_ratio(row, peer, own):>8s}")
        if all(row.own for row in rows):
            _summary(rows, place)


def _ratio(row: Row, other: Score, own: Score) -> str:
    value, sign = row.ratio(other, own) if row.own else (np.nan, "")
    return "-" if value != value else sign + (f"{value:.3g}" if value < 100 else short(value))


def _summary(rows: list[Row], place: int) -> None:
    """Geometric means and the worst."""

    def mean(chosen: list[Row], other: Any, view: str = "either") -> str:
        values = {row: row.ratio(other(row), row.contestant(place, view))[0] for row in chosen}
        values = {row: value for row, value in values.items() if value == value}
        if not values:
            return "nobody got there"
        worst = min(values, key=lambda row: values[row])
        average = exp(sum(map(log, values.values())) / len(values))
        return f"geometric mean {average:6.3g} on {len(values):2d}, worst {values[worst]:.3g} ({worst.problem.name})"

    plain = [row for row in rows if not row.problem.structure]
    print("over the best of the paper:  ", mean(rows, lambda row: row.best_paper(place)))
    print("... without index structure: ", mean(plain, lambda row: row.best_paper(place)))
    print("... judged by result() alone:", mean(rows, lambda row: row.best_paper(place), "result"))
    print("over SZOHT at its best:      ", mean(rows, lambda row: row.best_paper(place, ("szoht",))))
    print("over the best peer:          ", mean([r for r in rows if r.peers], lambda row: row.best_peer(place)))
    nobody = [r.problem.name for r in rows if r.contestant(place).ert == r.best_paper(place).ert == inf]
    if nobody:
        print("left out, neither got there: ", ", ".join(nobody))


def profiles(rows: list[Row], label: str, path: Path) -> None:
    """The share of (problem, tolerance, seed) that is solved against calls in units of n (d + 1)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves: dict[str, list[float]] = {}
    for row in rows:
        unit = row.problem.n * (row.problem.d + 1)
        for place in range(len(TOLERANCES)):
            scores = {label: row.contestant(place), "the paper's best, tuned": row.best_paper(place)}
            scores["SZOHT, tuned"] = row.best_paper(place, ("szoht",))
            for name, runs in row.peers.items():  # not all peers ran on all problems
                there = sum(name in other.peers for other in rows)
                own = name if there == len(rows) else f"{name}, {there} problems"
                scores[own] = Score(calls=[h.either[place] for h in runs])
            for name, score in scores.items():
                calls = score.calls or [inf]
                curves.setdefault(name, []).extend([c / unit for c in calls for _ in range(40 // len(calls))])
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, values in curves.items():
        if name == label and not any(row.own for row in rows):
            continue
        x = np.sort(values)
        style = {"lw": 2.2} if name in (label, "the paper's best, tuned", "SZOHT, tuned") else {"lw": 1, "ls": "--"}
        axes.step(x[x < inf], np.arange(1, (x < inf).sum() + 1) / len(x), where="post", label=name, **style)
    axes.set(xscale="log", ylim=(0, 1), xlabel="calls / n (d + 1)", ylabel="share of problems solved")
    axes.set_title(f"{len(rows)} problems, F - F* within 1e-2, 1e-3 and 1e-6 of F(x0) - F*", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def row_of(name: str, own: list[Hits], paper: dict[str, Any], peers: dict[str, list[Hits]]) -> Row:
    """A row for a problem by name."""
    return Row(make(name, 0), own, paper, peers)

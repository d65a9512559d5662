"""Summarise the runs of queries.py: ratios per problem, their geometric means, and data profiles."""

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
    """An expected running time, whose it is, and the calls of the runs behind it."""

    ert: float = inf
    who: str = "-"
    calls: list[float] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)
    known: bool = True  # whether there were runs at all

    def total(self, budget: int, seeds: int) -> float:
        """Return the calls of all runs together, if none of them reached the goal."""
        return float(budget * max(len(self.calls), seeds))


@dataclass(eq=False)
class Row:
    """All runs on one problem."""

    problem: Instance
    own: list[Hits]
    paper: dict[str, dict[str, Any]]
    peers: dict[str, list[Hits]]

    def contestant(self, place: int, view: str = "either") -> Score:
        """Return the score of the method that is judged."""
        return Score(ert(self.own, place, view), "own", [getattr(h, view)[place] for h in self.own])

    def best_paper(self, place: int, only: Sequence[str] = ()) -> Score:
        """Return the score of the paper's best method (of those in ``only``), with its best setting."""
        best = Score(known=bool(set(only or self.paper) & set(self.paper)))
        for method, kept in self.paper.items():
            top = best_of(kept, TOLERANCES[place])
            if top is not None and top["ert"] < best.ert and (not only or method in only):
                best = Score(top["ert"], method, top["calls"], {"eta": top["eta"], "q": top["setting"]["q"]})
        return best

    def best_peer(self, place: int) -> Score:
        """Return the score of the best peer."""
        scores = [Score(ert(runs, place), name, [h.either[place] for h in runs]) for name, runs in self.peers.items()]
        best = min(scores, key=lambda score: score.ert, default=Score(known=False))
        return best if best.ert < inf else replace(best, who="-")

    def ratio(self, other: Score, own: Score) -> tuple[float, str]:
        """Return the other's calls divided by ours, with '>' or '<' if that is a bound; NaN if neither succeeded."""
        if not other.known or (own.ert == inf and other.ert == inf):
            return np.nan, ""
        if other.ert == inf:
            return other.total(self.problem.budget, len(own.calls)) / own.ert, ">"
        if own.ert == inf:
            return other.ert / own.total(self.problem.budget, len(own.calls)), "<"
        return other.ert / own.ert, ""


def short(number: float) -> str:
    """Format a number with three digits in at most six characters."""
    if number == inf or number != number:
        return "-"
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{number:.0f}"


def show(rows: list[Row], label: str) -> None:
    """Print a table and a summary for each tolerance."""
    for place in (1, 0, 2):
        print(f"\nCalls needed to reach F - F* <= {TOLERANCES[place]:g} (F(x0) - F*), expected running time")
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
    """Print the geometric means of the ratios, and the smallest ratio."""

    def mean(chosen: list[Row], other: Any, view: str = "either") -> str:
        values = {row: row.ratio(other(row), row.contestant(place, view))[0] for row in chosen}
        values = {row: value for row, value in values.items() if value == value}
        if not values:
            return "nothing to compare"
        lowest = min(values, key=lambda row: values[row])
        average = exp(sum(map(log, values.values())) / len(values))
        smallest = f"smallest {values[lowest]:.3g} ({lowest.problem.name})"
        return f"geometric mean {average:6.3g} on {len(values):2d} problems, {smallest}"

    plain = [row for row in rows if not row.problem.structure]
    print("ratio to the paper's best:    ", mean(rows, lambda row: row.best_paper(place)))
    print("  without index structure:    ", mean(plain, lambda row: row.best_paper(place)))
    print("  judged by result() alone:   ", mean(rows, lambda row: row.best_paper(place), "result"))
    print("ratio to SZOHT at its best:   ", mean(rows, lambda row: row.best_paper(place, ("szoht",))))
    print("ratio to the best peer:       ", mean([r for r in rows if r.peers], lambda row: row.best_peer(place)))
    unsolved = [r.problem.name for r in rows if r.contestant(place).ert == r.best_paper(place).ert == inf]
    if unsolved:
        print("left out, as neither succeeds:", ", ".join(unsolved))


def profiles(rows: list[Row], label: str, path: Path) -> None:
    """Draw the share of (problem, tolerance, seed) that is solved against the calls in units of n (d + 1)."""
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
    """Return the row of a problem, given by name."""
    return Row(make(name, 0), own, paper, peers)

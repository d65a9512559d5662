"""What the race costs: the calls of `auto` over those of its best arm, when every arm has the whole budget alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log
from typing import Any

from families import make
from goal_cases import Case, Outcome, Verdict
from goal_problem import GoalProblem, solve

PROBLEMS = (
    "hartmann-1000",
    "branin-plain",
    "rosenbrock-weak",
    "griewank-noise",
    "dense",
    "correlated",
    "mixture",
    "ridge-300",
    "simulator-crn",
    "cifar",
)
MEAN, WORST = 1.5, 2.0  # the goals


def arms() -> tuple[str, ...]:
    """The names of the arms of `auto`."""
    raise NotImplementedError("goal_race.arms: the race of auto does not name its arms yet")


def alone(arm: str) -> Any:
    """A method that gives the whole budget to one arm."""
    raise NotImplementedError("goal_race.alone: an arm cannot be run alone yet")


def _problem(name: str, seed: int) -> GoalProblem:
    problem = make(name, seed)
    if name == "cifar":
        problem.target = 0.25 * problem.F_start  # all images at once is too much to ask of every draw
    return problem


def _compare(seed: int, method: Any) -> Outcome:
    """The calls that the method and every arm alone need on each problem; infinite where the target is missed."""
    contestants = {"auto": method, **{arm: alone(arm) for arm in arms()}}
    calls = {
        name: {label: solve(_problem(name, seed), seed, method=one).calls for label, one in contestants.items()}
        for name in PROBLEMS
    }
    return {"calls": calls, "budget": {name: make(name, seed).budget for name in PROBLEMS}}


def _running_time(outcomes: Sequence[Outcome], name: str, label: str) -> float:
    calls = [outcome["calls"][name][label] for outcome in outcomes]
    reached = sum(c < inf for c in calls)
    spent = sum(min(c, outcome["budget"][name]) for c, outcome in zip(calls, outcomes, strict=True))
    return spent / reached if reached else inf


def _regret(outcomes: Sequence[Outcome]) -> Verdict:
    regrets, missed = {}, []
    for name in PROBLEMS:
        own = _running_time(outcomes, name, "auto")
        others = [label for label in outcomes[0]["calls"][name] if label != "auto"]
        best = min(_running_time(outcomes, name, label) for label in others)
        if best == inf:
            missed.append(name)  # nobody solves it, so that it tells nothing about the race
        else:
            regrets[name] = own / best
    mean = exp(sum(map(log, regrets.values())) / len(regrets)) if regrets else inf
    worst = max(regrets, key=lambda name: regrets[name], default="none")
    text = f"mean {mean:.2f}, worst {regrets.get(worst, inf):.2f} ({worst})"
    text += f"; no arm solves {', '.join(missed)}" * bool(missed)
    return text, mean <= MEAN and regrets.get(worst, inf) <= WORST


RACE = Case("race", "regret 1.5 in the mean, 2 at worst", _compare, _regret, 5)

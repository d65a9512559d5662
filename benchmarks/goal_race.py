"""What the race costs: the calls of `auto` over those of its best arm, when every arm has the whole budget alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

from families import make
from goal_cases import Case, Outcome, Verdict
from goal_problem import FIRST_SEED, GoalProblem, solve

import zerothresh as zt
from zerothresh.methods.auto.automatic import ARMS
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.race import race

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
UNSEEN = (  # the problems of the judging set, which were not used to choose the constants of the race
    "levy-plain",
    "levy-noise",
    "styblinski-plain",
    "styblinski-weak",
    "bumps-plain",
    "bumps-noise",
    "valley-weak",
    "pinball",
    "huber",
    "two-sides",
)
MEAN, WORST = 1.5, 2.0  # the goals


@dataclass(frozen=True)
class Alone(zt.Program):
    """One arm of `auto` with the whole budget, if it fits."""

    arm: str

    def search(self, context: zt.methods.Context) -> Any:
        diagnosis = yield from diagnose(context)
        chosen = [arm for arm in ARMS if arm.name == self.arm and arm.fits(context, diagnosis)]
        yield from race(context, diagnosis, chosen)


def arms() -> tuple[str, ...]:
    """The names of the arms of `auto`."""
    return tuple(arm.name for arm in ARMS)


def alone(arm: str) -> Any:
    """A method that gives the whole budget to one arm."""
    return Alone(arm)


def _problem(name: str, seed: int) -> GoalProblem:
    problem = make(name, seed)
    if name == "cifar":
        problem.target = 0.25 * problem.F_start  # all images at once is too much to ask of every draw
    return problem


def _compare(seed: int, method: Any) -> Outcome:
    """The calls that the method and every arm alone need on each problem; infinite where the target is missed."""
    problems = UNSEEN if seed >= FIRST_SEED["judge"] else PROBLEMS
    contestants = {"auto": method, **{arm: alone(arm) for arm in arms()}}
    calls = {
        name: {label: solve(_problem(name, seed), seed, method=one).calls for label, one in contestants.items()}
        for name in problems
    }
    return {"calls": calls, "budget": {name: make(name, seed).budget for name in problems}}


def _running_time(outcomes: Sequence[Outcome], name: str, label: str) -> float:
    calls = [outcome["calls"][name][label] for outcome in outcomes]
    reached = sum(c < inf for c in calls)
    spent = sum(min(c, outcome["budget"][name]) for c, outcome in zip(calls, outcomes, strict=True))
    return spent / reached if reached else inf


def _regret(outcomes: Sequence[Outcome]) -> Verdict:
    regrets, missed = {}, []
    for name in outcomes[0]["calls"]:
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

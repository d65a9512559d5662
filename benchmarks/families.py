"""All families of problems of `goals.py`, made from a name, a seed and a set.

    from families import FAMILIES, make
    problem = make("dense", 0)            # development: seeds 0, 1, ..., the usual parameters
    problem = make("dense", 1000)         # random parameters, unit and offset of F; judging: from 2000 on

Nobody tunes on the judging set: it was written before the methods that it judges, and is run only to judge them.
"""

from __future__ import annotations

import applications  # noqa: F401
import few_coordinates  # noqa: F401
import noisy_bowls  # noqa: F401
import regressions  # noqa: F401
import unseen  # noqa: F401
from goal_problem import FAMILIES, FIRST_SEED, Draw, GoalProblem

__all__ = ["FAMILIES", "make"]


def make(name: str, seed: int) -> GoalProblem:
    """Make a fresh problem; a seed from 1000 on gives one with random parameters."""
    judge = seed >= FIRST_SEED["former"]
    draw = Draw(name.split("-")[0], seed, judge)  # variants of a problem have the same data
    problem = FAMILIES[name](draw)
    problem.reseed(seed)
    if judge:
        problem.scale = draw.scale(1.0, 1e-3, 1e3)
        problem.offset = problem.scale * abs(problem.F_start) * draw.real(0.0, -10.0, 10.0)
    return problem

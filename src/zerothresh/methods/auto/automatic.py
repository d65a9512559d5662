"""Auto, the default method: diagnose the black box, then let the strategies that fit it compete for the budget.

Read this file from top to bottom, then `race.py`, and then the arm that interests you.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.methods.auto.arm import Arm
from zerothresh.methods.auto.arms.active_subset import ActiveSubset
from zerothresh.methods.auto.arms.corner_swaps import CornerSwaps
from zerothresh.methods.auto.arms.descent import LocalDescent
from zerothresh.methods.auto.arms.feasible_descent import FeasibleDescent
from zerothresh.methods.auto.arms.feasible_gauss_newton import FeasibleGaussNewton
from zerothresh.methods.auto.arms.feasible_steps import FeasibleSteps
from zerothresh.methods.auto.arms.grid_search import GridSearch
from zerothresh.methods.auto.arms.grouped_slopes import GroupedSlopes
from zerothresh.methods.auto.arms.linearised_outputs import LinearisedOutputs
from zerothresh.methods.auto.arms.long_steps import LongSteps
from zerothresh.methods.auto.arms.random_steps import RandomSteps
from zerothresh.methods.auto.arms.single_index import SingleIndex
from zerothresh.methods.auto.arms.squared_components import SquaredComponents
from zerothresh.methods.auto.arms.stochastic_descent import StochasticDescent
from zerothresh.methods.auto.diagnosis import NOTHING_KNOWN, Diagnosis, diagnose
from zerothresh.methods.auto.moves.feasible_look import feasible_look
from zerothresh.methods.auto.race import race
from zerothresh.methods.auto.settings.race_settings import RACE
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register
from zerothresh.rounds.task import Task

ARMS: tuple[Arm, ...] = (  # in the order in which they are tried: those that test their own assumption come first
    ActiveSubset(),  # F depends on few coordinates: find them by bisection, then search globally among them
    StochasticDescent(),  # random noise hides single steps: many steps, judged together
    SingleIndex(),  # components are losses of linear scores: learn the rows, and minimise the model without calls
    SquaredComponents(),  # components are squares of smooth functions: Gauss-Newton steps on their roots
    GroupedSlopes(),  # fewer calls than coordinates: split signed groups, steepest first
    LocalDescent(),  # differences, quasi-Newton steps on the support, exchanges; then other supports
    CornerSwaps(),  # finite bounds: values at the bounds, and swaps judged by paired differences
    LongSteps(),  # a flat start or kinks: long steps, judged by their values
    LinearisedOutputs(),  # calls return residuals: Gauss-Newton steps, again from what the others have found
)


LEADERS = (
    LinearisedOutputs(),  # calls return residuals: Gauss-Newton steps
    FeasibleGaussNewton(),  # the same within a sum
)


FEASIBLE_ARMS: tuple[Arm, ...] = (  # of constraints beyond bounds: these arms ask within the constraint
    FeasibleDescent(),  # differences within the set, exchanges by a model or by value
    FeasibleSteps(),  # transfers, swaps and random steps, judged by their values
    GridSearch(),  # discrete values
)


def _random(diagnosis: Diagnosis) -> str:
    """Return what the values at the start tell."""
    if not diagnosis.random:
        return "values are not random"
    return f"random noise of {diagnosis.noise / diagnosis.largest_value:.0e} times the largest value"


@register("auto")
@dataclass(frozen=True)
class Auto(Program):
    """The default method: no learning rate, no mu, no q.

    A few calls show what the black box is like: its noise, its lengths, kinks. The strategies that fit it then compete
    for the budget, and calls go to those that make progress. The run ends before the budget is spent only with a proof
    that nothing better is left, or when the user's patience ends.

    Arguments
    ---------
    patience: int, calls without a gain after which the run ends; None: the whole budget is spent. Default: None.

    >>> Auto()
    Auto(patience=None)
    """

    family: ClassVar[str] = "auto"
    solves: ClassVar[str] = "any F, l0"
    queries: ClassVar[str] = "those of the strategies that it races"
    memory: ClassVar[str] = "1 per call, and that of its strategies"
    asks_feasible: ClassVar[bool] = True
    must_improve: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    patience: int | None = None

    def __post_init__(self) -> None:
        if self.patience is not None:
            check.count("patience", self.patience, what=" (calls without a gain), or None")

    def search(self, context: Context) -> Asks:
        if lack := _lack(context.d, context.k, context.left):
            context.remark(f"The budget is {lack}.")
        for arm in LEADERS:  # without a diagnosis: their first calls are one
            if not arm.fits(context, None):
                continue
            patience = self.patience and max(self.patience, arm.forecast(context, None))
            ended = yield from race(context, NOTHING_KNOWN, [arm], patience)
            if ended.final:
                context.certified = ended.certified
                return
            context.remark("Other strategies compete for the rest of the budget.")
        context.stage("diagnosis")
        beyond = context.constraint.further is not None  # then points off the start may not be feasible
        if beyond and context.has_outputs and not FeasibleGaussNewton().takes(context):
            context.remark("Gauss-Newton steps keep a sum (Simplex, Budget) without strict; here, F alone is used.")
        diagnosis = yield from feasible_look(context) if beyond else diagnose(context)
        context.remark(f"Diagnosis: {_random(diagnosis) if beyond else diagnosis.summary()}.")
        context.random = diagnosis.random
        if not context.free().size:
            context.remark("No coordinate is free to change; the start is the result.")
            context.certified = True
            return
        while True:
            arms = [arm for arm in (FEASIBLE_ARMS if beyond else ARMS) if arm.fits(context, diagnosis)]
            ended = yield from race(context, diagnosis, arms, self.patience)
            if not ended.final:  # nothing is proven, so the rest of the budget is used; a larger one races again
                ended = yield from race(context, diagnosis, [RandomSteps()], self.patience)
            if ended.final:
                context.certified = ended.certified
                return

    def reserve(self, n: int, budget: int) -> int:
        """Return how many calls are kept for F at the result: none if F costs too large a part of the budget."""
        return n if budget >= RACE.value_share * n else 0

    def doubts(self, task: Task) -> str:
        """Return a sentence if the budget is hopeless, before it is spent; an empty one otherwise."""
        lack = _lack(task.d, task.constraint.k, task.budget - task.reserve)
        return f"budget = {task.budget} is {lack}, so little can be expected of this run" if lack else ""


def _lack(d: int, k: int, calls: float) -> str:
    """Say what so few calls are too few for, if they are; an empty string otherwise.

    To tell which k of d coordinates matter takes log2 of the number of supports comparisons, whatever the method.
    """
    k = min(k, d)
    bits = (math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)) / math.log(2)
    least = f"that takes at least {math.ceil(bits):,} comparisons"
    return "" if calls >= bits else f"too small to tell which {k} of {d} coordinates matter: {least}"

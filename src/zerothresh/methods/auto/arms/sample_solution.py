"""Moving the incumbent to the solution for a sample of the components, as soon as other components confirm it.

The rows of all components cost many calls, and the solution for a part of them is often nearly as good. Held-out
components compare it with the incumbent by paired differences. If it is lower on more and more of them, all are asked,
so that F is known there, and the incumbent moves.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.arms.score_fit import ScoreFit
from zerothresh.methods.auto.models.significance import significantly_lower
from zerothresh.methods.auto.settings.single_index_settings import INDEX
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class SampleSolution:
    """Judges solutions for the first components on components that were not fitted.

    Arguments
    ---------
    fit: the solution for the components whose rows are known.

    Attributes
    ----------
    generalised: whether held-out components have shown that the model holds for all.
    """

    def __init__(self, fit: ScoreFit) -> None:
        self.fit, self.context = fit, fit.context
        self.generalised = False
        self._best = fit.context.theta0  # the best point whose F is known
        self._at_best = np.empty(0)  # f_i there in the order of learning, unless it is the start
        self._asked = 0  # calls of the run when F at a solution was last asked for

    def judge(self, m: int) -> Generator[Probes, Answers, bool]:
        """Compare the solution for the first m components with the incumbent; False if the budget does not allow it.

        The iterate of the run moves to the solution if that is lower on held-out components than the start, beyond
        chance, and lower than where the iterate is; or if F is known there, and is lower.
        """
        context, fit, n = self.context, self.fit, self.context.n
        count = min(n - m, max(INDEX.least_held_out, math.ceil(INDEX.held_out * m)))
        held_out = fit.order[m : m + count]
        points = self._candidates(m)
        if context.left < (len(points) + 2) * count + m:
            return False
        start_values = yield from context.starts(held_out)
        if not points:
            return True
        known = context.theta is self._best
        rivals = [] if known else [context.theta]
        values = yield from context.values(points + rivals, held_out)
        incumbent = (yield from self._reference(m, m + count)) if known else values[-1]
        values = values[: len(points)]
        best = int(np.argmin(values.mean(axis=1)))
        if points[best] is not fit.theta:
            fit.theta, fit.values = points[best], np.empty(0)
        lower = values[best].mean() <= incumbent.mean() and significantly_lower(values[best], start_values, n)
        if lower and self._best is context.theta0:  # later on, the iterate moves to points whose F is known
            context.move(fit.theta, fall=float(np.mean(start_values - values[best])))
        self.generalised = bool(np.std(values[best]) < INDEX.generalised * np.std(start_values))
        seen = values[best]
        if not (self.generalised or _hopeless(seen, incumbent)) and self._worth_knowing():
            seen = yield from self._know(m, seen)
        if fit.values.size == m:
            fit.values = np.concatenate([fit.values, seen])
        return True

    def _candidates(self, m: int) -> list[Array]:
        """Return the points to judge: the solution, and a less sparse one if more may be non-zero."""
        fit, context = self.fit, self.context
        if fit.theta is context.theta0:
            return []
        denser = min(context.k, m // INDEX.fewest_rows_per_coordinate)
        if not fit.quadratic or denser <= np.count_nonzero(fit.theta):
            return [fit.theta]
        return [fit.theta, fit.quadratic_minimiser(denser)]

    def _reference(self, first: int, last: int) -> Generator[Probes, Answers, Array]:
        """Return f_i at the best point whose F is known, for some components in the order of learning."""
        if self._best is self.context.theta0:
            return (yield from self.context.starts(self.fit.order[first:last]))
        return self._at_best[first:last]

    def _worth_knowing(self) -> bool:
        """Whether F at the solution costs a small part of the calls so far, and at most those since the last time.

        It is not if runs for other k wait for the model: then each k gets its own F once that is complete.
        """
        context, n = self.context, self.context.n
        if context.family is not None:
            return False
        cheap = n <= INDEX.publication_share * context.used and n <= context.used - self._asked
        return cheap and context.left > 2 * n  # the start may have to be asked as well

    def _know(self, m: int, held_out: Array) -> Generator[Probes, Answers, Array]:
        """Ask for the other components as long as the solution is lower; at the end F is known, and the iterate moves.

        Returns the values at the solution of the components from the m-th on that are known.
        """
        context, fit, n = self.context, self.fit, self.context.n
        theta, seen, self._asked = fit.theta, held_out, context.used
        while m + seen.size < n:
            more = slice(m + seen.size, min(n, m + 2 * seen.size))
            seen = np.concatenate([seen, (yield from context.values([theta], fit.order[more]))[0]])
            if _hopeless(seen, (yield from self._reference(m, m + seen.size))):
                return seen
        fitted = fit.values if fit.values.size == m else (yield from context.values([theta], fit.order[:m]))[0]
        values = np.concatenate([fitted, seen])
        reference = float((yield from self._reference(0, n)).mean())
        if values.mean() < reference:
            self._best, self._at_best = theta, values
            context.move(theta, float(values.mean()))
        elif context.theta is theta:
            context.move(self._best, reference)
        return seen


def _hopeless(values: Array, incumbent: Array) -> bool:
    """Whether values of some components are higher than at the incumbent by more than their error."""
    change = values - incumbent
    return float(change.mean()) > INDEX.hopeless * float(change.std(ddof=1)) / math.sqrt(change.size)

"""What long steps of single coordinates were last worth: a table that is older in some places than in others."""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.moves.step_groups import StepGroup
from zerothresh.methods.auto.settings.box_settings import COMPONENT_RACE, LONG_STEPS
from zerothresh.methods.program.context import Context
from zerothresh.sampling.philox import Stream


def bisection_price(coordinates: int) -> int:
    """Return about how many values of F it takes to find a step of one coordinate by bisection."""
    return math.ceil(LONG_STEPS.first_groups + 2 * math.log2(coordinates))


def table_pays(context: Context) -> bool:
    """Whether measuring the step of every coordinate once costs less than bisections for k of them.

    It must also leave calls to use what it shows.
    """
    d, k = context.free().size, context.k
    values = context.left / min(context.n, COMPONENT_RACE.first)
    return k < d < min(k * bisection_price(d), LONG_STEPS.table_share * values)


class StepWorths:
    """The last known fall of F by a step of each coordinate to each target, and the iterate where it was measured.

    A coordinate that was measured at one target only is expected to change F by as much per length at the others.

    Arguments
    ---------
    targets: where steps lead, one array (d,) each.
    """

    def __init__(self, targets: list[Array]) -> None:
        self.targets = targets
        self.gain = np.zeros((len(targets), targets[0].size))
        self.measured = np.full(self.gain.shape, -1)  # the number of the iterate; -1: never
        self.steps: dict[tuple[int, int], StepGroup] = {}  # those that were measured at the newest iterate
        self._newest = 0

    def note(self, step: StepGroup, iterate: int) -> None:
        """Keep what a step of one coordinate has shown."""
        j = int(step.coordinates[0])
        if iterate != self._newest:
            self.steps.clear()
            self._newest = iterate
        self.steps[step.aim, j] = step
        self.gain[step.aim, j], self.measured[step.aim, j] = -step.change, iterate
        for aim in np.flatnonzero(self.measured[:, j] < 0).tolist():
            self.gain[aim, j] = -step.change * self.targets[aim][j] / step.target[j]

    def single(self, aim: int, j: int) -> StepGroup:
        """Return the step of one coordinate to a target."""
        return StepGroup(np.array([j]), self.targets[aim], aim)

    def unknown(self, pool: Indices) -> Indices:
        """Return the coordinates of which no step was ever measured."""
        never: Indices = pool[self.measured[:, pool].max(axis=0) < 0]
        return never

    def oldest(self, pool: Indices, count: int, iterate: int, rng: Stream) -> list[StepGroup]:
        """Return steps of the coordinates that were not measured for longest, and not at ``iterate``.

        Each goes to the target where the coordinate was not measured for longest.
        """
        last = self.measured[:, pool].max(axis=0)
        order = np.argsort(last + rng.uniform(pool.size), kind="stable")
        some = pool[order[last[order] < iterate][:count]]
        age = self.measured[:, some] + rng.uniform(len(self.targets) * some.size).reshape(len(self.targets), some.size)
        aims = np.where([target[some] != 0 for target in self.targets], age, np.inf).argmin(axis=0)
        return [self.single(aim, j) for aim, j in zip(aims.tolist(), some.tolist(), strict=True)]

    def best(self, pool: Indices, least: float) -> tuple[int, int] | None:
        """Return the target and the coordinate of the best known step, if it lowers F by more than ``least``."""
        gain = self.gain[:, pool]
        aim, at = divmod(int(np.argmax(gain)), pool.size) if pool.size else (0, 0)
        return (aim, int(pool[at])) if pool.size and gain[aim, at] > least else None

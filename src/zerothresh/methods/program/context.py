"""What a program sees of its run: the constraint, what is left of the budget, and how to ask."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.bounds import Box
from zerothresh.constraint.threshold import Constraint, Diverged, HardThreshold
from zerothresh.losses import Loss
from zerothresh.methods.program.foresight import Foresight
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.search import Linearisation, Remark, Stage
from zerothresh.rounds.task import Family, Task
from zerothresh.sampling.directions import Block, SparseBlock, draw
from zerothresh.sampling.philox import DIRECTIONS, Stream

UNLIMITED = 1e9  # calls to plan with once a budget has been raised: a program plans only with its first one
NARROWEST = 1e-150  # room between two bounds in which no slope can be seen: its square is no floating-point number
OUTLIER = 1e3  # times the median change from which a change is asked for once more
VISIBLE = 1e4 * float(np.finfo(float).eps)  # of the value itself that such a change must be, or it may be rounding
MOST_IDLE = 10_000  # looks at the budget or empty questions between two rounds: beyond it a program goes round for ever
Asks = Generator[Probes, Answers, Any]  # what `Program.search` returns


class _Run:
    """What all searches of one run share: the round, its random numbers, and what has been seen and said."""

    def __init__(self, task: Task) -> None:
        self._key = task.key
        self.round = self.used = 0
        self.unit = 0.0 if task.family is None else task.family.unit
        self.at_start: dict[int, float] = {}
        self.gradients_at_start: dict[int, Array] = {}
        self.remarks: list[Remark] = []
        self.stages: list[Stage] = []
        self.linearisation: Linearisation | None = None
        self._reference: float | None = None
        self.threshold: HardThreshold | None = None
        self.rng = Stream(0, 0, key=task.key)
        self.foresight = Foresight()
        self._idle = 0  # looks at the budget and empty questions since the last round

    def enter(self, H: HardThreshold, used: int) -> None:
        """Begin a new round after ``used`` calls."""
        self.round += 1
        self.used, self.threshold, self._idle = used, H, 0
        self.rng = Stream(0, self.round, key=self._key)

    def reference(self, n: int, fun: float) -> float:
        """Return F at the start, from which falls are counted; if it is not known, the first F that is told."""
        if self._reference is None:
            known = len(self.at_start) == n
            self._reference = math.fsum(self.at_start.values()) / n if known else fun
        return self._reference

    def note_idle(self) -> None:
        """Count what a program does without asking for a value, and stop one that never asks again."""
        self._idle += 1
        if self._idle > MOST_IDLE:
            raise RuntimeError(f"the method went round {MOST_IDLE} times without asking for a value")


class Context:
    """What a program sees of its run: the constraint, what is left of the budget, and how to ask.

    Attributes
    ----------
    theta0: float64 array (d,), the start.
    theta: float64 array (d,), the iterate; `move` changes it.
    n, d, k: int, the numbers of components, of coordinates and of non-zeros (or groups) that are allowed.
    everything: int64 array (n,), all components.
    estimator: the user's `Estimator`, or None if there is none.
    round, used: int, rounds and calls so far.
    rng: Stream, the random numbers of this round.
    random: bool, set by the program: values are random, so that the lowest value seen proves nothing.
    family: Family, what runs for other k know of this function; None if there are none.
    has_outputs: bool, whether one call returns many outputs, for which `outputs` asks.
    loss: Loss of one output, whose mean over the outputs of a call is F; None without outputs.
    width: int, the calls that take no longer together than one: `parallel`. At 1, every call saved is time saved.
    """

    def __init__(self, task: Task, run: _Run | None = None, name: str = "") -> None:
        self._task, self._name = task, name
        self._run = _Run(task) if run is None else run
        self.theta0 = self.theta = task.theta0
        self.n, self.d, self.k = task.n, task.d, task.constraint.k
        self.width = task.width
        self.constraint: Constraint = task.constraint
        self.box: Box | None = task.constraint.box
        self.everything = np.arange(self.n)
        self.estimator = task.estimator if task.estimator_given else None
        self.family: Family | None = task.family
        self.has_outputs = task.outputs is not None
        self.loss: Loss | None = None if task.outputs is None else task.outputs.loss
        self.fun: float | None = None  # F at the iterate, in `unit`
        self.distrusted = False  # whether values were invented, as on_nan="worst" does
        self.random = False
        self.fall = 0.0  # by how much F is lower at the iterate than at the start, as far as it is known
        self.parent: Context | None = None  # the run that this is a branch of
        self.follows = False  # set by a search that goes on from the point of the run where that is better than its own
        self.given = 0.0  # the part of the fall that other searches of the run have found since this one began
        self.confirmed = False  # set by a search whose own test has confirmed what it assumes of F
        self.committed = False  # set by a search whose calls so far are worth nothing without the next ones
        self.certified = False  # set by a program whose iterate is known to be optimal
        self._entered = self.theta  # the iterate at the beginning of the round

    def branch(self, name: str) -> Context:
        """Return a context for one of several searches of this run: it has an iterate of its own, and shares the rest.

        Its remarks begin with ``name``. What it finds reaches the user only if this context moves there.
        """
        branch = Context(self._task, self._run, name)
        branch.theta, branch.fun, branch.fall, branch.random = self.theta, self.fun, self.fall, self.random
        branch.parent = self
        return branch

    def enter(self, H: HardThreshold, used: int) -> None:
        """Begin a new round after ``used`` calls; the engine calls this, a program never does."""
        self._entered = self.theta
        self._run.enter(H, used)

    @property
    def round(self) -> int:
        """The number of rounds so far."""
        return self._run.round

    @property
    def used(self) -> int:
        """The number of calls so far."""
        return self._run.used

    @property
    def rng(self) -> Stream:
        """The random numbers of this round."""
        return self._run.rng

    @property
    def remarks(self) -> list[Remark]:
        """What the user has been told so far."""
        return self._run.remarks

    @property
    def unit(self) -> float:
        """Values are given in this unit, so that they are neither tiny nor huge; 0: not known yet."""
        return self._run.unit

    @unit.setter
    def unit(self, unit: float) -> None:
        self._run.unit = unit
        if self.family is not None:
            self.family.unit = self.family.unit or unit

    def H(self, v: Array) -> Array:
        """Return H_k(v), the nearest feasible point; each use is counted."""
        if self._run.threshold is None:
            raise RuntimeError("H can be used once the first answers have come: ask for something first")
        return self._run.threshold(v)

    @property
    def budget(self) -> int:
        """The budget that the run began with, of which some calls may be kept for F at the result."""
        task = self._task
        return task.budget if task.first_budget is None else task.first_budget

    @property
    def left(self) -> float:
        """Calls that are left to plan with; unlimited if the budget was raised after the run had begun."""
        self._run.note_idle()
        budget = self.budget - self._task.reserve
        return UNLIMITED if self.used > budget else budget - self.used

    # What the program reports.

    def move(self, theta: Array, fun: float | None = None, fall: float | None = None) -> None:
        """Make ``theta``, which has to be feasible, the iterate: a step.

        ``move(context.theta, fun)``, with the iterate itself, is not a step: it only says what F is there.

        Arguments
        ---------
        theta: float64 array (d,), the point.
        fun: float, default None: F there in `unit`, if all components were seen there.
        fall: float, default None: F at the start minus F there, if only differences on some components tell it.
        """
        theta.flags.writeable = False
        self.theta, self.fun = theta, fun
        if fun is not None:
            reference = self._run.reference(self.n, fun)
            self.fall = reference - fun
        elif fall is not None:
            self.fall = fall

    def stage(self, name: str) -> None:
        """Note that the calls from now on are made for the purpose of this name; a branch is one purpose."""
        stages = self._run.stages
        if not self._name and (not stages or stages[-1][1] != name):
            stages.append((self.used, name))

    @property
    def stages(self) -> list[Stage]:
        """What calls were made for."""
        return self._run.stages

    @property
    def stepped(self) -> bool:
        """Whether the program has moved to another iterate in this round; a point on trial that is left is no step."""
        return self.theta is not self._entered

    def remark(self, message: str) -> None:
        """Tell the user what was found or chosen."""
        self.remarks.append((self.used, f"{self._name}: {message}" if self._name else message))

    @property
    def linearisation(self) -> Linearisation | None:
        """What `linearised` kept last."""
        return self._run.linearisation

    def linearised(self, coordinates: Indices, jacobian: Array) -> None:
        """Keep the derivatives of the outputs by some coordinates near the iterate, for the result.

        Arguments
        ---------
        coordinates: int64 array (c,), those of the support at least.
        jacobian: float64 array (m, c).
        """
        self._run.linearisation = Linearisation(coordinates.copy(), jacobian.copy(), self.used)

    # Directions.

    def directions(self, family: str, q: int) -> Block:
        """Return a block of q random directions of this round."""
        tag = (DIRECTIONS << 24) + 1
        return draw(family, q, self.d, self.d, key=self._task.key, round=self.round, tag=tag)

    # Questions: use them with `yield from`.

    def values(self, points: list[Array], of: Indices | None = None) -> Generator[Probes, Answers, Array]:
        """Return f_i at points, for all components or those given by ``of``: (points, components)."""
        of = self.everything if of is None else of
        if not points or not of.size:
            self._run.note_idle()
            return np.empty((len(points), of.size))
        _check_finite(points)
        if self.width > 1:
            return self._in_units((yield from self._values_ahead(points, of)))
        answers = yield Probes.values(points, of)
        return self._in_units(answers.values)

    def foresee(self, points: Sequence[Array], of: Indices) -> None:
        """Say which points will probably be asked for next: idle workers evaluate them in the coming round.

        With ``width`` 1 there are none, and nothing happens.
        """
        if self.width > 1:
            self._run.foresight.want([self.inside(point) for point in points], of)

    def foresee_slopes(self, theta: Array, chosen: Indices, h: float, of: Indices, *, central: bool = False) -> None:
        """Say that `slopes` will probably be asked for next, with these arguments."""
        if self.width > 1:
            steps = self.steps_inside(theta, chosen, h)
            sides = (steps, -steps) if central and self.box is None else (steps,)
            for side in sides:
                self.foresee(self._beside(theta, chosen, side), of)

    def _values_ahead(self, points: Sequence[Array], of: Indices) -> Generator[Probes, Answers, Array]:
        """Return f_i at points, some of which may be known because they were foreseen: (points, components)."""
        foresight = self._run.foresight
        rows = [foresight.take(point, of) for point in points]
        missing = [point for point, row in zip(points, rows, strict=True) if row is None]
        if missing:
            probes, calls = Probes.values(missing, of), len(missing) * of.size
            idle = min(-calls % self.width, int(self.left) - calls)
            extra = foresight.extra(idle)
            answers = yield probes if extra is None else probes | Probes.each(*extra)
            if extra is not None:
                foresight.keep(*extra, answers.paired)
            told = iter(answers.values)
            rows = [next(told) if row is None else row for row in rows]
        return np.array(rows)

    def _beside(self, theta: Array, chosen: Indices, steps: Array) -> list[Array]:
        """Return the points at a step from theta along each coordinate, within the bounds."""
        points = np.repeat(theta[None], chosen.size, axis=0)
        points[np.arange(chosen.size), chosen] += steps
        return list(self.inside(points))

    def _moved(self, theta: Array, chosen: Indices, steps: Array, of: Indices) -> Generator[Probes, Answers, Array]:
        """Return f_i at a step from theta along each coordinate: (components, coordinates)."""
        if self.width > 1 and chosen.size * of.size <= self.width:  # larger rounds have no idle workers to speak of
            _check_finite([theta, steps])
            values = yield from self._values_ahead(self._beside(theta, chosen, steps), of)
            return self._in_units(values.T)
        block = SparseBlock.coordinates(self.d, chosen, steps)
        return (yield from self.around(theta, block, 1.0, chosen.size, of))

    def _in_units(self, values: Array) -> Array:
        if not self.unit:
            size = float(np.abs(values).max(initial=0.0))
            self.unit = math.ldexp(1.0, math.frexp(size)[1]) if 0 < size < 1e300 else 1.0 if size == 0 else 2.0**1000
        return values / self.unit

    def around(
        self, theta: Array, block: Block, h: float, count: int, of: Indices
    ) -> Generator[Probes, Answers, Array]:
        """Return f_i(theta + h u_l) for the directions of a block: (components, directions)."""
        _check_finite([theta, np.asarray(h)])
        answers = yield Probes.around(theta, block, h, count, of)
        return self._in_units(answers.moved)

    @property
    def known_starts(self) -> int:
        """The number of components whose value at the start is known."""
        return len(self._run.at_start)

    def remember(self, component: int, value: float) -> None:
        """Keep f_i at the start, so that it is not asked for again."""
        self._run.at_start[component] = value

    def remember_gradients(self, of: Indices, gradients: Array) -> None:
        """Keep gradients of components at the start on the `free` coordinates, one per row, for other searches."""
        self._run.gradients_at_start.update(zip(of.tolist(), gradients, strict=True))

    def remembered_gradients(self) -> dict[int, Array]:
        """Return the gradients of components at the start that some search of this run has measured."""
        return self._run.gradients_at_start

    def starts(self, of: Indices) -> Generator[Probes, Answers, Array]:
        """Return f_i at the start for some components: (components,)."""
        missing = np.array([i for i in of.tolist() if i not in self._run.at_start], dtype=np.int64)
        if missing.size:
            values = yield from self.values([self.theta0], missing)
            self._run.at_start.update(zip(missing.tolist(), values[0].tolist(), strict=True))
        return np.array([self._run.at_start[i] for i in of.tolist()])

    def slopes(
        self, theta: Array, chosen: Indices, h: float, of: Indices, base: Array, *, central: bool = False
    ) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """Return (f_i(theta + h_j e_j) - f_i(theta)) / h_j, (components, coordinates), and the steps h_j.

        ``base`` are the values f_i(theta). Steps are reversed and shortened to stay within bounds. A change that
        is out of all proportion is asked for once more: a value that comes once and not again is an outlier.
        """
        steps = self.steps_inside(theta, chosen, h)
        if not chosen.size or not of.size:
            self._run.note_idle()
            return np.empty((of.size, chosen.size)), steps
        moved = yield from self._moved(theta, chosen, steps, of)
        changes = yield from self._confirmed(theta, chosen, steps, of, base, moved - base[:, None])
        slopes = changes / steps
        if central and self.box is None:
            moved = yield from self._moved(theta, chosen, -steps, of)
            others = yield from self._confirmed(theta, chosen, -steps, of, base, moved - base[:, None])
            slopes = 0.5 * (slopes - others / steps)
        return slopes, steps

    def _confirmed(
        self, theta: Array, chosen: Indices, steps: Array, of: Indices, base: Array, changes: Array
    ) -> Generator[Probes, Answers, Array]:
        """Ask again for changes that are far larger than the usual one, and take the smaller answer.

        The largest comes first. One that comes again belongs to the function, and so do those that are smaller.
        """
        size, out = np.abs(changes), changes.copy()
        usual = np.median(size, axis=1, keepdims=True)
        odd = (size > OUTLIER * usual) & (size > VISIBLE * np.abs(base[:, None])) & (usual > 0)
        if 4 * odd.sum() > max(odd.size, 8):  # so many are no outliers
            return changes
        for row in np.flatnonzero(odd.any(axis=1)).tolist():
            columns = np.flatnonzero(odd[row])
            for a in columns[np.argsort(-size[row, columns], kind="stable")].tolist():
                point = theta.copy()
                point[chosen[a]] += steps[a]
                again = float((yield from self.each(point[None], of[row : row + 1]))[0]) - base[row]
                out[row, a] = again if abs(again) < size[row, a] else changes[row, a]
                if not OUTLIER * abs(again) < size[row, a]:
                    break
        return out

    def steps_inside(self, theta: Array, chosen: Indices, h: float) -> Array:
        """Return a step of length h per coordinate, upwards if the bounds leave room for it, else downwards."""
        steps = np.full(chosen.size, h)
        box = self.box
        if box is not None:
            up, down = box.high[chosen] - theta[chosen], theta[chosen] - box.low[chosen]
            steps = np.where(up >= h, h, np.where(down >= h, -h, np.where(up >= down, up, -down)))
        return steps

    def inside(self, point: Array) -> Array:
        """Return the nearest point within the bounds."""
        box = self.box
        return point if box is None else np.clip(point, box.low, box.high)

    def each(self, points: Array, of: Indices) -> Generator[Probes, Answers, Array]:
        """Return the value of component ``of[r]`` at row r of ``points``: (rows,)."""
        if not of.size:
            self._run.note_idle()
            return np.empty(0)
        _check_finite(points)
        answers = yield Probes.each(points, of)
        return self._in_units(answers.paired)

    def outputs(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Return all outputs of the calls at points, (points, m), as they are; NaN where an output is missing.

        Only where one call returns many outputs: see `has_outputs`. `mean_losses` makes F of them. If a program begins
        with this, values are given in their own unit: `unit` is 1.
        """
        if not self.has_outputs:
            raise RuntimeError("the function returns one value per call: it has no outputs to ask for")
        if not points:
            self._run.note_idle()
            return np.empty((0, 0))
        _check_finite(points)
        answers = yield Probes.outputs(points)
        self.unit = self.unit or 1.0
        return answers.outputs

    def mean_losses(self, outputs: Array) -> Array:
        """Return F in `unit` for each row of outputs, (points, m): the mean loss of those that are there."""
        if self._task.outputs is None:
            raise RuntimeError("the function returns one value per call: it has no outputs")
        return self._in_units(self._task.outputs.values(outputs))

    def free(self) -> Indices:
        """Return the coordinates that may be other than 0, unless their bounds leave next to no room."""
        box = self.box
        if box is None:
            return np.arange(self.d)
        with np.errstate(over="ignore"):  # from one end of the floating-point numbers to the other
            return np.flatnonzero(box.high - box.low > NARROWEST)


@contextmanager
def learning(context: Context) -> Iterator[None]:
    """Say that what is paid for meanwhile tells of the function itself, whatever k is, so that other runs wait."""
    if context.family is None:
        yield
        return
    context.family.learning.add(context.k)
    try:
        yield
    finally:
        context.family.learning.discard(context.k)


def _check_finite(points: Sequence[Array] | Array) -> None:
    """Raise `Diverged` if a point to ask for is not finite: arithmetic on the way to it has overflowed."""
    if not all(np.isfinite(point).all() for point in points):
        raise Diverged

"""The method behind `zerothresh.path`: runs for several k take turns, and share what they pay for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.threshold import Constraint
from zerothresh.k_path.one_k import RunForK
from zerothresh.k_path.shared_values import SharedValues
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.replay import Replayed
from zerothresh.methods.registry import name_of
from zerothresh.rounds.method import asks_feasible, keeps_constraints, sees_whole
from zerothresh.rounds.task import Family, Task
from zerothresh.sampling.philox import Stream

EVEN = 1 / 2  # of the calls: what all runs get in equal parts, before the others go to those that make progress
SLICES = 4  # turns per run among which the calls that are left are divided: a rate is measured anew after each
SLOW = 1 / 100  # of the largest fall of a run per call of the path: a lower rate is no progress
FIRST = 1 / 2  # of the calls that are left: what a run that has found nothing yet may take, the smallest k first
LEAD = 2 / 3  # of the calls that are left: what a run may take that learns what all others will use
MAIN = 1 / 2  # of the calls that are left: what the runs on all components get before those of the folds
FOLDS_ROUND = 2**32 - 1  # the round whose random numbers cut the components into folds: no run gets there


class Segment(NamedTuple):
    """What a call of `path` asked for: values of k that are new, the budget of the whole path from then on, folds."""

    ks: tuple[int, ...]
    budget: int
    cv: int = 0


@dataclass
class Book:
    """What a path has to do, which may grow from session to session, and what it has found.

    Attributes
    ----------
    constraint: function of k that returns the feasible set.
    x0: the start as the user gave it, (d,), or None for 0.
    segments: what was asked for, in order.
    runs: the runs on all components, by k.
    folds: the runs that each leave out a part of the components, by k and fold.
    held_out: F on the components that such a run has left out, at its best point.
    begin: function of nothing that is called before the last segment asks for anything, and says whether the run is
        more than a trial.
    begun: bool, whether it has said so.
    refusal: str, why the path cannot be, which is seen when the number of outputs is known; empty if it can.
    """

    constraint: Callable[[int], Constraint]
    x0: Array | None = None
    segments: list[Segment] = field(default_factory=list)
    runs: dict[int, RunForK] = field(default_factory=dict)
    folds: dict[tuple[int, int], RunForK] = field(default_factory=dict)
    held_out: dict[tuple[int, int], float] = field(default_factory=dict)
    begin: Callable[[], bool] = lambda: True
    begun: bool = False
    refusal: str = ""

    def note_begun(self) -> None:
        """Take note that the last segment has been accepted, and is about to ask for values."""
        self.begun = self.begun or self.begin()

    def best(self, k: int) -> tuple[Array, float] | None:
        """Return the best point that is known to be feasible for k, and F there."""
        return best_known(list(self.runs.values()), k)


@dataclass(frozen=True)
class PathProgram(Program):
    """Runs of one method for several k, which take turns and share values.

    The run for the largest k comes first, because the others can use most of what it learns; then the others in
    increasing order, each of which knows the best points of those before it. `turns` says who gets how many calls.
    Everything about calls, workers, folders and failures is the engine's, which sees one program.

    Arguments
    ---------
    method: the method of the runs, an instance.
    """

    whole: ClassVar[bool] = True
    bounds_k_itself: ClassVar[bool] = True

    method: Any
    book: Book = field(default_factory=lambda: Book(no_constraint), init=False, compare=False, repr=False)

    @property
    def headline(self) -> str:
        """What a log calls this: the method, and the values of k."""
        ks = sorted({k for segment in self.book.segments for k in segment.ks})
        return f"{name_of(self.method)}, a path over k = {', '.join(map(str, ks))},"

    @property
    def keeps_constraints(self) -> bool:
        """Whether the method keeps constraints beyond bounds and groups."""
        return keeps_constraints(self.method)

    @property
    def asks_feasible(self) -> bool:
        """Whether the method queries feasible points only, where that is wanted."""
        return asks_feasible(self.method)

    @property
    def within(self) -> Any:
        """The constraint of the method itself, or None."""
        return getattr(self.method, "within", None)

    def begin(self, task: Task) -> Replayed:
        """Return the search that the engine drives."""
        return Replayed(lambda context: self._asks(context, task), task)

    def reserve(self, n: int, budget: int) -> int:
        """Return how many calls the engine keeps for F at the result: none, because the path keeps them itself."""
        return 0

    def doubts(self, task: Task) -> str:
        """Return the doubts of the method at the largest k."""
        doubts = getattr(self.method, "doubts", None)
        if not callable(doubts) or not self.book.segments:
            return ""
        first = self.book.segments[0]
        return str(doubts(self._task(task, max(first.ks), first.budget, Family(), None)))

    def _task(self, task: Task, k: int, budget: int, family: Family, members: Indices | None) -> Task:
        """Return the task of a run, which plans with the budget of the path."""
        constraint = self.book.constraint(k)
        theta0 = np.zeros(task.d) if self.book.x0 is None else self.book.x0.copy()
        theta0 = theta0 if constraint.holds(theta0) else constraint.project(theta0)
        theta0.flags.writeable = False
        outputs, n = task.outputs, task.n if members is None else members.size
        if outputs is not None:
            m = outputs.m if members is None else members.size
            outputs = replace(outputs, whole=sees_whole(self.method), m=m)
            n = outputs.components
        return replace(
            task,
            theta0=theta0,
            n=n,
            method=self.method,
            constraint=constraint,
            budget=budget,
            first_budget=budget,
            outputs=outputs,
            family=family,
        )

    def _asks(self, context: Context, task: Task) -> Asks:
        """Go through the segments, one after the other, and say when the last one begins.

        What a call asks for is kept only then: whatever refuses the call does so before.
        """
        book = self.book
        book.runs, book.folds, book.held_out = {}, {}, {}
        cv, count = max((segment.cv for segment in book.segments), default=0), count_of(task)
        book.refusal = f"cv = {cv} folds need as many outputs, but there are {count}: take fewer folds"
        if cv > count:
            return
        book.refusal = ""
        values, family = SharedValues(), Family(book.best)
        context.unit = 1.0
        for segment in book.segments[:-1]:
            yield from self._walk(context, task, [segment], values, family)
        last = self._walk(context, task, book.segments[-1:], values, family)
        answers: Any = None
        while True:
            try:
                probes = last.send(answers)
            except StopIteration:
                break
            book.note_begun()
            answers = yield probes
        book.note_begun()

    def _walk(
        self, context: Context, task: Task, segments: Sequence[Segment], values: SharedValues, family: Family
    ) -> Asks:
        """Do what segments ask for, one after the other."""
        book = self.book
        for segment in segments:
            new = [k for k in in_turn(segment.ks) if k not in book.runs]
            for k in new:
                book.runs[k] = RunForK(self._task(task, k, segment.budget, family, None), values)
            order = [book.runs[k] for k in new] + [run for k, run in sorted(book.runs.items()) if k not in new]
            until = segment.budget
            if segment.cv:
                until = context.used + int(MAIN * (segment.budget - context.used))
            yield from turns(context, order, until, family)
            if segment.cv:
                yield from self._folds(context, task, segment, values, family)
                yield from turns(context, order, segment.budget, family)

    def _folds(self, context: Context, task: Task, segment: Segment, values: SharedValues, family: Family) -> Asks:
        """Make runs for all k on all components but those of one fold, for each fold."""
        book, n = self.book, count_of(task)
        fold_of = folds(n, segment.cv, task.key)
        for fold in range(segment.cv):
            members = np.flatnonzero(fold_of != fold)
            own = family.of(members)
            runs = list[RunForK]()
            for k in in_turn(book.runs):
                if (k, fold) not in book.folds:
                    book.folds[k, fold] = RunForK(self._task(task, k, segment.budget, own, members), values, members)
                runs.append(book.folds[k, fold])
            own.best = known_among(runs)
            until = context.used + (segment.budget - context.used) // (segment.cv - fold)
            kept = len(runs) * (n - members.size if task.outputs is None else 1)
            yield from turns(context, runs, until - kept, own)
            for run in runs:
                cost = n - members.size if task.outputs is None else 1
                if context.used + cost <= segment.budget:
                    found = yield from run.take_held_out(n)
                    if found is not None:
                        book.held_out[run.k, fold] = found


def no_constraint(k: int) -> Constraint:
    """Stand for the feasible sets of a path that has not been told them."""
    raise RuntimeError(f"this path has not been told its constraint for k = {k}: begin it by zerothresh.path")


def count_of(task: Task) -> int:
    """Return the number of components that can be held out: those of F, or the outputs of a call."""
    return task.n if task.outputs is None else task.outputs.size


def folds(n: int, cv: int, key: int) -> Indices:
    """Return the fold of each of n components: a function of the seed; the sizes differ by at most one."""
    out = np.empty(n, np.int64)
    out[Stream(0, FOLDS_ROUND, key=key).subset(n, n)] = np.arange(n) % cv
    return out


def in_turn(ks: Iterable[int]) -> list[int]:
    """Return the largest k, and then the others in increasing order."""
    ordered = sorted(ks)
    return ordered[-1:] + ordered[:-1]


def holder_of_best(runs: Sequence[RunForK], k: int) -> RunForK | None:
    """Return the run that knows the best point that is feasible for k: runs for smaller k are asked too."""
    own = next((run for run in runs if run.k == k), None)
    holder: RunForK | None = None
    for run in runs:
        x, fun = run.standing.best_x, run.standing.best_fun
        if run.k > k or x is None or fun is None:
            continue
        if run is not own and own is not None and not own.task.constraint.holds(x):
            continue  # most sets grow with k, but a user's own need not
        lowest = None if holder is None else holder.standing.best_fun
        holder = run if lowest is None or fun < lowest else holder
    return holder


def best_known(runs: Sequence[RunForK], k: int) -> tuple[Array, float] | None:
    """Return the best point that runs know to be feasible for k, and F there."""
    holder = holder_of_best(runs, k)
    x, fun = (None, None) if holder is None else (holder.standing.best_x, holder.standing.best_fun)
    return None if x is None or fun is None else (x, fun)


def known_among(runs: Sequence[RunForK]) -> Callable[[int], tuple[Array, float] | None]:
    """Return the function of k that `best_known` is for these runs."""
    return lambda k: best_known(runs, k)


def turns(context: Context, runs: Sequence[RunForK], budget: int, family: Family) -> Asks:
    """Give runs calls in turn until the path has made so many calls, or until all runs have ended.

    At first all get the same, and what one does not need goes to those after it. Then, the smallest k first, each run
    that has found nothing yet may take up to half of what is left, so that where calls are scarce, larger k do without:
    the points of smaller ones are theirs too. The rest goes in turn to the run that lowered F most per call in the
    second half of its calls, unless all are slow beside the whole path, and to the one that has paid least.
    """

    def left() -> int:
        return budget - context.used - sum(run.value_cost for run in runs if run.owes_value)

    going = [run for run in runs if not run.ended]
    falls, by_rate = {run.k: Falls(run, family) for run in going}, False
    dealt = context.used + int(EVEN * left())
    for place, run in enumerate(going):
        yield from _turn(context, run, (dealt - context.used) // (len(going) - place), left, falls[run.k])
    for run in sorted(going, key=lambda run: run.k):
        if not run.found_something:
            yield from _turn(context, run, int(FIRST * left()), left, falls[run.k], first=True)
    while going := [run for run in going if not run.ended and run.price() <= left()]:
        slow = SLOW * max(one.total for one in falls.values()) / max(1, context.used)
        fast = [run for run in going if falls[run.k].rate > slow]
        by_rate = not by_rate and len(fast) > 0
        run = max(fast, key=lambda run: falls[run.k].rate) if by_rate else min(going, key=lambda run: run.paid)
        share = max(run.price(), left() // (SLICES * len(going)))
        yield from _turn(context, run, share, left, falls[run.k])
    for run in runs:
        if run.owes_value and context.used + run.value_cost <= budget:
            yield from run.take_value()


class Falls:
    """How F has fallen at the best point for one k, by the calls that its run has paid for.

    What runs for smaller k find is not counted: only what happens while the run has its turn.
    """

    def __init__(self, run: RunForK, family: Family) -> None:
        self.run, self._family = run, family
        self._steps = [(run.paid, 0.0)]  # calls, and the fall that they had led to

    def fun(self) -> float | None:
        """Return F at the best point that is known."""
        best = self._family.best(self.run.k)
        return None if best is None else best[1]

    def note(self, before: float | None) -> None:
        """Take note of a round; ``before`` is F at the best point before it."""
        after = self.fun()
        if after is not None and before is not None and after < before:
            self._steps.append((self.run.paid, self._steps[-1][1] + before - after))

    @property
    def total(self) -> float:
        """The whole fall."""
        return self._steps[-1][1]

    @property
    def rate(self) -> float:
        """The fall per call in the second half of the calls."""
        half = self.run.paid // 2
        earlier = max(fall for calls, fall in self._steps if calls <= max(half, self._steps[0][0]))
        return (self._steps[-1][1] - earlier) / max(1, self.run.paid - half)


def _turn(
    context: Context, run: RunForK, share: int, left: Callable[[], int], falls: Falls, *, first: bool = False
) -> Asks:
    """Let a run go on as long as its rounds fit into its share; while it learns what all will use, it may take more.

    With ``first``, only until it has found something.
    """
    used, most = context.used, int(LEAD * left())
    while not run.ended and not (first and run.found_something):
        price = context.used - used + run.price()
        if run.ended or price > (max(share, most) if run.learns else share):
            break
        before = falls.fun()
        yield from _round(context, run)
        falls.note(before)


def _round(context: Context, run: RunForK) -> Asks:
    """Make a round of a run; its step is a step of the path, if it was paid for.

    Rounds without a call must leave no trace: a session that adds values of k goes on from the same values, and makes
    such rounds where another one had ended.
    """
    stages, before, paid = run.stages, run.standing, run.paid
    left_out = "" if run.members is None else " without a fold"
    context.stage(f"k = {run.k}{left_out}, {stages[-1][1] if stages else name_of(run.task.method)}")
    yield from run.take_round(context)
    if run.standing.theta is not before.theta and run.members is None and run.paid > paid:
        context.move(run.standing.theta, run.standing.fun)

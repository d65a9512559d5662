"""Ask and tell: the optimiser for loops that the user owns. `minimize` and `iterate` drive the same object."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.arguments import costs_of, dimension_of, make_task
from zerothresh.api.result import Progress, Result
from zerothresh.basics import check
from zerothresh.constraint.threshold import Diverged
from zerothresh.evaluate.base import Failure
from zerothresh.methods.program.program import Program
from zerothresh.objective.forms import BadValue, vector
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.search import Search, advance, begin, known, mean, next_probes, plan_of
from zerothresh.rounds.task import Task
from zerothresh.runs import FSYNC, Run, RunError, stored_budget, stored_seed
from zerothresh.runs.recorder import Keeper
from zerothresh.session.batch import Batch, OpenRound
from zerothresh.session.ledger import Spending
from zerothresh.session.status import MonitorFailed, Status
from zerothresh.session.trace import Trace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Optimizer:
    """Sparse black-box optimisation by ask and tell.

    >>> from zerothresh import SZOHT
    >>> opt = Optimizer(5, 2, budget=200, method=SZOHT(eta=0.1), seed=0)
    >>> while not opt.done:
    ...     batch = opt.ask()
    ...     opt.tell(batch, ((batch.points - [3, 0, 0, 0, -2]) ** 2).sum(axis=1))
    >>> opt.result().support
    array([0, 4])

    The arguments are those of `zerothresh.minimize`. With ``run``, a folder, each value that is told
    is on disk before `tell` returns, and the same arguments open the run again where it stopped.
    """

    def __init__(
        self,
        x0: Any,
        k: int,
        *,
        budget: int,
        n: int | None = None,
        method: Any = "auto",
        options: dict[str, Any] | None = None,
        estimator: Estimator | None = None,
        seed: int | None = None,
        bounds: Any = None,
        include: Any = None,
        exclude: Any = None,
        groups: Any = None,
        monitor: Callable[[Array], float] | None = None,
        on_nan: str = "stop",
        cost: Callable[[int], float] | None = None,
        max_cost: float | None = None,
        run: str | os.PathLike[str] | None = None,
        fsync: str = "batch",
        fingerprint: str | None = None,
    ) -> None:
        d = dimension_of(x0)
        if d is None:
            raise ValueError("x0 must be the start, or the dimension d as a whole number, not None")
        components = 1 if n is None else check.count("n", n, what=" (the number of components)")
        self.on_nan = check.one_of("on_nan", on_nan, ("stop", "worst", "retry"))
        check.one_of("fsync", fsync, FSYNC)
        check.function("monitor", monitor, "monitor(x)")
        self.spending = Spending(*costs_of(components, cost, max_cost))
        self.task: Task = make_task(
            x0,
            k,
            d=d,
            n=components,
            budget=budget,
            method=method,
            options=options,
            estimator=estimator,
            seed=stored_seed(run) if seed is None else seed,
            monitored=monitor is not None,
            prices=self.spending.prices,
            max_cost=self.spending.limit,
            bounds=bounds,
            include=include,
            exclude=exclude,
            groups=groups,
            planned=stored_budget(run),
        )
        folder = None if run is None else Run(run, fsync=fsync)
        try:
            self.monitor = monitor
            self.search: Search = begin(self.task)
            self.trace = Trace()
            self.status: Status | None = None
            self.failure: Failure | None = None
            self.failed_calls = 0  # calls that gave no value, or whose round did not complete
            self.worst: float | None = None  # the largest value seen, for on_nan="worst"
            self.final_round = -1  # the round before which F was last paid for
            self.disk_trouble: OSError | None = None  # why no more should be asked for, though all is on disk
            self._message = ""
            self._partly = False  # the run ended with a round partly told
            self._open: OpenRound | None = None
            self._final = False
            program = isinstance(self.task.method, Program)
            self._largest_scale = np.inf if program else self.task.estimator.largest_scale(d)
            self._support: Indices = np.flatnonzero(self.task.theta0)
            self._keeper = None if folder is None else Keeper(folder, self, fingerprint)
            self._next()
            if self._keeper is not None:
                self._keeper.replay()
        except BaseException as error:
            if folder is not None:
                folder.close()
                if isinstance(error, OSError):
                    raise RunError(f"the run folder {run} cannot be used: {error.strerror or error}") from None
            raise

    # What the user sees.

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._open is None

    @property
    def nfev(self) -> int:
        """Calls of f_i so far (#IZO)."""
        told = 0 if self._open is None else self._open.told
        return self.search.nfev + self.failed_calls + told

    @property
    def spent(self) -> float:
        """What the calls have cost, in the user's currency."""
        return self.spending.total

    def ask(self) -> Batch:
        """The points to query next: what has not been told of the round."""
        if self._open is None:
            raise RuntimeError(f"the run has ended ({self._message}): there is nothing to ask; see result()")
        self.prepare()
        return self._open.batch()

    def tell(self, batch: Batch, values: Any) -> None:
        """Give the values of a batch, or of a part of one: ``opt.tell(batch[3:7], values)``.

        A wrong shape, values that are not finite, or points that have been told already raise
        `ValueError` and change nothing, so that the rest can be told.
        """
        if not isinstance(batch, Batch) or batch.owner is not self:
            raise ValueError("tell takes the batch that this optimiser's ask() gave, and then its values")
        if self._open is None or batch.round is not self._open:
            raise ValueError(f"{batch!r} has been told already: call ask() for the next one")
        if self._open.known(batch.rows).any():
            told = int(self._open.known(batch.rows).sum())
            raise ValueError(f"{told} of the {len(batch)} points have been told already: ask() gives the others")
        try:
            numbers = vector(values, len(batch), finite=self.on_nan != "worst")
        except BadValue as error:
            raise ValueError(f"{error} (nothing was changed: the batch can be told again)") from None
        for start, stop in batch.stretches():
            self.deliver(int(batch.rows[start]), numbers[start:stop])

    def stop(self, message: str = "stopped by the user") -> None:
        """End the run; F at the result is still asked for, out of the calls that were kept for it."""
        self.finish(Status.STOPPED, message)

    def close(self) -> None:
        """Let go of the run folder; the run can be opened again."""
        if self._keeper is not None:
            self._keeper.close()

    def __enter__(self) -> Optimizer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def result(self) -> Result:
        """The outcome, at any time."""
        search, task = self.search, self.task
        x, fun = search.best_x, search.best_fun
        if x is None or fun is None:
            x, fun = search.state.theta, np.nan
        status = Status.STOPPED if self.status is None else self.status
        self.trace.remarks = self.remarks
        return Result(
            x=x.copy(),
            fun=fun,
            support=np.flatnonzero(x),
            nfev=self.nfev,
            nht=search.nht,
            nit=search.nit,
            x_last=search.state.theta.copy(),
            success=status.success and self.done,
            status=status,
            message=self._words() if self.done else "the run has not ended",
            remarks=self.remarks,
            trace=self.trace,
            failure=self.failure,
            seed=task.seed,
            budget=task.budget,
            spent=self.spent,
            method=task.method,
            estimator=task.estimator,
        )

    @property
    def remarks(self) -> list[tuple[int, str]]:
        """What the method has found and chosen so far, each with the number of calls made by then."""
        return list(getattr(self.search.state, "remarks", ()))

    def _words(self) -> str:
        """Why the run ended, and what the method said last."""
        remarks = self.remarks
        return f"{self._message} ({remarks[-1][1]})" if remarks else self._message

    def progress(self) -> Progress:
        """Where the run is."""
        search = self.search
        return Progress(
            x=search.state.theta,
            fun=search.fun,
            support=self._support,
            nfev=self.nfev,
            nht=search.nht,
            nit=search.nit,
            budget=self.task.budget,
            best_fun=search.best_fun,
            recent=search.recent,
        )

    # What the engine uses as well.

    @property
    def open_round(self) -> OpenRound | None:
        """The round that waits for values."""
        return self._open

    @property
    def open_plan(self) -> Plan | None:
        """Its queries."""
        return None if self._open is None else self._open.plan

    @property
    def is_final(self) -> bool:
        """Whether the open round asks for F at the result."""
        return self._final

    @property
    def remaining(self) -> int:
        """Calls that the method's own rounds may still make."""
        return self.task.budget - self.nfev - (0 if self._final else self.task.reserve)

    def prepare(self) -> None:
        """Before the open round is asked for: claim the disk space for its values."""
        if self._keeper is not None and self._open is not None:
            self.disk_trouble = None
            self._keeper.claim(self._open)

    def deliver(self, start: int, values: Array, *, journal: bool = True) -> bool:
        """Take checked values of the open round from row ``start`` on; True if a step was made."""
        current = self._open
        assert current is not None
        if journal and self._keeper is not None:
            self._keeper.values(self.search.round, self._final, start, values)
        if self.spending.prices is not None:
            self.spending.arrive(current.plan.components[start : start + values.size])
        return self._complete(current) if current.take(start, values) else False

    def fail(self, failure: Failure) -> None:
        """Count a call that failed, and write it down."""
        if self._keeper is not None:
            self._keeper.failure(failure)
        self.lose(failure.component, failure.charged)

    def lose(self, component: int, calls: int) -> None:
        """Charge calls that gave no value."""
        self.charge(calls)
        self.spending.lose(component, calls)

    def charge(self, calls: int) -> None:
        """Count calls that gave no value."""
        self.failed_calls += calls

    def finish(self, status: Status, message: str, *, failure: Failure | None = None, final: bool = True) -> None:
        """End the search, for a reason; then F at the result is asked for unless ``final`` is False."""
        if self.done and self.status is not None:
            if self.status.success and not status.success:  # an error in the last step is not passed over
                self.status, self._message, self.failure = status, message, failure
            return
        if self._final and final:
            return  # it is ending for another reason
        self.status, self._message, self.failure = status, message, failure
        search = self.search
        point = search.state.theta
        if status is Status.DIVERGED:
            final = final and search.best_x is None
            point = self.task.theta0  # the last iterate is far off; the start is known to be sound
        known = search.fun is not None and isinstance(self.task.method, Program)  # F at the result has been paid for
        if not final or self.task.reserve == 0 or self.final_round == search.round or known:
            self._close()
            return
        self._leave()
        self._final = True
        self._open = OpenRound(self, self._plan(Probes.values(at=[point], of=range(self.task.n))))

    def _complete(self, current: OpenRound) -> bool:
        """All values of the open round are there: estimate, update, threshold, and plan the next."""
        plan, before = current.plan, self.search
        values = self._sound(current.values)
        if self.spending.prices is not None:
            self.spending.complete(plan.components)
        if values is None:
            self.search = before._replace(nfev=before.nfev + plan.calls)
            self._open, self._partly = None, True
            words = "no value of the round was finite, and none before it: there is no worst value to take instead"
            self.finish(Status.BAD_VALUE, words, final=False)
            return False
        if self._final:
            search = before
            if values is current.values:
                search = known(self.task, before, plan.probes.value_points[0], mean(values))
            self.search = search._replace(nfev=before.nfev + plan.calls)
            self.final_round = before.round
            self._close()
            return False
        try:
            self.search = advance(self.task, before, plan, values)
        except Diverged:
            self.search = before._replace(nfev=before.nfev + plan.calls)
            self._open = None
            self.finish(
                Status.DIVERGED,
                f"step {before.nit + 1} left the floating-point numbers: {self._why_diverged()}",
            )
            return False
        if values is not current.values:  # values that were made up tell nothing of F
            if isinstance(self.task.method, Program):
                self.search.state.doubt()
            self.search = self.search._replace(
                fun=None, best_x=before.best_x, best_fun=before.best_fun, recent=before.recent
            )
        self._open = None
        stepped = self.search.nit > before.nit
        try:
            if stepped:
                self._record()
        finally:
            if self.status is None:
                self._next()
        if self._keeper is not None and not self.done:
            self._keeper.save_if_due()
        return stepped

    def _why_diverged(self) -> str:
        if isinstance(self.task.method, Program):
            return "the function falls without bound, it seems"
        return "the learning rate is too large for this problem, or the function too steep; take a smaller eta"

    def _sound(self, values: Array) -> Array | None:
        """The values with those that are not finite replaced by the worst one seen, if that is wanted.

        None if there is no such value.
        """
        if self.on_nan != "worst":
            return values
        finite = np.isfinite(values)
        if finite.any():
            largest = float(values[finite].max())
            self.worst = largest if self.worst is None else max(self.worst, largest)
        if finite.all():
            return values
        return None if self.worst is None else np.where(finite, values, self.worst)

    def _plan(self, probes: Probes) -> Plan:
        return plan_of(self.task, probes, self.search.round)

    def _leave(self) -> None:
        """Leave the open round; values that it has were paid for, and a run folder keeps them."""
        if self._open is not None and 0 < self._open.told < self._open.plan.calls:
            self.charge(self._open.told)
            self.spending.leave()
            self._partly = True
        self._open = None

    def _close(self) -> None:
        self._leave()
        if self._keeper is not None:
            self._keeper.end(self._partly)

    def check_fit(self, missing: list[tuple[int, int]] | None = None) -> bool:
        """End the run if the rest of the open round does not fit into the budget, or its price into max_cost."""
        current = self._open
        if current is None:
            return False
        missing = current.missing() if missing is None else missing
        if sum(stop - start for start, stop in missing) > self.remaining:
            made = f"{self.nfev} of {self.task.budget} have been made"
            words = f"the budget is spent: calls that failed used it up, {made}; a larger budget goes on from here"
            self.finish(Status.BUDGET, words, final=False)
        elif self.spending.limit is not None:
            components = current.plan.components
            price = sum(self.spending.price(components[start:stop]) for start, stop in missing)
            if not self.spending.allows(price + self._reserved_price()):
                words = f"the cost limit is reached: {self.spent:g} of {self.spending.limit:g} have been spent"
                self.finish(Status.COST, f"{words}; a larger max_cost goes on from here", final=False)
        return self._open is current

    def _reserved_price(self) -> float:
        """What F at the result will cost, as long as it is to come."""
        return self.spending.price_of_all() if self.task.reserve and not self._final else 0.0

    def _next(self) -> None:
        """Plan the next round, or end if it does not fit into the budget."""
        task, search = self.task, self.search
        probes = next_probes(task, search)
        for _ in range(1000):  # a round that asks for nothing is answered at once
            if probes is None or probes.calls(task.estimator) > 0:
                break
            search = self.search = advance(task, search, self._plan(probes), np.empty(0))
            probes = next_probes(task, search)
        else:
            probes = None
        if probes is None:
            self.finish(Status.CONVERGED, f"the method has nothing more to ask after {search.nit} steps")
            return
        plan = self._plan(probes)
        kept = f" (kept for F at the result: {task.reserve})" if task.reserve else ""
        if self.nfev + plan.calls + task.reserve > task.budget:
            made = f"{self.nfev} of {task.budget} have been made"
            self.finish(
                Status.BUDGET, f"the budget is spent: the next round needs {plan.calls} calls, and {made}{kept}"
            )
            return
        replaying = self._keeper is not None and self._keeper.replaying  # what has been paid for is not judged again
        if self.spending.limit is not None and not replaying:
            price = self.spending.price(plan.components)
            if not self.spending.allows(price + self._reserved_price()):
                self.finish(
                    Status.COST,
                    f"the cost limit is reached: the next round costs {price:g}, and {self.spent:g} of "
                    f"{self.spending.limit:g} have been spent{kept}",
                )
                return
        self._open = OpenRound(self, plan)

    def _record(self) -> None:
        """Write a step into the trace, with F if a monitor tells it."""
        search = self.search
        theta = search.state.theta
        failed: Exception | None = None
        if self.monitor is not None:
            try:
                value = float(self.monitor(theta))
            except Exception as error:
                failed, value = error, np.nan
            if np.isfinite(value):
                search = self.search = known(self.task, search, theta, value)
            else:
                search = self.search = search._replace(fun=value)
        self._support = support = theta.nonzero()[0]
        self.trace.append(step=search.nit, nfev=self.nfev, nht=search.nht, fun=search.fun, support=support)
        largest = max(map(abs, theta[support].tolist()), default=0.0)
        if largest >= self._largest_scale:
            self.finish(
                Status.DIVERGED,
                f"the iterate has grown to {largest:.1e}, beside which steps of mu = {self.task.estimator.mu:g} are "
                "lost in rounding: the learning rate is too large for this problem; take a smaller eta",
            )
        if failed is not None:
            raise MonitorFailed from failed

"""Ask and tell: the optimiser for loops that the user owns. `minimize` and `iterate` drive the same object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.evaluate.base import Failure
from zerothresh.plan import Estimator, Plan, Probes
from zerothresh.problem import BadValue, vector
from zerothresh.result import Progress, Result, Status
from zerothresh.search import Search, Task, advance, begin, known, mean, next_probes, plan_of
from zerothresh.setup import dimension_of, make_task
from zerothresh.threshold import Diverged
from zerothresh.trace import Trace

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class MonitorFailed(Exception):
    """The user's monitor raised; its own exception is the cause."""


class Batch:
    """Points to query: ``points`` (B, d) and ``components`` (B,), both read-only."""

    def __init__(self, plan: Plan, owner: Optimizer) -> None:
        self._plan, self._owner = plan, owner
        self._points: Array | None = None
        self.round = plan.round

    @property
    def points(self) -> Array:
        """A row a query."""
        if self._points is None:
            self._points = self._plan.points()
        return self._points

    @property
    def components(self) -> Indices:
        """The component i of each query; all 0 if n = 1."""
        components = self._plan.components
        components.flags.writeable = False
        return components

    def __len__(self) -> int:
        return self._plan.calls

    def __repr__(self) -> str:
        return f"<batch of {len(self)} queries, round {self.round}>"


class Optimizer:
    """Sparse black-box optimisation by ask and tell.

    >>> from zerothresh import SZOHT
    >>> opt = Optimizer(5, 2, budget=200, method=SZOHT(eta=0.1), seed=0)
    >>> while not opt.done:
    ...     batch = opt.ask()
    ...     opt.tell(batch, ((batch.points - [3, 0, 0, 0, -2]) ** 2).sum(axis=1))
    >>> opt.result().support
    array([0, 4])

    The arguments are those of `zerothresh.minimize`.
    """

    def __init__(
        self,
        x0: Any,
        k: int,
        *,
        budget: int,
        n: int | None = None,
        method: Any = None,
        options: dict[str, Any] | None = None,
        estimator: Estimator | None = None,
        seed: int | None = None,
        bounds: Any = None,
        include: Any = None,
        exclude: Any = None,
        groups: Any = None,
        monitor: Callable[[Array], float] | None = None,
    ) -> None:
        d = dimension_of(x0)
        if d is None:
            raise ValueError("x0 must be the start, or the dimension d as a whole number, not None")
        self.task: Task = make_task(
            x0,
            k,
            d=d,
            n=1 if n is None else check.count("n", n, what=" (the number of components)"),
            budget=budget,
            method=method,
            options=options,
            estimator=estimator,
            seed=seed,
            monitored=monitor is not None,
            bounds=bounds,
            include=include,
            exclude=exclude,
            groups=groups,
        )
        self.monitor = monitor
        self.search: Search = begin(self.task)
        self.trace = Trace()
        self.status: Status | None = None
        self.failure: Failure | None = None
        self._message = ""
        self._plan: Plan | None = None
        self._batch: Batch | None = None
        self._final = False
        self._extra_calls = 0  # calls made in a round that did not complete
        self._largest_scale = self.task.estimator.largest_scale(d)
        self._support: Indices = np.flatnonzero(self.task.theta0)
        self._next()

    # What the user sees.

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._plan is None

    @property
    def nfev(self) -> int:
        """Calls of f_i so far (#IZO)."""
        return self.search.nfev + self._extra_calls

    def ask(self) -> Batch:
        """The points to query next; the same batch until it is told."""
        if self._plan is None:
            raise RuntimeError(f"the run has ended ({self._message}): there is nothing to ask; see result()")
        if self._batch is None:
            self._batch = Batch(self._plan, self)
        return self._batch

    def tell(self, batch: Batch, values: Any) -> None:
        """Give the values of the batch that was asked for.

        A wrong shape, NaN or an infinity raises `ValueError` and changes nothing, so that the batch
        can be told again.
        """
        if not isinstance(batch, Batch) or batch._owner is not self:
            raise ValueError("tell takes the batch that this optimiser's ask() gave, and then its values")
        if batch is not self._batch:
            raise ValueError(f"the batch of round {batch.round} has been told already: call ask() for the next one")
        try:
            numbers = vector(values, len(batch))
        except BadValue as error:
            raise ValueError(f"{error} (nothing was changed: the batch can be told again)") from None
        self.supply(numbers)

    def stop(self, message: str = "stopped by the user") -> None:
        """End the run; F at the result is still asked for, out of the calls that were kept for it."""
        self.finish(Status.STOPPED, message)

    def result(self) -> Result:
        """The outcome, at any time."""
        search, task = self.search, self.task
        x, fun = search.best_x, search.best_fun
        if x is None or fun is None:
            x, fun = search.state.theta, np.nan
        status = Status.STOPPED if self.status is None else self.status
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
            message=self._message if self.done else "the run has not ended",
            trace=self.trace,
            failure=self.failure,
            seed=task.seed,
            budget=task.budget,
            method=task.method,
            estimator=task.estimator,
        )

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
    def open_plan(self) -> Plan | None:
        """The round that waits for values."""
        return self._plan

    def supply(self, values: Array) -> bool:
        """Take the checked values of the open round; True if a step was made."""
        plan, before = self._plan, self.search
        assert plan is not None
        if self._final:
            point = plan.probes.value_points[0]
            search = known(self.task, before, point, mean(values))
            self.search = search._replace(nfev=before.nfev + plan.calls)
            self._close()
            return False
        try:
            self.search = advance(self.task, before, plan, values)
        except Diverged:
            self.search = before._replace(nfev=before.nfev + plan.calls)
            self.finish(
                Status.DIVERGED,
                f"step {before.nit + 1} left the floating-point numbers: the learning rate is too large "
                "for this problem, or the function too steep; take a smaller eta",
            )
            return False
        stepped = self.search.nit > before.nit
        if stepped:
            self._record()
        if not self.done and not self._final:
            self._next()
        return stepped

    def charge(self, calls: int) -> None:
        """Count calls of a round that will not complete."""
        self._extra_calls += calls

    def finish(self, status: Status, message: str, *, failure: Failure | None = None, final: bool = True) -> None:
        """End the search, for a reason; then F at the result is asked for unless ``final`` is False."""
        if (self.done and self.status is not None) or (self._final and final):
            return  # it has ended, or is ending, for another reason
        self.status, self._message, self.failure = status, message, failure
        if not final or self.task.reserve == 0:
            self._close()
            return
        search = self.search
        point = search.state.theta
        if status is Status.DIVERGED:
            if search.best_x is not None:
                self._close()
                return
            point = self.task.theta0  # the last iterate is far off; the start is known to be sound
        self._final, self._batch = True, None
        self._plan = plan_of(self.task, Probes.values(at=[point], of=range(self.task.n)), search.round)

    def _close(self) -> None:
        self._plan = self._batch = None

    def _next(self) -> None:
        """Plan the next round, or end if it does not fit into the budget."""
        task, search = self.task, self.search
        self._batch = None
        probes = next_probes(task, search)
        if probes is None:
            self.finish(Status.CONVERGED, f"the method has nothing more to ask after {search.nit} steps")
            return
        plan = plan_of(task, probes, search.round)
        if search.nfev + plan.calls + task.reserve > task.budget:
            self.finish(
                Status.BUDGET,
                f"the budget is spent: the next round needs {plan.calls} calls, and {search.nfev} of "
                f"{task.budget} have been made"
                + (f" ({task.reserve} are kept for F at the result)" if task.reserve else ""),
            )
            return
        self._plan = plan

    def _record(self) -> None:
        """Write a step into the trace, with F if a monitor tells it."""
        search = self.search
        theta = search.state.theta
        if self.monitor is not None:
            try:
                value = float(self.monitor(theta))
            except Exception as error:
                raise MonitorFailed from error
            if np.isfinite(value):
                search = self.search = known(self.task, search, theta, value)
            else:
                search = self.search = search._replace(fun=value)
        self._support = support = theta.nonzero()[0]
        self.trace.append(step=search.nit, nfev=search.nfev, nht=search.nht, fun=search.fun, support=support)
        largest = max(map(abs, theta[support].tolist()), default=0.0)
        if largest >= self._largest_scale:
            self.finish(
                Status.DIVERGED,
                f"the iterate has grown to {largest:.1e}, beside which steps of mu = {self.task.estimator.mu:g} are "
                "lost in rounding: the learning rate is too large for this problem; take a smaller eta",
            )

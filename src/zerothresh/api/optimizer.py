"""Ask and tell: the optimiser for loops that the user owns."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from zerothresh.api.arguments import costs_of, dimension_of, make_task
from zerothresh.api.fit import fit_of
from zerothresh.api.result import Progress, Result
from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.methods.registry import name_of
from zerothresh.objective.forms import TOLD, BadValue, vector
from zerothresh.objective.vector_forms import labels_of, policy_for
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.search import Remark
from zerothresh.rounds.task import Task
from zerothresh.rounds.vector_outputs import VectorOutputs
from zerothresh.runs import FSYNC_MODES, Run, RunError, stored_budget, stored_seed, stored_width
from zerothresh.runs.recorder import Recorder
from zerothresh.session.batch import Batch
from zerothresh.session.faults import ON_ERROR, ON_NAN
from zerothresh.session.interrupts import Deferred
from zerothresh.session.ledger import Ledger
from zerothresh.session.machine import Session
from zerothresh.session.recorded import NoRecord, RecordedSession
from zerothresh.session.status import Status
from zerothresh.session.trace import Trace


class Optimizer:
    """Sparse black-box optimisation by ask and tell.

    >>> from zerothresh import SZOHT
    >>> opt = Optimizer(5, 2, budget=200, method=SZOHT(eta=0.1), seed=0)
    >>> while not opt.done:
    ...     batch = opt.ask()
    ...     opt.tell(batch, ((batch.points - [3, 0, 0, 0, -2]) ** 2).sum(axis=1))
    >>> opt.result().support
    array([0, 4])

    The arguments are those of `zerothresh.minimize`, without the function and what concerns its calls (``fun``,
    ``vectorized``, ``workers``, ``chunk``, ``retries``, ``backoff``, ``timeout``, ``max_time``, ``callback``,
    ``progress``). ``fingerprint``, a str, default None, tells the problem of a run folder from another one. With
    ``run``, a folder, each value that is told is on disk before `tell` returns, and the same arguments open the run
    again where it stopped. With ``on_nan="worst"``, `tell` takes values that are not finite; otherwise it refuses them.
    That is also how to tell of a call that failed.
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
        constraint: Any = None,
        values: Any = None,
        strict: bool = False,
        outputs: str | None = None,
        loss: Any = None,
        parallel: int | None = None,
        monitor: Callable[[Array], float] | None = None,
        on_nan: str = "stop",
        on_error: str = "stop",
        cost: Callable[[int], float] | None = None,
        max_cost: float | None = None,
        patience: int | None = None,
        run: str | os.PathLike[str] | None = None,
        fsync: str = "batch",
        fingerprint: str | None = None,
    ) -> None:
        d = dimension_of(x0)
        if d is None:
            raise ValueError("x0 must be the start, or the dimension d as a whole number, not None")
        components = 1 if n is None else check.count("n", n, what=" (the number of components)")
        check.one_of("on_nan", on_nan, ON_NAN)
        check.one_of("on_error", on_error, ON_ERROR)
        self._policy = policy_for(outputs, loss, n, on_nan)
        many: VectorOutputs | None = None
        if self._policy is not None and outputs is not None:
            many = VectorOutputs(outputs, self._policy.loss, False, on_nan == "mask")
        check.one_of("fsync", fsync, FSYNC_MODES)
        check.function("monitor", monitor, "monitor(x)")
        if fingerprint is not None and not isinstance(fingerprint, str):
            raise ValueError(f"fingerprint must be a string, or None, not {check.shown(fingerprint)}")
        prices, limit = costs_of(components if many is None else 1, cost, max_cost)
        task = make_task(
            x0,
            k,
            d=d,
            n=components if self._policy is None else self._policy.m,
            budget=budget,
            method=method,
            options=options,
            estimator=estimator,
            seed=stored_seed(run) if seed is None else seed,
            monitored=monitor is not None,
            prices=prices,
            max_cost=limit,
            patience=patience,
            bounds=bounds,
            include=include,
            exclude=exclude,
            groups=groups,
            constraint=constraint,
            values=values,
            strict=strict,
            first_budget=stored_budget(run),
            outputs=many,
            parallel=(stored_width(run) or 1) if parallel is None else parallel,
        )
        ledger = Ledger(task.budget, reserve=task.reserve, prices=prices, max_cost=limit)
        self.session = Session(task, ledger, monitor=monitor, on_nan=on_nan, on_error=on_error)
        # The record and the session must not be told different things because Ctrl-C came between the two.
        self._undivided: Callable[[], AbstractContextManager[None]] = nullcontext if run is None else Deferred
        if run is None:
            self.recorded = RecordedSession(self.session, NoRecord())
            self.session.open()
            return
        folder: Run | None = None
        try:
            with Deferred():
                folder = Run(run, fsync=fsync)
                recorder = Recorder(folder, self.session, fingerprint)
                recorder.open(self.session)
                self.recorded = RecordedSession(self.session, recorder)
                self._check_size(run)
        except BaseException as error:
            if folder is not None:
                folder.close()
            if isinstance(error, OSError):
                raise RunError(f"the run folder {run} cannot be used: {error.strerror or error}") from None
            raise

    def _check_size(self, run: Any) -> None:
        """Refuse a run folder whose calls returned another number of outputs than was announced."""
        known = None if self.task.outputs is None else self.task.outputs.m
        expected = self._policy.m if self._policy is not None else None
        if known is not None and expected is not None and known != expected:
            raise RunError(
                f"the calls of the run in {run} returned {known} outputs, not {expected}: continue it with the same "
                "arguments, or name another folder"
            )

    @property
    def task(self) -> Task:
        """The problem, the method and the limits, as they were checked."""
        return self.session.task

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self.session.done

    @property
    def nfev(self) -> int:
        """Calls of f_i so far (#IZO)."""
        return self.session.nfev

    @property
    def spent(self) -> float:
        """What the calls have cost, in the user's currency."""
        return self.session.ledger.spent

    @property
    def trace(self) -> Trace:
        """The history of the run, one row per step."""
        return self.session.trace

    @property
    def remarks(self) -> list[Remark]:
        """What the method has found and chosen so far, each with the number of calls made by then."""
        return list(self.session.remarks)

    def ask(self, at_least: int | None = None) -> Batch:
        """Return the points to query next: those of the open round that have not been told.

        Arguments
        ---------
        at_least: int, default None: how many points are wanted, for as many workers. How wide rounds are is decided by
            ``parallel`` of this optimiser, and by the method; a batch with fewer points comes with a warning that says
            why.
        """
        wanted = 0 if at_least is None else check.count("at_least", at_least, what=" (points), or None")
        current = self.session.open_round
        if current is None:
            raise RuntimeError(f"the run has ended ({self.session.message}): there is nothing to ask; see result()")
        self.recorded.claim()
        batch = current.batch()
        if len(batch) < wanted:
            warnings.warn(self._why_so_few(len(batch), wanted), stacklevel=2)
        return batch

    def _why_so_few(self, count: int, wanted: int) -> str:
        """Return a sentence about a batch with fewer points than were wanted."""
        task, points = self.task, f"{count} point{'' if count == 1 else 's'}"
        few = f"this round has {points}, fewer than the {wanted} wanted"
        if task.width < wanted:
            return f"{few}, because parallel is {task.width}: create the optimiser with parallel={wanted}"
        left = f"{self.session.ledger.remaining()} calls are left"
        if self.session.ledger.remaining() < wanted:
            return f"{few}, because {left} of the budget"
        return f"{few}: {name_of(task.method)} can choose its next points only when these values are known"

    def tell(self, batch: Batch, values: Any) -> None:
        """Give the values of a batch, or of a part of one: ``opt.tell(batch[3:7], values)``.

        With ``outputs``, values have the shape (B, m): the outputs of one call per row.

        A wrong shape, values that are not finite, or points that have been told already raise `ValueError` and
        change nothing, so that the rest can be told.
        """
        current = self.session.open_round
        if not isinstance(batch, Batch) or batch.owner is not self.session.token:
            raise ValueError("tell takes the batch that this optimiser's ask() gave, and then its values")
        if current is None or batch.round is not current:
            raise ValueError(f"{batch!r} has been told already: call ask() for the next one")
        if current.known(batch.rows).any():
            told = int(current.known(batch.rows).sum())
            raise ValueError(f"{told} of the {len(batch)} points have been told already: ask() gives the others")
        try:
            if self._policy is None:
                numbers = vector(values, len(batch), finite=self.session.on_nan != "worst", wording=TOLD)
            else:
                outputs = self.task.outputs
                self._policy.m = outputs.m if outputs is not None and outputs.m is not None else self._policy.m
                numbers = self._policy.check(values, len(batch), TOLD)
                self._policy.learn(numbers.shape[1], labels_of(values))
        except BadValue as error:
            raise ValueError(f"{error} (nothing was changed: the batch can be told again)") from None
        with self._undivided():
            for start, stop in batch.stretches():
                self.recorded.deliver(int(batch.rows[start]), numbers[start:stop])

    def stop(self, message: str = "stopped by the user") -> None:
        """End the run; F at the result is still asked for, out of the calls that were kept for it."""
        with self._undivided():
            self.recorded.finish(Status.STOPPED, message)

    def close(self) -> None:
        """Let go of the run folder; the run can be opened again."""
        with self._undivided():
            self.recorded.close()

    def __enter__(self) -> Optimizer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def result(self) -> Result:
        """Return the outcome; possible at any time."""
        session, standing = self.session, self.session.standing
        x, fun = standing.best_x, standing.best_fun
        if x is None or fun is None:
            x, fun = standing.theta, np.nan
        status = Status.STOPPED if session.status is None else session.status
        session.trace.remarks = self.remarks
        loss = None if self.task.outputs is None else self.task.outputs.loss
        fit = fit_of(x, standing.best_outputs, standing.search.linearisation, loss, self.task.constraint.box)
        return Result(
            x=x.copy(),
            fun=fun,
            support=np.flatnonzero(x),
            residuals=None if standing.best_outputs is None else standing.best_outputs.copy(),
            fit=fit,
            jacobian=None if fit is None else fit.jacobian.copy(),
            nfev=self.nfev,
            nht=standing.nht,
            nit=standing.nit,
            x_last=standing.theta.copy(),
            success=session.success and self.done,
            status=status,
            message=session.closing_message if self.done else "the run has not ended",
            remarks=self.remarks,
            stages=list(standing.search.stages),
            trace=session.trace,
            failure=session.failure,
            seed=self.task.seed,
            budget=self.task.budget,
            spent=self.spent,
            method=self.task.method,
            estimator=self.task.estimator,
        )

    def progress(self) -> Progress:
        """Return where the run is."""
        session, standing = self.session, self.session.standing
        return Progress(
            x=standing.theta,
            fun=standing.fun,
            support=session.support,
            nfev=self.nfev,
            nht=standing.nht,
            nit=standing.nit,
            budget=self.task.budget,
            best_fun=standing.best_fun,
            recent=standing.recent,
        )

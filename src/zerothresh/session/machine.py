"""One run as a state machine: it opens a round, takes its values, advances the search, and ends for a reason.

A session knows nothing of files, evaluators or users' functions. `zerothresh.session.loop` drives it with an
evaluator, `zerothresh.Optimizer` by ask and tell; `zerothresh.runs.recorder` keeps it in a run folder from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices
from zerothresh.basics.averages import mean
from zerothresh.basics.text import shorten
from zerothresh.constraint.threshold import Diverged
from zerothresh.evaluate.base import Failure
from zerothresh.rounds.advance import Standing, advance, start, with_value
from zerothresh.rounds.method import bounds_k_itself, chooses_steps, must_improve
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.search import Remark
from zerothresh.rounds.task import Task
from zerothresh.rounds.vector_outputs import VectorOutputs
from zerothresh.session.batch import OpenRound
from zerothresh.session.ledger import Ledger
from zerothresh.session.status import Status
from zerothresh.session.trace import Trace

MOST_MESSAGE = 2000  # characters of the sentence that says why a run ended
EMPTY_ROUNDS = 1000  # rounds in a row that ask for nothing, after which a method will never ask again


class Session:
    """One run, from its first round to its end.

    Arguments
    ---------
    task: Task.
    ledger: Ledger, with the task's budget.
    monitor: function of the iterate, default None: exact F for the trace; its calls are not charged.
    on_nan: str, default "stop": with "worst", a value that is not finite counts as the worst one seen.
    on_error: str, default "stop": with "worst", NaN stands for what a failed call should have returned, and counts so.

    Call `open` once, after a snapshot has been restored if there is one.
    """

    def __init__(
        self,
        task: Task,
        ledger: Ledger,
        *,
        monitor: Callable[[Array], float] | None = None,
        on_nan: str = "stop",
        on_error: str = "stop",
    ) -> None:
        self.task, self.ledger, self.monitor, self.on_nan, self.on_error = task, ledger, monitor, on_nan, on_error
        self.standing: Standing = start(task)
        self.trace = Trace()
        self.status: Status | None = None
        self.message = ""  # why the run ended
        self.failure: Failure | None = None
        self.worst: float | None = None  # the largest value seen, if it may have to take the place of others
        self.replaced = 0  # calls in whose place the worst value was taken
        self.last_failed: Failure | None = None  # the last call that failed and was replaced
        self.first_outputs: Array | None = None  # of the call at the start, (m,), until a round makes use of them
        self.worst_outputs: Array | None = None  # of the call with the largest F, (m,), likewise
        self.final_round = -1  # the round before which F at the result was last paid for
        self.is_final = False  # whether the open round asks for F at the result
        self.ended_within_round = False  # whether the run ended within a round, some of whose values had come
        self.token = object()  # tells its batches from those of another session
        self.replaying = False  # while values of the past are given back: what was paid for is not judged again
        self.open_round: OpenRound | None = None
        self.support: Indices = np.flatnonzero(task.theta0)  # of the iterate
        self._largest_scale = np.inf if chooses_steps(task.method) else task.estimator.largest_scale(task.d)

    def resume(self, standing: Standing, *, worst: float | None, final_round: int, replaced: int = 0) -> None:
        """Go on from a snapshot; the ledger and the trace are resumed by themselves."""
        self.standing, self.worst, self.final_round, self.replaced = standing, worst, final_round, replaced

    @property
    def is_first_look(self) -> bool:
        """Whether one call returns many outputs, and the one at the start, which tells how many, is still to come."""
        return self.task.outputs is not None and self.task.outputs.m is None

    def learn_outputs(self, m: int) -> None:
        """Take note of the number of outputs: only now is it known how many components the method sees."""
        self.task = self.task.with_outputs(m)
        self.standing = start(self.task)

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self.open_round is None

    @property
    def nfev(self) -> int:
        """Calls of f_i so far (#IZO)."""
        return self.ledger.nfev

    @property
    def remarks(self) -> Sequence[Remark]:
        """What the method has found and chosen so far, each with the number of calls made by then.

        The last one tells of calls in whose place the worst value was taken, if there were any.
        """
        remarks = self.standing.search.remarks
        if self.task.opening:
            remarks = [(0, self.task.opening), *remarks]
        if not self.replaced:
            return remarks
        calls = "1 call counts" if self.replaced == 1 else f"{self.replaced:,} calls count"
        return [*remarks, (self.nfev, f"{calls} as the worst value seen, because {self._why_replaced()}")]

    def _why_replaced(self) -> str:
        """Return why calls were replaced, for a sentence about them."""
        failed, no_number = "the function failed there", "the function returned no finite number there"
        if self.on_error != "worst":
            return no_number
        return failed if self.on_nan != "worst" else f"{failed}, or returned no finite number"

    @property
    def found_nothing(self) -> bool:
        """Whether the method promises to improve on the start, and has not, and cannot prove the start optimal."""
        standing, start = self.standing, self.task.theta0
        if not must_improve(self.task.method) or standing.search.certified:
            return False
        return np.array_equal(standing.theta if standing.best_x is None else standing.best_x, start)

    @property
    def success(self) -> bool:
        """Whether the run ended well, with a point that the method stands by."""
        return self.status is not None and self.status.success and not self.found_nothing

    @property
    def closing_message(self) -> str:
        """Why the run ended, and, if it ended well, what the method remarked last and whether F is known."""
        remarks = self.standing.search.remarks
        if self.status is None or not self.status.success:
            return self.message
        if self.found_nothing:
            return f"{self.message}; nothing better than the start was found: {what_would_help(self.task, self.status)}"
        said = f"{self.message} ({remarks[-1][1]})" if remarks else self.message
        if must_improve(self.task.method) and self.standing.best_x is None:
            said += "; F at the result is not known, and so not whether it is below F at the start"
        return said

    def open(self) -> bool:
        """Plan the next round, or end if there is none or if it does not fit into the limits.

        Returns whether a step was made at once, because nothing had to be asked for.
        """
        task, ledger = self.task, self.ledger
        try:
            plan = self._next_plan()
        except Exception as error:
            if self.nfev == 0:  # nothing has been paid for: the error is the user's to see
                raise
            if task.outputs is not None and self.standing.round == 0 and isinstance(error, ValueError):
                what = f"the method cannot begin with the {task.outputs.m} outputs that the function returns"
                self.finish(Status.BAD_VALUE, f"{what}: {error}", final=False)
                return False
            self.stop_for_method(error)
            return False
        if plan is None:
            nit = self.standing.nit
            message = f"the method has nothing more to ask after {nit} step{'' if nit == 1 else 's'}"
            self.finish(Status.CONVERGED, message)
            return False
        known = None if self.first_outputs is None else plan.find(task.theta0)
        free = 0 if known is None else 1
        if plan.calls - free > ledger.remaining():
            made = f"{self.nfev} of {task.budget} have been made"
            needs = f"{plan.calls - free} call{'' if plan.calls - free == 1 else 's'}"
            message = f"the budget is spent: the next round needs {needs}, and {made}{self._reserved()}"
            self.finish(Status.BUDGET, message)
            return False
        if ledger.max_cost is not None and not self.replaying:
            price = ledger.price(plan.components[free:])
            if not ledger.affords(price + ledger.reserved_price()):
                self.finish(
                    Status.COST,
                    f"the cost limit is reached: the next round costs {price:g}, and {ledger.spent:g} of "
                    f"{ledger.max_cost:g} have been spent{self._reserved()}",
                )
                return False
        self.open_round = current = OpenRound(self.token, plan)
        if known is not None and self.first_outputs is not None:
            current.fill(known, self.first_outputs)
            if current.unanswered == 0:
                return self._complete(current)
        return False

    def _reserved(self) -> str:
        """Return what a message adds about the calls that are reserved for F at the result."""
        reserve = self.task.reserve
        if not reserve:
            return ""
        return f" ({reserve} {'call is' if reserve == 1 else 'calls are'} reserved for F at the result)"

    def _next_plan(self) -> Plan | None:
        """Return the queries of the next round; a round that asks for nothing is answered at once."""
        before = self.standing
        if self.is_first_look:
            return self.task.plan(Probes.outputs(at=[self.task.theta0]), before.round)
        for _ in range(EMPTY_ROUNDS):
            probes = self.standing.search.request
            if probes is None:
                return None
            plan = self.task.plan(probes, self.standing.round)
            if plan.calls > 0:
                self.task.check_queries(plan)
                return plan
            self.standing = advance(self.task, self.standing, plan, plan.zeros())
        self.standing = before
        raise RuntimeError(f"the method asked for nothing in {EMPTY_ROUNDS} rounds in a row")

    # Values.

    def fits(self, values: Array) -> bool:
        """Whether values of the past can be those of this run: as many outputs, and finite if they have to be."""
        outputs = self.task.outputs
        if (outputs is None) != (values.ndim == 1):
            return False
        if outputs is not None and outputs.m is not None and values.shape[1] != outputs.m:
            return False
        return self.replaces or bool(self._usable(values).all())

    @property
    def replaces(self) -> bool:
        """Whether the worst value seen takes the place of values that cannot be used."""
        return self.on_nan == "worst" or self.on_error == "worst"

    @property
    def can_replace(self) -> bool:
        """Whether a call that failed can be replaced; the one that tells how many outputs there are cannot."""
        return self.open_round is not None and not self.is_first_look

    def no_values(self, failure: Failure) -> Array:
        """Return NaN in the place of everything that a call that failed should have returned."""
        self.last_failed, outputs = failure, self.task.outputs
        return np.full(failure.calls if outputs is None else (failure.calls, outputs.m or 1), np.nan)

    def deliver(self, start: int, values: Array) -> bool:
        """Take checked values of the open round from row ``start`` on; return whether a step was made."""
        current = self.open_round
        if current is None:
            raise RuntimeError(f"the run has ended ({self.message}): it takes no more values")
        self.ledger.arrive(current.plan, start, len(values))
        return self._complete(current) if current.take(start, values) else False

    def _complete(self, current: OpenRound) -> bool:
        """Advance the search by a round all of whose values are there, and open the next one."""
        plan, before = current.plan, self.standing
        if self.is_first_look:  # then the run has not ended: there is nothing to say about a result before it
            return self._complete_first_look(current)
        values = self._replace_bad_values(current.values) if self.replaces else current.values
        self.ledger.complete(plan, current.free)
        if current.free:
            self.first_outputs = None
        if values is None and self.on_error == "worst":
            return self._nothing_but_failures(plan)
        if values is None:
            self.open_round, self.ended_within_round = None, True
            message = "no value of the round was finite, and none before it: there is no worst value to take instead"
            self.finish(Status.BAD_VALUE, message, final=False)
            return False
        invented = values is not current.values
        if invented:
            self.replaced += int((~self._usable(current.values)).sum())
        if self.is_final:
            if not invented:
                self.standing = with_value(self.task, before, plan.point(0), *self._known(values))
            self.final_round = before.round
            self._leave()
            return False
        try:
            self.standing = advance(self.task, before, plan, values)
        except Exception as error:
            self.open_round = None
            self.stop_for_method(error)
            return False
        self.open_round = None
        if invented:  # they tell nothing of F
            self.standing.search.distrust()
            self.standing = self.standing._replace(
                fun=None,
                best_x=before.best_x,
                best_fun=before.best_fun,
                recent=before.recent,
                best_outputs=before.best_outputs,
            )
        stepped = self.standing.nit > before.nit
        try:
            if stepped:
                self._record_step()
        finally:
            if self.status is None:
                stepped = self.open() or stepped
        return stepped

    def _nothing_but_failures(self, plan: Plan) -> bool:
        """End the run because no call has given a value; a later session asks for the round again."""
        if self.replaying:
            self.open_round = OpenRound(self.token, plan)
            return False
        self.open_round, self.ended_within_round = None, True
        failure = self.last_failed
        message = "no call of the round gave a value, and none before it: there is no worst value to take instead"
        why = "" if failure is None else f" (the last one raised {failure.summary})"
        status = Status.BAD_VALUE if failure is None else Status.FAILED
        self.finish(status, message + why, failure=failure, final=False)
        return False

    def _complete_first_look(self, current: OpenRound) -> bool:
        """Learn the number of outputs from the call at the start, and open the first round of the method."""
        self.ledger.complete(current.plan)
        self.open_round = None
        if self.on_nan == "worst" and not np.isfinite(current.values).all():
            self.ended_within_round = True
            message = (
                "the outputs at the start are not all finite: there are no worse ones to take instead "
                "(on_nan='mask' takes NaN for a missing output)"
            )
            self.finish(Status.BAD_VALUE, message, final=False)
            return False
        self.learn_outputs(current.values.shape[1])
        if self.replaces:
            self._replace_bad_values(current.values)
        self.first_outputs = current.values[0]
        self.standing = with_value(self.task, self.standing, self.task.theta0, *self._known(current.values))
        return self.open()

    def _known(self, values: Array) -> tuple[float, Array | None]:
        """Return F, and the outputs if there are many, from all components at a point, or from one call, (1, m)."""
        outputs = self.task.outputs
        return (mean(values), None) if outputs is None else (float(outputs.values(values)[0]), values[0])

    def know_value(self, values: Array) -> None:
        """Take note of F at the iterate from values that were charged as failed: they were those of an earlier end."""
        self.ledger.recall(len(values))
        if self._usable(values).all():
            self.standing = with_value(self.task, self.standing, self.standing.theta, *self._known(values))
        self.final_round = self.standing.round

    def _replace_bad_values(self, values: Array) -> Array | None:
        """Replace values that are not finite by the worst one seen so far; None if none has been finite yet.

        Where one call returns many outputs, the outputs of the worst call take the place of those of a bad one.
        """
        if self.task.outputs is not None:
            return self._replace_bad_outputs(values, self.task.outputs)
        finite = np.isfinite(values)
        if finite.any():
            largest = float(values[finite].max())
            self.worst = largest if self.worst is None else max(self.worst, largest)
        if finite.all():
            return values
        return None if self.worst is None else np.where(finite, values, self.worst)

    def _replace_bad_outputs(self, table: Array, outputs: VectorOutputs) -> Array | None:
        """Replace the outputs of bad calls by those of the call with the largest F."""
        good = self._usable(table)
        for row in np.flatnonzero(good):
            value = float(outputs.values(table[row : row + 1])[0])
            if self.worst is None or value > self.worst:
                self.worst, self.worst_outputs = value, table[row].copy()
        if good.all():
            return table
        return None if self.worst_outputs is None else np.where(good[:, None], table, self.worst_outputs)

    def _usable(self, values: Array) -> NDArray[np.bool_]:
        """Return which values, or which calls of a table of outputs, can be used."""
        outputs = self.task.outputs
        return np.isfinite(values) if outputs is None else outputs.usable(values)

    def stop_for_method(self, error: Exception) -> None:
        """End the run because the method cannot go on; what was paid for is kept, and the best point is returned."""
        standing = self.standing
        if isinstance(error, Diverged):
            message = f"step {standing.nit + 1} left the floating-point numbers: {self._why_diverged()}"
            self.finish(Status.DIVERGED, message)
            return
        method = type(self.task.method)
        failure = Failure(-1, standing.theta, -1, error, 0)
        what = f"the method {method.__name__} raised {failure.summary} in round {standing.round}"
        ask = "please report it, with the traceback in result.failure and the arguments of the run"
        whose = f"this is a fault of zerothresh: {ask}" if _is_ours(method) else "result.failure has the traceback"
        self.finish(Status.METHOD_FAILED, f"{what}; the best point so far is returned; {whose}", failure=failure)

    def _why_diverged(self) -> str:
        if chooses_steps(self.task.method):
            return "the objective appears to be unbounded below"
        return "the learning rate is too large for this problem, or the function too steep; take a smaller eta"

    def _record_step(self) -> None:
        """Enter a step into the trace, with F if a monitor tells it."""
        theta = self.standing.theta
        failed: BaseException | None = None
        if self.monitor is not None:
            try:
                value = float(self.monitor(theta))
            except BaseException as error:
                failed, value = error, np.nan
            if np.isfinite(value):
                self.standing = with_value(self.task, self.standing, theta, value)
            else:
                self.standing = self.standing._replace(fun=value)
        standing = self.standing
        self.support = support = theta.nonzero()[0]
        self.trace.append(step=standing.nit, nfev=self.ledger.nfev, nht=standing.nht, fun=standing.fun, support=support)
        largest = max(map(abs, theta[support].tolist()), default=0.0)
        if largest >= self._largest_scale:
            self.finish(
                Status.DIVERGED,
                f"the iterate has grown to {largest:.1e}, and steps of mu = {self.task.estimator.mu:g} from there "
                "are lost in rounding: the learning rate is too large for this problem; take a smaller eta",
            )
        if isinstance(failed, (KeyboardInterrupt, SystemExit)):
            raise failed
        if failed is not None and not self.replaying:
            self.stop_for_user_error("monitor", failed)

    # Failures and limits.

    def fail(self, failure: Failure) -> None:
        """Charge a call that failed."""
        self.ledger.fail(failure.component, failure.charged)

    def check_fit(self, missing: list[tuple[int, int]] | None = None) -> bool:
        """End the run if the rest of the open round no longer fits into the limits; return whether it goes on.

        ``missing`` are the row ranges that are still to be asked for; None: all that have no values.
        """
        current, ledger = self.open_round, self.ledger
        if current is None:
            return False
        missing = current.missing() if missing is None else missing
        if sum(stop - start for start, stop in missing) > ledger.remaining(final=self.is_final):
            made = f"{self.nfev} of {self.task.budget} have been made"
            message = f"the budget is spent: calls that failed used it up, {made}; a larger budget goes on from here"
            self.finish(Status.BUDGET, message, final=False)
        elif ledger.max_cost is not None:
            components = current.plan.components
            price = sum(ledger.price(components[start:stop]) for start, stop in missing)
            if not ledger.affords(price + ledger.reserved_price(final=self.is_final)):
                spent = f"{ledger.spent:g} of {ledger.max_cost:g} have been spent"
                message = f"the cost limit is reached: {spent}; a larger max_cost goes on from here"
                self.finish(Status.COST, message, final=False)
        return self.open_round is current

    # The end.

    def stop_for_user_error(self, function: str, error: BaseException) -> None:
        """End the run because the user's callback or monitor failed; what was found is kept."""
        failure = Failure(-1, self.standing.theta, -1, error, 0)
        message = f"the {function} raised {failure.summary}; result.failure has the traceback"
        self.finish(Status.CALLBACK_FAILED, message, failure=failure, final=False)

    def finish(self, status: Status, message: str, *, failure: Failure | None = None, final: bool = True) -> None:
        """End the search for a reason; then F at the result is asked for, unless ``final`` is False."""
        message = shorten(message, MOST_MESSAGE)  # it may repeat what a user's function said or returned
        if self.done and self.status is not None:
            if self.status.success and not status.success:  # an error in the last step is not passed over
                self.status, self.message, self.failure = status, message, failure
            return
        if self.is_final and final:
            return  # it is ending for another reason
        self.status, self.message, self.failure = status, message, failure
        standing = self.standing
        point = standing.theta
        if status is Status.DIVERGED:
            final = final and standing.best_x is None
            point = self.task.theta0  # the last iterate is far off; the start is known to be sound
        paid = self.final_round == standing.round or (standing.search.states_fun and standing.fun is not None)
        if self.first_outputs is not None and np.array_equal(point, self.task.theta0):
            paid = True  # by the call at the start
        if not final or paid or self.is_first_look or not self._affords_value():
            self._leave()
            return
        self._leave()
        self.is_final = True
        one = self.task.outputs is not None  # one call tells F
        wanted = Probes.outputs(at=[point]) if one else Probes.values(at=[point], of=range(self.task.n))
        plan = self.task.plan(wanted, standing.round)
        self.open_round = OpenRound(self.token, plan)

    def _affords_value(self) -> bool:
        """Whether F at the result can be paid for: calls were reserved for it, or happen to be left."""
        if bounds_k_itself(self.task.method):
            return False  # it has several results, and asks for F there itself
        if self.task.reserve or self.monitor is not None:
            return self.task.reserve > 0
        ledger, everything = self.ledger, np.arange(self.task.n)
        return self.task.n <= ledger.remaining() and ledger.affords(ledger.price(everything))

    def _leave(self) -> None:
        """Leave the open round; values that it has were paid for, and a run folder keeps them."""
        current = self.open_round
        if current is not None and current.told and current.unanswered:
            self.ledger.abandon()
            self.ended_within_round = True
        self.open_round = None


def _is_ours(method: type) -> bool:
    """Whether a method is part of this library, rather than the user's own."""
    return method.__module__.partition(".")[0] == __name__.partition(".")[0]


def what_would_help(task: Task, status: Status) -> str:
    """Return a phrase for a user whose run found nothing better than the start."""
    values = task.n if task.outputs is None else 1
    gradient = values * (task.d + 1) + task.reserve
    if task.budget < gradient:
        return f"about {gradient:,} calls would pay for one gradient over all coordinates"
    impatient = status is Status.CONVERGED and getattr(task.method, "patience", None) is not None
    more = "patience" if impatient else "budget"
    return f"a larger {more}, another start, or bounds that show where to look may help"

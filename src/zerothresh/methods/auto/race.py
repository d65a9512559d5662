"""The race: several arms share one budget, and calls go to the arm that makes progress.

An entrant that is in the middle of a step which is worth nothing unless it is finished goes on. Apart from that, an
entrant leads if its own test has confirmed its assumption, for as many calls as it forecast and then as long as it
gains something before its calls have doubled. Without a leader, entrants get their trial: first those that test their
own assumption and end if that fails, then the others in their order, those last whose forecast is a large part of the
budget. While somebody makes progress, a trial waits until its price is small beside the calls used so far. Among those
that have begun, the calls go to the one that lowered F most per call of late, where the calls of its next round count
as made; one that could not catch up at its rate has none. An entrant that is passed over still gets a sixteenth of the
calls, and if all are slow beside the whole run, they get equal shares. Searches that keep no model of F at their point
go on from the point of the run where that is better; what they are given so is not their gain.

What a wrong choice can cost is therefore bounded: a leader that is wrong wastes at most three quarters of the budget,
or as many calls as it took to get where it is, a trial a quarter, and insurance a sixteenth. Rates are falls of F per
call, and only their order counts, so that neither the unit nor the offset of F matters.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

from zerothresh.methods.auto.arm import Arm, Ended
from zerothresh.methods.auto.diagnosis import NOTHING_KNOWN, Diagnosis
from zerothresh.methods.auto.settings.race_settings import RACE
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.requests import Probes

_COUNTING = Estimator()  # arms ask for values, whose number depends on no estimator


class Entrant:
    """An arm at work in a race: its generator, what it has cost, and what it has gained.

    Its search begins when it is first given calls, at the best point that is known by then.

    Arguments
    ---------
    arm: the strategy.
    context: the run; the entrant gets a branch of it.
    diagnosis: what the first calls found.
    """

    def __init__(self, arm: Arm, context: Context, diagnosis: Diagnosis) -> None:
        self.arm, self.run, self.diagnosis = arm, context, diagnosis
        forecast = arm.forecast(context, diagnosis)
        self.expensive = forecast > RACE.expensive_part * context.left
        self.lead = min(forecast, math.ceil(RACE.lead_part * context.left))
        self.trial = self.lead if arm.decisive else min(forecast, math.ceil(RACE.trial_part * context.left))
        self.noise = RACE.noise_factor * diagnosis.noise / math.sqrt(context.n) if diagnosis.random else 0.0
        self.calls = 0
        self.ended: Ended | None = None
        self.context = context  # its branch of the run, once it has begun
        self.request: Probes | None = None  # what it wants to ask next
        self._search: Generator[Probes, Answers, Ended] | None = None
        self._rounds = [0]  # its calls at the beginning of each of its rounds
        self._falls = [(0, 0.0)]  # its calls, and the fall of F from the start that it had reached with them

    @property
    def fall(self) -> float:
        """By how much its point is below the start, without what it was given since it began."""
        return self._falls[-1][1]

    @property
    def leads(self) -> bool:
        """Whether its assumption was confirmed, and it has not doubled its calls since its last gain."""
        confirmed = self._search is not None and self.context.confirmed
        return confirmed and (self.progresses or self.calls <= self.lead)

    @property
    def committed(self) -> bool:
        """Whether what it has begun is worth its calls only when it is finished."""
        return self._search is not None and self.context.committed

    @property
    def progresses(self) -> bool:
        """Whether it has gained something since it had half as many calls as now."""
        return self.calls <= RACE.doubling * self._falls[-1][0]

    @property
    def untried(self) -> bool:
        """Whether it has made too few calls for a judgement, and its next round still belongs to the trial."""
        return self.calls == 0 or self.calls + self.price <= self.trial

    @property
    def price(self) -> int:
        """The number of calls that its next round takes, as far as it is known."""
        return 0 if self.request is None else self.request.calls(_COUNTING)

    @property
    def rate(self) -> float:
        """The fall of F per call, over its recent calls and those of its next round, which may be a large one.

        Recent calls are those of whole rounds, because a gradient alone gains nothing; what it is for follows later.
        The rate is 0 if at this rate its point could not catch up with that of the run in what is left of the budget.
        """
        recent = max(RACE.window * self.calls, RACE.window_slices * slice_length(self.run))
        began = max((calls for calls in self._rounds if calls <= self.calls - recent), default=0)
        recent = self.calls - began
        before = max(fall for calls, fall in self._falls if calls <= began)
        rate = (self.fall - before) / (recent + self.price)
        behind = 0.0 if self.context.follows else self.run.fall - self.context.fall
        return rate if rate * self.run.left >= behind else 0.0

    def begin(self) -> None:
        """Let it say what it wants to ask first."""
        if self._search is None:
            self.context = self.run.branch(self.arm.name)
            self._falls = [(0, self.run.fall)]
            self._search = self.arm.search(self.context, self.diagnosis)
            self._go_on(None)

    def ask(self) -> Asks:
        """Put its next question, and let it go on with the answers."""
        if self.request is None:
            return
        before = self.run.used
        self._rounds.append(self.calls)
        answers = yield self.request
        self.calls += self.run.used - before
        self._go_on(answers)
        earned = self.context.fall - self.context.given
        if earned > self.fall:
            self._falls.append((self.calls, earned))

    def _go_on(self, answers: Answers | None) -> None:
        assert self._search is not None
        try:
            self.request = next(self._search) if answers is None else self._search.send(answers)
        except StopIteration as stop:
            self.request, self.ended = None, stop.value


def race(
    context: Context, diagnosis: Diagnosis, arms: Sequence[Arm], patience: int | None = None
) -> Generator[Probes, Answers, Ended]:
    """Let arms compete until the budget is spent or one of them holds a certificate.

    Arguments
    ---------
    context: the run; it moves to the best point that an arm finds.
    diagnosis: what the first calls found.
    arms: the strategies, in the order in which they are tried.
    patience: int, calls without a gain after which the race ends; None: it never does.

    Returns
    -------
    Ended: the certificate of an arm, the end of the user's patience, or that no arm has anything left to ask.
    """
    if not arms:
        return Ended("No strategy fits.")
    entrants = [Entrant(arm, context, diagnosis) for arm in arms]
    at_start = math.inf  # F there, if it is paid for
    if diagnosis is not NOTHING_KNOWN and context.budget >= RACE.value_share * context.n:
        at_start = float((yield from context.starts(context.everything)).mean())  # so that falls can be compared
        if context.theta is context.theta0:
            context.move(context.theta, at_start)  # the lowest of many random values is not the result
        _begin_at_best(context, diagnosis)
    holder, gained_at, gained_fall = entrants[0], context.used, 0.0
    while True:
        running = [one for one in entrants if one.ended is None]
        able = [one for one in running if one.price <= context.left]
        stuck = not able  # nobody's next round fits: the cheapest one tells the user what is missing
        chosen = min(running, key=lambda one: one.price) if stuck else choose(able)
        context.stage(chosen.arm.name)
        chosen.begin()
        began, end = context.used, context.used + slice_length(context)
        while chosen.ended is None and (chosen.price <= context.left or stuck):
            if context.used > began and context.used + chosen.price > end:
                break  # a round that does not fit into the slice is a choice of its own
            yield from chosen.ask()
            if chosen is holder or _is_better(chosen, context):
                holder = chosen
                _follow(context, chosen.context, at_start + chosen.noise)
            if context.fall > (1 + RACE.negligible) * gained_fall:
                gained_at, gained_fall = context.used, context.fall
            if patience is not None and context.used - gained_at >= patience:
                context.remark(f"Nothing was gained in the last {patience:,} calls, which is the given patience.")
                return Ended("The user's patience has ended.", out_of_patience=True)
        if chosen.ended is not None:
            context.remark(f"{chosen.arm.name}: {chosen.ended.reason}")
            if chosen.ended.certified or all(one.ended for one in entrants):
                return chosen.ended


def _begin_at_best(context: Context, diagnosis: Diagnosis) -> None:
    """Move to the best point that runs for other k have found, if it is feasible here and better beyond noise."""
    known = None if context.family is None else context.family.best(context.k)
    if known is None or context.fun is None:
        return
    theta, fun = known[0], known[1] / (context.unit or 1.0)
    noise = RACE.noise_factor * diagnosis.noise / math.sqrt(context.n) if diagnosis.random else 0.0
    if fun < context.fun - noise:
        context.move(theta, fun)


def slice_length(context: Context) -> int:
    """Return how many calls an entrant gets at a time: a few values of F, fewer if the budget is small."""
    values = min(max(context.left / context.n / RACE.slices, 1.0), RACE.slice_values)
    return math.ceil(context.n * values)


def choose(able: Sequence[Entrant]) -> Entrant:
    """Return the entrant, of those whose next round fits into the budget, that gets the next slice.

    The rule is at the top of this file.
    """
    leading = [one for one in able if one.committed] or [one for one in able if one.leads]
    if leading:
        return leading[0]
    used = sum(one.calls for one in able)
    tried = [one for one in able if not one.untried]
    untried = sorted((one for one in able if one.untried), key=lambda one: (not one.arm.decisive, one.expensive))
    somebody = any(one.progresses for one in tried)
    for one in untried[:1]:
        if one.arm.decisive or not somebody or one.trial <= RACE.trial_share * used:
            return one
    fewest = min(able, key=lambda one: one.calls)
    if fewest.calls + fewest.price <= RACE.insurance * used:
        return fewest
    begun = [one for one in able if one.calls]
    usual = RACE.slow * begun[0].run.fall / used
    fast = [one for one in begun if one.rate > usual]
    if not fast:  # nobody makes progress: they get equal shares
        return min(begun, key=lambda one: one.calls + one.price)
    return max(fast, key=lambda one: one.rate)


def _is_better(chosen: Entrant, context: Context) -> bool:
    """Whether an entrant that does not hold the iterate of the run knows a better point."""
    if chosen.context.theta is context.theta:
        return False
    if chosen.context.fun is not None and context.fun is not None:
        return chosen.context.fun < context.fun - chosen.noise
    return chosen.context.fall > context.fall + chosen.noise


def _follow(context: Context, branch: Context, highest: float) -> None:
    """Make the iterate of a branch, and what is known of F there, that of the run, unless it is worse than the start.

    A value of random noise may have led the branch astray; that at the start was measured before anything was chosen.
    """
    context.random = branch.random
    if branch.theta is not context.theta and branch.fun is not None and branch.fun > highest:
        return
    if branch.theta is not context.theta or branch.fun != context.fun:
        context.move(branch.theta, branch.fun, branch.fall)

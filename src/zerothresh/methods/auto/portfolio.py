"""Auto: look first, choose, check, and choose again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.auto.descent import Descent
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.drift import Drift
from zerothresh.methods.auto.index import Model, affordable
from zerothresh.methods.auto.niht import sampled
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register


@register("auto")
@dataclass(frozen=True)
class Auto(Program):
    """No learning rate, no mu, no q: a dozen calls tell what the black box is like, and which method fits it.

    >>> Auto()
    Auto()
    """

    family: ClassVar[str] = "auto"
    solves: ClassVar[str] = "any F, l0"
    queries: ClassVar[str] = "those of the parts that it chooses"
    memory: ClassVar[str] = "1 a call, and that of its parts"

    def search(self, context: Context) -> Asks:
        seen = yield from diagnose(context)
        context.remark(seen.words())
        context.random = seen.random
        if not context.free().size:
            context.remark("no coordinate is free: the start is the answer")
            return
        if context.left < 3 * (context.free().size + 2):
            context.remark("niht: the budget holds no gradient along all coordinates, so that random directions must do")
            context.remark("niht: " + (yield from sampled(context, seen)))
            return
        if seen.random and seen.noise > 0.02 * seen.largest and context.left > 40 * context.free().size:
            context.remark("drift: " + (yield from Drift(context, seen).search()))
        known = None
        if context.n > 2 and not (seen.rough or seen.kink) and affordable(context):
            known = Model(context, seen)
            context.remark("index: " + (yield from known.search()))
            if known.exact:
                return  # its best support is known
        descent = Descent(context, seen, known=known)
        context.remark("htp: " + (yield from descent.search()))
        if context.theta is context.theta0 and descent.m == context.n:
            context.remark((yield from descent.kick(10)))
        if known is None or not known.done or context.theta is context.theta0:
            context.remark((yield from descent.restarts(share=1e9 if seen.rough else 3.0)))
        yield from descent.insist()

"""Auto: look first, choose, check, and choose again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.base import register
from zerothresh.methods.descent import Descent
from zerothresh.methods.drift import Drift
from zerothresh.methods.index import Model, affordable
from zerothresh.methods.look import look
from zerothresh.methods.niht import sampled
from zerothresh.methods.program import Asks, Program, Room


@register("auto")
@dataclass(frozen=True)
class Auto(Program):
    """No learning rate, no mu, no q: a dozen calls tell what the black box is like, and which method fits it.

    >>> Auto()
    Auto()
    """

    solves: ClassVar[str] = "any F, l0"
    queries: ClassVar[str] = "those of the parts that it chooses"
    memory: ClassVar[str] = "1 a call, and that of its parts"

    def search(self, room: Room) -> Asks:
        seen = yield from look(room)
        room.say(seen.words())
        room.random = seen.random
        if not room.free().size:
            room.say("no coordinate is free: the start is the answer")
            return
        if room.left < 3 * (room.free().size + 2):
            room.say("niht: the budget holds no gradient along all coordinates, so that random directions must do")
            room.say("niht: " + (yield from sampled(room, seen)))
            return
        if seen.random and seen.noise > 0.02 * seen.largest and room.left > 40 * room.free().size:
            room.say("drift: " + (yield from Drift(room, seen).search()))
        known = None
        if room.n > 2 and not (seen.rough or seen.kink) and affordable(room):
            known = Model(room, seen)
            room.say("index: " + (yield from known.search()))
            if known.exact:
                return  # its best support is known
        descent = Descent(room, seen, known=known)
        room.say("htp: " + (yield from descent.search()))
        if room.theta is room.theta0 and descent.m == room.n:
            room.say((yield from descent.kick(10)))
        if known is None or not known.done or room.theta is room.theta0:
            room.say((yield from descent.restarts(share=1e9 if seen.rough else 3.0)))
        yield from descent.insist()

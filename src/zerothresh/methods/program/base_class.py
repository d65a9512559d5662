"""Methods that are written as one function: it asks with `yield`, and goes on with the answers."""

from __future__ import annotations

from typing import ClassVar

from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.replay import Replayed
from zerothresh.rounds.task import Task


class Program:
    """The base of a method that is one generator function: override `search`.

    Methods with many phases would be unreadable as a state with a phase counter, so they are written from top to
    bottom. What is kept of a run is the list of all values seen, from which the function can be led to the same
    place again; see `zerothresh.methods.program.replay`.
    """

    chooses_steps: ClassVar[bool] = True

    def search(self, context: Context) -> Asks:
        """Yield `Probes` and receive `Answers`; everything else is in ``context``."""
        raise NotImplementedError

    def begin(self, task: Task) -> Replayed:
        """Return the search that the engine drives."""
        return Replayed(self.search, task)

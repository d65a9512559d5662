"""Methods that are written as one function: it asks with `yield`, and goes on with the answers.

The state of such a method is the list of all values that it has seen. From that list the function can
be led to the same place again, so a run resumes after a kill, and a state can be used twice. While a
run goes on nothing is repeated: the function itself waits between two rounds.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.program.context import Asks, Context, Setting
from zerothresh.methods.program.replay import Script
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


class Program:
    """The base of a method that is a function: override `search`."""

    def search(self, context: Context) -> Asks:
        """Yield probes, get answers; use ``context`` for everything else."""
        raise NotImplementedError

    def init(self, theta: Array, setting: Setting | None = None) -> Script:
        """The state before the first round; the engine tells the setting."""
        state = Script(theta, np.empty(0))
        object.__setattr__(state, "_told", (self, setting))
        return state

    def plan(self, state: Script, n: int, rng: Stream) -> Probes | None:
        """What the function waits for; None: it has ended."""
        return state.live(n, rng.key).pending

    def update(self, state: Script, answers: Answers, H: HardThreshold) -> Script:
        """Let the function go on with the answers."""
        return state.live(0, 0, answers, H).send(answers, H)

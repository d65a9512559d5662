"""What a method is: hyper-parameters and three pure functions."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


class State(Protocol):
    """What a method knows between two rounds: a frozen dataclass of arrays and numbers."""

    @property
    def theta(self) -> Array:
        """The current iterate."""


class Method(Protocol):
    """A frozen dataclass of hyper-parameters with three pure functions."""

    def init(self, theta: Array) -> Any:
        """The state before the first round."""

    def plan(self, state: Any, n: int, rng: Stream) -> Probes:
        """What has to be known next: gradients or values of which components, at which points."""

    def update(self, state: Any, answers: Answers, H: HardThreshold) -> Any:
        """The next state. ``H`` is the hard thresholding H_k; each use counts as one #NHT."""


def is_sparse(method: Any) -> bool:
    """Whether a method's iterates keep the l0 constraint; one that does not says ``sparse = False``."""
    return bool(getattr(method, "sparse", True))


@dataclasses.dataclass(frozen=True)
class Iterate:
    """The state of a method without memory."""

    theta: Array

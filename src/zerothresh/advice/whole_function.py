"""A function that returns all outputs of a run, seen as F alone: one number per call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.objective.forms import RETURNED
from zerothresh.objective.vector_forms import FUNCTION, Policy


@dataclass
class WholeFunction:
    """F = mean loss of the outputs; a call of it is a call of the user's function.

    Arguments
    ---------
    function: the user's function, called as f(x), which returns (m,), or f(X), which returns (B, m).
    policy: Policy, what is expected of the outputs.
    vectorized: bool, whether the function takes many points at once.
    """

    function: Callable[..., Any]
    policy: Policy
    vectorized: bool

    def __call__(self, x: Any) -> Any:
        calls = len(x) if self.vectorized else None
        table = self.policy.check(self.function(x), calls, RETURNED if self.vectorized else FUNCTION)
        self.policy.learn(table.shape[1])
        F = np.mean(self.policy.loss.value(table), axis=1)
        return F if self.vectorized else float(F[0])

"""The memory of pM-SZHT: remembered gradients, kept as coefficients of directions that can be drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array


@dataclass(frozen=True)
class Memory:
    """n remembered gradients a_j, each as the round and the block of its directions, and q coefficients.

    These are n (q + 2) numbers instead of n d: the directions are drawn again when a row is needed.
    """

    rounds: NDArray[np.int64]  # (n,)
    tags: NDArray[np.int64]  # (n,)
    coefficients: Array  # (n, q)
    mean: Array  # (d,), the mean of all a_j

    @staticmethod
    def empty(d: int) -> Memory:
        """Return a memory that holds nothing yet."""
        none = np.empty(0, np.int64)
        return Memory(none, none, np.empty((0, 0)), np.zeros(d))

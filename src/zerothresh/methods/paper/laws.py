"""The laws of J: which components a step samples (i_r), and which rows of the memory it refreshes (J).

Every row must be in J with the same probability p/n, and i_r must be uniformly distributed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Indices
from zerothresh.sampling.philox import Stream


class Law(Protocol):
    """The joint distribution of (i_r, J)."""

    def sample(self, n: int, batch: int, rng: Stream) -> tuple[Indices, Indices]:
        """Draw ``batch`` different components of n, and the set of rows to refresh, as two arrays of indices."""


@dataclass(frozen=True)
class FixedSize:
    """p-SAGA: J is uniform among the sets of p rows, P{J} = 1/binom(n, p).

    i_r are the first components of J, so that a step costs p gradient estimates.

    Arguments
    ---------
    p: int, default 1. Number of rows to refresh per step; if it exceeds n, all n rows are refreshed.

    >>> FixedSize(2).sample(5, 1, Stream(seed=0, round=0))[1].size
    2
    """

    p: int = 1

    def __post_init__(self) -> None:
        check.count("p", self.p, what=" (rows to refresh per step)")

    def check_batch(self, batch: int) -> None:
        """Refuse a batch that does not fit into J; called when a method is constructed."""
        if batch > self.p:
            raise ValueError(
                f"batch = {batch} is larger than p = {self.p}: the components of a step are among the p rows "
                f"that it refreshes, so set p to at least {batch}"
            )

    def sample(self, n: int, batch: int, rng: Stream) -> tuple[Indices, Indices]:
        J = rng.subset(n, max(batch, min(self.p, n)))  # it refuses a batch that exceeds n
        return J[:batch], J


@dataclass(frozen=True)
class AllOrNothing:
    """Loopless SVRG: J is all rows with probability p/n, and no row otherwise; i_r is drawn independently of J.

    Arguments
    ---------
    p: float, default 1. n times the probability of a refresh; if it exceeds n, every step refreshes.

    >>> AllOrNothing(5).sample(5, 1, Stream(seed=0, round=0))[1].size
    5
    """

    p: float = 1.0

    def __post_init__(self) -> None:
        check.positive("p", self.p, what=" (the probability of a refresh is p/n)")

    def sample(self, n: int, batch: int, rng: Stream) -> tuple[Indices, Indices]:
        i_r = rng.subset(n, batch)
        return i_r, np.arange(n if rng.chance(self.p / n) else 0)

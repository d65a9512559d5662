"""The laws of J: which components of the step (i_r) and which rows of the memory (J) a step takes.

Every j must have the same chance p/n to be in J, and i_r must be uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Indices
from zerothresh.sampling.philox import Stream


class Law(Protocol):
    """Draws (i_r, J): ``batch`` different components, uniform, and a set of components."""

    def sample(self, n: int, batch: int, rng: Stream) -> tuple[Indices, Indices]: ...


@dataclass(frozen=True)
class FixedSize:
    """P{J} = 1/binom(n, p) for |J| = p (p-SAGA); i_r is the first of J, so that a step costs p estimates.

    A p beyond n refreshes all n.

    >>> FixedSize(2).sample(5, 1, Stream(seed=0, round=0))[1].size
    2
    """

    p: int = 1

    def __post_init__(self) -> None:
        check.count("p", self.p, what=" (rows refreshed a step)")

    def check_batch(self, batch: int) -> None:
        """Called when a method is made."""
        if batch > self.p:
            raise ValueError(
                f"batch = {batch} is larger than p = {self.p}: the components of the step are among the p "
                f"rows that are refreshed, so take p of at least {batch}"
            )

    def sample(self, n: int, batch: int, rng: Stream) -> tuple[Indices, Indices]:
        J = rng.subset(n, max(batch, min(self.p, n)))  # a batch beyond n is refused there
        return J[:batch], J


@dataclass(frozen=True)
class AllOrNothing:
    """P{all} = p/n, P{none} = 1 - p/n: the loopless variant of SVRG; i_r is drawn apart.

    A p beyond n always refreshes.

    >>> AllOrNothing(5).sample(5, 1, Stream(seed=0, round=0))[1].size
    5
    """

    p: float = 1.0

    def __post_init__(self) -> None:
        check.positive("p", self.p, what=" (the chance of a refresh is p/n)")

    def sample(self, n: int, batch: int, rng: Stream) -> tuple[Indices, Indices]:
        i_r = rng.subset(n, batch)
        return i_r, np.arange(n if rng.chance(self.p / n) else 0)

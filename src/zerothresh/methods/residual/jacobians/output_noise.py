"""Noise of outputs from first and second differences over steps of growing length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.residual.residual_settings import LOOK, TINY


@dataclass(frozen=True)
class Rung:
    """The norms of the first and the second difference of the outputs over a step."""

    step: float
    first: float
    second: float

    @property
    def roughness(self) -> float:
        """The second difference over the first."""
        return self.second / max(self.first, TINY)

    @property
    def smooth(self) -> bool:
        """Whether the outputs are straight over the step."""
        return self.roughness < LOOK.smooth


def ends(ladder: Sequence[Rung]) -> bool:
    """Whether a longer step is of no use: this one is smooth, or the one before was better and good."""
    last = ladder[-1]
    if last.smooth or len(ladder) <= 2:
        return last.smooth
    before = ladder[-2]
    return before.roughness < LOOK.good and last.roughness > LOOK.worse * before.roughness


def best_rung(ladder: Sequence[Rung]) -> int:
    """Return the place of the rung where slopes stand out best."""
    return int(np.argmin([rung.roughness for rung in ladder]))


def noise_below(ladder: Sequence[Rung], best: int, n: int) -> float:
    """Return the standard deviation of an output, from the rungs where noise rules."""
    return float(np.median([rung.second for rung in ladder[: max(best - 1, 1)]])) / float(np.sqrt(LOOK.squares * n))


def like_noise(changes: Array) -> bool:
    """Whether changes of the outputs, one per column, may all be noise around one base.

    Such changes have equal norms, and a correlation of 1/2 with each other, because they share the noise of the base.
    Outputs that do not change at all show that there is no noise.
    """
    if changes.shape[1] < 2 or (changes == 0).any():
        return False
    norms = np.linalg.norm(changes, axis=0)
    alike = (changes / norms).T @ (changes / norms)
    others = alike[np.triu_indices(norms.size, 1)]
    width = LOOK.alike / np.sqrt(changes.shape[0])
    return bool(norms.max() < (1 + width) * norms.min() and np.abs(others - 0.5).max() < width)

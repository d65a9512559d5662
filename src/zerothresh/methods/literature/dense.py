"""What the methods without the l0 constraint share: a state, bounds, and an optional final H_k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold

RANDOM: Mapping[str, Any] = {"q": 1, "directions": "sphere"}  # RandGradEst: one random direction
# CoordGradEst: central differences along all coordinates; a method adds q = d.
COORDINATES: Mapping[str, Any] = {"directions": "coordinate", "difference": "central", "s2": None}


@dataclass(frozen=True)
class Dense:
    """The iterate x, and the point theta that is returned for it: x itself, or H_k(x)."""

    theta: Array
    x: Array


def output_point(x: Array, H: HardThreshold, threshold: bool) -> Array:
    """The point that the run returns if it ends here: H_k(x) with ``threshold``, otherwise x."""
    return H(x) if threshold else x


def soft_threshold(v: Array, level: float) -> Array:
    """The proximal operator of level * ||.||_1.

    >>> soft_threshold(np.array([3.0, -0.5, -2.0]), 1.0).tolist()
    [2.0, 0.0, -1.0]
    """
    out: Array = np.sign(v) * np.maximum(np.abs(v) - level, 0.0) + 0.0
    return out


def estimate_of(kind: str, d: int) -> Mapping[str, Any]:
    """The settings of the estimator for one of the three of ZO-SVRG: "rand", "ave" (the user's own) or "coord"."""
    if kind == "rand":
        return RANDOM
    return {**COORDINATES, "q": d} if kind == "coord" else {}

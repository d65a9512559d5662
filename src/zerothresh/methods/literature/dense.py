"""What methods without the l0 constraint share: a state, and a final H_k if it is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Diverged, HardThreshold

RANDOM: Mapping[str, Any] = {"q": 1, "directions": "sphere"}  # RandGradEst: one random direction
# CoordGradEst: central differences along all coordinates; a method adds q = d.
COORDINATES: Mapping[str, Any] = {"directions": "coordinate", "difference": "central", "s2": None}


@dataclass(frozen=True)
class Dense:
    """The iterate x, and what is handed out for it: x itself, or H_k(x)."""

    theta: Array
    x: Array


def inside(x: Array, H: HardThreshold) -> Array:
    """The nearest point within the bounds, read-only; bounds are all that these methods keep."""
    if not np.isfinite(x).all():
        raise Diverged
    box = H.constraint.box
    x = x if box is None else np.clip(x, box.low, box.high)
    x.flags.writeable = False
    return x


def handed_out(x: Array, H: HardThreshold, threshold: bool) -> Array:
    """x, or H_k(x): what the run returns if it ends here. The method itself goes on from x."""
    return H(x) if threshold else x


def soft_threshold(v: Array, level: float) -> Array:
    """The proximal operator of level * ||.||_1.

    >>> soft_threshold(np.array([3.0, -0.5, -2.0]), 1.0).tolist()
    [2.0, 0.0, -1.0]
    """
    out: Array = np.sign(v) * np.maximum(np.abs(v) - level, 0.0) + 0.0
    return out


def estimate_of(kind: str, d: int) -> Mapping[str, Any]:
    """The fields of the estimator for one of ZO-SVRG's three: "rand", "ave" (the user's own) or "coord"."""
    if kind == "rand":
        return RANDOM
    return {**COORDINATES, "q": d} if kind == "coord" else {}

"""Squared components: sums of squares whose roots are smooth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SquaresSettings:
    """When components count as squares above one level, and how their roots are searched."""

    tested: int = 6  # components at most whose minima along their gradients are compared
    least_tested: int = 3  # the same at least: as many as the single index asks for first
    most_per_nonzero: float = 10.0  # components: where there are more, a sample of them tells more per call
    test_step: float = 0.1  # natural lengths: curvature is then that at the start, not that of the whole way
    same_minimum: float = 0.25  # of the typical height above the level: roots bend, so that the minima differ by it
    fewest: int = 8  # components: the lowest of fewer values says little of the level
    stale: float = 1e-2  # of the mean height above the level: a value lower than the level by more is a new level


SQUARES = SquaresSettings()

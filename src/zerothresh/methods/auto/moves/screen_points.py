"""What the values of a screen tell of F on a few coordinates, when a search on these begins."""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.moves.bisection import Bisection
from zerothresh.methods.auto.moves.slope_decoding import SlopeDecoding
from zerothresh.methods.auto.moves.slope_steps import resolution
from zerothresh.methods.auto.settings.active_subset_settings import ACTIVE_SUBSET as SET
from zerothresh.methods.auto.settings.active_subset_settings import SLOPES
from zerothresh.methods.auto.settings.floating_point import TINY


class ScreenPoints:
    """The points of a screen: far ones, hybrids of them, and those that slopes tell of.

    Attributes
    ----------
    far: points with random values at many coordinates, and the values of the components there; the last few of them.
    pairs, slopes: the bisections of pairs of points, and the slopes around points.
    """

    def __init__(self) -> None:
        self.far: list[tuple[Array, Array]] = []
        self.pairs: list[Bisection] = []
        self.slopes: list[SlopeDecoding] = []

    def see(self, points: list[Array], values: Array) -> None:
        """Take far points into account."""
        self.far = [*self.far, *zip(points, values, strict=True)][-SET.kept_points :]

    def on(self, chosen: Indices) -> tuple[Array, Array, Array]:
        """Return the points on the chosen coordinates, each once: (points, chosen), their F, and the calls of each."""
        told = [(point[chosen], float(value.mean())) for point, value in self.far]
        for pair in self.pairs:  # whose ends are far points, or were asked for by a search
            told += [
                (np.where(mask[chosen], pair.b[chosen], pair.a[chosen]), float(value.mean()))
                for mask, value in zip(pair.asked[2:], pair.answers[2:], strict=True)
            ]
        for slopes in self.slopes:
            told += [(point[chosen], value) for j, point, value in beside(slopes) if j in chosen]
        if not told:
            return np.empty((0, chosen.size)), np.empty(0), np.empty(0)
        points, values = np.array([point for point, _ in told]), np.array([value for _, value in told])
        unique, where, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
        return unique, np.bincount(where.ravel(), weights=values) / counts, counts.astype(float)


def beside(decoding: SlopeDecoding) -> list[tuple[int, Array, float]]:
    """Return points beside the base along each coordinate that was found: the coordinate, the point, and F there.

    They are so near that F hardly departs from a straight line: a model that is fitted to values learns the slopes.
    What is not exact is rounded, so that the last bits of F decide nothing. Where F bends on a shorter way, its slopes
    are those of ripples and tell nothing of its shape.
    """
    spread = decoding.comparison.high - decoding.comparison.low
    bend = np.maximum(decoding.bend, resolution(decoding.comparison)) / square(decoding.at.share)
    far = min(SLOPES.longest_slope, math.sqrt(float((2 * SLOPES.straight * spread / bend).min())))
    if far < SLOPES.shortest_slope:
        return []
    told, unit = [], np.maximum(SLOPES.rounded * spread, TINY)
    for j, slope in decoding.slopes.items():
        point, share = decoding.at.beside(j, math.ldexp(1.0, math.frexp(far)[1] - 1))
        told.append((j, point, float((decoding.at_base + unit * np.round(share * slope / unit)).mean())))
    return told

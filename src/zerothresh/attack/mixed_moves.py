"""Moves where k counts single colours of pixels: whole pixels and single colours are raced against each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.corner_moves import CornerMoves, Grid, Proposal
from zerothresh.attack.removal_costs import RemovalCosts
from zerothresh.methods.program.context import Context

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Candidate = tuple[Array, Indices, Indices]  # a point, its groups, and the places in the support that were swapped

_CANDIDATES = 4  # that are proposed together, in which both kinds of moves have at least one
_REMEMBERED = 0.95  # weight of what a kind of moves has gained so far, from round to round
_CHOICES = 3  # times the places that are still to be given up: of so many, the cheapest go
_DOUBT = 8.0  # candidates of each kind whose gain is taken to be the common one, at first


class MixedMoves(CornerMoves):
    """Swaps of single colours, and swaps of as many colours that make up whole pixels.

    Which of the two gets nowhere depends on the net, and changes in the course of a search. So both kinds are in every
    race, and the kind whose candidates have lowered the loss more gets more of them. The search begins with whole
    pixels or with single colours, whichever is better on the first components.

    Arguments
    ---------
    context, grid, k: as in `CornerMoves`; d is a multiple of the number of pixels in the grid.
    """

    def __init__(self, context: Context, grid: Grid, k: int) -> None:
        super().__init__(context, grid, k)
        rows, columns, down, right = grid
        self.channels = context.d // (rows * columns)
        apart = rows * down if right == 1 else 1  # channels first, or last
        corners = (np.arange(rows)[:, None] * down + np.arange(columns) * right).reshape(-1, 1)
        pixels = self.group_of[corners + apart * np.arange(self.channels)]
        self.pixels = pixels[(pixels >= 0).all(axis=1)]  # of which all colours may change
        self.pixel_of = np.full(self.count, -1)
        self.pixel_of[self.pixels] = np.arange(len(self.pixels))[:, None]
        self._tried, self._gained = np.zeros(2), np.zeros(2)  # candidates and falls of the loss: single, whole

    def starts(self, context: Context) -> list[tuple[Array, Indices]]:
        """A start at single colours, and one at whole pixels."""
        single = self.start(context)
        count = min(self.k // self.channels, len(self.pixels))
        support = self.extended(self.pixels[context.rng.subset(len(self.pixels), count)].ravel(), context)
        theta = np.zeros(context.d)
        theta[self.members[support]] = self._corners(support, context)
        return [single, (theta, support)]

    def propose(
        self, theta: Array, support: Indices, costs: RemovalCosts, size: int, count: int, context: Context
    ) -> Proposal:
        """As in `CornerMoves`; each race of four has candidates of both kinds."""
        share = self._share_of_pixels()
        places = np.arange(count)
        races = -(-count // _CANDIDATES)
        each = np.clip(np.floor(share * _CANDIDATES + context.rng.uniform(races)), 1, _CANDIDATES - 1)
        pixels = max(1, min(round(size / self.channels), self.k // self.channels))
        held = np.zeros(self.count, bool)
        held[support] = True
        free = np.flatnonzero(~held[self.pixels].any(axis=1))  # pixels of which no colour is changed
        whole = (places % _CANDIDATES < np.repeat(each, _CANDIDATES)[:count]) & (free.size >= pixels)
        single = count - int(whole.sum())
        singles = self._single(theta, support, costs, size, single, context)
        made: list[Candidate] = [
            self._whole(theta, support, free, costs, pixels, context) if one else next(singles)
            for one in whole.tolist()
        ]

        def learn(best: int | None, fall: float) -> None:
            self._tried *= _REMEMBERED
            self._gained *= _REMEMBERED
            self._tried += (single, count - single)
            if best is not None:
                self._gained[int(whole[best])] += fall

        return Proposal(
            np.array([point for point, _, _ in made]),
            np.array([groups for _, groups, _ in made]),
            [gone for _, _, gone in made],
            learn,
        )

    def _share_of_pixels(self) -> float:
        """The share of whole pixels among the candidates: by the falls of the loss per candidate of each kind."""
        common = self._gained.sum() / max(self._tried.sum(), 1.0)
        if not common:
            return 0.5
        rates = (self._gained + _DOUBT * common) / (self._tried + _DOUBT)
        return float(rates[1] / rates.sum())

    def _single(
        self, theta: Array, support: Indices, costs: RemovalCosts, size: int, count: int, context: Context
    ) -> Iterator[Candidate]:
        """Swap single colours for others."""
        if not count:
            return iter(())
        removed = costs.choose(size, count, context)
        points, supports = self.candidates(theta, support, removed, context)
        return zip(points, supports, removed, strict=True)

    def _whole(
        self, theta: Array, support: Indices, free: Indices, costs: RemovalCosts, pixels: int, context: Context
    ) -> Candidate:
        """Swap as many colours as some whole pixels have for these pixels, at random corners."""
        gone = self._leaving(support, costs, pixels, context)
        new = self.pixels[free[context.rng.subset(free.size, pixels)]].ravel()
        point, groups = theta.copy(), support.copy()
        point[self.members[support[gone]]] = 0.0
        point[self.members[new]] = self._corners(new, context)
        groups[gone] = new
        return point, groups, gone

    def _leaving(self, support: Indices, costs: RemovalCosts, pixels: int, context: Context) -> Indices:
        """The places of the support that make room for some pixels: whole pixels, as far as there are any."""
        seeds = costs.choose(pixels, 1, context)[0]
        gone = np.flatnonzero(np.isin(self.pixel_of[support], self.pixel_of[support[seeds]]))
        missing = pixels * self.channels - gone.size
        if not missing:
            return gone
        rest = np.setdiff1d(np.arange(support.size), gone)
        some = rest[context.rng.subset(rest.size, min(rest.size, _CHOICES * missing))]
        return np.concatenate([gone, some[np.argsort(costs.rise[some], kind="stable")[:missing]]])

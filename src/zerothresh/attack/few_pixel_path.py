"""The search of an attack for several k at once: each k goes on from what smaller ones have found."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.few_pixel import FewPixel, moves_for
from zerothresh.attack.swap_search import SwapSearch
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context

Array = NDArray[np.float64]

_TURNS = 4  # per k, among which the calls that are left after the first turn of each k are divided


@dataclass(frozen=True)
class FewPixelPath(Program):
    """`FewPixel` for several k, from the smallest to the largest.

    The first turns deal out the calls evenly. The search for a k begins at the point that the one before it has
    reached, whose values are known: the groups that are added are 0 at first. If a k ends with all components at 0, so
    do all larger ones, with the same point, and their calls are left to the others: these take turns, the largest
    first, because it is most likely to reach 0 as well.

    Arguments
    ---------
    ks: the values of k, in increasing order.
    search_of_k: FewPixel, the search for each of them.

    Attributes
    ----------
    points: the point that each k has reached, which is filled in while the search goes on.
    """

    ks: tuple[int, ...]
    search_of_k: FewPixel
    points: dict[int, Array] = field(default_factory=dict, init=False, compare=False, repr=False)

    def search(self, context: Context) -> Asks:
        self.points.clear()
        context.random = True  # the iterate is the result, even if F itself was lower once
        until, searches = 0.0, list[SwapSearch]()

        def left() -> float:
            return min(context.left, until - context.used)

        def go_on(k: int, search: SwapSearch) -> Asks:
            context.stage(f"k = {k}")
            while not search.ended and search.price <= left():
                yield from search.round()
                self.points[k] = search.theta
                context.move(search.theta, search.fun)

        total = context.left
        for place, k in enumerate(self.ks):
            until = context.used + (total - context.used) // (len(self.ks) - place)
            moves = moves_for(context, self.search_of_k.grid, k, mixed=self.search_of_k.mixed)
            search = SwapSearch(moves, self.search_of_k.rules, context, left)
            context.stage(f"k = {k}")
            if searches:
                yield from search.begin_with(searches[-1])
            else:
                yield from search.begin()
            self.points[k] = search.theta
            context.move(search.theta, search.fun)
            yield from go_on(k, search)
            searches.append(search)
            if search.ended:
                break
        spare = max(1.0, (total - context.used) // (_TURNS * len(searches)))
        before = -1
        while context.used > before:
            before = context.used
            for k, search in reversed(list(zip(self.ks, searches, strict=False))):
                until = context.used + max(spare, search.price)
                yield from go_on(k, search)

"""Where a search by long steps goes when it is stuck: to its best point, with a part of it replaced at random."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.long_moves import LongMoves


def kicked(moves: LongMoves, best: Array) -> Array:
    """Return the best point with some coordinates of its support replaced: one of them, or up to all."""
    rng, context = moves.context.rng, moves.context
    support = np.flatnonzero(best)
    droppable = support[~moves.kept[support]]
    outside = moves.free[best[moves.free] == 0]
    point = best.copy()
    if moves.dense:
        new = moves.free[rng.subset(moves.free.size, int(moves.free.size ** float(rng.uniform()[0])))]
        point[new] = np.where(rng.uniform(new.size) < 0.5, moves.high[new], moves.low[new])
    elif droppable.size:
        size = int(droppable.size ** float(rng.uniform()[0]))
        point[droppable[rng.subset(droppable.size, size)]] = 0.0
    room = context.k - int(np.count_nonzero((point != 0) | moves.kept))
    if outside.size and room and not moves.dense:
        new = outside[rng.subset(outside.size, min(room, outside.size))]
        new = new[: max(1, support.size - np.count_nonzero(point))]
        up = (rng.uniform(new.size) < 0.5) & (moves.high[new] > 0) | (moves.low[new] == 0)
        point[new] = np.where(up, moves.high[new], moves.low[new])
    return point

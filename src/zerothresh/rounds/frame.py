"""What all requests of one round share: the estimator, the direction blocks and the bounds."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.bounds import Box
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.workspace import Workspace
from zerothresh.sampling.directions import Block, draw
from zerothresh.sampling.philox import DIRECTIONS, TAG_LIMIT

BLOCKS_OF_A_ROUND = 4  # that are kept while the round is open: with independent directions there may be n of them


class Frame:
    """One round's estimator, bounds and direction blocks, which are functions of (key, round, tag).

    Arguments
    ---------
    estimator: Estimator, with what the method sets for this round.
    d: int, the dimension.
    key, round: int, from which the directions are drawn.
    box: Box or None, the bounds that all points keep.
    workspace: Workspace of the run; None: one for this round alone.
    """

    __slots__ = ("_blocks", "box", "d", "estimator", "key", "last_estimate", "round", "workspace")

    def __init__(
        self, estimator: Estimator, d: int, *, key: int, round: int, box: Box | None, workspace: Workspace | None
    ) -> None:
        self.estimator, self.d, self.key, self.round, self.box = estimator, d, key, round, box
        self.workspace = Workspace() if workspace is None else workspace
        self._blocks: dict[int, Block] = {}
        self.last_estimate: tuple[int, int, Array] | None = None  # (point, tag) of an estimate, and its points

    def block(self, tag: int) -> Block:
        """Return a direction block of this round; it is kept while the round is open."""
        block = self._blocks.get(tag)
        if block is None:
            if len(self._blocks) >= BLOCKS_OF_A_ROUND:
                self._blocks.clear()
            block = self._blocks[tag] = self._draw(self.round, tag)
        return block

    def _draw(self, round: int, tag: int) -> Block:
        if tag >= TAG_LIMIT:
            raise ValueError(f"a round can have at most {TAG_LIMIT} direction blocks, and this one needs more")
        e = self.estimator
        size = e.support_size(self.d)
        return draw(e.directions, e.q, self.d, size, key=self.key, round=round, tag=(DIRECTIONS << 24) + tag)

    def recall(self, round: int, tag: int) -> Block:
        """Return a direction block of an earlier round: from the run's cache, or drawn again."""
        block = self.workspace.blocks.get((self.estimator, self.d, round, tag))
        return self._draw(round, tag) if block is None else block

    def keep(self, tag: int) -> None:
        """Keep a block of this round in the run's cache, if it is at hand."""
        block = self._blocks.get(tag)
        if block is not None:
            self.workspace.blocks.put((self.estimator, self.d, self.round, tag), block)

    def inside(self, points: Array) -> Array:
        """Return the nearest points within the bounds."""
        return points if self.box is None else np.clip(points, self.box.low, self.box.high)

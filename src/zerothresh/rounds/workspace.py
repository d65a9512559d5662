"""Memory that a run uses again from round to round: large arrays of points, and blocks of directions."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.sampling.directions import Block

LARGE = 1 << 17  # numbers in an array from which its memory is worth keeping: below it, allocation is cheap
SPARE = 2  # arrays that are kept: the points of one round while those of the round before are still held
BLOCK_BYTES = 1 << 26  # 64 MiB for blocks of directions, which can be drawn again if they do not fit
BLOCK_SHARE = 16  # a block larger than this part of the room would drive out all others


class PointPool:
    """Memory for large arrays of points, used again once nobody holds the array any more.

    Fresh memory costs more than filling it, because the operating system has to hand out every page. An
    array that the pool lends keeps its memory until the array and all views of it are gone; only then does
    the memory come back, so a user may keep the points of a batch as long as they like.
    """

    def __init__(self) -> None:
        self._spare: deque[Array] = deque(maxlen=SPARE)  # its append and pop are safe in any thread

    def empty(self, rows: int, d: int) -> Array:
        """Return an uninitialised array of shape (rows, d)."""
        size = rows * d
        if size < LARGE:
            return np.empty((rows, d))
        memory = self._spare_of(size)
        if memory is None:
            memory = np.empty(size)
        # The base of this array is a memoryview, so every view of it holds the array itself, not the memory.
        lent = np.frombuffer(memory.data, dtype=np.float64)
        weakref.finalize(lent, self._spare.append, memory).atexit = False
        return lent.reshape(rows, d)

    def _spare_of(self, size: int) -> Array | None:
        """Return spare memory of this size, and forget that of other sizes."""
        try:
            while (memory := self._spare.pop()).size != size:
                pass
        except IndexError:
            return None
        return memory


class BlockCache:
    """The blocks of directions that a memory used last, as many as fit into `BLOCK_BYTES`."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[Any, Block] = OrderedDict()
        self._bytes = 0

    def get(self, name: Any) -> Block | None:
        """Return a block if it is still here."""
        block = self._blocks.get(name)
        if block is not None:
            self._blocks.move_to_end(name)
        return block

    def put(self, name: Any, block: Block) -> None:
        """Keep a block, and drop those that have not been used for longest."""
        if name in self._blocks or block.nbytes > BLOCK_BYTES // BLOCK_SHARE:
            return
        self._blocks[name] = block
        self._bytes += block.nbytes
        while self._bytes > BLOCK_BYTES:
            _, oldest = self._blocks.popitem(last=False)
            self._bytes -= oldest.nbytes


@dataclass(frozen=True, eq=False)
class Workspace:
    """What one run keeps between its rounds to be fast; nothing in it changes a result."""

    points: PointPool = field(default_factory=PointPool)
    blocks: BlockCache = field(default_factory=BlockCache)

"""Values that are asked for before they are needed, because workers are idle.

Where several calls take no longer than one, a round has room for what the program will probably ask for next. A program
says what that is (`Context.foresee`), the next round takes it along, and when the program asks for one of these points,
its value is there already. So the program decides as it always does, but in fewer rounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from zerothresh.basics.arrays import Array, Indices

Key = tuple[bytes, int]  # the digest of a point, and a component


class Foresight:
    """What will probably be asked for next, and the values of what was foreseen before.

    A value is used once: a point that is asked for twice gets two calls, because its values may be random.
    """

    def __init__(self) -> None:
        self._wanted: list[tuple[Array, Indices]] = []
        self._known: dict[Key, list[float]] = {}

    def want(self, points: Sequence[Array], of: Indices) -> None:
        """Foresee that some components will be asked for at points; those that come first matter most."""
        self._wanted += [(point, of) for point in points]

    def extra(self, room: int) -> tuple[Array, Indices] | None:
        """Return what fits into the rest of a round, as rows of points and their components; None if there is nothing.

        What does not fit is forgotten: after the next answers, something else may be likelier.
        """
        points, components = list[Array](), list[Indices]()
        seen = set[Key]()
        for point, of in self._wanted:
            keys = [(_digest(point), int(i)) for i in of]
            if of.size > room or not of.size or not np.isfinite(point).all():
                continue
            if all(key in seen or self._known.get(key) for key in keys):
                continue
            points += [point] * of.size
            components.append(of)
            seen.update(keys)
            room -= of.size
        self._wanted = []
        return (np.array(points), np.concatenate(components)) if points else None

    def keep(self, points: Array, of: Indices, values: Array) -> None:
        """Keep values that have come: of component ``of[r]`` at row r of ``points``."""
        for point, i, value in zip(points, of.tolist(), values.tolist(), strict=True):
            self._known.setdefault((_digest(point), i), []).append(value)

    def take(self, point: Array, of: Indices) -> Array | None:
        """Return the values of some components at a point if all of them are known, and None otherwise."""
        if not self._known:
            return None
        name = _digest(point)
        held = [self._known.get((name, i)) for i in of.tolist()]
        if not all(held):
            return None
        return np.array([self._known[name, i].pop(0) for i in of.tolist()])


def _digest(point: Array) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(point).tobytes(), digest_size=16).digest()

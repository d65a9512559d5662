"""The groups of coordinates that a bisection of hybrids divides."""

from __future__ import annotations

from zerothresh.basics.arrays import Indices

Chosen = frozenset[int]  # the groups that a hybrid takes from b


class Group:
    """Coordinates of which at least one is active."""

    def __init__(self, members: Indices) -> None:
        self.members = members
        self.undivided = 0  # halvings that found all active ones on one side
        self.weak = False  # whether it changes F so little that it is left as it is


def subsets(names: list[int]) -> list[Chosen]:
    """Return all subsets: those of one name less, each without and with the last one."""
    subsets: list[Chosen] = [frozenset()]
    for name in names:
        subsets += [part | {name} for part in subsets]
    return subsets

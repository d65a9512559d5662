"""Bisection of hybrids: which coordinates does F depend on?

A hybrid of two points a and b has some coordinates from b and the others from a. If F(a) and F(b) differ, some
coordinate in which a and b differ is active, and the value of a hybrid tells on which side of a split it is. One
active coordinate of d costs log2(d) calls in this way. Several cost less than that each: if the values of all hybrids
of m groups with one active coordinate each are known, one call halves all m groups, because its value equals one of
the 2^m known ones.

References: Hellsten et al., *High-dimensional Bayesian optimization with group testing*, arXiv 2504.06111;
Mossel, O'Donnell and Servedio, *Learning juntas*, STOC 2003.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import combinations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.value_comparison import ValueComparison
from zerothresh.methods.auto.moves.hybrid_groups import Chosen, Group, subsets
from zerothresh.methods.auto.settings.active_subset_settings import ACTIVE_SUBSET as SET
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class TooManyActive(Exception):
    """More coordinates matter than the bisection can pay for."""


class Bisection:
    """The bisection of one pair of points.

    Arguments
    ---------
    context: the run.
    comparison: tells differences from noise.
    components: the components of which values are taken.
    a, b: arrays of shape (d,), the pair.
    values: the values of the two, each of shape (components,).
    candidates: the coordinates to be divided, in random order; a and b differ in no other ones.
    share: float, the share of the spread that a visible difference must exceed.
    limit: int, the number of active groups from which on the search is given up.

    Attributes
    ----------
    asked, answers: the hybrids that were asked for, as masks of what they take from b, and their values.
    """

    def __init__(
        self,
        context: Context,
        comparison: ValueComparison,
        components: Indices,
        a: Array,
        b: Array,
        values: tuple[Array, Array],
        candidates: Indices,
        share: float,
        limit: int,
    ) -> None:
        self.context, self.comparison, self.components = context, comparison, components
        self.a, self.b, self.share, self.limit = a, b, share, limit
        self.groups = {0: Group(candidates)}  # in the order in which the path from a to b takes them
        self.known: dict[Chosen, tuple[Array, int]] = {frozenset(): (values[0], 1), frozenset([0]): (values[1], 1)}
        self.names = 1  # of groups, so far
        self.misses = 0  # attempts to halve several groups at once that failed
        self.asked = [np.zeros(a.size, bool), self._mask(candidates)]
        self.answers = [values[0], values[1]]

    def search(self, calls: float) -> Generator[Probes, Answers, dict[int, float]]:
        """Divide the groups until each has one coordinate; return these with their effects, in units of the noise.

        It stops after ``calls`` calls with what it has found until then.
        """
        end = self.context.used + calls
        while self._divisible():
            if self.context.used + self.components.size > min(end, self.context.used + self.context.left):
                break
            yield from self._halve(self._batch())
            if sum(not group.weak for group in self.groups.values()) > self.limit:
                raise TooManyActive
        if self.comparison.random:
            yield from self._verify()
            yield from self._confirm()
        return self._found()

    def _divisible(self) -> list[int]:
        """Return the groups that have an active coordinate of visible effect, and other coordinates."""
        return [name for name, group in self.groups.items() if group.members.size > 1 and not group.weak]

    def _mask(self, members: Indices) -> Array:
        mask = np.zeros(self.a.size, bool)
        mask[members] = True
        return mask

    def _ask(self, sets: list[Indices]) -> Generator[Probes, Answers, Array]:
        """Return the values of hybrids that take these coordinates from b: (hybrids, components)."""
        masks = [self._mask(members) for members in sets]
        points = [np.where(mask, self.b, self.a) for mask in masks]
        values = yield from self.context.values(points, self.components)
        for mask, value in zip(masks, values, strict=True):
            self.comparison.see(value)
            self.asked.append(mask)
            self.answers.append(value)
        return values

    def _members(self, chosen: Chosen) -> Indices:
        return np.concatenate([self.groups[name].members for name in chosen] or [np.empty(0, np.int64)])

    def _batch(self) -> list[int]:
        """Choose the groups that the next call halves: one that may have several active coordinates, or several."""
        large = self._divisible()
        mixed = [name for name in large if self.groups[name].undivided < SET.alone_halvings]
        if mixed or self.misses >= SET.joint_misses:
            return [max(mixed or large, key=lambda name: self.groups[name].members.size)]
        large = sorted(large, key=lambda name: -self.groups[name].members.size)[: SET.joint_choice]
        order = {name: place for place, name in enumerate(self.groups)}
        batches = [
            sorted(batch, key=order.__getitem__)
            for m in range(1, SET.most_joint + 1)
            for batch in combinations(large, m)
        ]
        return min(batches, key=self._calls_per_bit)

    def _calls_per_bit(self, batch: list[int]) -> float:
        """Return what a batch costs: the hybrids that are not known yet, and one call per halving."""
        prefix = self._before(batch[0])
        unknown = sum(prefix | part not in self.known for part in subsets(batch))
        bits = [math.log2(self.groups[name].members.size) for name in batch]
        return (unknown + math.ceil(max(bits))) / sum(bits)

    def _before(self, name: int) -> Chosen:
        """Return the groups that the path from a to b takes before this one."""
        names = list(self.groups)
        return frozenset(names[: names.index(name)])

    def _halve(self, batch: list[int]) -> Generator[Probes, Answers, None]:
        """Halve each group of the batch with one call, if its value is one of those of the batch's hybrids."""
        prefix = self._before(batch[0])
        parts = subsets(batch)
        unknown = [part for part in parts if prefix | part not in self.known]
        if unknown:
            values = yield from self._ask([self._members(prefix | part) for part in unknown])
            for part, value in zip(unknown, values, strict=True):
                self.known[prefix | part] = value, 1
        if len(batch) > 1 and not self._separated([self.known[prefix | part][0] for part in parts]):
            self.misses = SET.joint_misses
            for name in batch:
                yield from self._halve([name])
            return
        halves = {name: np.array_split(self.groups[name].members, 2) for name in batch}
        asked = np.concatenate([self._members(prefix), *(halves[name][0] for name in batch)])
        value = (yield from self._ask([asked]))[0]
        exact = [self.comparison.distance(value, self.known[prefix | part][0], 0.0) for part in parts]
        nearest = int(np.argmin(exact))
        if exact[nearest] <= 1:
            self._average(prefix | parts[nearest], value)
            for name in batch:
                self.groups[name].members = halves[name][0 if name in parts[nearest] else 1]
                self.groups[name].undivided += 1
        elif len(batch) == 1:
            self._divide(batch[0], halves[batch[0]][0], halves[batch[0]][1], value)
        else:  # some group has active coordinates in both halves, or weak ones
            self.misses += 1
            for name in batch:
                if self.groups[name].members.size > 1:
                    yield from self._halve([name])

    def _separated(self, values: list[Array]) -> bool:
        """Whether values can be told apart even if noise moves two of them towards each other."""
        return all(self.comparison.distance(u, v, 0.0) > 2 for u, v in combinations(values, 2))

    def _average(self, chosen: Chosen, value: Array) -> None:
        mean, count = self.known[chosen]
        self.known[chosen] = (mean * count + value) / (count + 1), count + 1

    def _divide(self, name: int, first: Indices, second: Indices, value: Array) -> None:
        """Make two groups of one."""
        one, two = self.names, self.names + 1
        self.names += 2
        prefix, old = self._before(name), self.groups
        ends = [self.known[prefix][0], value, self.known[prefix | {name}][0]]
        parts = Group(first), Group(second)
        for part, ahead, behind in zip(parts, ends, ends[1:], strict=False):
            part.weak = self.comparison.distance(ahead, behind, self.share) <= 1
        if parts[0].weak != parts[1].weak:  # as if the weak half had changed nothing
            parts[int(parts[0].weak)].undivided = old[name].undivided + 1
        self.groups = {}
        for other, group in old.items():
            if other == name:
                self.groups[one], self.groups[two] = parts
            else:
                self.groups[other] = group
        self.known = {(key - {name}) | {one, two} if name in key else key: v for key, v in self.known.items()}
        self.known[prefix | {one}] = value, 1

    def _verify(self) -> Generator[Probes, Answers, None]:
        """Ask whether what is left of all groups changes F as they did; if not, drop what changes nothing.

        A value that was taken for that of another hybrid leaves a group without its active coordinate.
        """
        names = list(self.groups)
        if self.context.left < (len(names) + 1) * self.components.size:
            return
        whole = yield from self._ask([self._members(frozenset(names))])
        if self.comparison.distance(whole[0], self.known[frozenset(names)][0], 0.0) <= 1:
            return
        prefixes = [self._before(name) for name in names]
        path = [*(yield from self._ask([self._members(prefix) for prefix in prefixes])), whole[0]]
        self.known |= {prefix: (value, 1) for prefix, value in zip([*prefixes, frozenset(names)], path, strict=True)}
        for name, off, on in zip(names, path, path[1:], strict=False):
            if self.comparison.distance(off, on, 0.0) <= 1:
                self._drop(name)

    def _confirm(self) -> Generator[Probes, Answers, None]:
        """Ask again for the effect of each single coordinate, and drop those that were noise."""
        for name in [name for name, group in self.groups.items() if group.members.size == 1 and not group.weak]:
            without = self._before(name)
            if self._effect(name) > SET.beyond_doubt:
                continue
            sets = [self._members(without), self._members(without | {name})]
            if self.context.left < 2 * SET.confirmations * self.components.size:
                return
            values = yield from self._ask(sets * SET.confirmations)
            off, on = values[0::2].mean(axis=0), values[1::2].mean(axis=0)
            if self.comparison.distance(off, on, 0.0, SET.confirmations) <= 1:
                self._drop(name)

    def _drop(self, name: int) -> None:
        del self.groups[name]
        self.known = {key - {name}: value for key, value in self.known.items()}

    def _effect(self, name: int) -> float:
        """Return how much a group changes F on the path from a to b, in units of what can be seen."""
        before = self._before(name)
        on, off = self.known.get(before | {name}), self.known.get(before)
        return 0.0 if on is None or off is None else self.comparison.distance(on[0], off[0], 0.0)

    def _found(self) -> dict[int, float]:
        """Return the single coordinates, and their effects."""
        return {
            int(group.members[0]): self._effect(name)
            for name, group in self.groups.items()
            if group.members.size == 1 and not group.weak
        }

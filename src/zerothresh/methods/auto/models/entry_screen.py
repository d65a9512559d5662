"""Which coordinates have a slope of F, from single entries of the components' rows; what to ask next.

An entry is the slope of one component along one coordinate, and costs one call. With it, the score of a coordinate,

    t_j = sum_i r_i g_ij / sqrt(sum_i (r_i g_ij)^2),

is known a little better; r_i = l_i' at the present point, and 1 at the start. Whether coordinate j has a slope is a
question of two hypotheses: none, or one that just stands out among d coordinates once all components are known, in
either direction. Coordinates are asked in the order of these odds, so that those without a slope are asked less and
less (Malloy and Nowak, *Sequential testing for sparse recovery*, IEEE Trans. Inf. Theory 2014). Components are asked
in the order of the size of their gradients at the present point. What the model explains already has small gradients
and says little: once a few coordinates are in the model, a component tells several times as much as at the start.
"""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.single_index_settings import PARTIAL_ROWS as SETTINGS


class EntryScreen:
    """The entries known so far, and the odds of all coordinates.

    Arguments
    ---------
    n, d: int, the numbers of components and of coordinates.
    size: array of shape (n,), first estimates of the root mean square of a row's entries.
    """

    def __init__(self, n: int, d: int, size: Array) -> None:
        self.n, self.d = n, d
        self.known = np.zeros((n, d), bool)
        self._rows, self._columns, self._entries = list[Indices](), list[Indices](), list[Array]()
        self._first_size = size
        self.ratio = np.ones(n)  # l_i' at the present point, over that at the start
        self.reweigh(self.ratio)

    @property
    def stands_out(self) -> float:
        """The score that the largest of d coordinates without a slope has by chance."""
        return math.sqrt(2 * math.log(max(self.d, 2)))

    def add(self, rows: Indices, columns: Indices, entries: Array) -> None:
        """Add entries that were not known before; shapes (m,)."""
        self.known[rows, columns] = True
        self._rows.append(rows)
        self._columns.append(columns)
        self._entries.append(entries)
        self._sum(rows, columns, entries)

    def _sum(self, rows: Indices, columns: Indices, entries: Array) -> None:
        terms = self.ratio[rows] * entries
        self._sums += np.bincount(columns, terms, self.d)
        self._squares += np.bincount(columns, terms * terms, self.d)
        self._seen += np.bincount(columns, self._worth[rows], self.d)

    def reweigh(self, ratio: Array) -> None:
        """Let the present point be one where the slopes of components have changed by these factors, shape (n,)."""
        self.ratio = ratio
        squares, counts = np.square(self._first_size), np.ones(self.n)
        for rows, entries in zip(self._rows, self._entries, strict=True):
            squares = squares + np.bincount(rows, entries * entries, self.n)
            counts = counts + np.bincount(rows, minlength=self.n)
        self._worth = np.square(ratio) * squares / counts  # the square of the components' gradients, per coordinate
        self.order = np.argsort(-self._worth, kind="stable")  # of components: the largest gradient first
        self._sums, self._squares, self._seen = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d)
        for rows, columns, entries in zip(self._rows, self._columns, self._entries, strict=True):
            self._sum(rows, columns, entries)

    def log_odds(self) -> Array:
        """Return by how much what was seen speaks for a slope of each coordinate, shape (d,)."""
        total = float(self._worth.sum())
        effect = self.stands_out / math.sqrt(max(total, TINY))
        some = self._seen > 0
        usual = float(np.median(self._squares[some] / self._seen[some])) if some.any() else 1.0
        prior = SETTINGS.prior_entries * total / self.n
        scale = (self._squares + prior * usual) / (self._seen + prior)
        x = effect * self._sums / np.sqrt(np.maximum(scale, TINY))
        return np.asarray(np.logaddexp(x, -x) - math.log(2) - 0.5 * effect**2 * self._seen)

    def scores(self) -> Array:
        """Return the sizes of the scores, shape (d,): standard normal without a slope, if all entries are known."""
        return np.asarray(np.abs(self._sums) / np.sqrt(np.maximum(self._squares, TINY)))

    def missing(self, columns: Indices) -> Indices:
        """Return the first component that each coordinate has not been asked on; all of them must have one."""
        unknown = ~self.known[np.ix_(self.order, columns)]
        return np.asarray(self.order[unknown.argmax(axis=0)])

    def complete(self) -> Indices:
        """Return the coordinates whose entries are all known."""
        return np.flatnonzero(self.known.all(axis=0))

    def columns(self, chosen: Indices) -> Array:
        """Return all entries of complete coordinates, (n, coordinates)."""
        out = np.zeros((self.n, chosen.size))
        place = np.full(self.d, -1)
        place[chosen] = np.arange(chosen.size)
        for rows, columns, entries in zip(self._rows, self._columns, self._entries, strict=True):
            here = place[columns] >= 0
            out[rows[here], place[columns[here]]] = entries[here]
        return out


def shrunk_sizes(slopes: Array) -> Array:
    """Return the root mean squares of columns, drawn together as far as chance alone makes them differ.

    Arguments
    ---------
    slopes: array of shape (m, n), normal with a standard deviation of its own in each column.

    The mean of m squares of a normal number has a relative variance of 2 / m (James and Stein's estimate, by moments).
    The largest of many estimates would otherwise be mistaken for the largest component.

    >>> shrunk_sizes(np.array([[1.0, -2.0, 1.5], [-1.5, 1.0, 1.0]])).round(3)
    array([1.384, 1.384, 1.384])
    """
    squares = np.square(slopes).mean(axis=0)
    usual, chance = float(squares.mean()), 2 / len(slopes) * float(np.square(squares).mean()) / (1 + 2 / len(slopes))
    spread = float(squares.var())
    real = max(1 - chance / spread, 0.0) if spread > 0 else 0.0
    return np.asarray(np.sqrt(usual + real * (squares - usual)))

r"""The nearest point with at most k non-zeros whose sum is given, each of them within limits.

On a fixed support the projection is a continuous quadratic knapsack: ``x_j = clip(v_j - tau, low_j, high_j)``, where
tau makes the sum right. The support is found by branch and bound: for a given tau the problem falls apart into
coordinates, so that the k largest gains are the best support, and the best tau gives a bound for all supports
(Lagrange). Where the limits are the same for all coordinates and not negative, the largest entries are the support,
and only their number is searched for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.feasible_set import Places

MOST_NODES = 256  # of the search over supports, beyond which the best one so far is taken
SMALL = 12  # places up to which the search always ends: no more than 2^13 nodes
_ALL_AT_ONCE = 64  # coordinates up to which the sums at all breakpoints are computed in one array
_BISECTIONS = 100  # halvings of an interval of multipliers; it ends once its ends are neighbours
_CLOSE = 1e-12  # relative to the squared distances: bounds this close are equal


def nearest_with_total(v: Array, low: Array, high: Array, totals: tuple[float, float]) -> Array | None:
    """Return the point nearest to v within limits whose sum is within the totals; None if there is none.

    Arguments
    ---------
    v, low, high: float64 arrays (m,).
    totals: the least and the largest sum.
    """
    least, most = totals
    x = np.minimum(np.maximum(v, low), high)
    total = float(x.sum())
    if least <= total <= most:
        return x
    goal = most if total > most else least
    edge = float((low if total > most else high).sum())
    slack = 1e-12 * max(abs(goal), float(np.abs(x).sum()))
    if (goal < edge - slack) if total > most else (goal > edge + slack):
        return None
    if (goal <= edge) if total > most else (goal >= edge):
        return low.copy() if total > most else high.copy()
    breaks = np.concatenate([v - low, v - high])
    breaks = np.sort(breaks[np.isfinite(breaks)])
    left, right = -1, breaks.size  # the sum at breaks[left] is above the goal, that at breaks[right] is not
    if v.size <= _ALL_AT_ONCE:
        sums = np.minimum(np.maximum(v - breaks[:, None], low), high).sum(axis=1)
        right = int(np.argmin(sums > goal)) if sums.size and sums[-1] <= goal else breaks.size
        left = right - 1
    while right - left > 1:
        middle = (left + right) // 2
        if float(np.minimum(np.maximum(v - breaks[middle], low), high).sum()) > goal:
            left = middle
        else:
            right = middle
    if left >= 0 and right < breaks.size:
        inside = 0.5 * (breaks[left] + breaks[right])
    else:
        inside = breaks[0] - 1.0 if left < 0 and breaks.size else breaks[-1] + 1.0 if breaks.size else 0.0
    moved = v - inside
    between = (moved > low) & (moved < high)
    if not between.any():
        x = np.minimum(np.maximum(v - (breaks[right] if right < breaks.size else breaks[left]), low), high)
        return _with_sum(x, low, high, goal)
    fixed = float(np.where(moved <= low, low, high)[~between].sum())
    tau = (float(v[between].sum()) + fixed - goal) / int(between.sum())
    return _with_sum(np.minimum(np.maximum(v - tau, low), high), low, high, goal)


def _with_sum(x: Array, low: Array, high: Array, goal: float) -> Array:
    """Give what rounding has taken off the sum to coordinates that have room for it."""
    for _ in range(3):
        lack = goal - float(x.sum())
        if lack == 0.0:
            break
        room = (high - x) if lack > 0 else (x - low)
        j = int(np.argmax(room))
        x[j] = min(max(x[j] + lack, low[j]), high[j])
    return x


class Knapsack:
    """The search for the support of the nearest point.

    Arguments
    ---------
    places: the places of the support.
    low, high: float64 arrays (d,), what a coordinate has once it is chosen.
    totals: the least and the largest sum.
    """

    def __init__(self, places: Places, low: Array, high: Array, totals: tuple[float, float]) -> None:
        self.places, self.low, self.high, self.totals = places, low, high, totals
        same = bool((low == low[0]).all() and (high == high[0]).all())
        self.ordered = places.single and not places.forced.size and same and bool(low[0] >= 0)
        self.most_nodes = 2 ** (places.count + 2) if places.count <= SMALL else MOST_NODES

    def project(self, v: Array) -> Array | None:
        """Return the nearest point, (d,); None if no point has the sum."""
        if self.ordered:
            return self._best(v, self._leading(np.argsort(-v, kind="stable")[: self.places.k]))
        return self._search(v)

    def _leading(self, order: Indices) -> Iterator[Indices]:
        """Yield the supports that consist of the first places of an order; all, if 0 is within the limits."""
        first = order.size if self.low[order[0]] == 0.0 else 0
        yield from (order[:m] for m in range(first, order.size + 1))

    def _on(self, v: Array, units: Indices) -> Array | None:
        support = self.places.members(units)
        x = nearest_with_total(v[support], self.low[support], self.high[support], self.totals)
        if x is None:
            return None
        out = np.zeros(v.size)
        out[support] = x
        return out

    def _best(self, v: Array, supports: Iterator[Indices]) -> Array | None:
        best, nearest = None, np.inf
        for units in supports:
            x = self._on(v, units)
            if x is not None:
                distance = float(np.square(x - v).sum())
                if best is None or distance < nearest:
                    best, nearest = x, distance
        return best

    def _search(self, v: Array) -> Array | None:
        """Branch and bound over supports, the most promising ones first."""
        scale = float(np.square(v).sum()) + max((t * t for t in self.totals if np.isfinite(t)), default=0.0)
        close = _CLOSE * scale
        best: Array | None = None
        nearest = np.inf
        free = np.zeros(self.places.count, np.int8)  # 1: always chosen, -1: never, 0: free
        free[self.places.forced] = 1
        queue: list[tuple[float, int, np.ndarray]] = [(-np.inf, 0, free)]
        made = 0
        while queue and made < self.most_nodes:
            bound, _, state = heapq.heappop(queue)
            if bound >= nearest - close:
                break
            bound, units, candidates = self._bound(v, state)
            for chosen in candidates:
                x = self._on(v, chosen)
                distance = np.inf if x is None else float(np.square(x - v).sum())
                if distance < nearest:
                    best, nearest = x, distance
            if bound >= nearest - close or not units.size:
                continue
            for side in (1, -1):
                child = state.copy()
                child[units[0]] = side
                if int((child == 1).sum()) <= self.places.k:
                    made += 1
                    heapq.heappush(queue, (bound, made, child))
        return best

    def _bound(self, v: Array, state: np.ndarray) -> tuple[float, Indices, list[Indices]]:
        """Return a bound of the squared distance, the free places (the most doubtful first), and supports to try."""
        forced, free = np.flatnonzero(state == 1), np.flatnonzero(state == 0)
        room = self.places.k - forced.size
        if not room or not free.size:
            x = self._on(v, forced)
            bound = np.inf if x is None else float(np.square(x - v).sum())
            return bound, np.empty(0, np.int64), [forced]
        least, most = self.totals
        value, total, order, gains = self._relaxed(v, 0.0, forced, free, room)
        left = right = 0.0
        if least <= total <= most:
            candidates = self._prefixes(forced, order, gains, room)
            return value, order[:1], candidates
        above = total > most
        goal = most if above else least
        step = max(float(np.abs(v).max(initial=0.0)), abs(goal), 1e-300)
        bound = value
        ends = {0.0: (order, gains)}
        for _ in range(200):  # until the sum is on the other side of the goal
            right = step if above else -step
            value, total, order, gains = self._relaxed(v, right, forced, free, room)
            bound = max(bound, value - 2 * right * goal)
            ends[right] = (order, gains)
            if (total <= goal) if above else (total >= goal):
                break
            left, step = right, 4 * step
            if step > 1e250:  # no choice of the free places reaches the goal
                return np.inf, np.empty(0, np.int64), []
        for _ in range(_BISECTIONS):
            middle = 0.5 * (left + right)
            if middle in (left, right):
                break
            value, total, order, gains = self._relaxed(v, middle, forced, free, room)
            bound = max(bound, value - 2 * middle * goal)
            ends = {t: e for t, e in ends.items() if t in (left, right)} | {middle: (order, gains)}
            if total == goal:
                left = right = middle
                break
            if (total > goal) == above:
                left = middle
            else:
                right = middle
        candidates = []
        for tau in {left, right}:
            if tau in ends:
                candidates += self._prefixes(forced, *ends[tau], room)
        order, gains = ends.get(right, ends.get(left, (order, gains)))
        threshold = max(float(gains[order[room - 1]]) if order.size >= room else 0.0, 0.0)
        doubtful = order[np.argsort(np.abs(gains[order] - threshold), kind="stable")]
        return bound, doubtful, candidates

    def _prefixes(self, forced: Indices, order: Indices, gains: Array, room: int) -> list[Indices]:
        """Return supports of the forced places and the first of the order, of every size."""
        return [np.concatenate([forced, order[:m]]) for m in range(min(room, order.size), -1, -1)]

    def _relaxed(
        self, v: Array, tau: float, forced: Indices, free: Indices, room: int
    ) -> tuple[float, float, Indices, Array]:
        """Minimise the squared distance plus 2 tau times the sum: its value, the sum, the order and the gains."""
        x = np.minimum(np.maximum(v - tau, self.low), self.high)
        with np.errstate(invalid="ignore", over="ignore"):
            gain: Array = x * (2.0 * (v - tau) - x)  # what choosing it takes off the value
        gain, totals = self.places.summed(gain), self.places.summed(x)
        order = free[np.argsort(-gain[free], kind="stable")]
        chosen = order[:room][gain[order[:room]] > 0]
        value = float(np.square(v).sum() - gain[forced].sum() - gain[chosen].sum())
        return value, float(totals[forced].sum() + totals[chosen].sum()), order, gain

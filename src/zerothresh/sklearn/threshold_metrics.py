"""Metrics of a binary classifier that are best at some threshold of its scores, which is found exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array, Indices


@dataclass(frozen=True, eq=False)
class Sweep:
    """What each threshold of some scores does: rows above it are predicted as positive.

    Attributes
    ----------
    thresholds: array (t,), in increasing order: below all scores, between neighbours, above all.
    gaps: array (t,), the distances between the scores on both sides.
    tp, fp: arrays (t,), the weights of the positive and negative rows above each.
    """

    thresholds: Array
    gaps: Array
    tp: Array
    fp: Array


def sweep(scores: Array, positive: Array, w: Array) -> Sweep:
    """Return what each threshold does.

    Arguments
    ---------
    scores: array (n,).
    positive: array (n,) of 0 and 1.
    w: array (n,), weights.
    """
    order: Indices = np.argsort(scores, kind="stable")
    s, pos, weight = scores[order], positive[order], w[order]
    last = np.append(np.flatnonzero(s[1:] > s[:-1]), s.size - 1)
    below_pos = np.append(0.0, np.cumsum(weight * pos)[last])
    below_neg = np.append(0.0, np.cumsum(weight * (1.0 - pos))[last])
    room = float(s[-1] - s[0]) or 1.0
    low, high = np.append(s[0] - room, s[last]), np.append(s[0], np.append(s[last[:-1] + 1], s[-1] + room))
    gaps = high - low
    return Sweep(low + 0.5 * gaps, gaps, below_pos[-1] - below_pos, below_neg[-1] - below_neg)


@dataclass(frozen=True, eq=False)
class ThresholdMetric:
    """One of the metrics, as a loss of scores at the best threshold.

    Attributes
    ----------
    kind: "auc", "f-beta", "balanced" or "cost".
    positive: array (n,) of 0 and 1.
    w: array (n,), weights.
    beta: float, of f-beta.
    cost: array (2, 2), the cost of each true (row) and predicted (column) class.
    free: bool, whether the threshold is free; otherwise it is 0.
    """

    kind: str
    positive: Array
    w: Array
    beta: float = 1.0
    cost: Array | None = None
    free: bool = True

    def value(self, scores: Array) -> float:
        """Return the loss at the best threshold."""
        swept = sweep(scores, self.positive, self.w)
        if self.kind == "auc":
            tp, fp = swept.tp, swept.fp
            return 1.0 - float(np.sum((fp[:-1] - fp[1:]) * 0.5 * (tp[:-1] + tp[1:])) / (tp[0] * fp[0]))
        losses = self._losses(swept)
        if self.free:
            return float(losses.min())
        return float(losses[int(np.searchsorted(np.unique(scores), 0.0, side="right"))])

    def threshold(self, scores: Array) -> float:
        """Return the best threshold: of those that are as good, one in the widest gap. For AUC, that of "balanced"."""
        swept = sweep(scores, self.positive, self.w)
        losses = self._losses(swept)
        best = np.flatnonzero(losses == losses.min())
        return float(swept.thresholds[best[np.argmax(swept.gaps[best])]])

    def _losses(self, swept: Sweep) -> Array:
        """Return the loss at each threshold."""
        tp, fp = swept.tp, swept.fp
        positives, negatives = tp[0], fp[0]
        if self.kind == "f-beta":
            square = self.beta**2
            return np.asarray(1.0 - (1.0 + square) * tp / (square * positives + tp + fp))
        if self.kind == "cost" and self.cost is not None:
            c = self.cost
            paid = c[1, 1] * tp + c[1, 0] * (positives - tp) + c[0, 1] * fp + c[0, 0] * (negatives - fp)
            return np.asarray(paid / (positives + negatives))
        return np.asarray(0.5 * ((positives - tp) / positives + fp / negatives))

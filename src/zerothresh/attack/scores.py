"""Scores of a classifier: what kind they are, and the loss that an attack makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.objective.forms import BadValue

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

KINDS = ("logits", "probabilities", "log-probabilities")
_LEAST = -1e4  # the logarithm of a probability that was rounded to 0


class BadScores(BadValue):
    """The classifier returned something that is no table of scores."""


def table(scores: Any, count: int, *, forgiving: bool = False) -> Array:
    """Scores as (images, classes), or `BadScores` with the reason; ``forgiving`` lets NaN pass, as whole rows."""
    array = np.asarray(scores)
    if array.dtype.kind not in "fiu":
        raise BadScores(f"the classifier returned {array.dtype} scores; it must return real numbers")
    if array.ndim != 2 or len(array) != count or array.shape[1] < 2:
        raise BadScores(
            f"the classifier returned shape {array.shape} for {count} images; it must return ({count}, classes), a "
            "row of at least two scores an image"
        )
    numbers = array.astype(np.float64)
    if np.isfinite(numbers).all():
        return numbers
    bad = np.isnan(numbers) | np.isposinf(numbers)
    if bad.any() and forgiving:
        numbers[bad.any(axis=1)] = np.nan
    elif bad.any():
        row, column = np.argwhere(bad)[0]
        raise BadScores(
            f"the classifier returned {numbers[row, column]} as the score of class {column} for image {row} of a batch"
        )
    return np.maximum(numbers, _LEAST)


def kind_of(scores: Array) -> str:
    """Which of the `KINDS` scores are, told by their sums.

    >>> kind_of(np.array([[0.25, 0.75]])), kind_of(np.log([[0.25, 0.75]])), kind_of(np.array([[1.0, 3.0]]))
    ('probabilities', 'log-probabilities', 'logits')
    """
    if scores.min() >= -1e-6 and np.allclose(scores.sum(axis=1), 1.0, atol=1e-3):
        return "probabilities"
    if scores.max() <= 1e-6 and np.allclose(np.exp(scores).sum(axis=1), 1.0, atol=1e-3):
        return "log-probabilities"
    return "logits"


def check_kind(scores: Array, declared: str) -> None:
    """Refuse scores that are not what they were said to be."""
    check.one_of("scores", declared, KINDS)
    found = kind_of(scores)
    if declared != "logits" and found != declared:
        raise BadScores(
            f"the scores were declared as {declared}, but a row of them is {np.round(scores[0], 3).tolist()}, "
            f"which are {found}: declare scores={found!r}"
        )


def log_probabilities(scores: Array, kind: str) -> Array:
    """Scores of any kind as log-probabilities."""
    if kind == "log-probabilities":
        return scores
    if kind == "probabilities":
        return np.asarray(np.log(np.maximum(scores, np.exp(-700.0))))
    top = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(top - np.log(np.exp(top).sum(axis=1, keepdims=True)))


def margin(scores: Array, labels: Labels) -> Array:
    r"""How far a class is ahead of all others, :math:`F_y - \max_{j \ne y} F_j`; below 0 if another one is ahead.

    >>> margin(np.array([[-1.0, -3.0], [-4.0, -0.5]]), np.array([0, 0]))
    array([ 2. , -3.5])
    """
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, labels] = -np.inf
    return np.asarray(scores[rows, labels] - others.max(axis=1))


def loss(scores: Array, labels: Labels, targets: Labels | None = None) -> Array:
    r"""The Carlini-Wagner loss of the paper, :math:`\max(F_y - \max_{j \ne y} F_j, 0)`; 0 once the image is fooled.

    With targets t it is :math:`\max(\max_{j \ne t} F_j - F_t, 0)`: 0 once the net says t.

    Of classes that are level, a net says the first, so that a tie may be no success. The loss is then not 0 but
    1e-9: models behind an interface often round, and a search that ends at 0 must not end there.
    """
    aims = labels if targets is None else targets
    ahead = margin(scores, aims)
    losses = np.maximum(ahead if targets is None else -ahead, 0.0)
    ties = np.flatnonzero(ahead == 0)
    if ties.size:
        said = scores[ties].argmax(axis=1)
        fooled = said != labels[ties] if targets is None else said == targets[ties]
        losses[ties[~fooled]] = 1e-9
    return losses

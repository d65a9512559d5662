"""Scores of a classifier: which kind they are, and the loss that an attack minimises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.objective.forms import BadValue

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

KINDS = ("logits", "probabilities", "log-probabilities")
_LOWEST_SCORE = -1e4  # stands for minus infinity, the logarithm of a probability that was rounded to 0
_LOSS_OF_A_TIE = 1e-9  # above 0, so that the search continues, and below every loss that matters


class BadScores(BadValue):
    """The classifier returned something other than one row of scores per image."""


def checked_scores(scores: Any, count: int, *, allow_nan: bool = False) -> Array:
    """Check what a classifier returned for ``count`` images.

    Returns the scores as float64 of shape (images, classes), or raises `BadScores` with the reason. With
    ``allow_nan``, NaN does not raise: the row of the image becomes NaN as a whole.
    """
    try:
        array = np.asarray(scores)
    except Exception as error:  # NumPy's own for rows of different lengths, and whatever a foreign object raises
        raise BadScores(f"the classifier returned something that is no array of scores: {error}") from None
    if array.dtype.kind not in "fiu":
        raise BadScores(f"the classifier returned {array.dtype} scores; it must return real numbers")
    if array.ndim != 2 or len(array) != count or array.shape[1] < 2:
        raise BadScores(
            f"the classifier returned shape {array.shape} for {count} images; it must return ({count}, classes), one "
            "row of at least two scores per image"
        )
    numbers = array.astype(np.float64)
    if np.isfinite(numbers).all():
        return numbers
    bad = np.isnan(numbers) | np.isposinf(numbers)
    if bad.any() and allow_nan:
        numbers[bad.any(axis=1)] = np.nan
    elif bad.any():
        row, column = np.argwhere(bad)[0]
        raise BadScores(
            f"the classifier returned {numbers[row, column]} as the score of class {column} for image {row} of a batch"
        )
    return np.maximum(numbers, _LOWEST_SCORE)


def kind_of(scores: Array) -> str:
    """Recognise which of the `KINDS` scores are, by the sums of their rows.

    >>> kind_of(np.array([[0.25, 0.75]])), kind_of(np.log([[0.25, 0.75]])), kind_of(np.array([[1.0, 3.0]]))
    ('probabilities', 'log-probabilities', 'logits')
    """
    if scores.min() >= -1e-6 and scores.max() < 2 and np.allclose(scores.sum(axis=1), 1.0, atol=1e-3):
        return "probabilities"
    if scores.max() <= 1e-6 and np.allclose(np.exp(scores).sum(axis=1), 1.0, atol=1e-3):
        return "log-probabilities"
    return "logits"


def check_kind(scores: Array, declared: str) -> None:
    """Raise `BadScores` if scores are not of the kind that was declared."""
    check.one_of("scores", declared, KINDS)
    found = kind_of(scores)
    if declared != "logits" and found != declared:
        raise BadScores(
            f"the scores were declared as {declared}, but a row of them is {[float(f'{x:.3g}') for x in scores[0]]}, "
            f"which are {found}: declare scores={found!r}"
        )


def log_probabilities(scores: Array, kind: str) -> Array:
    """Convert scores of any kind to log-probabilities."""
    if kind == "log-probabilities":
        return scores
    if kind == "probabilities":
        return np.asarray(np.log(np.maximum(scores, np.exp(-700.0))))
    top = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(top - np.log(np.exp(top).sum(axis=1, keepdims=True)))


def margin(scores: Array, labels: Labels) -> Array:
    r"""By how much a class leads all others, :math:`F_y - \max_{j \ne y} F_j`; below 0 if another one leads.

    >>> margin(np.array([[-1.0, -3.0], [-4.0, -0.5]]), np.array([0, 0]))
    array([ 2. , -3.5])
    """
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, labels] = -np.inf
    return np.asarray(scores[rows, labels] - others.max(axis=1))


def loss(scores: Array, labels: Labels, targets: Labels | None = None) -> Array:
    r"""The Carlini-Wagner loss of the paper, :math:`\max(F_y - \max_{j \ne y} F_j, 0)`; 0 once the image is fooled.

    With targets t it is :math:`\max(\max_{j \ne t} F_j - F_t, 0)`: 0 once the classifier predicts t.

    Among classes with equal scores a classifier predicts the first, so that a tie need not be a success. The loss of
    such a tie is 1e-9 instead of 0: models behind an interface often round their scores, and a search that ends at 0
    must not end there.
    """
    aims = labels if targets is None else targets
    lead = margin(scores, aims)
    losses = np.maximum(lead if targets is None else -lead, 0.0)
    ties = np.flatnonzero(lead == 0)
    if ties.size:
        predicted = scores[ties].argmax(axis=1)
        fooled = predicted != labels[ties] if targets is None else predicted == targets[ties]
        losses[ties[~fooled]] = _LOSS_OF_A_TIE
    return losses

"""The classifier's predictions for all images at one perturbation, asked for through the engine.

The evaluation is an ordinary run of `zt.minimize`: the images are the components of a problem, a small program asks
for all of them once, and the engine makes, counts, retries and records the calls.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.minimizer import minimize
from zerothresh.attack.scores import KINDS, BadScores
from zerothresh.attack.universal_problem import Universal
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.runs.identity import digest
from zerothresh.session.status import Status

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

NO_PREDICTION = -1  # the scores of an image were NaN
_BASE = 1 << 24  # larger than any number of classes; three digits of this size are at most 2^50, exact as a float


class AttackStopped(RuntimeError):
    """An attack ended before its result was known; with a run folder, the same call continues it."""


@dataclass(frozen=True)
class Predictions:
    """What the classifier says of all images at one perturbation."""

    labels: Labels  # the predicted class of each image, or NO_PREDICTION
    classes: int  # the number of classes
    kind: str  # the kind of scores that the classifier returns, one of `scores.KINDS`


class PredictionProblem:
    """All images as a problem: the value of component i at theta is the classifier's answer for image i.

    A run folder keeps one number per call, so that an answer is one number: the predicted class, the number of
    classes and the kind of the scores, as three digits to the base of 2^24. A predicted class equal to the number of
    classes stands for scores that were NaN.
    """

    def __init__(self, problem: Universal, *, allow_nan: bool = False) -> None:
        self.problem, self.allow_nan = problem, allow_nan
        self.n, self.d = problem.n, problem.d

    @property
    def fingerprint(self) -> str:
        """The model and the images; labels and targets may be corrected without another evaluation."""
        stack = self.problem.stack
        return f"predictions of {self.problem.classifier.identity} {digest(stack.flat)} {stack.bounds}"

    def values(self, points: Array, components: Labels) -> Array:
        """The answers of the classifier, one number per row."""
        classifier = self.problem.classifier
        scores = classifier(self.problem.attacked(points, components), allow_nan=self.allow_nan)
        classes = scores.shape[1]
        predicted = np.where(np.isnan(scores).any(axis=1), classes, scores.argmax(axis=1))
        digits = KINDS.index(str(classifier.scores)) * _BASE + classes
        return np.asarray(digits * _BASE + predicted, dtype=np.float64)


class AskAboutEveryImage(Program):
    """A method of one round: it asks for all components at the start, and has then nothing more to ask."""

    def __init__(self) -> None:
        self.answers: Array = np.empty(0)

    def search(self, context: Context) -> Asks:
        values = yield from context.values([context.theta0])
        self.answers = values[0] * context.unit


def predict_all(
    problem: Universal,
    theta: Array,
    *,
    budget: int,
    constraint: Mapping[str, Any],
    allow_nan: bool = False,
    run: str | os.PathLike[str] | None = None,
    **engine: Any,
) -> tuple[Predictions | None, Any]:
    """Ask the classifier for its predictions of all images at one perturbation.

    Arguments
    ---------
    problem: the attack, with all images.
    theta: the perturbation, of shape (d,).
    budget: the most queries, over all sessions of the run folder.
    constraint: k, bounds and groups of the attack, which theta satisfies.
    allow_nan: whether NaN scores mean "no prediction"; otherwise they end the evaluation.
    run: a run folder for this evaluation alone.
    engine: other arguments of `zt.minimize`, such as retries and timeout.

    Returns
    -------
    The predictions (None if the evaluation did not complete), and the `Result` of the engine, which counts the queries.
    """
    method = AskAboutEveryImage()
    result = minimize(
        PredictionProblem(problem, allow_nan=allow_nan),
        theta,
        budget=budget,
        method=method,
        seed=0,  # nothing here is random
        monitor=lambda x: 0.0,  # the mean of the answers means nothing, and n calls for it would be wasted
        progress=False,
        run=run,
        **constraint,
        **engine,
    )
    if result.status is not Status.CONVERGED:
        return None, result
    found = _decoded(method.answers)
    if found is None:
        raise ValueError(
            f"{run} holds values that are no answers of a classifier: it was changed; restore it from a copy, or name "
            "another run folder"
        )
    return found, result


def _decoded(answers: Array) -> Predictions | None:
    """The predictions that the numbers of a `PredictionProblem` stand for; None if they are no such numbers."""
    if not ((answers >= 0) & (answers < len(KINDS) * _BASE**2) & (answers == np.floor(answers))).all():
        return None
    digits, predicted = np.divmod(answers.astype(np.int64), _BASE)
    kinds, classes = np.divmod(digits, _BASE)
    if (classes < 2).any() or (predicted > classes).any() or (kinds != kinds[0]).any():
        return None
    if (classes != classes[0]).any():
        raise BadScores(
            f"the classifier returned {classes.min()} scores for some images and {classes.max()} for others; it must "
            "return one score per class for each image"
        )
    labels = np.where(predicted == classes, NO_PREDICTION, predicted)
    return Predictions(labels, int(classes[0]), KINDS[int(kinds[0])])

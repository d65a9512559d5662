"""The attack as a problem: one component per image, its loss as a function of the perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.classifier import Classifier
from zerothresh.attack.images import ImageStack, check_labels
from zerothresh.attack.scores import loss
from zerothresh.basics import check
from zerothresh.runs.identity import digest
from zerothresh.sampling.jit import kernel

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


class Universal:
    r"""One perturbation for n images:

    .. math:: f_i(\theta) = \max(F_{y_i}(x) - \max_{j \ne y_i} F_j(x), 0), \quad x = \mathrm{clip}(x_i + \theta)

    with log-probabilities F. A query is one image shown to the classifier, which is one call of an f_i.

    Arguments
    ---------
    classifier: the model, as `wrap` gives it.
    stack: the images, as `stack_images` gives them.
    labels: the true class of each image, of shape (n,).
    targets: the class that each image should be taken for, of shape (n,); None for any wrong class.
    allow_nan: whether NaN scores give a value that is NaN; by default they raise `BadScores`.
    """

    def __init__(
        self,
        classifier: Classifier,
        stack: ImageStack,
        labels: Labels,
        targets: Labels | None = None,
        *,
        allow_nan: bool = False,
    ) -> None:
        if not isinstance(classifier, Classifier):
            raise ValueError(f"classifier must be a Classifier, as wrap makes it, not {classifier!r}")
        if not isinstance(stack, ImageStack):
            raise ValueError(f"stack must be an ImageStack, as stack_images makes it, not {stack!r}")
        check.flag("allow_nan", allow_nan)
        self.classifier, self.stack = classifier, stack
        self.labels = check_labels(labels, stack.n)
        self.targets = None if targets is None else check_labels(targets, stack.n, what="targets")
        self.n, self.d = stack.n, stack.d
        self.allow_nan = allow_nan

    @property
    def fingerprint(self) -> str:
        """What distinguishes this attack from others: the images, their labels, the value range and the model."""
        aim = "" if self.targets is None else digest(self.targets)
        return f"{self.classifier.identity} {digest(self.stack.flat)} {digest(self.labels)} {aim} {self.stack.bounds}"

    def attacked(self, points: Array, components: Labels) -> NDArray[np.float32]:
        """clip(x_i + theta) for each component, in the shape that the classifier takes.

        ``points`` has one row per component, or a single row for all of them.
        """
        out = np.empty((len(components), self.d), np.float32)
        _add_and_clip(self.stack.flat, components, points, *self.stack.limits, out)
        return out.reshape(-1, *self.stack.shape)

    def values(self, points: Array, components: Labels) -> Array:
        """f_i at each row of ``points``; the model is called with batches."""
        targets = None if self.targets is None else self.targets[components]
        out = np.empty(len(components))
        for at in range(0, len(components), self.classifier.batch):  # small enough to stay in the processor's cache
            rows = slice(at, at + self.classifier.batch)
            scores = self.classifier(self.attacked(points[rows], components[rows]), allow_nan=self.allow_nan)
            out[rows] = loss(scores, self.labels[components[rows]], None if targets is None else targets[rows])
        return out

    def predictions(self, theta: Array) -> Labels:
        """The predicted class of each attacked image; n queries, which no budget limits."""
        scores = self.classifier(self.attacked(theta[None], np.arange(self.n)))
        return np.asarray(scores.argmax(axis=1))


@kernel
def _add_and_clip(flat: Any, components: Any, points: Any, low: Any, high: Any, out: Any) -> None:
    """clip(x_i + theta), image by image, in one compiled loop because it is done for every query."""
    for row in range(components.size):
        image, theta = flat[components[row]], points[row if len(points) > 1 else 0]
        for j in range(image.size):
            out[row, j] = min(max(np.float32(image[j] + theta[j]), low), high)

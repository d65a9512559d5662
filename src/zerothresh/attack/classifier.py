"""A classifier as an attack sees it: images in, log-probabilities out, every image counted."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack import scores as scoring

Images = NDArray[np.float32]
Array = NDArray[np.float64]


@dataclass(eq=False)
class Classifier:
    """A model in the one form that attacks use: `predict` maps a batch of images to one row of scores per image.

    Arguments
    ---------
    predict: maps float32 images of shape (images, *shape) to scores of shape (images, classes).
    bounds: the value range of a pixel, (low, high); None if it is not known.
    shape: the shape of one image as the model takes it; None if the model takes any shape.
    layout: how the model takes an image: "NHWC", "NCHW", "HW" or "flat"; None if it takes images as they are given.
    scores: "logits", "probabilities" or "log-probabilities"; None to recognise the kind from the first answer.
    classes: the names of the classes, one per column of the scores; None if they have no names.
    name: the name of the model in messages, reports and run folders.
    batch: the most images in one call of ``predict``; 256 by default.
    codes: the labels that stand for the classes, one per column of the scores; None for 0, 1, 2 ...
    mark: a text that distinguishes the model from others of the same name, such as a digest of its file.

    ``queries`` counts the images that ``predict`` was given, ``calls`` counts the calls of ``predict``, and
    ``seconds`` is the time that they took.
    """

    predict: Callable[[Images], Any]
    bounds: tuple[float, float] | None = None
    shape: tuple[int, ...] | None = None
    layout: str | None = None
    scores: str | None = None
    classes: tuple[str, ...] | None = None
    name: str = "classifier"
    batch: int = 256
    codes: NDArray[Any] | None = None
    mark: str = ""
    queries: int = field(default=0, init=False)
    calls: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)
    _kind_is_settled: bool = field(default=False, init=False, repr=False)  # recognised, or checked if declared

    def __call__(self, images: Images, *, allow_nan: bool = False) -> Array:
        """Ask the model for log-probabilities.

        Arguments
        ---------
        images: (images, *shape), float32.
        allow_nan: whether scores may be NaN; the row of such an image is then all NaN. By default they raise
            `BadScores`.

        Returns
        -------
        Log-probabilities of shape (images, classes).
        """
        parts = [self._ask(images[at : at + self.batch], allow_nan) for at in range(0, len(images), self.batch)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def identity(self) -> str:
        """The name and the mark of the model, which run folders keep."""
        return f"{self.name} {self.mark}".strip()

    def assume_kind(self, kind: str) -> None:
        """Settle the kind of the scores without a call of the model: an earlier session has recognised it."""
        self.scores = self.scores or kind
        self._kind_is_settled = True

    def _ask(self, images: Images, allow_nan: bool) -> Array:
        """Call the model once, and check and convert what it returns."""
        if self.layout == "flat":
            images = images.reshape(len(images), -1)
        began = time.perf_counter()
        self.queries += len(images)  # counted before the call, because a call that fails has been made too
        self.calls += 1
        try:
            answer = self.predict(images)
        finally:
            self.seconds += time.perf_counter() - began
        scores = scoring.checked_scores(answer, len(images), allow_nan=allow_nan)
        if not self._kind_is_settled:
            sound = scores[np.isfinite(scores).all(axis=1)]
            if self.scores is not None and sound.size:
                scoring.check_kind(sound, self.scores)
            self.assume_kind(self.scores or scoring.kind_of(sound if sound.size else scores))
        assert self.scores is not None
        return scoring.log_probabilities(scores, self.scores)


def wrap(model: Any, **declared: Any) -> Classifier:
    """Make a `Classifier` of a model.

    Arguments
    ---------
    model: a callable from a batch of images to scores, the path of an ONNX file, a torch module, a scikit-learn
        estimator, an ART classifier, a foolbox model, or a `Classifier`.
    declared: fields of `Classifier` (bounds, layout, scores ...) that take precedence over what the model says of
        itself; None leaves the model's own.

    Returns
    -------
    A new `Classifier` with counters of its own.

    >>> wrap(lambda images: images.sum(axis=(1, 2))[:, None] * [0.0, 1.0], bounds=(0, 1)).name
    '<lambda>'
    """
    from zerothresh.attack import adapters

    if isinstance(model, Classifier):
        classifier = model
    elif isinstance(model, str | os.PathLike):
        classifier = adapters.from_onnx(Path(model))
    elif _comes_from(model, "art."):
        classifier = adapters.from_art(model)
    elif _comes_from(model, "foolbox."):
        classifier = adapters.from_foolbox(model)
    elif _comes_from(model, "torch."):
        classifier = adapters.from_torch(model)
    elif hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
        classifier = adapters.from_sklearn(model)
    elif callable(model):
        classifier = Classifier(model, name=getattr(model, "__name__", type(model).__name__))
    else:
        raise ValueError(
            "the classifier must be a callable from images to scores, the path of an ONNX file, a torch module, a "
            f"scikit-learn estimator, an ART classifier or a foolbox model, not {type(model).__name__}"
        )
    classifier = replace(classifier, **{name: value for name, value in declared.items() if value is not None})
    if classifier.bounds is not None:
        if len(classifier.bounds) != 2:
            raise ValueError(f"bounds must be the value range of a pixel, (low, high), not {classifier.bounds!r}")
        low, high = (float(bound) for bound in classifier.bounds)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"bounds must be the value range of a pixel, (low, high), not ({low:g}, {high:g})")
        classifier = replace(classifier, bounds=(low, high))
    return classifier


def _comes_from(model: Any, package: str) -> bool:
    """Whether a class of the model is defined in a package; the package itself is not imported."""
    return any(f"{kind.__module__}.".startswith(package) for kind in type(model).__mro__)

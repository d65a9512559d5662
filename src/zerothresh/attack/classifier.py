"""A classifier as an attack sees it: images in, log-probabilities out, every image counted."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack import scores as scoring
from zerothresh.basics import check

LAYOUTS = ("NHWC", "NCHW", "HW", "flat")

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

    def __post_init__(self) -> None:
        if not callable(self.predict):
            raise ValueError(f"predict must be a function from a batch of images to scores, not {self.predict!r}")
        if self.bounds is not None:
            self.bounds = value_range(self.bounds)
        if self.shape is not None:
            self.shape = _checked_shape(self.shape)
        if self.layout is not None:
            check.one_of("layout", self.layout, LAYOUTS)
        if self.scores is not None:
            check.one_of("scores", self.scores, scoring.KINDS)
        if self.classes is not None:
            self.classes = _checked_names(self.classes)
        for name in ("name", "mark"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a string, not {getattr(self, name)!r}")
        self.batch = check.count("batch", self.batch, what=" (the most images in one call of the model)")
        if self.codes is not None:
            self.codes = np.asarray(self.codes)
            if self.codes.ndim != 1:
                raise ValueError(f"codes must be one label per class, of shape (classes,), not {self.codes.shape}")

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
    given = {name: value for name, value in declared.items() if value is not None}
    allowed = [entry.name for entry in fields(Classifier) if entry.init]
    for name in given:
        check.one_of("what is declared of a classifier", name, allowed)
    return replace(classifier, **given)


def value_range(bounds: Any) -> tuple[float, float]:
    """Check the value range of a pixel, which has to be one in float32 too, the precision of images."""
    try:
        low, high = (_finite(bound) for bound in bounds)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"bounds must be the value range of a pixel, two finite numbers (low, high), not {bounds!r}"
        ) from None
    with np.errstate(over="ignore"):
        in_float32 = np.float32(low), np.float32(high)
    if not (np.isfinite(in_float32).all() and in_float32[0] < in_float32[1]):
        raise ValueError(
            f"bounds must be the value range of a pixel, (low, high) with low below high and both within the range "
            f"of float32, not ({low:g}, {high:g})"
        )
    return low, high


def _finite(number: Any) -> float:
    """Convert to a float what is a finite number; TypeError or ValueError otherwise."""
    if isinstance(number, (bool, np.bool_, str, bytes)) or not math.isfinite(number):
        raise ValueError
    return float(number)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    """Check the shape of one image."""
    if not isinstance(shape, Sequence) or isinstance(shape, (str, bytes)) or len(shape) == 0:
        raise ValueError(f"shape must be that of one image, such as (32, 32, 3), not {shape!r}")
    return tuple(check.count("each number of shape (of one image)", size) for size in shape)


def _checked_names(classes: Any) -> tuple[str, ...]:
    """Check the names of the classes."""
    named = isinstance(classes, Sequence) and not isinstance(classes, (str, bytes))
    if not named or not all(isinstance(name, str) for name in classes):
        raise ValueError(f"classes must be the names of the classes, a list of strings, not {classes!r}")
    return tuple(classes)


def _comes_from(model: Any, package: str) -> bool:
    """Whether a class of the model is defined in a package; the package itself is not imported."""
    return any(f"{kind.__module__}.".startswith(package) for kind in type(model).__mro__)

"""A classifier as an attack sees it: images in, scores out, every image counted."""

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
    """A model behind one form: `predict` takes a batch of images and gives a row of scores for each.

    Arguments
    ---------
    predict: from (images, *shape) of float32 to (images, classes).
    bounds: the value range of a pixel, (low, high); None: not known.
    shape: of one image, as the model takes it; None: any.
    layout: "NHWC", "NCHW", "HW" or "flat", how the model takes an image; None: as it is given.
    scores: "logits", "probabilities" or "log-probabilities"; None: told from the first answer.
    classes: names of the classes.
    batch: the most images in one call of ``predict``.
    codes: the labels that people use for the classes, by column of the scores; None: 0, 1, 2 ...
    mark: what tells it from another model of the same name.

    ``queries`` counts the images that ``predict`` was given, ``calls`` how often it was called, and
    ``seconds`` how long that took.
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
    known: str | None = field(default=None, init=False)  # the kind of scores, once it has been told or checked

    def __call__(self, images: Images, *, forgiving: bool = False) -> Array:
        """Log-probabilities, (images, classes); scores that are no numbers raise, unless ``forgiving``."""
        parts = [self._ask(images[at : at + self.batch], forgiving) for at in range(0, len(images), self.batch)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _ask(self, images: Images, forgiving: bool) -> Array:
        if self.layout == "flat":
            images = images.reshape(len(images), -1)
        began = time.perf_counter()
        self.queries += len(images)  # before the call: one that fails has been made
        self.calls += 1
        try:
            answer = self.predict(images)
        finally:
            self.seconds += time.perf_counter() - began
        scores = scoring.table(answer, len(images), forgiving=forgiving)
        if self.known is None:
            sound = scores[np.isfinite(scores).all(axis=1)]
            if self.scores is not None and sound.size:
                scoring.check_kind(sound, self.scores)
            self.known = self.scores or scoring.kind_of(sound if sound.size else scores)
        self.scores = self.scores or self.known
        return scoring.log_probabilities(scores, self.scores)


def wrap(model: Any, **declared: Any) -> Classifier:
    """A `Classifier` of whatever a model is; what is declared (bounds, layout, scores ...) goes before what it says.

    A model is a callable from a batch of images to scores, the path of an ONNX file, a torch module, a
    scikit-learn estimator, an ART classifier, or a foolbox model.

    >>> wrap(lambda images: images.sum(axis=(1, 2))[:, None] * [0.0, 1.0], bounds=(0, 1)).name
    '<lambda>'
    """
    from zerothresh.attack import adapters

    told = {name: value for name, value in declared.items() if value is not None}
    if isinstance(model, Classifier):
        made = model
    elif isinstance(model, str | os.PathLike):
        made = adapters.onnx(Path(model))
    elif _of(model, "art."):
        made = adapters.art(model)
    elif _of(model, "foolbox."):
        made = adapters.foolbox(model)
    elif _of(model, "torch."):
        made = adapters.torch(model)
    elif hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
        made = adapters.sklearn(model)
    elif callable(model):
        made = Classifier(model, name=getattr(model, "__name__", type(model).__name__))
    else:
        raise ValueError(
            "the classifier must be a callable from images to scores, the path of an ONNX file, a torch module, a "
            f"scikit-learn estimator, an ART classifier or a foolbox model, not {type(model).__name__}"
        )
    made = replace(made, **told)  # with a counter of its own
    if made.bounds is not None:
        if len(made.bounds) != 2:
            raise ValueError(f"bounds must be the value range of a pixel, (low, high), not {made.bounds!r}")
        low, high = (float(bound) for bound in made.bounds)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"bounds must be the value range of a pixel, (low, high), not ({low:g}, {high:g})")
        made = replace(made, bounds=(low, high))
    return made


def _of(model: Any, package: str) -> bool:
    """Whether a class of the model comes from a package, which need not be importable to be told."""
    return any(f"{kind.__module__}.".startswith(package) for kind in type(model).__mro__)

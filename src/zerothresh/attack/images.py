"""Images on their way to a classifier and back: layout, value range, pixels."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.adapters import layout_of
from zerothresh.attack.classifier import Classifier, Images
from zerothresh.basics import check

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

LAYOUTS = ("NHWC", "NCHW", "HW", "flat")
_RANGES = ((-0.5, 0.5), (0.0, 1.0), (-1.0, 1.0), (0.0, 16.0), (0.0, 255.0))  # tried in this order


@dataclass(frozen=True)
class Stack:
    """Images of one size, flat and in the order that the classifier takes, and the ways back."""

    flat: Images  # (images, d)
    shape: tuple[int, ...]  # of an image as the classifier takes it
    layout: str  # as the classifier takes it; of flat ones, as the user gave them
    given: str  # the user's layout
    bounds: tuple[float, float]
    declared: bool  # whether somebody said the bounds, or they were guessed

    @property
    def n(self) -> int:
        """Images."""
        return len(self.flat)

    @property
    def d(self) -> int:
        """Numbers an image."""
        return int(self.flat.shape[1])

    @property
    def width(self) -> float:
        """From the lowest to the highest value of a pixel."""
        return self.bounds[1] - self.bounds[0]

    @property
    def groups(self) -> Labels:
        """The pixel that each coordinate belongs to."""
        channels = self._channels
        if channels == 1:
            return np.arange(self.d)
        if self.layout == "NCHW":
            return np.tile(np.arange(self.d // channels), channels)
        return np.repeat(np.arange(self.d // channels), channels)

    def attacked(self, theta: Array) -> Images:
        """clip(x_i + theta) of all images, as the classifier is shown them."""
        low, high = self.limits
        return np.clip((self.flat + theta).astype(np.float32), low, high)

    @property
    def limits(self) -> tuple[np.float32, np.float32]:
        """The bounds as the classifier sees them."""
        return np.float32(self.bounds[0]), np.float32(self.bounds[1])

    @property
    def grid(self) -> tuple[int, int, int, int] | None:
        """Rows, columns, and how far apart the numbers of neighbours are, down and to the right; None: not known."""
        if len(self.shape) not in (2, 3) or self.layout == "flat":
            return None
        rows, columns = self.shape[1:] if self.layout == "NCHW" else self.shape[:2]
        right = self._channels if self.layout == "NHWC" else 1
        return rows, columns, columns * right, right

    @property
    def _channels(self) -> int:
        return {"NCHW": self.shape[0], "NHWC": self.shape[-1]}.get(self.layout, 1) if len(self.shape) == 3 else 1

    def to_user(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Flat rows as images in the user's layout."""
        images = flat.reshape(-1, *self.shape)
        if (self.layout, self.given) == ("NCHW", "NHWC"):
            return images.transpose(0, 2, 3, 1)
        if (self.layout, self.given) == ("NHWC", "NCHW"):
            return images.transpose(0, 3, 1, 2)
        return images

    def pictures(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Flat rows as (images, rows, columns, channels), to be looked at."""
        images = flat.reshape(-1, *self.shape)
        if self.layout == "NCHW":
            return images.transpose(0, 2, 3, 1)
        if len(self.shape) == 3:
            return images
        if len(self.shape) == 2:
            return images[..., None]
        side = math.isqrt(self.d)
        rows = side if side * side == self.d else 1
        return images.reshape(-1, rows, self.d // rows, 1)


def stack(images: Any, classifier: Classifier, *, layout: str | None, bounds: tuple[float, float] | None) -> Stack:
    """Check images against the classifier, and lay them out as it wants them."""
    array = np.asarray(images)
    if array.dtype.kind not in "fiu" or array.ndim < 2 or not len(array):
        raise ValueError(
            f"images must be an array of numbers, (images, ...) with at least one image, not {array.dtype} of shape "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"image {np.argwhere(~np.isfinite(array))[0][0]} holds a value that is not finite")
    own = array.shape[1:]
    given = _layout(own, classifier, layout)
    array, shape, order = _fit(array, given, classifier)
    declared = classifier.bounds if bounds is None else bounds
    limits = _guess(array) if declared is None else (float(declared[0]), float(declared[1]))
    low, high = limits
    if (array.min() < np.float32(low) and array.min() < low) or (array.max() > np.float32(high) and array.max() > high):
        raise ValueError(
            f"images have values from {array.min():g} to {array.max():g}, outside of the value range [{low:g}, "
            f"{high:g}]{' of the classifier' if bounds is None else ''}: scale them as the classifier wants, or pass "
            "bounds"
        )
    flat = np.ascontiguousarray(array.reshape(len(array), -1), dtype=np.float32)
    return Stack(np.clip(flat, low, high), shape, order, given, limits, declared is not None)


def _layout(shape: tuple[int, ...], classifier: Classifier, told: str | None) -> str:
    """How the user's images are laid out."""
    if told is not None:
        check.one_of("layout", told, LAYOUTS)
        if len(shape) != {"NHWC": 3, "NCHW": 3, "HW": 2, "flat": 1}[told]:
            raise ValueError(f"layout={told!r} does not fit images of shape {shape}")
        return told
    found = layout_of(shape)
    if found is None and shape == classifier.shape:
        found = classifier.layout
    if found is None:
        raise ValueError(
            f"images of shape {shape} may be laid out as NHWC or as NCHW (channels are 1, 3 or 4): pass layout='NHWC' "
            "or layout='NCHW'"
        )
    return found


def _fit(array: NDArray[Any], given: str, classifier: Classifier) -> tuple[NDArray[Any], tuple[int, ...], str]:
    """The images as the classifier takes them, the shape of one, and its layout."""
    wanted, own = classifier.shape, array.shape[1:]
    if wanted is not None and len(wanted) == 1 and len(own) > 1:  # flat: the order is the user's
        if math.prod(own) != wanted[0]:
            raise ValueError(f"{classifier.name} takes {wanted[0]} numbers an image, but these are of shape {own}")
        return array, own, given
    order = classifier.layout or given
    if {order, given} == {"NHWC", "NCHW"}:
        array = array.transpose((0, 3, 1, 2) if order == "NCHW" else (0, 2, 3, 1))
    if wanted is not None and array.shape[1:] != wanted:
        raise ValueError(
            f"{classifier.name} takes images of shape {wanted} ({order}), but these are {own} ({given}), which would "
            f"be {array.shape[1:]} there: a net with another input size needs images of that size"
        )
    return array, tuple(array.shape[1:]), order if {order, given} == {"NHWC", "NCHW"} else given


def _guess(array: NDArray[Any]) -> tuple[float, float]:
    """A usual value range that holds the images, with a warning: a wrong one makes another attack."""
    least, most = float(array.min()), float(array.max())
    found = next(((low, high) for low, high in _RANGES if low <= least and most <= high), None)
    if found is None:
        raise ValueError(
            f"images have values from {least:g} to {most:g}, which is no usual value range: pass bounds=(low, high)"
        )
    warnings.warn(
        f"the value range of the classifier is not known; the images look like [{found[0]:g}, {found[1]:g}], which is "
        "taken: pass bounds=(low, high) to say it",
        stacklevel=4,
    )
    return found


def labels_for(
    labels: Any, n: int, classes: int | None = None, what: str = "labels", *, codes: NDArray[Any] | None = None
) -> Labels:
    """One whole number an image, a column of the scores, or the reason why not; ``codes`` are the columns' names."""
    if labels is None:
        raise ValueError(f"{what} are missing: pass the true class of each image, a whole number from 0")
    array = np.asarray(labels)
    if array.ndim == 0 and what != "labels":
        array = np.full(n, array)
    if array.ndim == 2 and array.shape[1] > 1 and set(np.unique(array)) <= {0, 1} and (array.sum(axis=1) == 1).all():
        array, codes = array.argmax(axis=1), None  # one-hot: columns already
    if codes is not None and array.shape == (n,):
        known = {code: column for column, code in enumerate(codes.tolist())}
        strange = [label for label in array.tolist() if label not in known]
        if strange:
            raise ValueError(f"{what} name class {strange[0]!r}; the classifier has {', '.join(map(repr, known))}")
        array = np.array([known[label] for label in array.tolist()], dtype=np.int64)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{what} must be {n} whole numbers, the class of each image, not {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or (classes is not None and array.max() >= classes):
        wrong = array[(array < 0) | (array >= (classes or np.inf))][0]
        span = "from 0" if classes is None else f"0 to {classes - 1}"
        raise ValueError(f"{what} name class {wrong}; the classifier has classes {span}")
    return array.astype(np.int64)

"""Images on their way to a classifier and back: layout, value range, pixels and labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.adapters import layout_of
from zerothresh.attack.classifier import LAYOUTS, Classifier, Images
from zerothresh.basics import check

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

_COMMON_RANGES = ((-0.5, 0.5), (0.0, 1.0), (-1.0, 1.0), (0.0, 16.0), (0.0, 255.0))  # tried in this order


@dataclass(frozen=True)
class ImageStack:
    """Images of one size, flat and in the order that the classifier takes, with the conversions back."""

    flat: Images  # (images, d)
    shape: tuple[int, ...]  # of one image as the classifier takes it
    layout: str  # as the classifier takes it; if it takes flat images, as the user gave them
    user_layout: str
    bounds: tuple[float, float]
    bounds_declared: bool  # False: the value range was guessed

    @property
    def n(self) -> int:
        """The number of images."""
        return len(self.flat)

    @property
    def d(self) -> int:
        """The number of values per image."""
        return int(self.flat.shape[1])

    @property
    def width(self) -> float:
        """The difference between the highest and the lowest value of a pixel."""
        return self.bounds[1] - self.bounds[0]

    @property
    def groups(self) -> Labels:
        """The pixel that each coordinate belongs to, of shape (d,)."""
        channels = self._channels
        if channels == 1:
            return np.arange(self.d)
        if self.layout == "NCHW":
            return np.tile(np.arange(self.d // channels), channels)
        return np.repeat(np.arange(self.d // channels), channels)

    def attacked(self, theta: Array) -> Images:
        """clip(x_i + theta) for all images, flat, as the classifier is shown them."""
        low, high = self.limits
        return np.clip((self.flat + theta).astype(np.float32), low, high)

    def select(self, chosen: Labels) -> ImageStack:
        """A stack of some of the images, by their numbers."""
        return ImageStack(
            self.flat[chosen], self.shape, self.layout, self.user_layout, self.bounds, self.bounds_declared
        )

    @property
    def limits(self) -> tuple[np.float32, np.float32]:
        """The bounds in the precision of the images."""
        return np.float32(self.bounds[0]), np.float32(self.bounds[1])

    @property
    def grid(self) -> tuple[int, int, int, int] | None:
        """(rows, columns, down, right): the coordinate below j is j + down, the one to its right is j + right.

        None if the layout of the pixels is not known.
        """
        if len(self.shape) not in (2, 3) or self.layout == "flat":
            return None
        rows, columns = self.shape[1:] if self.layout == "NCHW" else self.shape[:2]
        right = self._channels if self.layout == "NHWC" else 1
        return rows, columns, columns * right, right

    @property
    def _channels(self) -> int:
        return {"NCHW": self.shape[0], "NHWC": self.shape[-1]}.get(self.layout, 1) if len(self.shape) == 3 else 1

    def to_user(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Reshape flat rows to images in the user's layout."""
        images = flat.reshape(-1, *self.shape)
        if (self.layout, self.user_layout) == ("NCHW", "NHWC"):
            return images.transpose(0, 2, 3, 1)
        if (self.layout, self.user_layout) == ("NHWC", "NCHW"):
            return images.transpose(0, 3, 1, 2)
        return images

    def pictures(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Reshape flat rows to (images, rows, columns, channels), for drawing."""
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


def stack_images(
    images: Any, classifier: Classifier, *, layout: str | None, bounds: tuple[float, float] | None
) -> ImageStack:
    """Check images against the classifier, and lay them out as it takes them.

    Arguments
    ---------
    images: an array of numbers, (images, ...).
    classifier: the model; its shape, layout and bounds are checked where it declares them.
    layout: the layout of ``images``; None to recognise it from their shape.
    bounds: the value range of a pixel, (low, high); None for the classifier's own, or a guess with a warning.
    """
    array = _array_of(images, "images")
    if array.dtype.kind not in "fiu" or array.ndim < 2 or not array.size:
        raise ValueError(
            f"images must be an array of numbers, (images, ...) with at least one image of at least one pixel, not "
            f"{array.dtype} of shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"image {np.argwhere(~np.isfinite(array))[0][0]} contains a value that is not finite")
    user_layout = _user_layout(array.shape[1:], classifier, layout)
    array, shape, order = _as_the_classifier_takes_them(array, user_layout, classifier)
    declared = classifier.bounds if bounds is None else bounds
    limits = _guess_bounds(array) if declared is None else (float(declared[0]), float(declared[1]))
    low, high = limits
    if (array.min() < np.float32(low) and array.min() < low) or (array.max() > np.float32(high) and array.max() > high):
        raise ValueError(
            f"images have values from {array.min():g} to {array.max():g}, outside of the value range [{low:g}, "
            f"{high:g}]{' of the classifier' if bounds is None else ''}: scale them as the classifier expects, or pass "
            "bounds"
        )
    flat = np.ascontiguousarray(array.reshape(len(array), -1), dtype=np.float32)
    return ImageStack(np.clip(flat, low, high), shape, order, user_layout, limits, declared is not None)


def _array_of(given: Any, what: str) -> NDArray[Any]:
    """Convert what a user passed to an array."""
    try:
        return np.asarray(given)
    except Exception as error:  # NumPy's own for a ragged list, and whatever a foreign object raises
        raise ValueError(f"{what} cannot be made an array of one shape: {error}") from None


def _user_layout(shape: tuple[int, ...], classifier: Classifier, declared: str | None) -> str:
    """The layout of the user's images: declared, recognised from their shape, or that of the classifier."""
    if declared is not None:
        check.one_of("layout", declared, LAYOUTS)
        if len(shape) != {"NHWC": 3, "NCHW": 3, "HW": 2, "flat": 1}[declared]:
            raise ValueError(f"layout={declared!r} does not fit images of shape {shape}")
        return declared
    found = layout_of(shape)
    if found is None and shape == classifier.shape:
        found = classifier.layout
    if found is None:
        raise ValueError(
            f"images of shape {shape} may be laid out as NHWC or as NCHW (channels are 1, 3 or 4): pass layout='NHWC' "
            "or layout='NCHW'"
        )
    return found


def _as_the_classifier_takes_them(
    array: NDArray[Any], user_layout: str, classifier: Classifier
) -> tuple[NDArray[Any], tuple[int, ...], str]:
    """The images as the classifier takes them, the shape of one, and its layout."""
    wanted, own = classifier.shape, array.shape[1:]
    if wanted is not None and len(wanted) == 1 and len(own) > 1:  # flat: the order of the pixels is the user's
        if math.prod(own) != wanted[0]:
            raise ValueError(f"{classifier.name} takes {wanted[0]} numbers per image, but these have shape {own}")
        return array, own, user_layout
    order = classifier.layout or user_layout
    if {order, user_layout} == {"NHWC", "NCHW"}:
        array = array.transpose((0, 3, 1, 2) if order == "NCHW" else (0, 2, 3, 1))
    if wanted is not None and array.shape[1:] != wanted:
        raise ValueError(
            f"{classifier.name} takes images of shape {wanted} ({order}), but these have shape {own} ({user_layout}), "
            f"which it would see as {array.shape[1:]}: resize the images"
        )
    return array, tuple(array.shape[1:]), order if {order, user_layout} == {"NHWC", "NCHW"} else user_layout


def _guess_bounds(array: NDArray[Any]) -> tuple[float, float]:
    """The first common value range that contains the images, with a warning: a wrong one changes the attack."""
    lowest, highest = float(array.min()), float(array.max())
    found = next(((low, high) for low, high in _COMMON_RANGES if low <= lowest and highest <= high), None)
    if found is None:
        raise ValueError(
            f"images have values from {lowest:g} to {highest:g}, which is no common value range: pass "
            "bounds=(low, high)"
        )
    warnings.warn(
        f"the value range of the classifier is not known; the images suggest [{found[0]:g}, {found[1]:g}], which is "
        "used: pass bounds=(low, high) to declare it",
        stacklevel=4,
    )
    return found


def check_labels(
    labels: Any, n: int, classes: int | None = None, what: str = "labels", *, codes: NDArray[Any] | None = None
) -> Labels:
    """Check labels, and convert them to columns of the scores.

    Arguments
    ---------
    labels: the class of each image, of shape (n,) or one-hot of shape (n, classes); targets may be a single class.
    n: the number of images.
    classes: the number of classes; None if it is not known yet.
    what: the name of the argument in messages.
    codes: the labels that stand for the columns of the scores; None for 0, 1, 2 ...

    Returns
    -------
    The column of each image's class, of shape (n,).
    """
    if labels is None:
        raise ValueError(f"{what} are missing: pass the true class of each image, a whole number from 0")
    array = _array_of(labels, what)
    if array.ndim == 0 and what != "labels":
        array = np.full(n, array)
    if _is_one_hot(array):
        array, codes = array.argmax(axis=1), None  # these are columns already
    if codes is not None and array.shape == (n,):
        columns = {code: column for column, code in enumerate(codes.tolist())}
        unknown = [label for label in array.tolist() if not isinstance(label, Hashable) or label not in columns]
        if unknown:
            raise ValueError(f"{what} name class {unknown[0]!r}; the classifier has {', '.join(map(repr, columns))}")
        array = np.array([columns[label] for label in array.tolist()], dtype=np.int64)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"{what} must be {n} whole numbers, the class of each image, not {array.dtype} of shape {array.shape}"
        )
    if array.min(initial=0) < 0 or (classes is not None and array.max(initial=0) >= classes):
        wrong = array[(array < 0) | (array >= (classes or np.inf))][0]
        span = "from 0" if classes is None else f"0 to {classes - 1}"
        raise ValueError(f"{what} name class {wrong}; the classifier has classes {span}")
    return array.astype(np.int64)


def _is_one_hot(array: NDArray[Any]) -> bool:
    """Whether each row of an array consists of one 1 and otherwise zeros."""
    return (
        array.ndim == 2
        and array.shape[1] > 1
        and array.dtype.kind in "biuf"
        and bool(np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all())
    )

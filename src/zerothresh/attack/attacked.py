"""What an attack has found: a perturbation, its effect, and what is promised about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.result import Result
from zerothresh.attack.classifier import Classifier
from zerothresh.attack.images import ImageStack

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Attacked:
    """A perturbation and its effect."""

    theta: Array  # the perturbation as the classifier takes it, flat
    k: int
    granularity: str
    budget: int
    stack: ImageStack
    labels: Labels
    targets: Labels | None
    before: Labels  # the predicted classes of the images as they are
    after: Labels  # the predicted classes of the attacked images
    queries: int  # images shown to the classifier, in all sessions and processes
    search: Result | None  # None if there was nothing to attack
    classifier: Classifier

    @property
    def right(self) -> Mask:
        """Images that the classifier gets right as they are; the others are shown in reports, but do not count."""
        return np.asarray(self.before == self.labels)

    @property
    def attacked(self) -> Mask:
        """Images that were attacked: those that are right and, with a target, not of the target class already."""
        return self.right if self.targets is None else np.asarray(self.right & (self.targets != self.labels))

    @property
    def fooled(self) -> Mask:
        """Attacked images that the classifier now gets wrong or, with a target, takes for the target class."""
        changed = self.after != self.labels if self.targets is None else self.after == self.targets
        return np.asarray(self.attacked & changed)

    @property
    def success_rate(self) -> float:
        """The share of the attacked images that are fooled; NaN if no image was attacked."""
        return float(self.fooled.sum() / self.attacked.sum()) if self.attacked.any() else float("nan")

    @property
    def ended(self) -> str:
        """Why the search ended."""
        if self.search is not None:
            done = self.complete and self.fooled.sum() == self.attacked.sum()
            return "all attacked images are fooled" if done else str(self.search.message)
        if self.right.any():
            return "all images that the classifier gets right are of the target class already"
        return "the classifier gets no image right as it is"

    @property
    def perturbation(self) -> NDArray[np.float64]:
        """The perturbation in the layout of the user's images."""
        return np.asarray(self.stack.to_user(self.theta[None])[0])

    @property
    def images(self) -> NDArray[np.float32]:
        """The attacked images in the layout of the user's images."""
        return self.stack.to_user(self.stack.attacked(self.theta))

    @property
    def channels(self) -> int:
        """The number of coordinates that are not 0, which is what the paper counts."""
        return int(np.count_nonzero(self.theta))

    @property
    def pixels(self) -> int:
        """The number of pixels with at least one channel that is not 0."""
        return int(np.unique(self.stack.groups[np.flatnonzero(self.theta)]).size)

    @property
    def l2(self) -> float:
        """The Euclidean norm of the perturbation, before images are clipped."""
        return float(np.linalg.norm(self.theta))

    @property
    def complete(self) -> bool:
        """Whether the search ended normally; if not, `ended` says why, and few fooled images prove little."""
        return self.search is None or self.search.status.success

    def promises(self) -> dict[str, bool]:
        """The promises of `universal`, each checked on the numbers themselves."""
        low, high = self.stack.limits
        images = self.images
        return {
            f"at most {self.k} {self.granularity}{'' if self.k == 1 else 's'} changed": (
                self.pixels if self.granularity == "pixel" else self.channels
            )
            <= self.k,
            f"values within [{low:g}, {high:g}]": bool(images.min() >= low and images.max() <= high),
            f"at most {self.budget} queries": self.queries <= self.budget,
        }

    def __repr__(self) -> str:
        counts = f"{self.pixels} pixels, {self.channels} channels"
        return (
            f"<{int(self.fooled.sum())} of {int(self.attacked.sum())} images fooled, {counts}, l2 {self.l2:.3g}, "
            f"{self.queries} queries{'' if self.complete else ', ended early'}>"
        )

"""`zt.attack.universal`: one sparse perturbation for many images, and what is promised of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.attack.classifier import Classifier, wrap
from zerothresh.attack.few_pixel import FewPixel
from zerothresh.attack.images import Stack, labels_for, stack
from zerothresh.attack.looks import Looks
from zerothresh.attack.problem import Universal
from zerothresh.engine import minimize
from zerothresh.result import Result

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Attacked:
    """A perturbation and what it does."""

    theta: Array  # as the classifier takes it, flat
    k: int
    granularity: str
    budget: int
    stack: Stack
    labels: Labels
    targets: Labels | None
    before: Labels  # what the classifier says of the images as they are
    after: Labels  # and of the attacked ones
    queries: int  # images that the classifier was asked for, by its own counter
    search: Result | None  # None if there was nothing to attack
    classifier: Classifier

    @property
    def right(self) -> Mask:
        """Images that the classifier gets right as they are; the others are shown, and count for nothing."""
        return np.asarray(self.before == self.labels)

    @property
    def fooled(self) -> Mask:
        """Images that were right, and are no longer (with a target: that are now taken for it)."""
        changed = self.after != self.labels if self.targets is None else self.after == self.targets
        return np.asarray(self.right & changed)

    @property
    def success_rate(self) -> float:
        """The share of the rightly classified images that were fooled; NaN if there are none."""
        return float(self.fooled.sum() / self.right.sum()) if self.right.any() else float("nan")

    @property
    def perturbation(self) -> NDArray[np.float64]:
        """In the layout of the images."""
        return np.asarray(self.stack.to_user(self.theta[None])[0])

    @property
    def images(self) -> NDArray[np.float32]:
        """The attacked images, in the layout that they came in."""
        return self.stack.to_user(np.clip(self.stack.flat + self.theta.astype(np.float32), *self.stack.bounds))

    @property
    def channels(self) -> int:
        """Coordinates that are not 0: the paper's count."""
        return int(np.count_nonzero(self.theta))

    @property
    def pixels(self) -> int:
        """Pixels of which at least one channel is not 0."""
        return int(np.unique(self.stack.groups[np.flatnonzero(self.theta)]).size)

    @property
    def l2(self) -> float:
        """The length of the perturbation before it is clipped."""
        return float(np.linalg.norm(self.theta))

    def promises(self) -> dict[str, bool]:
        """What users of sparse attacks ask for, each checked on the numbers themselves."""
        low, high = self.stack.bounds
        images = self.images
        return {
            f"at most {self.k} {self.granularity}s changed": (
                self.pixels if self.granularity == "pixel" else self.channels
            )
            <= self.k,
            f"values within [{low:g}, {high:g}]": bool(images.min() >= low and images.max() <= high),
            f"at most {self.budget} queries": self.queries <= self.budget,
        }

    def __repr__(self) -> str:
        counts = f"{self.pixels} pixels, {self.channels} channels"
        return (
            f"<{int(self.fooled.sum())} of {int(self.right.sum())} images fooled, {counts}, l2 {self.l2:.3g}, "
            f"{self.queries} queries>"
        )


def universal(
    classifier: Any,
    images: Any,
    labels: Any,
    *,
    k: int,
    budget: int,
    granularity: str = "pixel",
    targeted: Any = None,
    bounds: tuple[float, float] | None = None,
    layout: str | None = None,
    scores: str | None = None,
    attack: Any = "best",
    seed: int | None = None,
    **search: Any,
) -> Attacked:
    r"""Find one perturbation of at most k pixels that fools a classifier on many images, from its scores alone.

    Arguments
    ---------
    classifier: a callable from a batch of images to scores, the path of an ONNX file, a torch module, a
        scikit-learn estimator, an ART classifier, a foolbox model, or a `zt.attack.Classifier`.
    images: (images, ...), in the value range of the classifier; NHWC and NCHW are told apart.
    labels: the true class of each image.
    k: the most pixels (or channels of pixels) that are changed.
    budget: the most queries: a query is one image that the classifier sees. All are in it, also the n that
        tell which images are right as they are, and the n that tell what the attack did in the end (with
        ``retries``, 2n are kept for each of these looks).
    granularity: "pixel", all channels of k pixels; "channel", k single numbers, as the paper counts.
    targeted: a class (or one an image) that the images shall be taken for; None: any wrong class will do.
    bounds: the value range of a pixel, (low, high), unless the classifier says it.
    layout: "NHWC", "NCHW", "HW" or "flat", where it cannot be told from the shape.
    scores: "logits", "probabilities" or "log-probabilities"; None: told from the first answer.
    attack: "best", or the name or an instance of any method: ``zt.VRSZHT(eta=0.01, m=10)``.
    seed: a whole number; the same seed gives the same attack.
    search: what else `zt.minimize` takes: run, retries, backoff, estimator, options, workers, callback ...

    Images that the classifier gets wrong as they are cost one query each, and are then left alone.

    >>> import zerothresh as zt
    >>> x = np.random.default_rng(0).uniform(size=(20, 8, 8))
    >>> bright = lambda images: images.mean(axis=(1, 2))[:, None] * [-8.0, 8.0] + [4.0, -4.0]
    >>> found = zt.attack.universal(bright, x, (x.mean(axis=(1, 2)) > 0.5).astype(int), k=4, budget=800,
    ...                             bounds=(0, 1), seed=0)
    >>> found.promises()
    {'at most 4 pixels changed': True, 'values within [0, 1]': True, 'at most 800 queries': True}
    """
    check.one_of("granularity", granularity, ("pixel", "channel"))
    check.count("k", k)
    check.count("budget", budget)
    model = wrap(classifier, bounds=bounds, scores=scores)
    held = stack(images, model, layout=layout, bounds=bounds)
    true = labels_for(labels, held.n)
    whole = Universal(model, held, true)
    looks = Looks(whole, budget, search.get("retries", 0), search.get("backoff", 0.1))
    clean = looks.before(search.get("run"))
    labels_for(labels, held.n, clean.shape[1])
    targets = None if targeted is None else labels_for(targeted, held.n, clean.shape[1], "targeted")
    before = np.asarray(clean.argmax(axis=1))
    chosen = np.flatnonzero((before == true) if targets is None else (before == true) & (targets != true))
    theta, found = np.zeros(held.d), None
    if chosen.size:
        part = Stack(held.flat[chosen], held.shape, held.layout, held.given, held.bounds, held.declared)
        problem = Universal(model, part, true[chosen], None if targets is None else targets[chosen])
        found = minimize(
            problem,
            None,
            k,
            budget=looks.search,
            method=FewPixel(part.grid) if attack == "best" else attack,
            bounds=(-held.width, held.width),
            groups=held.groups if granularity == "pixel" else None,
            seed=seed,
            **search,
        )
        theta = np.array(found.x)
    after = np.asarray(looks.after(theta).argmax(axis=1)) if chosen.size else before
    made = Attacked(theta, k, granularity, budget, held, true, targets, before, after, model.queries, found, model)
    broken = [promise for promise, kept in made.promises().items() if not kept]
    if broken:
        raise RuntimeError(f"the attack broke what it promises, which is a fault in zerothresh: {', '.join(broken)}")
    return made

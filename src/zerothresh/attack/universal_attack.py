"""`zt.attack.universal`: one sparse perturbation for many images, and what is promised of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.minimizer import Faults, minimize
from zerothresh.api.optimizer import Optimizer
from zerothresh.api.result import Result
from zerothresh.attack.baselines import Looks
from zerothresh.attack.classifier import Classifier, wrap
from zerothresh.attack.few_pixel import FewPixel
from zerothresh.attack.images import Stack, labels_for, stack
from zerothresh.attack.universal_problem import Universal
from zerothresh.basics import check
from zerothresh.session.status import Status

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Stopped(RuntimeError):
    """The search of a run folder ended early; the same call goes on."""


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
    queries: int  # images that the classifier was asked for, in all sessions and processes
    search: Result | None  # None if there was nothing to attack
    classifier: Classifier

    @property
    def right(self) -> Mask:
        """Images that the classifier gets right as they are; the others are shown, and count for nothing."""
        return np.asarray(self.before == self.labels)

    @property
    def attacked(self) -> Mask:
        """Images that were attacked: those that are right, and (with a target) not of the target class already."""
        return self.right if self.targets is None else np.asarray(self.right & (self.targets != self.labels))

    @property
    def fooled(self) -> Mask:
        """Images that were right, and are no longer (with a target: that are now taken for it)."""
        changed = self.after != self.labels if self.targets is None else self.after == self.targets
        return np.asarray(self.attacked & changed)

    @property
    def success_rate(self) -> float:
        """The share of the attacked images that were fooled; NaN if there are none."""
        return float(self.fooled.sum() / self.attacked.sum()) if self.attacked.any() else float("nan")

    @property
    def ended(self) -> str:
        """Why the search ended."""
        if self.search is not None:
            done = self.complete and self.fooled.sum() == self.attacked.sum()
            return "all of them are fooled" if done else str(self.search.message)
        return "all right images are of the target class" if self.right.any() else "no image is right as it is"

    @property
    def perturbation(self) -> NDArray[np.float64]:
        """In the layout of the images."""
        return np.asarray(self.stack.to_user(self.theta[None])[0])

    @property
    def images(self) -> NDArray[np.float32]:
        """The attacked images, in the layout that they came in."""
        return self.stack.to_user(self.stack.attacked(self.theta))

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

    @property
    def complete(self) -> bool:
        """Whether the search ended as it should; if not, `ended` says what happened, and little is proved."""
        return self.search is None or self.search.success

    def promises(self) -> dict[str, bool]:
        """What users of sparse attacks ask for, each checked on the numbers themselves."""
        low, high = self.stack.limits
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
            f"<{int(self.fooled.sum())} of {int(self.attacked.sum())} images fooled, {counts}, l2 {self.l2:.3g}, "
            f"{self.queries} queries{'' if self.complete else ', ended early'}>"
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

    Images that the classifier gets wrong as they are cost one query each, and are then left alone. If the search
    ends early, because the model fails, a warning says so, and so does ``complete`` of the result; with a run
    folder, it raises, and the same call goes on.

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
    held = stack(images, model, layout=layout, bounds=None if bounds is None else model.bounds)
    true = labels_for(labels, held.n, codes=model.codes)
    if targeted is not None:
        labels_for(targeted, held.n, what="targeted", codes=model.codes)
    method = FewPixel(held.grid) if isinstance(attack, str) and attack == "best" else attack
    fixed: dict[str, Any] = {
        "bounds": (-held.width, held.width),
        "groups": held.groups if granularity == "pixel" else None,
    }
    whole = Universal(model, held, true)
    looks = Looks(whole, budget, search.get("retries", 0), search.get("backoff", 0.1), search.get("run"))
    _check(held, k, {"method": method, "seed": seed, **fixed, **search})  # before anything is paid
    clean = looks.before()
    labels_for(labels, held.n, clean.shape[1], codes=model.codes)
    targets = None
    if targeted is not None:
        targets = labels_for(targeted, held.n, clean.shape[1], "targeted", codes=model.codes)
    before = np.asarray(clean.argmax(axis=1))
    chosen = np.flatnonzero((before == true) if targets is None else (before == true) & (targets != true))
    theta, found = np.zeros(held.d), None
    if chosen.size:
        part = Stack(held.flat[chosen], held.shape, held.layout, held.given, held.bounds, held.declared)
        problem = Universal(model, part, true[chosen], None if targets is None else targets[chosen])
        problem.forgiving = search.get("on_nan") == "worst"
        try:
            found = minimize(problem, None, k, budget=looks.search, method=method, seed=seed, **fixed, **search)
        except ValueError as error:
            if f"budget = {looks.search} " not in str(error):
                raise
            kept = budget - looks.search
            raise ValueError(f"of the budget of {budget}, {kept} are kept for the two looks: {error}") from None
        theta = np.array(found.x)
        if search.get("run") is not None and not found.success and found.status is not Status.DIVERGED:
            cause = None if found.failure is None else found.failure.error
            raise Stopped(f"the search ended early: {found.message}. Nothing is lost: the same call goes on") from cause
        if not found.success:
            warnings.warn(f"the search ended early, and says little: {found.message}", RuntimeWarning, stacklevel=2)
    after = before
    if chosen.size:
        told = looks.after(theta, found.nfev if found else 0, forgiving=search.get("on_nan") == "worst")
        after = np.where(np.isnan(told).any(axis=1), before, told.argmax(axis=1))  # no numbers: not fooled
    queries = max(model.queries, looks.spent + (0 if found is None else found.nfev))  # other sessions and processes too
    made = Attacked(theta, k, granularity, budget, held, true, targets, before, after, queries, found, model)
    broken = [promise for promise, kept in made.promises().items() if not kept]
    if broken:
        raise RuntimeError(f"the attack broke what it promises, which is a fault in zerothresh: {', '.join(broken)}")
    return made


_BESIDE = (  # not the search's own
    *("workers", "chunk", "retries", "backoff", "timeout", "max_time", "cost", "max_cost"),
    *("callback", "progress", "run", "fsync"),
)


def _check(held: Stack, k: int, arguments: dict[str, Any]) -> None:
    """Refuse what `minimize` would refuse."""
    names = ("retries", "backoff", "max_time", "on_nan")
    check.function("callback", arguments.get("callback"), "callback(progress)")
    Faults(**{name: arguments[name] for name in names if name in arguments})
    own = {name: value for name, value in arguments.items() if name not in _BESIDE}
    Optimizer(held.d, k, n=held.n, budget=10**12, **own)

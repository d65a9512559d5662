"""The attack as an `EvasionAttack` of the Adversarial Robustness Toolbox (ART)."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerothresh.attack.attacked import Attacked
from zerothresh.attack.universal_attack import universal
from zerothresh.basics import check

Base: Any = object
_requirements: tuple[Any, ...] = ()
try:
    from art.attacks.attack import EvasionAttack
    from art.estimators.classification.classifier import ClassifierMixin
    from art.estimators.estimator import BaseEstimator

    Base, _requirements = EvasionAttack, (BaseEstimator, ClassifierMixin)
except ImportError:
    pass  # the error is raised when an attack is made


class ZeroThreshAttack(Base):  # type: ignore[misc]  # ART has no types
    """One sparse perturbation for all images that are given to ``generate``, from the classifier's scores alone.

    Arguments
    ---------
    classifier: an ART classifier with ``clip_values``.
    k: the most pixels (or channels) that are changed; 20 by default.
    budget: the most queries in each call of ``generate``; a query is one image. 6000 by default.
    granularity: "pixel" or "channel".
    targeted: whether ``y`` are the classes that the images should be taken for.
    attack, seed: as in `zt.attack.universal`.

    ``generate(x, y)`` returns the attacked images; ``found`` is then the `Attacked` of `zt.attack.universal`. Without
    ``y`` the classifier's own predictions are taken as the true classes, which costs n more queries, as in other
    attacks of ART.
    """

    attack_params = (*getattr(Base, "attack_params", ()), "k", "budget", "granularity", "targeted", "attack", "seed")
    _estimator_requirements = _requirements

    def __init__(
        self,
        classifier: Any,
        k: int = 20,
        budget: int = 6000,
        granularity: str = "pixel",
        targeted: bool = False,
        attack: Any = "best",
        seed: int | None = None,
    ) -> None:
        if Base is object:
            raise ImportError(
                "ZeroThreshAttack needs the Adversarial Robustness Toolbox: pip install adversarial-robustness-toolbox"
            )
        super().__init__(estimator=classifier)
        self.k, self.budget, self.granularity = k, budget, granularity
        self.attack, self.seed = attack, seed
        self._targeted = self.targeted = targeted
        self.found: Attacked | None = None
        self._check_params()

    def generate(self, x: Any, y: Any = None, **kwargs: Any) -> Any:
        """Attack images.

        Arguments
        ---------
        x: images of shape (n, ...).
        y: classes of shape (n,), (n, 1) or one-hot of shape (n, classes); None for the classifier's predictions.
        kwargs: ignored, as ART passes arguments of other attacks.

        Returns
        -------
        The attacked images, in the layout, value range and dtype of ``x``.
        """
        if self.targeted and y is None:
            raise ValueError("a targeted attack needs y, the classes that the images should be taken for")
        predicted = np.argmax(self.estimator.predict(x), axis=1) if y is None or self.targeted else None
        given = None if y is None else np.asarray(y)
        if given is not None and given.ndim == 2:
            given = given[:, 0] if given.shape[1] == 1 else given.argmax(axis=1)
        self.found = universal(
            self.estimator,
            x,
            given if predicted is None else predicted,
            k=self.k,
            budget=self.budget,
            granularity=self.granularity,
            targeted=given if self.targeted else None,
            attack=self.attack,
            seed=self.seed,
        )
        return self.found.images.astype(np.asarray(x).dtype)

    def _check_params(self) -> None:
        check.count("k", self.k)
        check.count("budget", self.budget)
        check.one_of("granularity", self.granularity, ("pixel", "channel"))
        check.flag("targeted", self.targeted)

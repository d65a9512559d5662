"""The attack as the Adversarial Robustness Toolbox knows attacks, for use in its own evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerothresh.attack.universal_attack import Attacked, universal
from zerothresh.basics import check

Base: Any = object
_requirements: tuple[Any, ...] = ()
try:
    from art.attacks.attack import EvasionAttack
    from art.estimators.classification.classifier import ClassifierMixin
    from art.estimators.estimator import BaseEstimator

    Base, _requirements = EvasionAttack, (BaseEstimator, ClassifierMixin)
except ImportError:
    pass  # said when an attack is made


class ZeroThreshAttack(Base):  # type: ignore[misc]  # ART has no types
    """One sparse perturbation for all images that are given to ``generate``, from the scores alone.

    Arguments
    ---------
    classifier: of ART, with ``clip_values``.
    k: the most pixels (or channels) that are changed.
    budget: the most images that the classifier is asked for, in each ``generate``.
    granularity: "pixel" or "channel".
    targeted: whether ``y`` are the classes that the images shall be taken for.
    attack, seed: as in `zt.attack.universal`.

    ``generate(x, y)`` gives the attacked images; ``found`` then says what the attack did. Without ``y`` the
    classifier's own answers are taken as the true classes, which costs n queries more, as in other attacks of ART.
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
                "ZeroThreshAttack is an attack of the Adversarial Robustness Toolbox: pip install "
                "adversarial-robustness-toolbox"
            )
        super().__init__(estimator=classifier)
        self.k, self.budget, self.granularity = k, budget, granularity
        self.attack, self.seed = attack, seed
        self._targeted = self.targeted = targeted
        self.found: Attacked | None = None
        self._check_params()

    def generate(self, x: Any, y: Any = None, **kwargs: Any) -> Any:
        """The attacked images, in the layout and the value range of ``x``."""
        own = np.argmax(self.estimator.predict(x), axis=1) if y is None or self.targeted else None
        if self.targeted and y is None:
            raise ValueError("a targeted attack needs y, the classes that the images shall be taken for")
        given = None if y is None else np.asarray(y)
        if given is not None and given.ndim == 2:
            given = given[:, 0] if given.shape[1] == 1 else given.argmax(axis=1)
        self.found = universal(
            self.estimator,
            x,
            given if own is None else own,
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

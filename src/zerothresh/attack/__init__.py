"""Universal few-pixel attacks: one sparse perturbation for many images, from a classifier's scores alone."""

from typing import Any

from zerothresh.attack.classifier import Classifier, wrap
from zerothresh.attack.digits import digits
from zerothresh.attack.few_pixel import FewPixel
from zerothresh.attack.problem import Universal
from zerothresh.attack.universal import Attacked, universal

__all__ = ["Attacked", "Classifier", "FewPixel", "Universal", "digits", "universal", "wrap"]


def __getattr__(name: str) -> Any:
    """`ZeroThreshAttack`, which needs the Adversarial Robustness Toolbox, is made when it is asked for."""
    if name == "ZeroThreshAttack":
        from zerothresh.attack.art import ZeroThreshAttack

        return ZeroThreshAttack
    raise AttributeError(f"zerothresh.attack has no {name!r}")

"""Universal few-pixel attacks: one sparse perturbation for many images, from a classifier's scores alone."""

from typing import Any

from zerothresh.attack.attack_path import AttackPath
from zerothresh.attack.attacked import Attacked
from zerothresh.attack.classifier import Classifier, wrap
from zerothresh.attack.digits_demo import digits
from zerothresh.attack.few_pixel import FewPixel
from zerothresh.attack.universal_attack import universal
from zerothresh.attack.universal_problem import Universal

__all__ = ["AttackPath", "Attacked", "Classifier", "FewPixel", "Universal", "digits", "universal", "wrap"]


def __getattr__(name: str) -> Any:
    """Import `ZeroThreshAttack` when it is asked for, because it needs the Adversarial Robustness Toolbox."""
    if name == "ZeroThreshAttack":
        from zerothresh.attack.art_attack import ZeroThreshAttack

        return ZeroThreshAttack
    raise AttributeError(f"module 'zerothresh.attack' has no attribute {name!r}")

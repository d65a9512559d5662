"""From the argument ``loss`` to a loss."""

from __future__ import annotations

from typing import Any

from zerothresh.basics import check
from zerothresh.losses.elementwise import Cauchy, Custom, Huber, Itself, Loss, Poisson, Quantile, Squared

_BY_NAME: dict[str, type[Loss]] = {"squared": Squared, "huber": Huber, "cauchy": Cauchy, "quantile": Quantile}
NAMES = (*_BY_NAME, "poisson")


def loss_of(given: Any) -> Loss:
    """Return the loss that an argument names, is, or describes.

    Arguments
    ---------
    given: a name of `NAMES`; a loss of `zerothresh.losses`; a function of an array of outputs, elementwise; or an
        object with ``value(r)`` and perhaps ``derivative(r)`` and ``second(r)``. None is the squared loss.

    >>> loss_of("huber")
    Huber(delta=1.0)
    """
    if given is None:
        return Squared()
    if isinstance(given, (Squared, Huber, Cauchy, Quantile, Poisson, Itself, Custom)):
        return given
    if isinstance(given, str):
        name = check.one_of("loss", given, NAMES)
        if name == "poisson":
            raise ValueError(
                "loss='poisson' needs the counts: pass loss=zt.losses.Poisson(counts), and let the function return the "
                "logarithms of the predicted rates"
            )
        return _BY_NAME[name]()
    if isinstance(given, type):
        raise ValueError(f"loss must be an instance, not the class {given.__name__}: pass {given.__name__}(...)")
    if check.has_function(given, "value"):
        parts = [getattr(given, name) if check.has_function(given, name) else None for name in ("derivative", "second")]
        return Custom(given.value, *parts)
    if callable(given):
        check.function("loss", given, "loss(r)")
        return Custom(given)
    raise ValueError(
        f"loss must be one of {', '.join(map(repr, NAMES))}, a loss of zt.losses, a function of an array of outputs, "
        f"or an object with value(r), not {check.shown(given)}"
    )

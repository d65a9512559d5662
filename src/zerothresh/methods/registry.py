"""What a method is, and the register of methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.rounds.method import Method

Array = NDArray[np.float64]


M = TypeVar("M", bound=type)
_registered: dict[str, type] = {}


def register(name: str) -> Callable[[M], M]:
    """Make a method known by name: ``@register("my-method")`` above the class."""

    def add(method: M) -> M:
        known = _registered.get(name)
        if known is not None and known.__qualname__ != method.__qualname__:
            raise ValueError(f"a method named {name!r} is registered already: {known.__qualname__}")
        for function in ("init", "plan", "update"):
            if not callable(getattr(method, function, None)):
                raise ValueError(f"the method {name!r} needs a function {function!r}: see zerothresh.rounds.method")
        _registered[name] = method
        return method

    return add


_FIRST = (
    *("auto", "fgzoht", "szoht", "pm-szht", "p-saga-szht", "saga-szht", "lsvrg-szht", "vr-szht", "sarah-szht"),
    *("niht", "htp", "index", "guided-saga"),  # the parts of auto
    *("sarah-plus", "hzo-ht", "szoht-theory", "ht-es", "zoro", "ada-zoro", "grace", "rspgf", "zscg", "zo-prox-svrg"),
    *("zo-sgd", "zo-svrg", "zo-spider", "zo-adamm", "sparse-rs", "es-swaps", "outside"),
)


def available() -> dict[str, type]:
    """All methods by name: the default, the paper's, our own, the state of the art, then others as registered."""
    return {name: _registered[name] for name in dict.fromkeys((*_FIRST, *_registered)) if name in _registered}


def name_of(method: Any) -> str:
    """The name that a method is registered under, or its class's."""
    for name, known in _registered.items():
        if type(method) is known:
            return name
    return type(method).__name__


def make(method: Any, options: dict[str, Any] | None = None) -> Method:
    """A method from an instance, or from a name (or class) and its hyper-parameters."""
    if isinstance(method, str):
        check.one_of("method", method.lower().replace("_", "-"), available())
        method = _registered[method.lower().replace("_", "-")]
    if isinstance(method, type):
        name = next((n for n, m in _registered.items() if m is method), method.__name__)
        parameters = inspect.signature(method).parameters
        for option in options or {}:
            if option not in parameters:
                check.one_of(f"a hyper-parameter of {name}", option, parameters)
        missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in (options or {})]
        if missing:
            raise ValueError(
                f"{name} needs {' and '.join(missing)}: pass an instance, "
                f"method=zt.{method.__name__}({', '.join(f'{m}=...' for m in missing)}), or the name with "
                f"options={{{', '.join(f'{m!r}: ...' for m in missing)}}}"
            )
        made: Method = method(**(options or {}))
        return made
    if options:
        raise ValueError("hyper-parameters go with a method's name, not with an instance")
    for function in ("init", "plan", "update"):
        if not callable(getattr(method, function, None)):
            raise ValueError(
                f"method must be a name ({', '.join(_registered)}) or an instance of a method, not {method!r}"
            )
    instance: Method = method
    return instance

"""The register of methods: from a name to a class, and from a name with options to an instance.

A class of the library says which family it belongs to (``family``), where it stands within it (``order``), and, in the
literature, under which heading it is listed (``topic``). `available`, the page of all methods and the command
``zerothresh methods`` follow these, so that no list of names has to be kept anywhere.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from zerothresh.basics import check
from zerothresh.rounds.method import Method, own_search

YOUR_OWN = "your own"
# The families in the order in which they are listed, each with its heading.
FAMILIES = {
    "auto": "The default",
    "residual": "Methods for calls that return all residuals",
    "paper": "Methods of the paper",
    "parts of auto": "Parts of auto",
    "literature": "Methods from the literature",
    "external": "Solvers of other packages",
    YOUR_OWN: "Your own methods",
}

M = TypeVar("M", bound=type)
_registered: dict[str, type] = {}


def register(name: str) -> Callable[[M], M]:
    """Make a class available under a name: write ``@register("my-method")`` above it.

    Arguments
    ---------
    name: str, in lower case with hyphens. It must not be taken by another class.

    Returns a decorator that gives back the class as it is. It raises ValueError if the name is taken, or if the class
    is no method.
    """

    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name must be a string, in lower case with hyphens, not {check.shown(name)}")

    shown = check.shown(name)

    def add(method: M) -> M:
        if not isinstance(method, type):
            raise ValueError(f"only a class can be registered as the method {shown}, not {check.shown(method)}")
        known = _registered.get(name)
        if known is not None and known.__qualname__ != method.__qualname__:
            raise ValueError(
                f"The name {shown} is taken by the method {known.__qualname__}: register yours under another name."
            )
        if missing := missing_functions(method):
            raise ValueError(
                f"The method {shown} has no {' and no '.join(missing)}: a method has the three functions init, plan "
                "and update, or derives from zt.Program and has a function search. CONTRIBUTING.md shows an example."
            )
        _registered[name] = method
        return method

    return add


def missing_functions(method: Any) -> list[str]:
    """The functions that a class or an instance lacks to be a method; empty if it is one.

    A method has ``init``, ``plan`` and ``update``, or one function ``begin``, which starts its search.
    """
    three = ["init", "plan", "update"]
    try:
        if own_search(method) is not None:
            return []
        return [name for name in three if not callable(getattr(method, name, None))]
    except Exception:  # an object whose attributes cannot be read
        return three


def family_of(method: type) -> str:
    """The family that a class declares for itself, a key of `FAMILIES`.

    A class without a declaration of its own is "your own", also where it derives from a method of the library.
    """
    family = vars(method).get("family")
    return family if isinstance(family, str) and family in FAMILIES else YOUR_OWN


def needs_outputs(method: Any) -> bool:
    """Whether a method needs the residuals of each call, ``outputs="residuals"``; most need values only."""
    return bool(getattr(method, "needs_outputs", False))


def available() -> dict[str, type]:
    """All registered methods, by name.

    Returns a dict from name to class: family by family in the order of `FAMILIES`, within a family by the classes'
    ``order``, and classes without one in the order in which they were registered.
    """
    ranks = {family: rank for rank, family in enumerate(FAMILIES)}

    def place(name: str) -> tuple[int, float]:
        method = _registered[name]
        family = family_of(method)
        return ranks[family], math.inf if family == YOUR_OWN else vars(method).get("order", math.inf)

    return {name: _registered[name] for name in sorted(_registered, key=place)}


def name_of(method: Any) -> str:
    """The name that an instance's class is registered under, or else the name of the class."""
    for name, known in _registered.items():
        if type(method) is known:
            return name
    return type(method).__name__


def registered_name(name: str, *, argument: str = "method") -> str:
    """The registered name that a user means; upper case and underscores are forgiven.

    Raises ValueError, which names the user's ``argument`` and what was given, if there is no such method.
    """
    known = name.lower().replace("_", "-")
    return known if known in _registered else check.one_of(argument, name, available())


def missing_parameters(method: type, options: Iterable[str]) -> list[str]:
    """The hyper-parameters of a class that have no default and are not among the options."""
    parameters = inspect.signature(method).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.name not in options]


def make(method: Any, options: dict[str, Any] | None = None) -> Method:
    """Make a method from its name or class and its hyper-parameters.

    Arguments
    ---------
    method: a registered name (upper case and underscores are forgiven), a class, or an instance, which is given back
        as it is.
    options: dict of hyper-parameters for a name or a class. Default: none.

    Returns an instance. It raises ValueError for an unknown name, an unknown or missing hyper-parameter, or an object
    that is no method.
    """
    given = _options(options)
    if isinstance(method, str):
        method = _registered[registered_name(method)]
    if missing_functions(method):
        raise ValueError(
            f"method must be a name ({', '.join(available())}) or an instance of a method, not {check.shown(method)}"
        )
    if isinstance(method, type):
        if getattr(method, "_is_protocol", False) or inspect.isabstract(method):
            raise ValueError(
                f"method must be a class that can be used, but {method.__name__} only says what a method has"
            )
        return _plain(_instance(method, given))
    if given:
        raise ValueError(
            "options are the hyper-parameters for a method that is given by name; "
            f"this one is an instance, {check.shown(method)}, which has its own: set them there."
        )
    instance: Method = method
    return _plain(instance)


def _options(options: Any) -> dict[str, Any]:
    """Check that options are hyper-parameters by name; None means that there are none."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ValueError(
            f"options must be a dict of hyper-parameters by name, such as {{'eta': 0.1}}, not {check.shown(options)}"
        )
    for name in options:
        if not isinstance(name, str):
            raise ValueError(f"options must have the names of hyper-parameters as keys, not {check.shown(name)}")
    return dict(options)


def _plain(method: Method) -> Method:
    """Return a method whose hyper-parameters are plain numbers where they were scalars of NumPy or the like.

    Such scalars pass the checks, but not all of them can be hashed, kept in a run folder, or multiplied with an array.
    """
    if not dataclasses.is_dataclass(method):
        return method
    values = {field.name: getattr(method, field.name) for field in dataclasses.fields(method) if field.init}
    plain = {name: check.plain_scalar(value) for name, value in values.items()}
    changed = {name: value for name, value in plain.items() if value is not values[name]}
    return dataclasses.replace(method, **changed) if changed else method


def _instance(method: type, options: dict[str, Any]) -> Method:
    """An instance of a class, with messages that name the class's hyper-parameters."""
    name = next((name for name, known in _registered.items() if known is method), method.__name__)
    parameters = inspect.signature(method).parameters
    for option in options:
        if not parameters:
            raise ValueError(
                f"{name} has no hyper-parameters, but {option!r} was given: leave it out, or choose another method"
            )
        if option not in parameters:
            check.one_of(f"a hyper-parameter of {name}", option, parameters)
    missing = missing_parameters(method, options)
    if missing:
        raise ValueError(
            f"{name} needs {' and '.join(missing)}: pass an instance, "
            f"method={example_of(method, missing)}, or the name with "
            f"options={{{', '.join(f'{m!r}: ...' for m in missing)}}}"
        )
    made: Method = method(**options)
    return made


def example_of(method: type, parameters: Iterable[str]) -> str:
    """How a user writes an instance of a class with some hyper-parameters: ``zt.FGZOHT(eta=...)``."""
    family = family_of(method)
    prefix = {"paper": "zt.", YOUR_OWN: ""}.get(family, "zt.methods.")
    return f"{prefix}{method.__name__}({', '.join(f'{name}=...' for name in parameters)})"

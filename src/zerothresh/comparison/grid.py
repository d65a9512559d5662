"""Turn what a user writes (names, classes or instances, and a grid of hyper-parameters) into lists of methods."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from zerothresh.methods.registry import (
    available,
    example_of,
    make,
    missing_functions,
    missing_parameters,
    name_of,
    registered_name,
)
from zerothresh.rounds.method import Method

MOST_POINTS = 100_000  # of one method's grid, each of which is run at least once


def contestants(given: Any, grid: Mapping[str, Any] | None = None) -> dict[str, list[Method]]:
    """Return the methods to compare, by label: one method for each point of the grid.

    Arguments
    ---------
    given: the methods, as `compare` takes them.
    grid: lists of values by hyper-parameter, or None.

    >>> import zerothresh as zt
    >>> contestants(["fgzoht", zt.SZOHT(eta=1.0, batch=4)], {"eta": [0.1, 0.2]})["szoht"]
    [SZOHT(eta=0.1, batch=4), SZOHT(eta=0.2, batch=4)]
    """
    if grid is not None and not isinstance(grid, Mapping):
        raise ValueError(
            f"grid must be a dict of lists by hyper-parameter, such as {{'eta': [0.01, 0.1]}}, not {grid!r}"
        )
    points = {name: _values(name, values) for name, values in (grid or {}).items()}
    if isinstance(given, (str, type)) or not missing_functions(given):
        given = [given]
    is_scalar = isinstance(given, np.ndarray) and given.ndim == 0
    if not isinstance(given, Iterable) or isinstance(given, (bytes, set, frozenset)) or is_scalar:
        raise ValueError(f"methods must be a list of names, classes or instances, or a dict by label, not {given!r}")
    # One after the other, so that the first one that is no method is refused, however many follow.
    pairs = given.items() if isinstance(given, Mapping) else ((_label(method), method) for method in given)
    own: dict[str, tuple[Any, dict[str, list[Any]]]] = {}
    for label, method in pairs:
        if not isinstance(label, str):
            raise ValueError(f"a method's label must be a string, not {label!r}")
        if label in own:
            raise ValueError(
                f"two methods are called {label!r}: give them labels, methods={{'one': ..., 'other': ...}}"
            )
        if _is_list(method) and not 0 < _length(method) <= MOST_POINTS:
            size = "is empty" if not method else f"is longer than {MOST_POINTS:,}"
            raise ValueError(f"the list of methods for {label!r} {size}")
        known = _parameters(method)
        own[label] = method, {name: values for name, values in points.items() if name in known}
    if not own:
        raise ValueError("there are no methods to compare: name some, such as ['szoht', 'vr-szht']")
    for name in points:
        if not any(name in used for _, used in own.values()):
            all_known = {parameter for method, _ in own.values() for parameter in _parameters(method)}
            near = difflib.get_close_matches(name, sorted(all_known)) if isinstance(name, str) else []
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(f"grid has {name!r}, which is a hyper-parameter of none of {', '.join(own)}{hint}")
    for label, (_, used) in own.items():
        if (points_of_it := math.prod(len(values) for values in used.values())) > MOST_POINTS:
            raise ValueError(
                f"the grid of {label!r} has {points_of_it:,} points, and at most {MOST_POINTS:,} are allowed: try "
                "fewer values"
            )
    return {label: _all(method, used) for label, (method, used) in own.items()}


def _all(method: Any, grid: Mapping[str, Sequence[Any]]) -> list[Method]:
    """Return one method for each point of the grid; a list of methods is a grid by itself."""
    return [_made(one, {}) for one in method] if _is_list(method) else [_made(method, point) for point in _points(grid)]


def _is_list(method: Any) -> bool:
    """Return whether a list of methods stands in the place of a single one."""
    return isinstance(method, Sequence) and not isinstance(method, str)


def _values(name: str, values: Any) -> list[Any]:
    """Return the values to try as plain Python numbers, because they are printed and written to files."""
    listed = values.tolist() if isinstance(values, np.ndarray) and values.ndim == 1 else values
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence) or not listed:
        raise ValueError(f"grid[{name!r}] must be a list of values to try, not {values!r}")
    if _length(listed) > MOST_POINTS:
        raise ValueError(f"grid[{name!r}] has more than {MOST_POINTS:,} values, which are too many to try all of them")
    return [value.item() if isinstance(value, np.generic) else value for value in listed]


def _length(given: Sequence[Any]) -> float:
    """Return the length of a sequence, which is infinite if Python cannot count that far."""
    try:
        return len(given)
    except OverflowError:
        return math.inf


def _points(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _parameters(method: Any) -> Sequence[str]:
    """Return the names of the hyper-parameters of a method."""
    if isinstance(method, str):
        method = available()[registered_name(method)]
    if isinstance(method, type):
        if missing := missing_functions(method):
            raise ValueError(f"{method.__name__} is not the class of a method: it has no function {missing[0]!r}")
        return list(inspect.signature(method).parameters)
    if _is_list(method):
        return []
    make(method)  # refuses what is not a method
    return [field.name for field in dataclasses.fields(method)] if dataclasses.is_dataclass(method) else []


def _made(method: Any, point: dict[str, Any]) -> Method:
    """Return a method with the hyper-parameters of a point of the grid."""
    if isinstance(method, (str, type)):
        kind = available()[registered_name(method)] if isinstance(method, str) else method
        if missing := missing_parameters(kind, point):
            raise ValueError(
                f"{_label(method)} needs {' and '.join(missing)}: pass values to try, "
                f"grid={{{', '.join(f'{name!r}: [...]' for name in missing)}}}, or an instance, "
                f"{example_of(kind, missing)}"
            )
        return make(method, point)
    made: Method = dataclasses.replace(make(method), **point) if point else make(method)  # type: ignore[type-var]
    return made


def _label(method: Any) -> str:
    """Return the label of a method that was given without one."""
    if isinstance(method, str):
        return method
    if isinstance(method, Sequence) and len(method):
        method = method[0]
    if isinstance(method, type):
        return next((name for name, known in available().items() if known is method), method.__name__)
    own = getattr(method, "label", None)  # one class may stand for several methods
    return own if isinstance(own, str) else name_of(method)

"""From what a researcher writes to lists of methods: names, classes or instances, and a grid of hyper-parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from zerothresh.methods.base import Method, make, methods, name_of


def contestants(given: Any, grid: Mapping[str, Sequence[Any]] | None = None) -> dict[str, list[Method]]:
    """For each label, its methods, one for each point of the grid.

    >>> import zerothresh as zt
    >>> contestants(["szoht", zt.VRSZHT(eta=1.0, m=10)], {"eta": [0.1, 0.2]})["vr-szht"]
    [VRSZHT(eta=0.1, m=10, output='last', batch=1), VRSZHT(eta=0.2, m=10, output='last', batch=1)]
    """
    points = {} if grid is None else dict(grid)
    for name, values in points.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or len(values) == 0:
            raise ValueError(f"grid[{name!r}] must be a list of values to try, not {values!r}")
    if isinstance(given, (str, type)) or hasattr(given, "plan"):
        given = [given]
    pairs = given.items() if isinstance(given, Mapping) else [(_label(method), method) for method in given]
    out: dict[str, list[Method]] = {}
    used: set[str] = set()
    for label, method in pairs:
        if label in out:
            raise ValueError(f"two methods are called {label!r}: name them, methods={{'one': ..., 'other': ...}}")
        if isinstance(method, Sequence) and not isinstance(method, str):
            out[label] = [make(one) for one in method]
        else:
            own = [name for name in points if name in _parameters(method)]
            used |= set(own)
            out[label] = [_made(method, point) for point in _points({name: points[name] for name in own})]
        if not out[label]:
            raise ValueError(f"the list of methods for {label!r} is empty")
    if not out:
        raise ValueError("there are no methods to compare: name some, such as ['szoht', 'vr-szht']")
    for name in points:
        if name not in used:
            raise ValueError(f"grid has {name!r}, which is a hyper-parameter of none of {', '.join(out)}")
    return out


def _points(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _parameters(method: Any) -> Sequence[str]:
    if isinstance(method, str):
        method = methods().get(method.lower().replace("_", "-"), method)
    if isinstance(method, type):
        return list(inspect.signature(method).parameters)
    return [field.name for field in dataclasses.fields(method)] if dataclasses.is_dataclass(method) else []


def _made(method: Any, point: dict[str, Any]) -> Method:
    if isinstance(method, (str, type)):
        return make(method, point)
    made: Method = dataclasses.replace(make(method), **point) if point else make(method)  # type: ignore[type-var]
    return made


def _label(method: Any) -> str:
    if isinstance(method, str):
        return method
    if isinstance(method, Sequence) and len(method):
        method = method[0]
    if isinstance(method, type):
        return next((name for name, known in methods().items() if known is method), method.__name__)
    return name_of(method)

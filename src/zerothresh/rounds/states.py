"""The state of a method as arrays by name, which a snapshot keeps, and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = "biufU"  # dtypes that a state may hold: no objects, so nothing is ever unpickled

Arrays = dict[str, NDArray[Any]]


class StateError(ValueError):
    """A state that cannot be kept, or arrays that do not fit a state."""


def flatten(state: Any, prefix: str = "state") -> Arrays:
    """Return a state (a dataclass of arrays, numbers, strings and such dataclasses) as arrays by their path."""
    out: Arrays = {}
    for field in dataclasses.fields(state):
        value, name = getattr(state, field.name), f"{prefix}.{field.name}"
        if dataclasses.is_dataclass(value):
            out |= flatten(value, name)
            continue
        array = np.asarray(value)
        if array.dtype.kind not in KINDS:
            raise StateError(
                f"the method's state has {field.name} = {value!r}; a run folder can keep arrays, numbers, strings "
                "and dataclasses of these"
            )
        out[name] = array
    return out


def restore(template: Any, arrays: Arrays, prefix: str = "state") -> Any:
    """Return a state like the template with the values of a snapshot, whose kinds and dimensions must fit."""
    fields = {}
    for field in dataclasses.fields(template):
        old, name = getattr(template, field.name), f"{prefix}.{field.name}"
        if dataclasses.is_dataclass(old):
            fields[field.name] = restore(old, arrays, name)
            continue
        if name not in arrays:
            raise StateError(f"the snapshot has no {name}")
        array, like = arrays[name], np.asarray(old)
        if array.dtype.kind != like.dtype.kind or array.ndim != like.ndim:
            raise StateError(
                f"the snapshot's {name} is {array.dtype} {array.shape}, not like {like.dtype} {like.shape}"
            )
        if isinstance(old, np.ndarray):
            array.flags.writeable = False
            fields[field.name] = array
        else:
            fields[field.name] = array.item()
    return type(template)(**fields)

"""Which run a folder belongs to: what must not change when it goes on."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from zerothresh.methods.registry import name_of
from zerothresh.rounds.task import Task
from zerothresh.runs.errors import RunError


def identity_of(task: Task, problem: str | None) -> dict[str, Any]:
    """Method, parameters, seed, start and problem, in words that JSON can keep."""
    constraint = task.constraint
    box = None if constraint.bounds is None else [constraint.bounds.low, constraint.bounds.high]
    return {
        "method": name_of(task.method),
        "options": plain(task.method),
        "estimator": plain(task.estimator),
        "seed": task.seed,
        "d": task.d,
        "n": task.n,
        "k": constraint.k,
        "start": digest(task.theta0),
        "bounds": plain(box),
        "include": plain(constraint.include),
        "exclude": plain(constraint.exclude),
        "groups": plain(constraint.groups),
        "monitored": task.reserve == 0,
        "problem": problem,
    }


def plain(value: Any) -> Any:
    """A value as JSON: dataclasses by their fields, arrays by a digest of their bytes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, np.ndarray):
        return digest(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return type(value).__qualname__


def digest(array: Any) -> str:
    """A short name for the bytes of an array."""
    array = np.ascontiguousarray(array)
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.blake2b(head + array.tobytes(), digest_size=12).hexdigest()


def fingerprint(fun: Any) -> str:
    """What can be told of a problem without calling it.

    A problem may say it itself, by an attribute or method ``fingerprint``. Else it is its name, and,
    for an object, its arrays and numbers.
    """
    own = getattr(fun, "fingerprint", None)
    if own is not None:
        return str(own() if callable(own) else own)
    name = getattr(fun, "__qualname__", None)
    if isinstance(name, str):
        return name
    parts = {}
    for key, value in sorted(getattr(fun, "__dict__", {}).items()):
        if isinstance(value, (bool, int, float, str, np.generic)) or (
            isinstance(value, np.ndarray) and value.dtype.kind in "biufcUS"
        ):
            parts[key] = plain(value)
    content = repr(sorted(parts.items())).encode()
    return f"{type(fun).__qualname__} {hashlib.blake2b(content, digest_size=8).hexdigest()}"


_WORDS = {"start": "x0", "bounds": "bounds", "monitored": "with a monitor", "options": "hyper-parameter"}


def compare(folder: Any, stored: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a run that differs, with a sentence that names the difference."""
    for key, value in now.items():
        old = stored.get(key)
        if old == value:
            continue
        if isinstance(old, dict) and isinstance(value, dict):
            for name in [*value, *(set(old) - set(value))]:
                if old.get(name) != value.get(name):
                    raise RunError(_sentence(folder, name, old.get(name), value.get(name)))
        raise RunError(_sentence(folder, _WORDS.get(key, key), old, value))


def _sentence(folder: Any, name: str, old: Any, new: Any) -> str:
    hidden = name in ("x0", "bounds", "include", "exclude", "groups")  # kept as digests, which say nothing to a reader
    what = f"another {name}" if hidden else f"{name} = {old!r}, not {new!r}"
    return f"the run in {folder} was made with {what}: go on with the same arguments, or name another folder"

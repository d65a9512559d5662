"""The identity of a run: the arguments that must not change when it is continued."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from zerothresh.losses import Custom
from zerothresh.methods.registry import name_of
from zerothresh.rounds.task import Task
from zerothresh.runs.errors import RunError

ABSENT = {
    "parallel": 1,
    "constraint": None,
}  # what an entry means that is not there: folders of older versions do not have these


def identity_of(task: Task, problem: str | None) -> dict[str, Any]:
    """Return the identity of a run as a JSON object: method, parameters, seed, start, constraint and problem.

    Arguments
    ---------
    task: the task of the run.
    problem: the `fingerprint` of the objective, or None if it is not known.
    """
    constraint = task.constraint
    box = None if constraint.bounds is None else [constraint.bounds.low, constraint.bounds.high]
    identity = {
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
    if constraint.further is not None:
        identity["constraint"] = plain(constraint.further.identity() | {"strict": constraint.strict})
    if task.width != ABSENT["parallel"]:
        identity["parallel"] = task.width
    if task.outputs is not None:  # their number is not known before the first call, and the journal tells it
        outputs = task.outputs
        identity |= {"n": None, "outputs": outputs.kind, "loss": loss_name(outputs.loss), "masked": outputs.masked}
    return identity


def loss_name(loss: Any) -> str:
    """Return what tells a loss from another one: its name and its parameters, or the name of a user's function."""
    if isinstance(loss, Custom):
        return fingerprint(loss.of)
    parameters = ", ".join(f"{key}={value}" for key, value in plain(loss).items() if key != "class")
    return f"{type(loss).__name__}({parameters})"


def plain(value: Any) -> Any:
    """Convert a value to JSON: a dataclass becomes an object of its fields, and an array a digest of its bytes.

    A value of any other type that JSON lacks becomes the name of its type.
    """
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
    """Return a digest, 24 hexadecimal digits, of the type, shape and bytes of an array."""
    array = np.ascontiguousarray(array)
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.blake2b(head + array.tobytes(), digest_size=12).hexdigest()


def fingerprint(fun: Any) -> str:
    """Identify an objective as far as possible without calling it.

    Arguments
    ---------
    fun: the function or problem object.

    Returns
    -------
    What the attribute or method ``fingerprint`` of the objective says, if it has one. Otherwise the name of a
    function, or the type of an object followed by a digest of its arrays and numbers.
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


# How a message calls the entries of an identity whose keys are not the names of arguments.
_ARGUMENTS = {"start": "x0", "options": "hyper-parameter"}


def compare(folder: Any, stored: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise `RunError` with the first difference if two identities are not the same.

    Arguments
    ---------
    folder: the run folder, for the message.
    stored: the identity in run.json.
    now: the identity of the present run.
    """
    # A constraint may change the start, too, so that it comes first.
    for key in ["constraint", *now, *(name for name in ABSENT if name not in now)]:
        value, old = now.get(key, ABSENT.get(key)), stored.get(key, ABSENT.get(key))
        if old == value:
            continue
        if key == "constraint":
            raise RunError(_difference(folder, key, old, value))
        if isinstance(old, dict) and isinstance(value, dict):
            for name in [*value, *(set(old) - set(value))]:
                if old.get(name) != value.get(name):
                    raise RunError(_difference(folder, name, old.get(name), value.get(name)))
        raise RunError(_difference(folder, _ARGUMENTS.get(key, key), old, value))


def _difference(folder: Any, name: str, old: Any, new: Any) -> str:
    """Describe a difference between the stored argument and the present one."""
    hidden = name in (
        "x0",
        "bounds",
        "include",
        "exclude",
        "groups",
        "constraint",
    )  # stored as digests, which tell a reader nothing
    if name == "monitored":
        what = "a monitor" if old else "no monitor"
    elif name == "masked":
        what = "on_nan='mask'" if old else "another on_nan than 'mask'"
    else:
        what = f"another {name}" if hidden else f"{name} = {old!r}, not {new!r}"
    return f"the run in {folder} was started with {what}: continue it with the same arguments, or name another folder"

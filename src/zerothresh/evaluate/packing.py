"""What goes between processes: a function as bytes, and exceptions with their traceback as text."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from zerothresh.evaluate.base import summary_of

Packed = tuple[bytes | None, str, str]


class RemoteFailure(RuntimeError):
    """The function raised an exception that cannot be sent between processes; this has its text."""


class RemoteTraceback(Exception):
    """The traceback of an exception, as text from the process that raised it."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def packed(error: BaseException) -> Packed:
    """Return an exception as its pickle (None if it has none), its summary and its traceback."""
    return _pickled(error), summary_of(error), "".join(traceback.format_exception(error))


def unpacked(pickled: bytes | None, summary: str, trace: str) -> BaseException:
    """Return the exception that a worker sent, with the traceback of its process as its cause."""
    error: Any = None
    with suppress(Exception):  # whatever an exception of the user's own raises when it is unpickled
        error = None if pickled is None else pickle.loads(pickled)  # noqa: S301  # our own worker wrote it
    if not isinstance(error, BaseException):
        error = RemoteFailure(summary)
    original: BaseException = error
    original.__cause__ = RemoteTraceback(trace)
    return original


def _pickled(error: BaseException) -> bytes | None:
    """Return an exception as bytes; None if it cannot be pickled."""
    try:
        return pickler()(error)
    except Exception:  # whatever an exception of the user's own raises when it is pickled
        return None


def pickler() -> Callable[[Any], bytes]:
    """Return cloudpickle's ``dumps`` if it is installed, which also takes lambdas and closures; else pickle's."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps
    program = sys.modules.get("__mp_main__")  # what a process of multiprocessing calls the program's own file
    if program is not None:
        cloudpickle.register_pickle_by_value(program)  # as cloudpickle does of itself with functions of __main__
    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    return dumps

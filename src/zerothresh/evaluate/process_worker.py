"""The inside of a worker process: it receives the objective once, and then evaluates points until its pipe closes."""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

from zerothresh.evaluate.base import summary_of
from zerothresh.evaluate.packing import packed

READY, REFUSED, BEGUN, VALUE, ERROR = b"ready", b"refused", b"begun", b"value", b"error"  # what a message is about
LOOK = 1.0  # seconds between two looks at whether a silent process lives: a child of its own may hold its pipe open
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl


def serve(connection: Connection, lifeline: int, parent: int, by_signal: bool) -> None:
    """Evaluate what comes through the pipe, as the main function of a worker process.

    Arguments
    ---------
    connection: this end of the pipe.
    lifeline: the descriptor of another pipe, which nobody writes to, and which closes when the parent ends.
    parent: the number of the process that started this one.
    by_signal: whether the system can tell of the parent's end by a signal, as Linux does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the parent decides
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked by the parent, so that nothing came first
    if not (by_signal and _asked_for_signal()):
        threading.Thread(target=_watch, args=(lifeline, parent), name="zerothresh-parent", daemon=True).start()
    elif os.getppid() != parent:  # it ended before the signal was asked for
        return
    with suppress(EOFError, ConnectionError):  # nobody is at the other end any more
        content = connection.recv_bytes()
        try:
            objective = pickle.loads(content)  # noqa: S301  # our own parent wrote it
        except BaseException as error:  # the function's module may raise anything while it is imported
            _send(connection, REFUSED, summary_of(error))
            return
        del content
        _send(connection, READY)
        while True:
            evaluate, known, arguments = connection.recv()
            if known is not None:
                objective.learn(known)
            _send(connection, BEGUN)
            _answer(connection, evaluate, objective, arguments)
            del arguments


def _answer(connection: Connection, evaluate: Callable[..., Any], objective: Any, arguments: Any) -> None:
    """Evaluate, and send the value or the exception."""
    process = os.getpid()
    about, answer = VALUE, None
    try:
        answer = evaluate(objective, *arguments)
    except BaseException as error:
        about, answer = ERROR, packed(error)
    _flush()
    if os.getpid() != process:  # the function has forked, and its child has come back: one of them may answer
        os._exit(0)
    try:
        _send(connection, about, answer)
    except OSError:  # nobody is at the other end
        raise
    except Exception as error:  # whatever an object raises when it is pickled; nothing has been sent by then
        _send(connection, ERROR, packed(error))


def _send(connection: Connection, about: bytes, content: Any = None) -> None:
    connection.send((about, content))


def _flush() -> None:
    """Show what the function has printed: the process may be killed before its buffers are full."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # there may be no stream, or a closed one
            stream.flush()


# The end of the parent.


def _asked_for_signal() -> bool:
    """Ask Linux for SIGKILL at the parent's end; return whether it agreed."""
    try:
        return bool(ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _watch(lifeline: int, parent: int) -> None:
    """End this process when its parent has ended; a fork of the parent may hold the lifeline open."""
    while os.getppid() == parent:
        if select.select([lifeline], [], [], LOOK)[0]:
            break
    os._exit(1)


# Modules that an import would not find.


class ModuleFiles(MetaPathFinder):
    """Finds modules that the parent has read from files of other names, as the command does with file.py:function."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


def files_of_modules() -> dict[str, str]:
    """Return the files of the modules of this process whose names do not lead to them, by name."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(getattr(module, "__spec__", None), "origin", None)
        if isinstance(file, str) and file.endswith(".py") and "." not in name and name != "__main__":
            if os.path.basename(file) not in (f"{name}.py", "__init__.py"):
                found[name] = os.path.abspath(file)
    return found

"""One worker process, seen from the process that started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from zerothresh.evaluate.base import WorkerDied, WorkerNotStarted
from zerothresh.evaluate.packing import unpacked
from zerothresh.evaluate.process_worker import BEGUN, ERROR, LOOK, READY, REFUSED, files_of_modules

BY_SIGNAL = sys.platform.startswith("linux")  # whether the system can signal a child when its parent ends
GRACE = 5.0  # seconds for a process that has nothing to do to end by itself, before it is killed
# A process is a new interpreter that imports what the objective needs. The script of the user is not among that, unlike
# with multiprocessing: it need not have `if __name__ == "__main__":`, and may come from a notebook or standard input.
_START = (
    "import sys; from multiprocessing.connection import Connection; pipe = Connection(int(sys.argv[1])); "
    "rest = [int(number) for number in sys.argv[2:]]; sys.path[:], sys.argv[:], files = pipe.recv(); "
    "from zerothresh.evaluate.process_worker import ModuleFiles, serve; sys.meta_path.append(ModuleFiles(files)); "
    "serve(pipe, *rest)"
)
REMEDY = (
    "define it at the top level of a module that can be imported, or install cloudpickle (zerothresh[processes]), "
    "which also sends lambdas, closures and functions of a script or a notebook; or use threads, as workers=8 does"
)


class EndedBeforehand(Exception):
    """A worker process ended before it began the call."""


class ProcessHandle:
    """A process that holds an objective and evaluates it.

    It must be made by a thread that outlives the process: Linux takes the end of that thread for the end of the parent.

    Arguments
    ---------
    content: bytes, the pickled objective.
    """

    def __init__(self, content: bytes) -> None:
        self._content: bytes | None = content  # until it has been sent
        self._first = True  # whether no call has returned yet
        self._known: tuple[Any, ...] | None = None  # what the process knows by now
        self._connection, theirs = multiprocessing.Pipe()
        read, self._lifeline = os.pipe()
        numbers = (theirs.fileno(), read, os.getpid(), int(BY_SIGNAL))
        flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
        command = [sys.executable, *flags, "-c", _START, *map(str, numbers)]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=numbers[:2])
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
            os.close(read)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def prepare(self) -> None:
        """Send the objective, unless it is already there, and wait until the process is ready for calls."""
        if self._content is None:
            return
        try:
            self._connection.send((sys.path, sys.argv, files_of_modules()))
            self._connection.send_bytes(self._content)
            about, why = self._receive()
        except (EOFError, OSError):
            raise EndedBeforehand(self._ending()) from None
        if about == REFUSED:
            self.end(kill=True)
            raise WorkerNotStarted(f"a worker process could not load the function ({why}): {REMEDY}")
        assert about == READY
        self._content = None

    def call(self, call: tuple[Any, tuple[Any, ...], Any], timeout: float | None) -> Any:
        """Evaluate in the process, which is ready, and return the value.

        Arguments
        ---------
        call: the function to call with the objective, what the objective has to know, and the other arguments.
        timeout: seconds after which the process is killed, or None.

        Raises what the call raised; `EndedBeforehand` or `WorkerDied` if the process ended; ``TimeoutError``.
        """
        evaluate, known, arguments = call
        news = None if self._known is not None and all(map(_same, known, self._known)) else known
        try:
            self._connection.send((evaluate, news, arguments))
            about, content = self._receive()
        except (EOFError, OSError):
            raise EndedBeforehand(self._ending()) from None
        assert about == BEGUN
        self._known = known
        try:
            about, content = self._receive(None if timeout is None else time.monotonic() + timeout)
        except (EOFError, OSError) as error:
            if isinstance(error, TimeoutError):
                self.end(kill=True)
                raise TimeoutError(
                    f"the call took longer than timeout = {timeout} s, and its process was killed{self._slow_start()}"
                ) from None
            raise WorkerDied(f"the worker process {self._ending()} during the call") from None
        self._first = False
        if about == ERROR:
            raise unpacked(*content)
        return content

    def _slow_start(self) -> str:
        """Return what a message adds about a call that may have been late because it was the first one."""
        if not self._first:
            return ""
        return "; it was the first call of that process: the timeout has to leave time for what it imports and compiles"

    def _receive(self, deadline: float | None = None) -> tuple[bytes, Any]:
        """Wait for a message; ``EOFError`` if the process has ended, ``TimeoutError`` after the deadline."""
        while True:
            left = LOOK if deadline is None else min(LOOK, deadline - time.monotonic())
            if self._connection.poll(max(0.0, left)):
                message: tuple[bytes, Any] = self._connection.recv()
                return message
            if not self.alive and not self._connection.poll():
                raise EOFError
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError

    def _ending(self) -> str:
        """Return how the process ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.end(kill=True)
        code = self._process.returncode
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = ", as the system does when memory runs out," if -code == signal.SIGKILL else ""
        return f"was killed by {name}{hint}"

    def kill(self) -> None:
        """Kill the process; any thread may do that, and the one that waits for an answer sees it end."""
        self._process.kill()

    def end(self, *, kill: bool = False) -> None:
        """Close the pipes, upon which the process ends; kill it if it does not, or at once."""
        self._close()
        if not kill:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
        self._process.kill()  # does nothing to a process that has ended
        self._process.wait()

    def _close(self) -> None:
        self._connection.close()
        lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)


def _same(one: Any, other: Any) -> bool:
    return one is other

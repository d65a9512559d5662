"""One writer a run: a lock that dies with its holder."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import open_plain

_held: set[str] = set()  # by this process, because a POSIX lock does not keep a process from itself


class Lock:
    """A POSIX record lock on the file ``lock``.

    The kernel lets go of it when the process ends, however it ends, and worker processes that were
    forked from it do not hold it. The file says who holds it, for the sentence of the refusal.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            raise RunError("run folders need POSIX file locks, which this system does not have")
        self._name = str(folder.resolve())
        if self._name in _held:
            raise RunError(f"the run {folder} is open already in this process: close that optimiser first")
        self._fd = open_plain(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            self._take()
        except OSError as error:
            holder = _holder(self._fd)
            os.close(self._fd)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise RunError(
                    f"the run {folder} is being written by {holder}: wait for it to end, or stop it, "
                    "or name another folder"
                ) from None
            raise
        _held.add(self._name)
        words = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        with suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(words).encode() + b"\n", 0)

    def _take(self) -> None:
        """Take the lock; for a moment somebody may only be looking who holds it."""
        for last in (False,) * 20 + (True,):
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if last or error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                time.sleep(0.01)

    def release(self) -> None:
        """Let go of the run."""
        if self._name in _held:
            _held.discard(self._name)
            os.close(self._fd)


def holder_of(folder: Path) -> str | None:
    """Who writes the run now, or None."""
    if str(folder.resolve()) in _held:
        return f"process {os.getpid()} (this one)"
    try:
        fd = open_plain(folder / "lock", os.O_RDONLY)
    except (OSError, RunError):
        return None
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _holder(fd)
    finally:
        os.close(fd)
    return None


def _holder(fd: int) -> str:
    try:
        words = json.loads(os.pread(fd, 4096, 0))
        return f"process {int(words['pid'])} on {words['host']!s:.100} since {words['since']!s:.40}"
    except (ValueError, KeyError, TypeError):
        return "another process"

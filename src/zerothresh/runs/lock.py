"""The lock of a run folder: one process writes it at a time, and the lock ends with that process."""

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

# The folders that this process has locked; a POSIX lock does not exclude the process that holds it.
_locked_here: set[str] = set()

_ATTEMPTS, _PAUSE = 21, 0.01  # a reader may hold the lock for a moment, so it is tried again after a pause in seconds


class Lock:
    """A POSIX record lock on the file ``lock`` of a run folder.

    The kernel releases the lock when the process ends, in whatever way it ends, and worker processes that were forked
    from it do not hold it. The file names the holder, for the message that another process gets.

    Arguments
    ---------
    folder: the run folder. Raises `RunError` if another process writes it, or if this process has it open already.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            raise RunError("run folders need POSIX file locks, which this system does not have: run without a folder")
        self._name = str(folder.resolve())
        if self._name in _locked_here:
            raise RunError(f"the run {folder} is already open in this process: close that optimizer first")
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
        _locked_here.add(self._name)
        entry = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        with suppress(OSError):  # the disk may be full; the lock is valid all the same
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(entry).encode() + b"\n", 0)

    def _take(self) -> None:
        """Take the lock; `holder_of` in another process may hold a shared lock for a moment, so try a few times."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if attempt == _ATTEMPTS or error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                time.sleep(_PAUSE)

    def release(self) -> None:
        """Release the lock."""
        if self._name in _locked_here:
            _locked_here.discard(self._name)
            os.close(self._fd)


def holder_of(folder: Path) -> str | None:
    """Describe the process that writes a run at present, or return None if there is none."""
    if str(folder.resolve()) in _locked_here:
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
    """Describe the process that the lock file names."""
    try:
        entry = json.loads(os.pread(fd, 4096, 0))
        return f"process {int(entry['pid'])} on {entry['host']!s:.100} since {entry['since']!s:.40}"
    except (ValueError, KeyError, TypeError):
        return "another process"

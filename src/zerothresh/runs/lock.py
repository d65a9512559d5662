"""The lock of a run folder: one process writes it at a time, and the lock ends with that process."""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import time
import weakref
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

from zerothresh.runs.errors import LockLost, RunError
from zerothresh.runs.paths import open_plain

_ATTEMPTS, _PAUSE = 21, 0.01  # a reader may hold the lock for a moment, so it is tried again after a pause in seconds
_MOST_BYTES = 4096  # of the lock file that are read
_HELD = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK)  # what the system says if somebody else has the lock


class Lock:
    """A lock on the file ``lock`` of a run folder, which belongs to the open file (``flock``).

    It excludes other processes and other optimisers of this process alike. Opening, copying or closing the file
    elsewhere does not release it. The kernel releases it when the process ends, in whatever way it ends, and Python
    does so when nobody holds this object any more. A forked child gives its copy up, so that the lock does not outlive
    the process that took it. The file names the holder, for the message that another process gets.

    Arguments
    ---------
    folder: the run folder. Raises `RunError` if another process writes it, or if this process has it open already.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            raise RunError("run folders need POSIX file locks, which this system does not have: run without a folder")
        self._path = folder / "lock"
        self._process = os.getpid()
        self._file = os.fdopen(open_plain(self._path, os.O_RDWR | os.O_CREAT), "r+b", buffering=0)
        _locks.add(self)
        try:
            self._take()
            entry = {"pid": self._process, "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
            with suppress(OSError):  # the disk may be full; the lock is valid all the same
                os.ftruncate(self._file.fileno(), 0)
                os.pwrite(self._file.fileno(), json.dumps({**entry, "token": secrets.token_hex(8)}).encode() + b"\n", 0)
            self._content = self._read()
        except BaseException as error:
            holder = _holder(self._file.fileno())
            self._file.close()
            if not isinstance(error, OSError) or error.errno not in _HELD:
                raise
            if holder.endswith(_THIS_ONE):
                raise RunError(
                    f"the run {folder} is already open in this process: close that optimizer first"
                ) from None
            raise RunError(
                f"the run {folder} is being written by {holder}: wait for it to end, or stop it, or name another folder"
            ) from None

    def _take(self) -> None:
        """Take the lock; `holder_of` in another process may hold a shared lock for a moment, so try a few times."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if attempt == _ATTEMPTS or error.errno not in _HELD:
                    raise
                time.sleep(_PAUSE)

    def _read(self) -> bytes:
        """Return what the lock file says."""
        return os.pread(self._file.fileno(), _MOST_BYTES, 0)

    def check(self) -> None:
        """Raise `LockLost` unless the lock is still ours.

        It is not if the file was removed or replaced, or if another process has written its own name into it, as can
        happen on file systems where a lock does not hold what it promises.
        """
        self.check_process()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there, ours = os.lstat(self._path), os.fstat(self._file.fileno())
            held = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) and self._read() == self._content
        except OSError:
            held = False
        if not held:
            raise LockLost(f"{self._path} was removed or replaced, or another process has taken the run over")

    def check_process(self) -> None:
        """Raise `RunError` in a process that was forked from the one that took the lock."""
        if os.getpid() != self._process:
            raise RunError(
                f"the run {self._path.parent} was opened by process {self._process}, and this is process "
                f"{os.getpid()}, which was forked from it: open the run again in this process, after the other has "
                "closed it"
            )

    def release(self) -> None:
        """Release the lock; in a forked child this does nothing, because the lock is its parent's."""
        if os.getpid() == self._process and not self._file.closed:
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()

    def forget(self) -> None:
        """Give up the inherited copy of the lock in a forked child: the parent still holds it."""
        with suppress(OSError):
            self._file.close()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()  # the locks of this process
_THIS_ONE = " (this one)"


def _forget_all() -> None:
    """Give up, in a forked child, the locks of its parent."""
    for lock in list(_locks):
        lock.forget()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def holder_of(folder: Path) -> str | None:
    """Describe the process that writes a run at present, or return None if there is none."""
    try:
        fd = open_plain(folder / "lock", os.O_RDONLY)
    except (OSError, RunError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _holder(fd)
    finally:
        os.close(fd)
    return None


def _holder(fd: int) -> str:
    """Describe the process that the lock file names."""
    try:
        entry = json.loads(os.pread(fd, _MOST_BYTES, 0))
        pid = int(entry["pid"])
        this = _THIS_ONE if pid == os.getpid() and entry["host"] == socket.gethostname() else ""
        return f"process {pid} on {entry['host']!s:.100} since {entry['since']!s:.40}{this}"
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"

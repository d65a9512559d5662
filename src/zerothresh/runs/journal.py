"""The journal: every value as it arrives, a line with its own checksum, before the next one is asked for."""

from __future__ import annotations

import base64
import errno
import json
import mmap
import os
import sys
import threading
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import open_plain, read_plain

Array = NDArray[np.float64]

FSYNC = ("value", "batch", "never")
_AHEAD, _MOST_AHEAD = 1 << 18, 1 << 23  # bytes of disk that are claimed ahead of need
_LINE = 107  # bytes that a value takes at the most, in a line of its own
_SHORT = 17  # bytes of a short line
_LONG = 512  # bytes from which a line is written by the system: cheaper than touching fresh pages
_NUMBER = 11  # bytes that it takes in a line of many
_MANY = 1 << 20
_LINES = 4096  # values that are under way at the most
_MOST = 1 << 30  # bytes of a journal that are read at the most
_PAUSE = 0.1  # seconds between two syncs of the batch policy


_UNSUPPORTED = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}  # by file systems that cannot claim space
_LITTLE = sys.byteorder == "little"
_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True)
class ValueLine:
    """Values of the rows start, start + 1, ... of a round."""

    round: int
    final: bool  # of F at the result, not of the method's own round
    start: int
    values: Array


@dataclass(frozen=True)
class FailureLine:
    """A call that failed, and how many calls it is charged as."""

    round: int
    start: int
    component: int
    calls: int


class Journal:
    """Appends lines to a file whose space is claimed ahead.

    A line is a checksum and a JSON object: values from a row of a round on, or a failure. A value that
    comes alone, in the row after the one before, is a short line: base64 of its eight bytes and of the
    checksum of the chain so far. It costs half the time, and a black box mostly answers one value at a time.

    The space for a round is claimed before the round is asked for: a full disk then stops the run
    while no value is in hand, and never loses one that has been paid for. Bytes claimed and not yet
    used are zeros, which the reader takes for the end.

    fsync: "value" waits for the disk after every value; "batch" has a second thread bring each batch
    to the disk, at most a tenth of a second behind; "never" leaves it to the system. A process that is
    killed loses nothing under any of them: they differ only in what a power cut can take.
    """

    def __init__(self, path: Path, fsync: str, end: int = 0) -> None:
        self.path = path
        self._fd = open_plain(path, os.O_RDWR | os.O_CREAT)
        self._end, self._claimed, self._margin = end, end, 0
        self._map: mmap.mmap | None = None
        self._room = 0
        self.trouble: OSError | None = None  # why no more should be asked for, though all so far is written
        self._round, self._final, self._head = -1, False, b""  # what lines of one round have in common
        self._next, self._chain = -1, 0  # the row that a short line would be for, and the checksum before it
        os.ftruncate(self._fd, end)  # cut a torn tail before anything is appended
        self._each = fsync == "value"
        self._syncer = Syncer(self._fd) if fsync == "batch" else None

    def mark(self) -> int:
        """The length of what has been written; a reader can begin here."""
        self._next = -1
        return self._end

    def claim(self, values: int) -> None:
        """Make sure that the next values will fit onto the disk, each in a line of its own."""
        self._margin = _LINE * min(values, _LINES) + _NUMBER * min(values, _MANY) + 4096
        self.trouble = None
        self._set_room()
        self._claim()

    def _claim(self) -> None:
        """Claim space on the disk, and map it: a line is then written without asking the system."""
        if self._end + self._margin <= self._claimed:
            return
        # as much again as is there: few claims, however long the journal grows; on a disk that is nearly full, less
        for ahead in (max(_AHEAD, min(self._end, _MOST_AHEAD)), 0):
            size = self._margin + ahead
            try:
                os.posix_fallocate(self._fd, self._end, size)
                break
            except (OSError, AttributeError) as error:
                if not isinstance(error, OSError) or error.errno in _UNSUPPORTED:
                    self._margin = 0  # space cannot be claimed here: lines are written the plain way
                    return
                if ahead == 0 or error.errno != errno.ENOSPC:
                    raise
        self._claimed = self._end + size
        self._unmap()
        self._map = mmap.mmap(self._fd, self._claimed)
        self._set_room()

    def _set_room(self) -> None:
        """Up to where a short line may begin that asks for nothing: no new claim, no wait for the disk."""
        self._room = 0 if self._each else self._claimed - self._margin - _SHORT

    def _unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None

    def values(self, round_: int, final: bool, start: int, values: Array) -> None:
        """Write values down."""
        if not _LITTLE:
            values = values.astype("<f8")
        data = values.tobytes()
        if start == self._next and round_ == self._round and final is self._final and len(data) == 8:
            self._chain = chain = crc32(data, self._chain)
            self._next = start + 1
            line = b2a_base64(data + chain.to_bytes(4, "little"))
            begin = self._end
            if begin < self._room and self._map is not None and (self._syncer is None or self._syncer.pending):
                self._map[begin : begin + _SHORT] = line  # what `_append` does, without the asking: most lines go here
                self._end = begin + _SHORT
            else:
                self._append(line)
            return
        if round_ != self._round or final is not self._final:
            self._round, self._final, self._head = round_, final, b'{"r":%d,"f":%d,"a":' % (round_, final)
        body = b'%b%d,"b":"%b"}' % (self._head, start, b2a_base64(data, newline=False))
        self._next, self._chain = start + values.size, crc32(body)
        self._append(b"%08x %b\n" % (self._chain, body))

    def failure(self, round_: int, start: int, component: int, calls: int) -> None:
        """Write down that a call failed, so that it stays counted."""
        body = b'{"r":%d,"a":%d,"c":%d,"failed":%d}' % (round_, start, component, calls)
        self._next = -1
        self._append(b"%08x %b\n" % (crc32(body), body))

    def _append(self, line: bytes) -> None:
        begin, size = self._end, len(line)
        end = begin + size
        if size < _LONG and self._map is not None and end <= self._claimed:
            self._map[begin:end] = line
        else:
            done = 0
            while done < size:
                done += os.pwrite(self._fd, line[done:], begin + done)
        self._end = end
        syncer = self._syncer
        if (syncer is not None and syncer.pending) and end + self._margin <= self._claimed:
            return
        try:
            if self._each:
                _sync(self._fd)
            elif syncer is not None:
                syncer.request()
            if end + self._margin > self._claimed:
                self._claim()  # a full disk is found out now that nothing is in hand
        except OSError as error:
            self.trouble = error  # the line is there: it counts, and nothing more is asked for

    def sync(self) -> None:
        """Bring all to the disk, unless that is never done."""
        if self._each or self._syncer is not None:
            _sync(self._fd)

    def close(self) -> None:
        """Give back the claimed space, and bring all to the disk."""
        if self._syncer is not None:
            self._syncer.stop()
        self._unmap()
        os.ftruncate(self._fd, self._end)
        self.sync()
        os.close(self._fd)


class Syncer:
    """A thread that brings a file to the disk whenever it is asked to, many requests at once."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._wanted, self._stopping = threading.Event(), threading.Event()
        self.pending = False
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._loop, name="zerothresh-fsync", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Bring what has been written to the disk, soon; raises what went wrong the last time."""
        if self._error is not None:
            raise self._error
        if not self.pending:
            self.pending = True
            self._wanted.set()

    def _loop(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self.pending = False  # what is written from here on asks again
            if self._stopping.is_set():
                return
            try:
                _sync(self._fd)
            except OSError as error:
                self._error = error
                return
            self._stopping.wait(_PAUSE)

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._wanted.set()
        self._thread.join()


def read(path: Path, begin: int = 0) -> tuple[list[ValueLine | FailureLine], int, bool]:
    """The good lines of a journal from a byte on, where they end, and whether more than zeros follow.

    A torn or damaged line ends it. Short lines are put together.
    """
    data = read_plain(path, _MOST)
    lines: list[ValueLine | FailureLine] = []
    at = min(begin, len(data))
    while True:
        stop = data.find(b"\n", at)
        body = data[at + 9 : stop]
        if stop < 0 or data[at + 8 : at + 9] != b" " or data[at : at + 8] != b"%08x" % crc32(body):
            return lines, at, bool(data[at:].strip(b"\0"))
        line, at = _parse(path, body), stop + 1
        if isinstance(line, ValueLine):
            more, at = _chain(data, at, crc32(body))
            if more:
                line = replace(line, values=np.concatenate([line.values, np.frombuffer(b"".join(more), "<f8")]))
        lines.append(line)


def _chain(data: bytes, at: int, chain: int) -> tuple[list[bytes], int]:
    """The values of the short lines from a byte on, and where they end."""
    found: list[bytes] = []
    while data[at + _SHORT - 1 : at + _SHORT] == b"\n":
        try:
            content = a2b_base64(data[at : at + _SHORT - 1], strict_mode=True)
        except ValueError:
            break
        chain = crc32(content[:8], chain)
        if content[8:] != chain.to_bytes(4, "little"):
            break
        found.append(content[:8])
        at += _SHORT
    return found, at


def _parse(path: Path, body: bytes) -> ValueLine | FailureLine:
    """A line whose checksum is right, and which still may have been crafted."""
    try:
        words: Any = json.loads(body)
        round_, start = words["r"], words["a"]
        if not (type(round_) is type(start) is int and 0 <= round_ < 1 << 32 and 0 <= start < 1 << 40):
            raise TypeError
        if "failed" in words:
            calls, component = words["failed"], words["c"]
            if not (type(calls) is type(component) is int and 0 <= calls < 1 << 40 and 0 <= component < 1 << 40):
                raise TypeError
            return FailureLine(round_, start, component, calls)
        values = np.frombuffer(base64.b64decode(words["b"], validate=True), "<f8").astype(np.float64)
        if words["f"] not in (0, 1) or not values.size:
            raise TypeError
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise RunError(f"{path} holds a line that no run writes: {body[:80]!r}; the run is refused") from None
    return ValueLine(round_, bool(words["f"]), start, values)

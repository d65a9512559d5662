"""The journal: each value is written as it arrives, in a line with a checksum, before the next value is asked for."""

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
from typing import Any, NamedTuple
from zlib import Z_RLE, compressobj, crc32, decompressobj
from zlib import error as zlib_error

import numpy as np
from numpy.typing import NDArray

from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import open_plain, read_plain

Array = NDArray[np.float64]

FSYNC_MODES = ("value", "batch", "never")  # see `Journal`
_AHEAD, _MOST_AHEAD = 1 << 18, 1 << 23  # bytes of disk space that are reserved beyond what is needed
_LINE_BYTES = 107  # the largest length of a line with a single value
_SHORT_BYTES = 17  # the length of a short line
_LONG_BYTES = 512  # a line of at least this length is written by a system call: cheaper than touching fresh pages
_NUMBER_BYTES = 11  # the space that a value takes in a line of many values
_LEAST_CALLS = 256  # calls with many outputs for which space is reserved, however many outputs they have
_LEVEL = 1  # of the compression, which looks for runs of equal bytes only: more takes longer, and gains next to nothing
_MOST_RATIO = 1032  # zlib's largest: what a line declares is compared with it before memory is allocated
_MANY_VALUES = 1 << 20  # space for at most this many values in long lines is reserved
_SINGLE_VALUES = 4096  # space for at most this many values in lines of their own is reserved
_MARGIN_BYTES = 4096  # reserved besides, for lines about failures
_MOST_BYTES = 1 << 32  # a longer journal is refused
_PAUSE = 0.1  # seconds between two syncs in the mode "batch"

_UNSUPPORTED = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}  # errors of file systems that cannot reserve space
_LITTLE = sys.byteorder == "little"
_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True)
class ValueLine:
    """Values that the journal holds for consecutive rows of a round.

    Attributes
    ----------
    round: the number of the round.
    final: whether the round evaluates F at the result, rather than what the method asked for.
    start: the first row.
    values: the values of the rows start, start + 1, and so on; or, of calls with m outputs, an array (rows, m).
    """

    round: int
    final: bool
    start: int
    values: Array


class Place(NamedTuple):
    """A place in the journals of a run: the number in the name of a journal, and a byte of that file."""

    number: int
    byte: int


@dataclass(frozen=True)
class FailureLine:
    """A failed call that the journal holds.

    Attributes
    ----------
    round: the number of the round.
    start: the row that the call was for (the first one, if it was for several).
    component: the component of that row.
    calls: the number of calls that were charged to the budget.
    """

    round: int
    start: int
    component: int
    calls: int


class Journal:
    """A file that lines are appended to, with disk space that is reserved in advance.

    A line is a checksum and a JSON object, which holds the values of consecutive rows of a round, or a failed call. A
    single value that follows the row before it is written as a short line: the base64 code of its eight bytes and of
    the checksum of the chain so far. Short lines take half the time, and most objectives return one value at a time.

    The space for a round is reserved before the round is evaluated. So a full disk stops the run while no value is
    pending, and never loses a value that has been paid for. Bytes that are reserved and not yet used are zeros, which
    the reader takes for the end.

    Arguments
    ---------
    path: the file, which is created if it does not exist.
    fsync: one of ``FSYNC_MODES``. "value" waits for the disk after every value; "batch" lets a second thread write
        to the disk, at most a tenth of a second behind; "never" leaves it to the operating system. A process that
        is killed loses nothing in any mode: they differ only in what a power failure can destroy.
    end: the length of the valid content, which new lines follow; what is behind it is cut off. 0 by default.
    """

    def __init__(self, path: Path, fsync: str, end: int = 0) -> None:
        self.path = path
        self._process = os.getpid()
        self._fd = open_plain(path, os.O_RDWR | os.O_CREAT)
        self._end, self._claimed, self._margin = end, end, 0
        self._map: mmap.mmap | None = None
        self._fast_limit = 0
        self.trouble: OSError | None = None  # why no more values should be asked for, though none is lost
        self._round, self._final, self._head = -1, False, b""  # what the lines of one round have in common
        self._next, self._chain = -1, 0  # the row that a short line would be for, and the checksum before it
        os.ftruncate(self._fd, end)  # cut off an incomplete last line before anything is appended
        self._each = fsync == "value"
        self._syncer = Syncer(self._fd) if fsync == "batch" else None

    @property
    def size(self) -> int:
        """The length of the content so far, in bytes."""
        return self._end

    def mark(self) -> int:
        """Return the length of the content so far; the next line is a full one, so that a reader can begin there."""
        self._next = -1
        return self._end

    def claim(self, values: int, width: int | None = None) -> None:
        """Reserve disk space for the next ``values`` values, or calls with ``width`` outputs each.

        Raises ``OSError`` if the disk is full.
        """
        if width is None:
            single, many = min(values, _SINGLE_VALUES), min(values, _MANY_VALUES)
        else:
            single = min(values, max(_LEAST_CALLS, _MANY_VALUES // width))
            many = single * width
        self._margin = _LINE_BYTES * single + _NUMBER_BYTES * many + _MARGIN_BYTES
        self.trouble = None
        self._set_fast_limit()
        self._claim()

    def _claim(self) -> None:
        """Reserve space on the disk and map it into memory, so that a line is written without a system call."""
        if self._end + self._margin <= self._claimed:
            return
        # Reserving as much again as is there makes reservations rare, however long the journal grows. On a disk that is
        # nearly full, only what is needed is reserved.
        for ahead in (max(_AHEAD, min(self._end, _MOST_AHEAD)), 0):
            size = self._margin + ahead
            try:
                os.posix_fallocate(self._fd, self._end, size)
                break
            except (OSError, AttributeError) as error:
                if not isinstance(error, OSError) or error.errno in _UNSUPPORTED:
                    self._margin = 0  # space cannot be reserved here: lines are written by system calls
                    return
                if ahead == 0 or error.errno != errno.ENOSPC:
                    raise
        self._claimed = self._end + size
        self._unmap()
        self._map = mmap.mmap(self._fd, self._claimed)
        self._set_fast_limit()

    def _set_fast_limit(self) -> None:
        """Set the position up to which a short line needs no new reservation and no wait for the disk."""
        self._fast_limit = 0 if self._each else self._claimed - self._margin - _SHORT_BYTES

    def _unmap(self) -> None:
        """Close the memory map, if there is one."""
        if self._map is not None:
            self._map.close()
            self._map = None

    def values(self, round_: int, final: bool, start: int, values: Array) -> None:
        """Append the values of consecutive rows of a round.

        Arguments
        ---------
        round_: the number of the round.
        final: whether the round evaluates F at the result, rather than what the method asked for.
        start: the first row.
        values: the values of the rows start, start + 1, and so on; or the outputs of as many calls, (rows, m).
        """
        if os.getpid() != self._process:
            self._refuse()
        if not _LITTLE:
            values = values.astype("<f8")
        if values.ndim == 2:
            self._table(round_, final, start, values)
            return
        data = values.tobytes()
        if start == self._next and round_ == self._round and final is self._final and len(data) == 8:
            chain = crc32(data, self._chain)
            line = b2a_base64(data + chain.to_bytes(4, "little"))
            begin = self._end
            self._next = -1  # until the line is there: nothing can be chained to a line that could not be written
            if begin < self._fast_limit and self._map is not None:
                self._map[begin : begin + _SHORT_BYTES] = line  # like `_append`, without its checks: the common case
                self._end = begin + _SHORT_BYTES
                if self._syncer is not None and not self._syncer.pending:  # asked after the line has been written
                    self._request_sync(self._syncer)
            else:
                self._append(line)
            self._next, self._chain = start + 1, chain
            return
        if round_ != self._round or final is not self._final:
            self._round, self._final, self._head = round_, final, b'{"r":%d,"f":%d,"a":' % (round_, final)
        body = b'%b%d,"b":"%b"}' % (self._head, start, b2a_base64(data, newline=False))
        chain = crc32(body)
        self._next = -1
        self._append(b"%08x %b\n" % (chain, body))
        self._next, self._chain = start + values.size, chain

    def _table(self, round_: int, final: bool, start: int, table: Array) -> None:
        """Append the outputs of calls, (rows, m), compressed.

        The bytes of equal weight of all numbers stand together: the high ones of smooth outputs are alike.
        """
        planes = np.frombuffer(table.tobytes(), np.uint8).reshape(-1, 8).T.tobytes()
        packer = compressobj(_LEVEL, strategy=Z_RLE)
        packed = b2a_base64(packer.compress(planes) + packer.flush(), newline=False)
        body = b'{"r":%d,"f":%d,"a":%d,"n":%d,"m":%d,"z":"%b"}' % (round_, final, start, *table.shape, packed)
        self._next = -1
        self._append(b"%08x %b\n" % (crc32(body), body))

    def failure(self, round_: int, start: int, component: int, calls: int) -> None:
        """Append a failed call, so that it stays counted; the arguments are those of `FailureLine`."""
        if os.getpid() != self._process:
            self._refuse()
        body = b'{"r":%d,"a":%d,"c":%d,"failed":%d}' % (round_, start, component, calls)
        self._next = -1
        self._append(b"%08x %b\n" % (crc32(body), body))

    def _refuse(self) -> None:
        """Raise `RunError`, because a forked child must not write into the journal of its parent."""
        raise RunError(
            f"{self.path} is written by process {self._process}, and this is process {os.getpid()}, which was forked "
            "from it: open the run again in this process, after the other has closed it"
        )

    def _append(self, line: bytes) -> None:
        """Write a line, have it synced as the mode demands, and reserve space if little is left."""
        begin, size = self._end, len(line)
        end = begin + size
        if size < _LONG_BYTES and self._map is not None and end <= self._claimed:
            self._map[begin:end] = line
        else:
            done = 0
            while done < size:
                done += os.pwrite(self._fd, line[done:], begin + done)
        self._end = end
        syncer = self._syncer
        if syncer is not None and not syncer.pending:
            self._request_sync(syncer)
        try:
            if self._each:
                _sync(self._fd)
            if end + self._margin > self._claimed:
                self._claim()  # a full disk is noticed now, while no value is pending
        except OSError as error:
            self.trouble = error  # the line is written, so its values count; the caller asks for no more values

    def _request_sync(self, syncer: Syncer) -> None:
        """Ask for a sync that covers all lines written so far."""
        try:
            syncer.request()
        except OSError as error:
            self.trouble = error

    def sync(self) -> None:
        """Wait until everything is on the disk, unless the mode is "never"."""
        if self._each or self._syncer is not None:
            _sync(self._fd)

    def close(self, *, whole: bool = True) -> None:
        """Close the file; in a forked child, leave it to the parent.

        Arguments
        ---------
        whole: whether to release the reserved space and to sync, True by default; another process may have taken over.
        """
        if os.getpid() != self._process:
            return
        if self._syncer is not None:
            self._syncer.stop()
        self._unmap()
        try:
            if whole:
                os.ftruncate(self._fd, self._end)
                self.sync()
        finally:
            os.close(self._fd)


class Syncer:
    """A thread that syncs a file to the disk on request; requests that arrive meanwhile are served together.

    Arguments
    ---------
    fd: the descriptor of the file.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._wanted, self._stopping = threading.Event(), threading.Event()
        self.pending = False
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._loop, name="zerothresh-fsync", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Ask for a sync soon. Raises the ``OSError`` of the previous sync, if it failed."""
        if self._error is not None:
            raise self._error
        if not self.pending:
            self.pending = True
            self._wanted.set()
            if self._error is not None:  # the thread failed at this very moment, and serves nobody any more
                raise self._error

    def _loop(self) -> None:
        """Serve requests until the thread is stopped or a sync fails."""
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self.pending = False  # lines that are written from here on need another request
            if self._stopping.is_set():
                return
            try:
                _sync(self._fd)
            except OSError as error:
                self._error, self.pending = error, False
                return
            self._stopping.wait(_PAUSE)

    def stop(self) -> None:
        """Stop the thread, and wait for its end."""
        self._stopping.set()
        self._wanted.set()
        self._thread.join()


def read(path: Path, begin: int = 0, stop: int | None = None) -> tuple[list[ValueLine | FailureLine], int, bool]:
    """Read the valid lines of a journal up to the first incomplete or damaged one.

    Arguments
    ---------
    path: the journal.
    begin: the byte to begin at, 0 by default.
    stop: the byte to stop at; None, the default, means the end of the file.

    Returns
    -------
    The lines, with the values of short lines joined to the line before them; the byte where the valid lines end;
    and whether anything but zeros follows there.
    """
    data = read_plain(path, _MOST_BYTES)[:stop]
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


def read_between(
    journals: list[tuple[int, Path]], begin: Place, stop: Place | None = None
) -> tuple[list[ValueLine | FailureLine], list[tuple[Path, int, int, int]], bool]:
    """Read the valid lines between two places of the journals of a run, up to the first damaged one.

    Arguments
    ---------
    journals: the numbers and paths of all journals, in increasing order.
    begin, stop: the first place, and the place to stop at; None, the default, means the end.

    Returns
    -------
    The lines; the path, the number, the end of the valid lines and the number of lines before it, of each journal that
    was read; and whether the reading stopped at a damaged line.
    """
    lines: list[ValueLine | FailureLine] = []
    ends: list[tuple[Path, int, int, int]] = []
    for number, path in journals:
        if number < begin.number or (stop is not None and number > stop.number):
            continue
        first = begin.byte if number == begin.number else 0
        last = stop.byte if stop is not None and number == stop.number else None
        found, end, torn = read(path, first, last)
        ends.append((path, number, max(end, first), len(lines)))
        lines += found
        if torn:
            return lines, ends, True
    return lines, ends, False


def _chain(data: bytes, at: int, chain: int) -> tuple[list[bytes], int]:
    """Return the values of the short lines from byte ``at`` on, and the byte where they end."""
    found: list[bytes] = []
    while data[at + _SHORT_BYTES - 1 : at + _SHORT_BYTES] == b"\n":
        try:
            content = a2b_base64(data[at : at + _SHORT_BYTES - 1], strict_mode=True)
        except ValueError:
            break
        chain = crc32(content[:8], chain)
        if content[8:] != chain.to_bytes(4, "little"):
            break
        found.append(content[:8])
        at += _SHORT_BYTES
    return found, at


def _parse(path: Path, body: bytes) -> ValueLine | FailureLine:
    """Parse a line whose checksum is right; its content is checked, because it may still be forged."""
    try:
        entry: Any = json.loads(body)
        round_, start = entry["r"], entry["a"]
        if not (type(round_) is type(start) is int and 0 <= round_ < 1 << 32 and 0 <= start < 1 << 40):
            raise TypeError
        if "failed" in entry:
            calls, component = entry["failed"], entry["c"]
            if not (type(calls) is type(component) is int and 0 <= calls < 1 << 40 and 0 <= component < 1 << 40):
                raise TypeError
            return FailureLine(round_, start, component, calls)
        values = _unpack(entry) if "z" in entry else np.frombuffer(_decoded(entry["b"]), "<f8").astype(np.float64)
        if entry["f"] not in (0, 1) or not values.size:
            raise TypeError
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib_error):
        raise RunError(
            f"{path} holds a line that no run writes ({body[:80]!r}): restore it from a copy, or name another folder"
        ) from None
    return ValueLine(round_, bool(entry["f"]), start, values)


def _decoded(text: Any) -> bytes:
    """Return the bytes of a base64 text."""
    return base64.b64decode(text, validate=True)


def _unpack(entry: dict[str, Any]) -> Array:
    """Return the outputs of a line, (rows, m), whose declared size is compared with what is there."""
    rows, m, packed = entry["n"], entry["m"], _decoded(entry["z"])
    if not (type(rows) is type(m) is int and rows > 0 and m > 0 and 8 * rows * m <= _MOST_RATIO * len(packed)):
        raise TypeError
    reader = decompressobj()
    planes = reader.decompress(packed, 8 * rows * m)
    if len(planes) != 8 * rows * m or reader.unconsumed_tail or not reader.eof:
        raise TypeError
    numbers = np.frombuffer(planes, np.uint8).reshape(8, -1).T.tobytes()
    return np.frombuffer(numbers, "<f8").astype(np.float64).reshape(rows, m)

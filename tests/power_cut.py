"""Power cuts without a power switch: a recorder of what a program does to the files under a folder, and a model of a disk.

`Recorder` performs the system calls of the program, and writes each of them into a log. `Disk` goes through the log
and builds, at any instant, a folder that a power cut at that instant could have left.

The model is what POSIX promises, and no more:

- ``fsync`` or ``fdatasync`` of a file makes its content and its size safe, but not its name.
- ``fsync`` of a folder makes the names in it safe: the files that were created, renamed and removed there, but neither
  their content nor the name of the folder itself.
- Whatever was done since then may have reached the disk or not. Names, and changes of a file's size, get there in the
  order in which they were made, as with the journal of a file system. Written bytes get there in any order, in whole or
  in part, and a reserved or extended part of a file that was not written is zeros.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import mmap
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

SECTOR = 512  # bytes that a disk writes as one; a longer write may be torn between two of them
ROOT = 0  # the number of the recorded folder

Tree = dict[str, bytes | None]  # the content of each file by its path; None for a folder

CALLS = (
    *("open", "write", "pwrite", "ftruncate", "truncate", "posix_fallocate", "fsync", "fdatasync"),
    *("rename", "replace", "unlink", "mkdir"),
)
_REAL: Any = SimpleNamespace(  # the system calls as they are
    **{name: getattr(os, name) for name in CALLS}, open_file=builtins.open, mmap=mmap.mmap
)


# What the program did. Files and folders have numbers, because their names change.


@dataclass(frozen=True)
class Create:
    """A new file or folder without content."""

    folder: int
    name: str
    number: int
    is_folder: bool = False


@dataclass(frozen=True)
class Move:
    """A file that got another name in the same folder, and replaced the one that had it."""

    folder: int
    source: str
    target: str


@dataclass(frozen=True)
class Remove:
    """A name that was removed."""

    folder: int
    name: str


@dataclass(frozen=True)
class Resize:
    """A file that was cut, or extended by zeros."""

    number: int
    size: int


@dataclass(frozen=True)
class Write:
    """Bytes within the size of a file that were replaced."""

    number: int
    at: int
    data: bytes


@dataclass(frozen=True)
class Sync:
    """A completed sync of a file or folder; what was done before entry ``begun`` of the log is safe by it."""

    number: int
    begun: int


@dataclass(frozen=True)
class Told:
    """A remark of the program, no system call: by now it has been told ``count`` values."""

    count: int


NameChange = Create | Move | Remove
ContentChange = Resize | Write
Entry = NameChange | ContentChange | Sync | Told


@dataclass(frozen=True)
class Chance:
    """How much of what is not safe has reached the disk: of the names, and of the content of the files.

    Names: "none", "all", or "some" (the first few changes). Content: "none", "all", "first" (the first few changes),
    "some" (any of the writes), "sectors" (each sector as it was at an instant of its own) or "torn" (all, but the last
    write broke off at some byte).
    """

    names: str
    content: str


NAMES = ("none", "all", "some")
CONTENT = ("none", "all", "first", "some", "sectors", "torn")
CHANCES = tuple(Chance(*pair) for pair in product(NAMES, CONTENT))


@dataclass
class _File:
    safe: bytearray = field(default_factory=bytearray)
    now: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, ContentChange]] = field(default_factory=list)

    def after(self, content: str, rng: np.random.Generator) -> bytes:
        """The content after a power cut."""
        changes = [change for _, change in self.pending]
        if content == "none" or not changes:
            return bytes(self.safe)
        if content == "all":
            return bytes(self.now)
        if content == "first":
            return _changed(self.safe, changes[: rng.integers(len(changes) + 1)])
        if content == "torn":
            return _changed(self.safe, _torn(changes, rng))
        # Changes of the size in their order, and any of the writes.
        sizes = [i for i, change in enumerate(changes) if isinstance(change, Resize)]
        kept = len(sizes) if rng.random() < 0.5 else int(rng.integers(len(sizes) + 1))
        resized = set(sizes[:kept])
        chosen: list[ContentChange] = []
        instants: dict[int, int] = {}  # when each sector was written
        for i, change in enumerate(changes):
            if isinstance(change, Resize):
                chosen += [change] * (i in resized)
            elif content == "some":
                chosen += [change] * int(rng.integers(2))
            else:
                for sector, piece in _sectors(change):
                    if sector not in instants:
                        instants[sector] = int(rng.integers(len(changes) + 1))
                    chosen += [piece] * (i < instants[sector])
        return _changed(self.safe, chosen)


@dataclass
class _Folder:
    safe: dict[str, int] = field(default_factory=dict)
    now: dict[str, int] = field(default_factory=dict)
    pending: list[tuple[int, NameChange]] = field(default_factory=list)

    def after(self, names: str, rng: np.random.Generator) -> dict[str, int]:
        """The names after a power cut."""
        kept = {"none": 0, "all": len(self.pending)}.get(names, int(rng.integers(len(self.pending) + 1)))
        found = dict(self.safe)
        for _, change in self.pending[:kept]:
            _rename(found, change)
        return found


def _rename(names: dict[str, int], change: NameChange) -> None:
    match change:
        case Create():
            names[change.name] = change.number
        case Move():
            names[change.target] = names.pop(change.source)
        case Remove():
            del names[change.name]


def _change(content: bytearray, change: ContentChange) -> None:
    if isinstance(change, Resize):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
    else:  # bytes beyond the end have no place as long as the file has not been extended
        stop = min(len(content), change.at + len(change.data))
        if stop > change.at:
            content[change.at : stop] = change.data[: stop - change.at]


def _changed(content: bytearray, changes: Iterable[ContentChange]) -> bytes:
    found = bytearray(content)
    for change in changes:
        _change(found, change)
    return bytes(found)


def _torn(changes: list[ContentChange], rng: np.random.Generator) -> list[ContentChange]:
    """All changes, but the last write broke off at some byte, and what came after it never happened."""
    for i in range(len(changes) - 1, -1, -1):
        change = changes[i]
        if isinstance(change, Write):
            return [*changes[:i], Write(change.number, change.at, change.data[: rng.integers(len(change.data))])]
    return changes


def _sectors(write: Write) -> Iterator[tuple[int, Write]]:
    """Cut a write at the borders of the sectors."""
    at, stop = write.at, write.at + len(write.data)
    while at < stop:
        sector = at // SECTOR
        end = min(stop, (sector + 1) * SECTOR)
        yield sector, Write(write.number, at, write.data[at - write.at : end - write.at])
        at = end


class Disk:
    """What is safe on a disk, and what may have reached it or not.

    Arguments
    ---------
    log: what was done so far; more is added by `add`.
    """

    def __init__(self, log: Iterable[Entry] = ()) -> None:
        self._files: dict[int, _File] = {}
        self._folders = {ROOT: _Folder()}
        self._length = 0
        for entry in log:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add the next entry of the log."""
        match entry:
            case Create() | Move() | Remove():
                folder = self._folders[entry.folder]
                folder.pending.append((self._length, entry))
                _rename(folder.now, entry)
                if isinstance(entry, Create):
                    kind: Any = (self._folders, _Folder) if entry.is_folder else (self._files, _File)
                    kind[0][entry.number] = kind[1]()
            case Resize() | Write():
                file = self._files[entry.number]
                file.pending.append((self._length, entry))
                _change(file.now, entry)
            case Sync():
                self._sync(entry)
        self._length += 1

    def _sync(self, entry: Sync) -> None:
        done: Any = self._files.get(entry.number) or self._folders.get(entry.number)
        apply: Callable[[Any, Any], None] = _change if isinstance(done, _File) else _rename
        while done.pending and done.pending[0][0] < entry.begun:
            apply(done.safe, done.pending.pop(0)[1])

    def number(self, path: str) -> int | None:
        """The number of the file or folder of a name, as the running program sees it."""
        number: int | None = ROOT
        for name in path.split(os.sep) if path else []:
            number = self._folders[number].now.get(name) if number in self._folders else None
        return number

    def size(self, number: int) -> int:
        """The size of a file, as the running program sees it."""
        return len(self._files[number].now)

    def now(self) -> Tree:
        """What the running program sees, and what is left if only the program is killed."""
        return dict(self._walk(lambda folder: folder.now, lambda file: bytes(file.now)))

    def after_cut(self, chance: Chance, rng: np.random.Generator) -> Tree:
        """What a power cut can leave."""
        return dict(self._walk(lambda folder: folder.after(chance.names, rng), lambda f: f.after(chance.content, rng)))

    def _walk(
        self,
        names: Callable[[_Folder], dict[str, int]],
        content: Callable[[_File], bytes],
        number: int = ROOT,
        path: str = "",
    ) -> Iterator[tuple[str, bytes | None]]:
        for name, child in names(self._folders[number]).items():
            if child in self._folders:
                yield path + name, None
                yield from self._walk(names, content, child, path + name + os.sep)
            else:
                yield path + name, content(self._files[child])


def put(tree: Tree, root: Path) -> None:
    """Write a tree into a folder that exists."""
    for path, content in tree.items():
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)


def taken(root: Path) -> Tree:
    """The tree of a folder."""
    tree: Tree = {}
    for path in sorted(root.rglob("*")):
        tree[str(path.relative_to(root))] = None if path.is_dir() else path.read_bytes()
    return tree


class Recorder:
    """The log of what a program does to the files under a folder.

    What is in the folder at the beginning is safe, unless ``log`` says how it came there: then the program goes on
    after a kill, and the disk may still not have what was done before it.

    Arguments
    ---------
    root: the folder, which exists.
    log: what was done before, which has led to what is in the folder now; nothing by default.
    """

    def __init__(self, root: Path, log: Sequence[Entry] | None = None) -> None:
        self.root = os.path.abspath(root)
        self.log: list[Entry] = list(log or ())
        self._disk = Disk(self.log)
        self._next = 1 + max((entry.number for entry in self.log if isinstance(entry, Create)), default=ROOT)
        self._numbers: dict[tuple[int, int], int] = {}  # by what the system calls the file
        self._guard = threading.RLock()
        if log is None:
            self._find(root)
        else:
            assert taken(root) == self._disk.now(), "the folder does not hold what the log has led to"
        for path in [root, *root.rglob("*")]:
            self._name(os.stat(path), self._number(path))
        self.begin = len(self.log)  # the entries before it are about what was there already

    def _find(self, root: Path) -> None:
        """Take what is in the folder for safe."""
        for path, content in taken(root).items():
            number = self._create(path, is_folder=content is None)
            if content:
                self._resize(number, len(content))
                self._add(Write(number, 0, content))
        for number in range(self._next):
            self._add(Sync(number, len(self.log)))

    def told(self, count: int) -> None:
        """Note that the program has been told so many values."""
        self._add(Told(count))

    # The log.

    def _add(self, entry: Entry) -> None:
        self._disk.add(entry)
        self.log.append(entry)

    def _inside(self, path: Any) -> str | None:
        """The path within the folder; None if it lies elsewhere."""
        whole = os.path.abspath(os.fsdecode(path))
        if whole == self.root:
            return ""
        return whole[len(self.root) + 1 :] if whole.startswith(self.root + os.sep) else None

    def _number(self, path: Any) -> int | None:
        inside = self._inside(path)
        return None if inside is None else self._disk.number(inside)

    def _place(self, path: str) -> tuple[int, str]:
        """The folder of a path, and the name in it."""
        folder, name = os.path.split(path)
        number = self._disk.number(folder)
        assert number is not None, f"nobody has recorded how {folder} was made"
        return number, name

    def _name(self, stat: os.stat_result, number: int | None) -> None:
        if number is not None:
            self._numbers[stat.st_dev, stat.st_ino] = number

    def _opened(self, fd: int) -> int | None:
        """The number of an open file; None if it lies elsewhere."""
        stat = os.fstat(fd)
        return self._numbers.get((stat.st_dev, stat.st_ino))

    def _forget(self, path: str) -> None:
        """Forget a file that is about to lose its name: nobody will see it again, and the system reuses its number."""
        number = self._disk.number(path)
        self._numbers = {key: other for key, other in self._numbers.items() if other != number}

    def _create(self, path: str, *, is_folder: bool = False) -> int:
        number, self._next = self._next, self._next + 1
        self._add(Create(*self._place(path), number, is_folder))
        return number

    def _resize(self, number: int | None, size: int) -> None:
        if number is not None and size != self._disk.size(number):
            self._add(Resize(number, size))

    def _write(self, number: int | None, at: int, data: Any) -> None:
        if number is not None and len(data):
            self._resize(number, max(self._disk.size(number), at + len(data)))
            self._add(Write(number, at, bytes(data)))

    # The system calls.

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        inside = None if dir_fd is not None else self._inside(path)
        if inside is None:
            return int(_REAL.open(path, flags, mode, dir_fd=dir_fd))
        with self._guard:
            fd = int(_REAL.open(path, flags, mode))
            if self._disk.number(inside) is None:
                self._name(os.fstat(fd), self._create(inside))
            elif flags & os.O_TRUNC:
                self._resize(self._disk.number(inside), 0)
            return fd

    def write(self, fd: int, data: Any) -> int:
        with self._guard:
            number = self._opened(fd)
            at = self._position(fd, number)
            done = int(_REAL.write(fd, data))
            self._write(number, at, memoryview(data)[:done])
            return done

    def _position(self, fd: int, number: int | None) -> int:
        if number is None:
            return 0
        appends = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND
        return self._disk.size(number) if appends else os.lseek(fd, 0, os.SEEK_CUR)

    def pwrite(self, fd: int, data: Any, offset: int) -> int:
        with self._guard:
            done = int(_REAL.pwrite(fd, data, offset))
            self._write(self._opened(fd), offset, memoryview(data)[:done])
            return done

    def ftruncate(self, fd: int, length: int) -> None:
        with self._guard:
            _REAL.ftruncate(fd, length)
            self._resize(self._opened(fd), length)

    def truncate(self, path: Any, length: int) -> None:
        with self._guard:
            _REAL.truncate(path, length)
            self._resize(self._opened(path) if isinstance(path, int) else self._number(path), length)

    def posix_fallocate(self, fd: int, offset: int, length: int) -> None:
        with self._guard:
            _REAL.posix_fallocate(fd, offset, length)
            number = self._opened(fd)
            if number is not None:
                self._resize(number, max(self._disk.size(number), offset + length))

    def fsync(self, fd: Any) -> None:
        self._sync(fd, _REAL.fsync)

    def fdatasync(self, fd: Any) -> None:
        self._sync(fd, _REAL.fdatasync)

    def _sync(self, fd: Any, call: Callable[[int], None]) -> None:
        fd = fd if isinstance(fd, int) else fd.fileno()
        with self._guard:
            number, begun = self._opened(fd), len(self.log)
        call(fd)  # other threads go on meanwhile
        with self._guard:
            if number is not None:
                self._add(Sync(number, begun))

    def rename(self, source: Any, target: Any, **options: Any) -> None:
        self._move(_REAL.rename, source, target, options)

    def replace(self, source: Any, target: Any, **options: Any) -> None:
        self._move(_REAL.replace, source, target, options)

    def _move(self, call: Callable[..., None], source: Any, target: Any, options: dict[str, Any]) -> None:
        with self._guard:
            call(source, target, **options)
            old, new = self._inside(source), self._inside(target)
            if old is not None or new is not None:
                assert old is not None
                assert new is not None
                folder, name = self._place(old)
                assert (folder, os.path.basename(new)) == self._place(new), "a move from one folder to another"
                self._forget(new)
                self._add(Move(folder, name, os.path.basename(new)))

    def unlink(self, path: Any, **options: Any) -> None:
        with self._guard:
            _REAL.unlink(path, **options)
            inside = self._inside(path)
            if inside is not None:
                self._forget(inside)
                self._add(Remove(*self._place(inside)))

    def mkdir(self, path: Any, mode: int = 0o777, **options: Any) -> None:
        with self._guard:
            _REAL.mkdir(path, mode, **options)
            inside = self._inside(path)
            if inside is not None:
                self._name(os.stat(path), self._create(inside, is_folder=True))

    # Files and memory maps of Python.

    def open_file(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        writes = bool(set("wax+") & set(mode))
        known = self._opened(file) if isinstance(file, int) else self._inside(file)
        if not writes or known is None:
            return _REAL.open_file(file, mode, buffering, encoding, errors, newline, closefd, opener)
        assert opener is None
        plain = mode.replace("b", "").replace("t", "")
        raw = _RecordedFile(self, file, plain, closefd, opener=lambda path, flags: self.open(path, flags, 0o666))
        if buffering == 0:
            return raw
        binary = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

    def map(self) -> type[mmap.mmap]:
        """The class of memory maps whose changes are recorded."""
        recorder = self

        class Map(_REAL.mmap):  # type: ignore[misc]
            def __new__(cls, fileno: int, *arguments: Any, **options: Any) -> Any:
                made = super().__new__(cls, fileno, *arguments, **options)
                made.number = None if fileno < 0 else recorder._opened(fileno)
                made.begin = options.get("offset", 0)
                return made

            def __setitem__(self, key: Any, value: Any) -> None:
                with recorder._guard:
                    super().__setitem__(key, value)
                    start, data = (key.indices(len(self))[0], value) if isinstance(key, slice) else (key, [value])
                    recorder._write(self.number, self.begin + start, bytes(data))

            def write(self, data: Any) -> int:
                with recorder._guard:
                    at = self.tell()
                    done: int = super().write(data)
                    recorder._write(self.number, self.begin + at, data)
                    return done

        return Map

    def check(self) -> None:
        """Make sure that nothing has escaped the recorder: the folder holds what the log leads to."""
        real, logged = taken(Path(self.root)), self._disk.now()
        assert sorted(real) == sorted(logged), "a name has been changed in a way that was not recorded"
        for path, content in real.items():
            assert content == logged[path], f"{path} has been changed in a way that was not recorded"


class _RecordedFile(io.FileIO):
    """A file of Python whose writes are recorded."""

    def __init__(self, recorder: Recorder, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._recorder = recorder

    def write(self, data: Any) -> int:
        recorder = self._recorder
        with recorder._guard:
            number = recorder._opened(self.fileno())
            at = recorder._position(self.fileno(), number)
            done = super().write(data) or 0
            recorder._write(number, at, memoryview(data)[:done])
            return done

    def truncate(self, size: int | None = None) -> int:
        with self._recorder._guard:
            length = super().truncate(size)
            self._recorder._resize(self._recorder._opened(self.fileno()), length)
            return length


@contextmanager
def recording(root: Path, log: Sequence[Entry] | None = None) -> Iterator[Recorder]:
    """Record what the library does under a folder; the arguments are those of `Recorder`."""
    recorder = Recorder(root, log)
    changed: dict[Any, Any] = {getattr(_REAL, name): getattr(recorder, name) for name in CALLS}
    changed[os.remove] = recorder.unlink
    changed[_REAL.open_file], changed[_REAL.mmap] = recorder.open_file, recorder.map()
    library = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "zerothresh"]
    undo = []
    for module in [os, io, builtins, mmap, *library]:  # a module may have names of its own for a system call
        for name, value in list(vars(module).items()):
            replacement = changed.get(value) if callable(value) and _hashable(value) else None
            if replacement is not None:
                undo.append((module, name, value))
                setattr(module, name, replacement)
    try:
        yield recorder
    finally:
        for module, name, value in undo:
            setattr(module, name, value)
    recorder.check()


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True

"""What happens inside a process that `chaos.py` disturbs: the run itself, and the faults that come from within.

A *session* is one process that `chaos.py` starts to work on a run. It makes the call of the run once or twice, and its
objective, its callback or its system calls bring about the fault that was drawn for it. What it has to say goes, line
by line, into a report outside the run folder; a process that is killed says nothing more, and needs to say nothing.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import math
import os
import pickle
import random
import shutil
import signal
import stat
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import zerothresh as zt
from zerothresh.runs import RunError
from zerothresh.runs.inspection import read_run

PROBLEM = zt.problems.ridge(n=8, d=6, seed=1)
CHUNK = 5
GOOD_ENDS = (zt.Status.BUDGET, zt.Status.CONVERGED)
FAILING_SHARE = 0.2  # of the calls while the disk is full, in sessions whose objective fails then
FAULTY_SHARE = 0.25  # of the system calls that fail in the mode "share"
OPENING_INSTANTS = 3_000  # calls of functions, which is somewhat more than opening a run takes
LATEST_INSTANT = 30_000  # calls of functions, which is what some rounds take besides

# The real ones, for the ledger and the report while the run's own fail, and for tests that let the run's own err.
_write, _open, _process = os.write, os.open, os.getpid


@dataclass(frozen=True)
class Case:
    """One run: a method, an objective's speed and form, and how it is evaluated and kept."""

    method: zt.Method
    pause: float
    workers: int
    vectorised: bool
    fsync: str
    eager: bool  # a snapshot after every round
    jumps: bool  # a clock that jumps
    seed: int
    outputs: bool = False  # one call returns all components

    @property
    def final_calls(self) -> int:
        """Calls that give F at the result."""
        return 1 if self.outputs else PROBLEM.n

    @property
    def form(self) -> dict[str, Any]:
        """What tells the form of the objective."""
        return {"outputs": "components"} if self.outputs else {"n": None if self.vectorised else PROBLEM.n}

    @property
    def under_way(self) -> int:
        """Rows that can be under way at once."""
        return self.workers * (CHUNK if self.vectorised else 1)


@dataclass(frozen=True)
class Place:
    """Where a run is kept, and, outside its folder, what is known of it."""

    where: Path
    folder: Path

    @property
    def ledger(self) -> Path:
        """A line for each query of the run."""
        return self.where / "ledger"

    @property
    def twin(self) -> Path:
        """A line for each query of the run that is not disturbed."""
        return self.where / "twin"

    @property
    def strays(self) -> Path:
        """A line for each query of a process that was forked from the one that works on the run."""
        return self.where / "strays"

    @property
    def report(self) -> Path:
        """What the session says."""
        return self.where / "report"

    @property
    def errors(self) -> Path:
        """The standard error of the sessions."""
        return self.where / "errors"

    @property
    def ballast(self) -> Path:
        """What fills the disk of the run folder."""
        return self.folder.with_name("ballast")


@dataclass(frozen=True)
class Fault:
    """What disturbs a session, and when.

    Attributes
    ----------
    kind: one of `chaos.KINDS`.
    mode: in which of its forms; see `chaos.MODES`.
    after: the number of queries of the session after which it comes; 0 means while the run is being opened.
    later: the number of queries after that at which the process waits for its death, if it is killed.
    delay: seconds before a kill or a Ctrl-C: the instant is to be a random one, and nothing depends on its length.
    at_step: whether it comes from the callback, after a step, or from the objective.
    twice: whether Ctrl-C is pressed twice, or whether the process waits for its forked child.
    failing: whether the objective fails now and then while the disk is full.
    kill: whether the process is killed in the end.
    again: whether the same process makes the same call again, when it has been stopped.
    times: how often it comes, if the process goes on after it; about as many queries lie between two as before the first.
    seed: of the choices that are made within the process.
    """

    kind: str
    mode: str
    after: int
    later: int
    delay: float
    at_step: bool = False
    twice: bool = False
    failing: bool = False
    kill: bool = False
    again: bool = False
    times: int = 1
    seed: int = 0

    def __str__(self) -> str:
        switches = ("at_step", "twice", "failing", "kill", "again")
        words = [self.kind, self.mode, f"after {self.after}", *(word for word in switches if getattr(self, word))]
        return " ".join(words)


@dataclass
class Wires:
    """How a session and the process that watches it talk: ``up`` to the watcher, ``down`` from it."""

    up: int
    down: int


def name(x: Any, i: int) -> bytes:
    """The name of a query in a ledger."""
    return hashlib.blake2b(x.tobytes() + bytes([i]), digest_size=12).hexdigest().encode()


def asked(ledger: Path) -> int:
    """How many queries a ledger holds."""
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def counted(folder: Path) -> tuple[int, int]:
    """How many calls the run folder has counted by now, and how many of them gave no value."""
    if not (folder / "run.json").exists():
        return 0, 0
    stored = read_run(folder)
    meta = stored.meta or {"nfev": 0, "failed_calls": 0}
    failed = meta["failed_calls"] + stored.failed
    return meta["nfev"] + stored.values + failed, failed


class Objective:
    """The ridge problem, as a function that records every point it is asked for, and takes its time.

    Arguments
    ---------
    case: Case.
    ledger: the file for its queries; None records nothing.
    script: what else happens when it is asked; None means nothing.
    """

    fingerprint = "chaos"

    def __init__(self, case: Case, ledger: Path | None, script: Script | None = None) -> None:
        self.case, self.script, self.process = case, script, _process()
        self.fd = None if ledger is None else _open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.d, self.n = PROBLEM.d, PROBLEM.n

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def values(self, points: Any, components: Any) -> Any:
        rows = zip(points, components.tolist(), strict=True)
        if self.fd is not None:  # before anything else, so that a call which is interrupted is in the ledger
            _write(self._ledger(self.fd), b"".join(b"%b\n" % name(x, i) for x, i in rows))
        values = PROBLEM.values(points, components)
        if self.script is not None:
            self.script.queried(len(points))
        if self.case.pause:
            time.sleep(self.case.pause)
        return values

    def _ledger(self, fd: int) -> int:
        """The ledger of this process: a forked one has another."""
        if self.script is None or _process() == self.process:
            return fd
        return self.script.stray_ledger()


class OneByOne(Objective):
    """The same problem, with one point per call."""

    def __init__(self, case: Case, ledger: Path | None, script: Script | None = None) -> None:
        super().__init__(case, ledger, script)
        self.many, self.values = self.values, None  # not a problem object

    def __call__(self, x: Any, i: int) -> float:
        return float(self.many(x[None], np.array([i]))[0])


class Everything(Objective):
    """The same problem, all of whose components one call returns; many points at once if it is vectorised."""

    def __init__(self, case: Case, ledger: Path | None, script: Script | None = None) -> None:
        super().__init__(case, ledger, script)
        self.many, self.values = self.values, None  # not a problem object

    def __call__(self, x: Any) -> Any:
        points = np.atleast_2d(x)
        self.many(points, np.zeros(len(points), np.int64))  # which records the points, and takes its time
        table = [PROBLEM.values(np.repeat(point[None], self.n, axis=0), np.arange(self.n)) for point in points]
        return np.array(table) if x.ndim == 2 else table[0]


def arguments(case: Case, folder: Path | None, budget: int) -> dict[str, Any]:
    """What `zt.Optimizer` is called with."""
    return {
        "budget": budget,
        "method": case.method,
        "estimator": zt.Estimator(q=3, mu=1e-3),
        "seed": case.seed,
        "run": folder,
        "fsync": case.fsync,
    }


def run(case: Case, folder: Path | None, ledger: Path | None, budget: int, script: Script | None = None) -> zt.Result:
    """The run itself, in this process."""
    kept = zt.runs.Run.due, time.time, time.monotonic
    try:
        if case.eager and folder is not None:
            zt.runs.Run.due = lambda self: True  # type: ignore[method-assign]
        if case.jumps and folder is not None:
            _let_clocks_jump(case.seed)
        objective = Everything if case.outputs else Objective if case.vectorised else OneByOne
        return zt.minimize(
            objective(case, ledger, script),
            PROBLEM.d,
            2,
            vectorized=case.vectorised and case.outputs,
            **case.form,
            workers=case.workers,
            chunk=CHUNK if case.vectorised else None,
            callback=None if script is None else script.stepped,
            progress=False,
            **arguments(case, folder, budget),
        )
    finally:
        zt.runs.Run.due, time.time, time.monotonic = kept  # type: ignore[method-assign]


def _let_clocks_jump(seed: int) -> None:
    """The wall clock goes back and forth by days; the steady clock only ahead, as after a suspend."""
    rng = np.random.default_rng([seed, _process()])
    wall, steady = time.time, time.monotonic
    offset = [0.0]

    def jumping() -> float:
        return wall() + float(rng.normal(0, 1e5))

    def leaping() -> float:
        offset[0] += float(rng.random() < 0.05) * float(rng.exponential(100))
        return steady() + offset[0]

    time.time, time.monotonic = jumping, leaping


class Flaky(Exception):
    """What the objective raises when it fails."""


class Script:
    """One session: it makes the call of the run, and brings about the fault that was drawn for it.

    Arguments
    ---------
    case: Case.
    place: Place.
    budget: the budget of the run, without the calls that were charged and gave no value.
    fault: Fault, or None for a session that is left in peace.
    wires: to the process that watches.
    """

    def __init__(self, case: Case, place: Place, budget: int, fault: Fault | None, wires: Wires | None) -> None:
        self.case, self.place, self.budget, self.fault, self.wires = case, place, budget, fault, wires
        self.random = random.Random(0 if fault is None else fault.seed)
        self.process, self.lock, self.count = _process(), threading.Lock(), 0
        self.struck = 0  # how often the fault has come
        self.next_strike = 0 if fault is None else fault.after  # the query after which it comes next
        self.children: list[int] = []
        self.copier: threading.Thread | None = None
        self.disk = BadDisk(place.folder, "" if fault is None else fault.mode, self.random)
        self.profiled = 0  # calls of functions until Ctrl-C is pressed
        self.presses = 0  # how often it is pressed
        self.die_at = math.inf  # a daemon kills itself after so many queries
        self.stray_fd: int | None = None

    # The session.

    def play(self) -> None:
        """Make the call of the run, and again if the fault says so."""
        fault = self.fault
        for turn in range(2 if fault is None else fault.times + 1):
            if fault is not None and fault.after == 0 and turn < fault.times:
                self.strike()
                if self.wires is not None and (fault.kind == "kill" or fault.mode == "sent"):
                    _write(self.wires.up, b"s")
            ended = self.interruptible() if fault is not None and fault.kind == "interrupt" else self.call()
            self.calm()
            if ended or fault is None or not fault.again:
                return

    def call(self) -> bool:
        """Make the call of the run, and report how it ended; returns whether the run is through."""
        failing = self.disk.failing
        try:
            _, charged = counted(self.place.folder)
            found: zt.Result | BaseException = run(
                self.case, self.place.folder, self.place.ledger, self.budget + charged, self
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            found = error
        if _process() != self.process:
            self.stray(found)
        failing = failing or self.disk.failing
        if isinstance(found, RunError):
            if not failing:
                self.say(refused=str(found))
            return False
        if isinstance(found, BaseException):
            self.say(crash=f"{type(found).__name__}: {found}")
            return False
        self.say(end=found.status.name, nfev=found.nfev, asked=asked(self.place.ledger))
        allowed = {zt.Status.INTERRUPTED} if self.fault is not None and self.fault.kind == "interrupt" else set()
        if failing:
            allowed |= {zt.Status.DISK, zt.Status.FAILED} if self.fault and self.fault.failing else {zt.Status.DISK}
        if found.status not in {*GOOD_ENDS, *allowed}:
            self.say(crash=f"the run ended as {found.status.name}: {found.message}")
        return found.status in GOOD_ENDS

    def calm(self) -> None:
        """End the fault: the disk works again, and forked children are waited for."""
        if self.disk.failing:
            self.disk.end()
            self.place.ballast.unlink(missing_ok=True)
        if self.copier is not None:
            self.copier.join()
            self.copier = None
        for child in self.children:
            _, status = os.waitpid(child, 0)
            if status != 0:
                self.say(crash=f"a forked child ended with the status {status}")
        self.children.clear()

    def say(self, **entry: Any) -> None:
        """Add a line to the report."""
        fd = _open(self.place.report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        _write(fd, json.dumps(entry).encode() + b"\n")
        os.close(fd)

    # What the run calls.

    def queried(self, rows: int) -> None:
        """The objective has been asked for so many rows."""
        if _process() != self.process or self.fault is None:
            return
        fault = self.fault
        with self.lock:
            self.count += rows
            count = self.count
            due = not fault.at_step and self._is_due()
        if due:
            self.strike()
        if fault.kill or (fault.kind, fault.mode) == ("interrupt", "sent"):
            self.await_signal(count)
        if count >= self.die_at:
            self.say(fault="kill")
            os.kill(_process(), signal.SIGKILL)
        if fault.failing and self.disk.failing and self.random.random() < FAILING_SHARE:
            raise Flaky("the objective fails while the disk is full " + 20 * "and says so at length ")

    def await_signal(self, count: int) -> None:
        """Tell the watcher that it is time for a signal, and at the latest some queries later wait for it."""
        fault, wires = self.fault, self.wires
        assert fault is not None
        assert wires is not None
        first = fault.after + (fault.later if fault.kind != "kill" and fault.kill else 0)
        if count >= first:
            with suppress(OSError):
                _write(wires.up, b"s")
        if count >= first + fault.later:
            while os.read(wires.down, 1):  # ends when the watcher has sent its signal and closed its end
                pass

    def stepped(self, progress: Any) -> None:
        """The callback of the run."""
        fault = self.fault
        if _process() == self.process and fault is not None and fault.at_step and self._is_due():
            self.strike()

    def _is_due(self) -> bool:
        """Whether the fault comes now; if so, it is said when it comes next."""
        fault = self.fault
        assert fault is not None
        if not 0 < self.next_strike <= self.count or self.struck >= fault.times:
            return False
        self.struck += 1
        self.next_strike = self.count + 1 + self.random.randrange(2 * fault.after)
        return True

    def stray_ledger(self) -> int:
        """The ledger of a forked process."""
        if self.stray_fd is None:
            self.stray_fd = _open(self.place.strays, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        return self.stray_fd

    # The faults.

    def strike(self) -> None:
        """Bring about the fault."""
        assert self.fault is not None
        acts: dict[str, Callable[[], None]] = {
            "interrupt": self.interrupt,
            "fork": self.fork,
            "copy": self.copy,
            "daemon": self.daemonise,
            "fsync": self.spoil_disk,
            "disk": self.spoil_disk,
        }
        if self.fault.kind in acts:
            acts[self.fault.kind]()

    def spoil_disk(self) -> None:
        """From now on the disk fails."""
        assert self.fault is not None
        if self.fault.mode == "ballast":
            self.disk.failing = True
            self.say(fault="disk")
            fill(self.place.ballast, leave=self.random.choice([0, 0, 4096, 8192, 100_000, 300_000]))
        else:
            self.disk.begin(self.fault.kind, lambda kind: self.say(fault=kind))

    # Ctrl-C.

    def interruptible(self) -> bool:
        """Make the call while Ctrl-C may be pressed, and only then."""
        ended = False
        try:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                ended = self.call()
            finally:
                sys.setprofile(None)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.say(end="KeyboardInterrupt", nfev=None, asked=asked(self.place.ledger))
        return ended

    def interrupt(self) -> None:
        """Press Ctrl-C, here or a little later."""
        fault = self.fault
        assert fault is not None
        if fault.mode == "pressed":
            self.say(fault="interrupt")
            self.press()
            if fault.twice:
                self.press()
        elif fault.mode == "instant":
            self.presses = 1 + fault.twice
            if self.random.random() < 0.5:
                self.profiled = self.random.randint(1, OPENING_INSTANTS)
            else:
                self.profiled = int(math.exp(self.random.uniform(0, math.log(LATEST_INSTANT))))
            sys.setprofile(self.profile)

    @staticmethod
    def press() -> None:
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
        else:
            os.kill(_process(), signal.SIGINT)
            time.sleep(0.001)  # two at once would be one

    def profile(self, frame: Any, event: str, argument: Any) -> None:
        """Press Ctrl-C at one of the instants at which Python looks for signals: as a function begins, or has ended."""
        if event not in ("call", "c_return") or frame.f_code.co_filename == __file__:
            return
        self.profiled -= 1
        if self.profiled == 0:
            self.say(fault="interrupt")
            self.presses -= 1
            self.profiled = self.random.randint(1, 100) if self.presses else 0
            signal.raise_signal(signal.SIGINT)

    # Forks.

    def fork(self) -> None:
        """Fork a child that leaves in one way or another."""
        fault = self.fault
        assert fault is not None
        self.say(fault="fork")
        child = os.fork()
        if child:
            if fault.twice and fault.mode != "outlive":
                self._reap(child)
            else:
                self.children.append(child)
            return
        assert self.wires is not None
        os.close(self.wires.up)  # or the watcher would wait for this process
        self.say(process=_process())
        if fault.mode == "_exit":
            os._exit(0)
        if fault.mode == "outlive":
            time.sleep(fault.delay * 10)
        if fault.mode in ("exit", "outlive"):
            leave()
        if fault.mode == "unwind":
            sys.exit(0)

    def _reap(self, child: int) -> None:
        _, status = os.waitpid(child, 0)
        if status != 0:
            self.say(crash=f"a forked child ended with the status {status}")

    def stray(self, found: zt.Result | BaseException) -> NoReturn:
        """A forked child has come out of the call: it must have been refused, with a sentence."""
        assert self.fault is not None
        words = "" if isinstance(found, zt.Result) and found.success else str(getattr(found, "message", found))
        refused = isinstance(found, (RunError, zt.Result)) and "process" in words
        if self.fault.mode == "unwind" and isinstance(found, SystemExit):
            leave()
        if not refused:
            self.say(writer=f"a forked child went on, and came out with {found!r:.200}")
        if self.fault.kind == "daemon":
            self.go_on_as_daemon()
        leave()

    # Daemons.

    def daemonise(self) -> None:
        """Go on in the background: a child of a child works on the run, when this process has ended."""
        fault = self.fault
        assert fault is not None
        assert self.wires is not None
        self.say(fault="daemon")
        gone, alive = os.pipe()
        if os.fork():
            os.close(gone)
            if fault.twice and threading.current_thread() is threading.main_thread():
                leave()
            os._exit(0)
        os.close(alive)
        os.setsid()
        if os.fork():
            os._exit(0)
        self.say(process=_process())
        os.read(gone, 1)  # ends with the process that holds the other end
        if fault.mode == "own":
            self.go_on_as_daemon()

    def go_on_as_daemon(self) -> NoReturn:
        """Open the run in this process, and work on it for a while."""
        assert self.fault is not None
        left_alone = replace(self.fault, kind="none", after=0, times=0)
        daemon = Script(self.case, self.place, self.budget, left_alone, self.wires)
        daemon.die_at = math.inf if self.random.random() < 0.2 else 1 + self.random.randrange(2 * self.fault.after + 1)
        daemon.call()
        os._exit(0)

    # Copies.

    def copy(self) -> None:
        """Copy the folder, and let the watcher try to open the run meanwhile."""
        fault, wires = self.fault, self.wires
        assert fault is not None
        assert wires is not None
        self.say(fault="copy")
        if fault.mode == "thread":
            if self.copier is not None:
                self.copier.join()
            self.copier = threading.Thread(target=self._copy_often, args=(self.struck,))
            self.copier.start()
        else:
            shutil.copytree(self.place.folder, self.place.where / "part", dirs_exist_ok=True)
            os.rename(self.place.where / "part", self.place.where / f"copy-{self.struck}")  # it is whole
        _write(wires.up, b"o")
        os.read(wires.down, 1)

    def _copy_often(self, number: int) -> None:
        """Copy the folder twice while the run goes on; files may vanish meanwhile."""
        for letter in "ab":
            with suppress(OSError, shutil.Error):
                shutil.copytree(self.place.folder, self.place.where / f"hasty-{number}{letter}")


def leave() -> NoReturn:
    """End this process as Python does at the end of a program, with all finalisers.

    The ends of compiled libraries are left out: some of them wait for threads, which a forked child does not have.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(0)


def fill(path: Path, *, leave: int) -> None:
    """Fill a disk up to so many bytes."""
    fd = _open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    disk = os.fstatvfs(fd)
    free = disk.f_bavail * disk.f_frsize - leave
    with suppress(OSError):
        while free > 0:
            free -= _write(fd, bytes(min(free, 1 << 16)))
    os.close(fd)


# Disks that fail.


@dataclass
class BadDisk:
    """System calls that fail for the files of one folder.

    Arguments
    ---------
    folder: the folder.
    mode: "once", "share" (now and then), "all", or "folders" (only what concerns the names of files).
    random: draws which calls fail.
    """

    folder: Path
    mode: str
    random: random.Random
    failing: bool = False
    _kept: list[tuple[Any, str, Any]] = field(default_factory=list)
    _left: int = 0  # calls until the one that fails, in the mode "once"

    FSYNC = ("fsync", "fdatasync")
    FULL = ("posix_fallocate", "pwrite", "write", "ftruncate", "open", "replace", "mkdir")

    def begin(self, kind: str, tell: Callable[[str], None]) -> None:
        """Let calls fail from now on, and tell of the first one."""
        self.failing, self._left, told = True, self.random.randint(1, 5), list[str]()

        def failed(code: int) -> OSError:
            if not told:
                told.append(kind)
                tell(kind)
            return OSError(code, os.strerror(code))

        for called in self.FSYNC if kind == "fsync" else self.FULL:
            real = getattr(os, called, None)
            if real is not None:
                self._patch(real, self._failing_call(called, real, failed))

    def _patch(self, real: Any, wrong: Any) -> None:
        """Put a failing function in the place of a real one, wherever the package or the system's module names it."""
        for module in [os, *(m for n, m in sys.modules.items() if n.startswith("zerothresh"))]:
            for attribute, value in list(vars(module).items()):
                if value is real:
                    self._kept.append((module, attribute, real))
                    setattr(module, attribute, wrong)

    def end(self) -> None:
        """The disk works again."""
        self.failing = False
        while self._kept:
            module, attribute, real = self._kept.pop()
            setattr(module, attribute, real)

    def _failing_call(self, called: str, real: Any, failed: Callable[[int], OSError]) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            code = self._code(called, arguments)
            if code and self._draw():
                raise failed(code)
            return real(*arguments, **keywords)

        return call

    def _code(self, called: str, arguments: Any) -> int:
        """The error that a call could end with; 0 if it concerns another folder, or could not fail on a full disk."""
        first = arguments[0]
        if called in ("open", "replace", "mkdir"):
            target = Path(os.fspath(arguments[1] if called == "replace" else first))
            if not target.is_relative_to(self.folder):
                return 0
            makes = called != "open" or (arguments[1] & os.O_CREAT and not target.exists())
            return errno.ENOSPC if makes else 0
        try:
            target = Path(os.readlink(f"/proc/self/fd/{first}"))
        except (OSError, ValueError):
            return 0
        if not target.is_relative_to(self.folder):
            return 0
        entry = os.fstat(first)
        if called in self.FSYNC:
            return 0 if self.mode == "folders" and not stat.S_ISDIR(entry.st_mode) else errno.EIO
        if called == "pwrite":  # space that the file has already is not refused
            return errno.ENOSPC if arguments[2] + len(arguments[1]) > entry.st_size else 0
        return errno.ENOSPC

    def _draw(self) -> bool:
        """Whether this call fails."""
        if self.mode == "share":
            return self.random.random() < FAULTY_SHARE
        if self.mode == "once":
            self._left -= 1
            return self._left == 0
        return True


# Processes.


@contextmanager
def as_a_program(errors: Path) -> Iterator[None]:
    """Let a process that was forked from a test be like a program that was just started.

    Whatever its parent wanted to do at its own end is forgotten, warnings are no errors, and standard error goes into a
    file.
    """
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False
    atexit._clear()
    warnings.resetwarnings()
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fd = _open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(fd, 2)
    os.close(fd)
    yield


def start(case: Case, place: Place, budget: int, fault: Fault | None, wires: Wires, others: list[int]) -> int:
    """Start a session in a process of its own; ``others`` are the ends of the pipes that it does not use."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    try:
        for fd in others:
            os.close(fd)
        with as_a_program(place.errors):
            Script(case, place, budget, fault, wires).play()
    except BaseException as error:
        _write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def alone(path: str) -> None:
    """A session in an interpreter of its own, which may be interrupted while it starts: see `chaos.watch_import`."""
    case, place, budget, fault = pickle.loads(Path(path).read_bytes())  # noqa: S301
    script = Script(case, place, budget, fault, None)
    script.say(began=True)
    script.call()

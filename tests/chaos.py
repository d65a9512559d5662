"""Runs that are disturbed in every way that was thought of, again and again, and have to come out the same.

    python tests/chaos.py [runs] [seed] [first]        (make chaos)

With ``first``, the runs of a seed begin with this number, so that a run that went wrong can be repeated alone.

Every run has a twin that nobody disturbs. The faults:

- kill: SIGKILL at a random instant, one in eight while the run is being opened; in every fourth run, the tail of a
  journal or the newest snapshot is damaged then, as by a crash of the machine;
- interrupt: Ctrl-C, once or twice, from outside, from within a call, at an instant at which Python looks for signals,
  or while an interpreter starts and imports the package; half of the processes then make the same call again;
- fork: the objective or the callback forks a child, which ends normally or by os._exit, lets SystemExit pass through
  the call, tries to go on with the run, or outlives its parent and ends during the next session;
- copy: the folder is copied from a callback or from another thread, and another process tries to open the run;
- daemon: the process forks twice and ends; its grandchild opens the run, or first tries to go on with what it inherited;
- fsync: os.fsync and os.fdatasync fail with EIO, once, now and then, always, or for folders only;
- disk: a full disk, by system calls that fail with ENOSPC or on a small file system that is filled up; the objective
  may fail at the same time.

Every one of the last five is followed by a kill in half of the sessions.

A ledger outside the run folder records each query at the moment when the objective is asked. After every session it is
compared with the calls that the run folder has counted:

- After a kill, calls that were under way are not counted: one per worker, or one chunk per worker for a vectorised
  function. So it is if a process that becomes a daemon ends within a call. They are asked for again.
- Otherwise the two numbers are equal. The first Ctrl-C lets calls under way come to their end, so no call is charged
  without a value. The second one breaks them off, and they are charged as failed in this session and in all later ones;
  only a call that was broken off before the first line of the objective is charged and not in the ledger.
- Calls that failed are charged, also on a full disk.

Charged calls without a value take from the budget, and the twin has none. The next session therefore gets a budget that
is larger by the number of these calls. A method plans with the budget that its run began with, and what is left of the
budget is what is left to the twin, so that the run ends as the twin does, to the bit. There is one exception: a call
that is charged after the search has ended, among those that give F at the result. The larger budget then may have room
for another step, which the twin does not make, and only the steps of the twin are compared.

The last line says what went wrong, and all of its numbers must be 0:

- values lost: calls that are in the ledger and neither counted at the end nor excused, or the other way round;
- queries repeated: queries of a session whose value is not on disk when it ends, beyond what is said above;
- bit differences: runs, or copies of runs, whose result or trace differs from the twin's;
- folders refused: runs that could not be opened although nothing was wrong with the disk at that time;
- second writers: processes that were not refused although another one had the run open, or that went on with a run
  that they had inherited;
- crashes: sessions that ended in another way than they should.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from chaos_session import PROBLEM, Case, Fault, Place, Wires, arguments, asked, counted, run, start
from waiting import PATIENCE

import zerothresh as zt
from zerothresh.runs import RunError
from zerothresh.runs.inspection import inspect
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered

METHODS = [
    zt.FGZOHT(0.02),
    zt.SZOHT(0.02, batch=2),
    zt.VRSZHT(0.02, m=3, output="random"),
    zt.SARAHSZHT(0.02, m=4),
    zt.SAGASZHT(0.02),
    zt.PSAGASZHT(0.02, p=3),
    zt.LSVRGSZHT(0.02),
    zt.PMSZHT(0.02, law=zt.methods.FixedSize(2)),
    zt.methods.Auto(),
    zt.methods.NIHT(),
    zt.methods.HTP(),
    zt.methods.Index(),
    zt.methods.GuidedSAGA(),
]
OURS = len(METHODS)
METHODS += [
    zt.methods.SARAHPlus(0.02, m=6),
    zt.methods.HZOHT(0.02, within=zt.methods.Ball(2.0)),
    zt.methods.SZOHTTheory(1.0, 1.0, q=3),
    zt.methods.HTES(),
    zt.methods.ZORO(0.02),
    zt.methods.AdaZORO(0.02),
    zt.methods.GraCe(0.02, s=2),
    zt.methods.RSPGF(0.02),
    zt.methods.ZSCG(2.0),
    zt.methods.ZOProxSVRG(0.02, m=4),
    zt.methods.ZOSGD(0.02, threshold=True),
    zt.methods.ZOSVRG(0.02, m=4, estimator="rand"),
    zt.methods.ZOSPIDER(0.02, m=4),
    zt.methods.ZOAdaMM(0.02),
    zt.methods.SparseRS(),
    zt.methods.ESSwaps(),
    zt.methods.Outside("scipy"),
]
SPEEDS = (0.0, 0.0002, 0.002)  # seconds per call
CALLS = {0.0: 3000, 0.0002: 1200, 0.002: 500}  # the budget of a run at each speed
MODES = {
    "kill": ("sent",),
    "interrupt": ("sent", "pressed", "instant", "instant", "import"),
    "fork": ("exit", "_exit", "unwind", "go on", "outlive"),
    "copy": ("step", "thread"),
    "daemon": ("own", "inherit"),
    "fsync": ("once", "share", "all", "folders"),
    "disk": ("once", "share", "all", "ballast", "ballast"),
}
KINDS = tuple(MODES)
OPENING = {
    "kill": 1 / 8,
    "interrupt": 1 / 3,
    "fsync": 1 / 8,
    "disk": 1 / 8,
}  # the share that comes while a run is opened
MOST_FAULTS = 8  # sessions of a run that are disturbed; the next one is left in peace
RUNS = 512
DISK_SIZE = "2m"  # of the file system that is filled up: room for a run, and soon full


@dataclass
class Tally:
    """What went wrong, and how much was tried."""

    lost: int = 0
    repeated: int = 0
    differences: int = 0
    refused: int = 0
    writers: int = 0
    crashes: int = 0
    runs: int = 0
    filled: int = 0  # disks that were really filled up
    faults: Counter[str] = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {self.faults[kind]:,}" for kind in KINDS if self.faults[kind])
        return (
            f"chaos: {self.runs:,} runs, {self.faults.total():,} faults ({kinds or 'none'}): {self.lost:,} values lost, "
            f"{self.repeated:,} queries repeated, {self.differences:,} bit differences, {self.refused:,} folders "
            f"refused, {self.writers:,} second writers, {self.crashes:,} crashes"
        )

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not any((self.lost, self.repeated, self.differences, self.refused, self.writers, self.crashes))

    def add(self, other: Tally) -> None:
        """Add what another process has found."""
        for name in ("lost", "repeated", "differences", "refused", "writers", "crashes", "runs", "filled"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults.update(other.faults)
        self.words += other.words


def drawn(
    rng: np.random.Generator, kind: str, case: Case, total: int, *, charges: bool = True, ballast: bool = False
) -> Fault:
    """Draw a fault of a run that takes so many queries.

    Arguments
    ---------
    rng: the generator.
    kind: one of `KINDS`.
    case: the run.
    total: the number of queries of its twin.
    charges: whether calls may be charged that gave no value.
    ballast: whether the run is on a disk of its own, which can be filled up.
    """
    mode = str(rng.choice([mode for mode in MODES[kind] if ballast or mode != "ballast"] or ["all"]))
    opening = bool(rng.random() < OPENING.get(kind, 0.0))
    if opening and mode == "pressed":
        mode = "instant"  # nothing is there yet that could press
    at_step = kind == "copy" or (kind in ("interrupt", "fork", "daemon") and bool(rng.random() < 0.5))
    if case.workers > 1 and mode in ("unwind", "go on", "inherit"):
        at_step = True  # what is forked from a worker thread has no loop to go on with
    killed = kind == "kill" or mode == "outlive"
    again = kind in ("interrupt", "fsync", "disk") and bool(rng.random() < 0.5)
    if kind in ("fork", "copy", "fsync", "disk"):
        killed = killed or bool(rng.random() < 1 / 2)
    reach = float(rng.choice([0.1, 0.3, 0.7])) * total
    return Fault(
        kind,
        mode,
        after=0 if opening else int(rng.integers(1, max(2, reach))),
        later=int(rng.integers(0, 40)),
        delay=float(rng.choice([0.0, rng.exponential(0.003)])),
        at_step=at_step,
        twice=bool(rng.random() < 0.5) and (charges or kind != "interrupt"),
        failing=kind == "disk" and charges and bool(rng.random() < 0.5),
        kill=killed,
        again=again,
        times=int(rng.integers(1, 4)) if kind in ("fork", "copy") or (kind == "interrupt" and again) else 1,
        seed=int(rng.integers(1 << 30)),
    )


@dataclass
class Told:
    """What the watcher saw of a session, and what the session said."""

    killed: bool = False
    lines: list[dict[str, Any]] = field(default_factory=list)
    wrong: str = ""  # how the process ended, if it should not have ended so
    let_in: bool = False  # whether a second process was let in
    hidden: str = ""  # what `inspect` said instead of "running"

    def said(self, name: str) -> list[Any]:
        """All that was said under a name."""
        return [line[name] for line in self.lines if name in line]


def watch(case: Case, place: Place, budget: int, fault: Fault | None) -> Told:
    """Work on the run in a process of its own, and disturb it."""
    place.report.unlink(missing_ok=True)
    told = Told()
    if fault is not None and fault.mode == "import":
        status = _watch_import(case, place, budget, fault)
    else:
        status = _watch_session(case, place, budget, fault, told)
    place.ballast.unlink(missing_ok=True)
    told.lines = _report(place)
    told.killed = (told.killed and os.WIFSIGNALED(status)) or "kill" in told.said("fault")
    if status != 0 and not (told.killed and os.WTERMSIG(status) == signal.SIGKILL) and not told.said("crash"):
        told.wrong = f"a session ended with the status {status}: {_tail(place.errors)}"
    return told


def _watch_session(case: Case, place: Place, budget: int, fault: Fault | None, told: Told) -> int:
    """Start a session, and send signals and try to open the run as it asks for it; returns its exit status."""
    heard, up = os.pipe()
    down, answer = os.pipe()
    child = start(case, place, budget, fault, Wires(up, down), [heard, answer])
    os.close(up)
    os.close(down)
    signalled = False
    try:
        while message := _hear(heard, place, child):
            if told.killed:
                continue  # whatever it said before its death
            if message == b"o":
                told.let_in, told.hidden = _try_to_open(case, place, budget)
                with suppress(OSError):
                    os.write(answer, b".")
            elif not signalled:
                assert fault is not None
                signalled, told.killed = True, fault.kill
                time.sleep(fault.delay)
                os.kill(child, signal.SIGKILL if fault.kill else signal.SIGINT)
                if fault.twice and not fault.kill:
                    time.sleep(fault.delay)
                    os.kill(child, signal.SIGINT)
                os.close(answer)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(heard)
        if not signalled:
            os.close(answer)
    if signalled and fault is not None and not fault.kill:
        _say(place, fault="interrupt")
    return status


def _hear(heard: int, place: Place, child: int) -> bytes:
    """The next message of a session; nothing if it has ended. One that hangs is ended, which is a crash."""
    if not _waits(heard):
        _say(place, crash="a session hangs")
        _end_all(place, child)
        return b""
    return os.read(heard, 1)


def _waits(fd: int) -> bool:
    """Wait until there is something to read, or the other end has been closed; False if that never happens."""
    return bool(select.select([fd], [], [], PATIENCE)[0])


def _end_all(place: Place, *more: int) -> None:
    """End the processes of a run that hang, also those that they have forked."""
    for process in {*more, *(line["process"] for line in _report(place) if "process" in line)}:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _report(place: Place) -> list[dict[str, Any]]:
    """What a session has said."""
    return [json.loads(line) for line in place.report.read_text().splitlines()] if place.report.exists() else []


def _say(place: Place, **entry: Any) -> None:
    with open(place.report, "a") as report:
        report.write(json.dumps(entry) + "\n")


def _tail(path: Path) -> str:
    return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def _try_to_open(case: Case, place: Place, budget: int) -> tuple[bool, str]:
    """Try to open a run that another process works on; returns whether that was let happen, and what a look showed."""
    _, charged = counted(place.folder)
    state = inspect(place.folder).state
    try:
        form = case.form if case.outputs else {"n": PROBLEM.n}
        zt.Optimizer(
            PROBLEM.d, 2, fingerprint="chaos", **form, **arguments(case, place.folder, budget + charged)
        ).close()
    except RunError as error:
        return "written by" not in str(error), "" if state == "running" else state
    return True, ""


@cache
def starting_time() -> float:
    """Seconds that an interpreter takes here until it has imported the package."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import chaos_session"], cwd=Path(__file__).parent, check=True)
    return time.monotonic() - begun


def _watch_import(case: Case, place: Place, budget: int, fault: Fault) -> int:
    """Interrupt a session in an interpreter of its own, which may be starting or importing; returns its exit status.

    How a process ends that is interrupted before the session begins is a matter of the packages that it imports.
    """
    spec = place.where / "spec"
    spec.write_bytes(pickle.dumps((case, place, budget, fault)))
    code = "import sys, chaos_session; chaos_session.alone(sys.argv[1])"
    with open(place.errors, "ab") as errors:
        size = errors.tell()
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(spec)], cwd=Path(__file__).parent, stderr=errors, start_new_session=True
        )
        time.sleep(1.3 * starting_time() * np.random.default_rng(fault.seed).random())
        presses = 0
        while process.poll() is None and presses <= fault.twice:
            process.send_signal(signal.SIGINT)
            presses += 1
            time.sleep(fault.delay)
        status = process.wait(PATIENCE)
    if presses:
        _say(place, fault="interrupt")
    began = any("began" in line for line in _report(place))
    interrupted = not began or b"KeyboardInterrupt" in place.errors.read_bytes()[size:] or status == -signal.SIGINT
    return 0 if presses and interrupted else status


def torment(
    case: Case,
    place: Place,
    budget: int,
    faults: Callable[[int], Iterable[Fault]],
    *,
    spoil: np.random.Generator | None = None,
) -> Tally:
    """Disturb one run until it is through, and hold it against its twin; returns what was found.

    Arguments
    ---------
    case, place: the run, and where it is.
    budget: the budget of the run.
    faults: gives the faults, one for each session, from the number of queries of the twin; then the run is left alone.
    spoil: draws the damage that is done to the folder after a kill; None does none.
    """
    tally = Tally()
    shutil.rmtree(place.where, ignore_errors=True)
    shutil.rmtree(place.folder, ignore_errors=True)
    place.where.mkdir(parents=True)
    twin = run(case, None, place.twin, budget)
    account = Account(case, place, budget, twin, asked(place.twin), tally)
    lives, living = os.pipe()  # held by every process of this run
    try:
        for fault in [*faults(account.total), None]:
            told = watch(case, place, budget, fault)
            through = account.enter(fault, told)
            if account.hopeless or through:
                break
            if spoil is not None and told.killed:
                damage(place.folder, spoil)
                account.forgive()
        else:
            account.complain("crashes", 1, "a session that was left in peace did not come to an end")
            account.hopeless = True
    finally:
        os.close(living)
        if not _waits(lives):  # forked children may outlive the last session
            account.complain("crashes", 1, "a forked child hangs")
            _end_all(place)
        os.close(lives)
    tally.runs += 1
    if not account.hopeless:
        account.close()
    return tally


@dataclass
class Account:
    """The account of one run: what was asked for, what the folder has counted, and what is excused."""

    case: Case
    place: Place
    budget: int
    twin: zt.Result
    total: int  # queries of the twin
    tally: Tally
    noted: int = 0  # queries in the ledger
    held: int = 0  # calls that the folder has counted
    failed: int = 0  # those of them that gave no value
    vain: int = 0  # queries that are not counted, and excused
    longer: bool = False  # whether the run may make steps that the twin does not make
    hopeless: bool = False
    history: list[str] = field(default_factory=list)

    def complain(self, what: str, count: int, words: str) -> None:
        """Enter something that went wrong."""
        if count:
            setattr(self.tally, what, getattr(self.tally, what) + count)
            self.tally.words.append(
                f"run {self.case.seed}, {what}: {words}\n    {self.case}\n    {'; '.join(self.history)}"
            )

    def enter(self, fault: Fault | None, told: Told) -> bool:
        """Enter a session; returns whether the run is through."""
        case, place = self.case, self.place
        faults = Counter(told.said("fault"))
        if told.killed and "kill" not in faults:
            faults["kill"] = 1
        self.tally.faults.update(faults)
        self.tally.filled += fault is not None and fault.mode == "ballast" and faults["disk"]
        happened = " ".join([*(f"{kind} {count}" for kind, count in faults.items()), *told.said("end")])
        self.history.append(f"{fault or 'left in peace'} -> {happened or 'nothing'}")
        for what in ("crash", "refused", "writer"):
            for words in told.said(what):
                self.complain({"crash": "crashes", "refused": "refused", "writer": "writers"}[what], 1, words)
                self.hopeless = self.hopeless or what != "writer"
        if told.wrong:
            self.complain("crashes", 1, told.wrong)
            self.hopeless = True
        self.complain("writers", told.let_in, "a second process was let in")
        self.complain(
            "crashes", bool(told.hidden), f"inspect says {told.hidden} of a run that another process has open"
        )
        noted = asked(place.ledger)
        queries, self.noted = noted - self.noted, noted
        try:
            held, failed = counted(place.folder)
        except RunError as error:
            self.complain("refused", 1, str(error))
            self.hopeless = True
            return False
        deaths = told.killed + (fault is not None and fault.kind == "daemon" and not fault.at_step)
        broken_off = case.under_way if fault is not None and fault.kind == "interrupt" and fault.twice else 0
        gap = queries - (held - self.held)  # asked for in this session, and not counted by its end
        most = deaths * case.under_way
        self.complain("repeated", max(0, gap - most), f"{gap} queries are not counted, {most} can have been under way")
        self.complain("lost", max(0, -broken_off - gap), f"{-gap} calls more are counted than were made")
        for line in told.lines:
            if line.get("nfev") is not None:
                off = line["asked"] - self.vain - line["nfev"]
                why = f"the result counts {line['nfev']} calls, and {line['asked'] - self.vain} were made"
                self.complain("lost", abs(off) if not -broken_off <= off <= most else 0, why)
        if failed > self.failed:
            charged = failed - self.failed
            may = fault is not None and (fault.failing or (fault.kind == "interrupt" and fault.twice))
            self.complain("repeated", 0 if may else charged, f"{charged} calls were charged without a reason")
            self.longer = (
                self.longer or held - failed >= self.total - self.case.final_calls
            )  # they give F at the result
        self.vain += gap
        self.held, self.failed = held, failed
        for copy in [*place.where.glob("copy-*"), *place.where.glob("hasty-*")]:
            self.check_copy(copy, hasty=copy.name.startswith("hasty"))
            shutil.rmtree(copy)
        shutil.rmtree(place.where / "part", ignore_errors=True)  # of a process that was killed while it copied
        return bool(set(told.said("end")) & {"BUDGET", "CONVERGED"})

    def forgive(self) -> None:
        """Enter what a damage to the folder has taken."""
        held, self.failed = counted(self.place.folder)
        self.vain += self.held - held
        self.held = held

    def close(self) -> None:
        """Hold a run that came through against its twin."""
        result = run(self.case, self.place.folder, self.place.ledger, self.budget + self.failed)  # asks for nothing
        again = asked(self.place.ledger) - self.noted
        self.complain("repeated", again, f"a run that was through asked for {again} queries more")
        lost = self.noted - self.vain - result.nfev
        self.complain("lost", abs(lost), f"the run counts {result.nfev} calls, and {self.noted - self.vain} were made")
        self.complain("differences", self.differs(result, self.failed), "the run differs from its twin")
        strays = asked(self.place.strays)
        most = self.case.under_way * sum(self.tally.faults[kind] for kind in ("fork", "daemon"))
        self.complain("repeated", max(0, strays - most), f"forked children made {strays} calls")

    def check_copy(self, copy: Path, *, hasty: bool) -> None:
        """Go on with a copy of the folder; one that was made while the run went on may be refused."""
        try:
            _, failed = counted(copy)
            result = run(self.case, copy, None, self.budget + failed)
        except RunError as error:
            self.complain("refused", not hasty, f"a copy was refused: {error}")
            return
        self.complain("differences", self.differs(result, failed), "a copy of the run differs from its twin")

    def differs(self, result: zt.Result, failed: int) -> bool:
        """Whether a result is another than the twin's, apart from calls that were charged without a value."""
        twin = self.twin
        mine, its = result.trace, twin.trace
        if len(mine) < len(its) or (len(mine) > len(its) and not self.longer):
            return True
        rows = slice(len(its))
        shift = mine.nfev[rows] - its.nfev
        same = (
            np.array_equal(mine.fun[rows], its.fun, equal_nan=True)
            and np.array_equal(mine.nht[rows], its.nht)
            and all(map(np.array_equal, mine.support[rows], its.support))
            and bool((np.diff(shift, prepend=0, append=failed) >= 0).all())
        )
        if self.longer:
            return not same
        return not (
            same
            and result.x.tobytes() == twin.x.tobytes()
            and result.x_last.tobytes() == twin.x_last.tobytes()
            and (result.fun == twin.fun or (np.isnan(result.fun) and np.isnan(twin.fun)))
            and (result.nfev - failed, result.nht, result.nit) == (twin.nfev, twin.nht, twin.nit)
        )


def damage(folder: Path, rng: np.random.Generator) -> None:
    """What a crash of the machine can do: a torn tail, a cut snapshot."""
    if not folder.exists():
        return
    journals, snapshots = numbered(folder, JOURNAL), numbered(folder, SNAPSHOT)
    if journals and rng.random() < 0.5:
        path = journals[-1][1]
        _, end, _ = read_journal(path)
        cut = max(0, end - int(rng.integers(1, 60)))
        junk = bytes(rng.integers(0, 256, int(rng.integers(0, 40)), dtype=np.uint8))
        path.write_bytes(path.read_bytes()[:cut] + junk)
    if len(snapshots) == 2 and rng.random() < 0.5:
        path = snapshots[-1][1]
        size = path.stat().st_size  # 0 if an earlier damage left nothing of it
        path.write_bytes(path.read_bytes()[: int(rng.integers(0, max(1, size)))])


# Many runs.


def case_of(number: int, seed: int) -> tuple[Case, np.random.Generator]:
    """The case of a run by its number, and the generator for its faults: over all methods, speeds, forms, policies."""
    rng = np.random.default_rng([seed, number])
    return Case(
        method=METHODS[number % len(METHODS)],
        pause=SPEEDS[number // len(METHODS) % len(SPEEDS)],
        workers=int(rng.choice([1, 1, 3])),
        vectorised=bool(rng.random() < 0.3),
        fsync=str(rng.choice(["value", "batch", "never"])),
        eager=bool(rng.random() < 0.4),
        jumps=bool(rng.random() < 0.2),
        seed=number,
        outputs=bool(rng.random() < 0.3),
    ), rng


def one_run(number: int, seed: int, where: Path, share: float, disk: Path | None, kinds: Sequence[str]) -> Tally:
    """Disturb one run of a campaign, above all with faults of one kind, and say what was found."""
    case, rng = case_of(number, seed)
    main, turn = kinds[number % len(kinds)], number // len(kinds)
    if main == "fsync" and case.fsync == "never":
        case = replace(case, fsync="value", eager=True)
    spoil = main == "kill" and turn % 4 == 3
    own_disk = disk if main == "disk" and turn % 2 == 0 else None
    drawn_from = ["kill"] if spoil else [*(main,) * 6, *kinds]

    def faults(total: int) -> Iterator[Fault]:
        for _ in range(MOST_FAULTS):
            kind = str(rng.choice(drawn_from))
            yield drawn(rng, kind, case, total, charges=not spoil, ballast=own_disk is not None)

    place = Place(where, (own_disk or where) / "run")
    return torment(case, place, int(share * CALLS[case.pause]), faults, spoil=rng if spoil else None)


def campaign(
    runs: int,
    seed: int,
    where: Path,
    *,
    share: float = 1.0,
    kinds: Sequence[str] = KINDS,
    workers: int = 1,
    first: int = 0,
    show: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Disturb many runs, with this share of the usual budgets, by so many processes; ``first`` is the first number."""
    numbers, giving = os.pipe()
    found, finding = os.pipe()
    children = []
    for worker in range(workers):
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            os.close(giving)
            os.close(found)
            _work(numbers, finding, seed, where / f"worker-{worker}", share, kinds)
        children.append(child)
    os.close(numbers)
    os.close(finding)
    tally = Tally()
    try:
        with os.fdopen(giving, "wb", buffering=0) as gate, os.fdopen(found, "rb") as results:
            gate.write(b"".join(struct.pack("<I", number) for number in range(first, first + runs)))
            gate.close()
            while size := results.read(4):
                tally.add(pickle.loads(results.read(struct.unpack("<I", size)[0])))  # noqa: S301
                show(tally)
    except BaseException:
        for child in children:
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        for child in children:
            os.waitpid(child, 0)
    if tally.runs < runs:
        tally.crashes += 1
        tally.words.append(f"{runs - tally.runs} runs were not finished")
    return tally


def _work(numbers: int, finding: int, seed: int, where: Path, share: float, kinds: Sequence[str]) -> None:
    """One process of a campaign: take the number of a run, disturb it, and send what was found."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with small_disk(where / "disk") as disk:
            while number := os.read(numbers, 4):
                tally = one_run(struct.unpack("<I", number)[0], seed, where / "run", share, disk, kinds)
                data = pickle.dumps(tally)
                with open(finding, "wb", closefd=False) as pipe:
                    pipe.write(struct.pack("<I", len(data)) + data)
        code = 0
    except BaseException as error:
        import traceback

        traceback.print_exception(error)
    finally:
        os._exit(code)


@contextmanager
def small_disk(where: Path) -> Iterator[Path | None]:
    """A small file system for this process and its children; None if it cannot be mounted here.

    It is mounted in a name space of this process, and is gone with it.
    """
    where.mkdir(parents=True, exist_ok=True)
    new_mounts = 0x00020000  # CLONE_NEWNS
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(new_mounts) != 0:
            yield None
            return
    except AttributeError:
        yield None
        return
    for command in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(where)]):
        done = subprocess.run(["mount", *command], capture_output=True, check=False)
        if done.returncode != 0:
            yield None
            return
    yield where


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    scratch = Path(tempfile.mkdtemp(prefix="chaos-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    begun = time.monotonic()
    try:
        with progress(runs) as show:
            tally = campaign(runs, seed, scratch, workers=os.cpu_count() or 1, first=first, show=show)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("\n".join(tally.words))
    if tally.faults["disk"] and not tally.filled:
        print("no disk was really filled up: a small file system cannot be mounted here, or none was drawn")
    print(f"{time.monotonic() - begun:.0f} seconds")
    print(tally)
    return 0 if tally.clean else 1


@contextmanager
def progress(runs: int) -> Iterator[Callable[[Tally], None]]:
    """Show how far the campaign is: a bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():

        def line(tally: Tally) -> None:
            if tally.runs % 10 == 0 or tally.runs == runs:
                print(tally, file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task("", total=runs)

        def show(tally: Tally) -> None:
            wrong = "nothing lost" if tally.clean else str(tally).split("): ")[1]
            bar.update(
                task, completed=tally.runs, description=f"{tally.faults.total():,} faults, {wrong}", refresh=True
            )

        yield show


if __name__ == "__main__":
    sys.exit(main())

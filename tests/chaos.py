"""Runs that are killed with SIGKILL at random instants, again and again, and have to come out the same.

    python tests/chaos.py [runs] [seed]        (make chaos)

Every run has a twin that is never killed. A ledger outside the run folder records each query at the moment when
the objective is asked. Three numbers are printed, and all of them must be 0:

- lost values: queries that the twin did not make, and whose value had been on disk before the kill;
- repeated queries: queries of a session whose value is not on disk when the session dies, beyond those that can
  have been under way: one per worker, or one chunk per worker for a vectorised function;
- bit differences: runs whose result or trace differs from the twin's.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zerothresh as zt
from zerothresh.runs.folder import read_description, run_name
from zerothresh.runs.journal import ValueLine
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered

PROBLEM = zt.problems.ridge(n=8, d=6, seed=1)
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
CHUNK = 5


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

    @property
    def under_way(self) -> int:
        """Rows that can be under way at once."""
        return self.workers * (CHUNK if self.vectorised else 1)


@dataclass
class Tally:
    """What went wrong, and how much was tried."""

    lost: int = 0
    repeated: int = 0
    differences: int = 0
    runs: int = 0
    kills: int = 0
    words: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.runs} runs, {self.kills} kills: lost values {self.lost}, repeated queries {self.repeated}, "
            f"bit differences {self.differences}"
        )

    @property
    def clean(self) -> bool:
        return self.lost == self.repeated == self.differences == 0


@dataclass(frozen=True)
class Limits:
    """When a process that is to be killed tells its parent, and when it waits for its death: in queries."""

    tell: int
    wait: int
    pipe: int


class Objective:
    """The ridge problem, as a function that records every point it is asked for, and takes its time.

    With ``limits``, it tells the parent process when the first limit of queries is reached, and at the second one
    it waits until it is killed, so that the kill comes in time on a machine of any speed.
    """

    fingerprint = "chaos"

    def __init__(self, case: Case, ledger: Path | None, limits: Limits | None = None) -> None:
        self.case, self.limits, self.count = case, limits, 0
        self.lock = threading.Lock()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.fd = None if ledger is None else os.open(ledger, flags)
        self.d, self.n = PROBLEM.d, PROBLEM.n

    def values(self, points: Any, components: Any) -> Any:
        values = PROBLEM.values(points, components)
        if self.fd is not None:
            rows = zip(points, components.tolist(), strict=True)
            os.write(self.fd, b"".join(b"%b\n" % _name(x, i) for x, i in rows))
        if self.limits is not None:
            with self.lock:
                self.count += len(points)
                count = self.count
            if count >= self.limits.tell:
                os.write(self.limits.pipe, b"x")
            while count >= self.limits.wait:
                time.sleep(1)
        if self.case.pause:
            time.sleep(self.case.pause)
        return values


class OneByOne(Objective):
    """The same problem, with one point per call."""

    def __init__(self, case: Case, ledger: Path | None, limits: Limits | None = None) -> None:
        super().__init__(case, ledger, limits)
        self.many, self.values = self.values, None  # not a problem object

    def __call__(self, x: Any, i: int) -> float:
        return float(self.many(x[None], np.array([i]))[0])


def _name(x: Any, i: int) -> bytes:
    return hashlib.blake2b(x.tobytes() + bytes([i]), digest_size=12).hexdigest().encode()


def run(case: Case, folder: Path | None, ledger: Path | None, budget: int, limits: Limits | None = None) -> zt.Result:
    """The run itself, in this process or in a child of it."""
    kept = zt.runs.Run.due, time.time, time.monotonic
    try:
        if case.eager and folder is not None:
            zt.runs.Run.due = lambda self: True  # type: ignore[method-assign]
        if case.jumps and folder is not None:
            _let_clocks_jump(case.seed)
        return _minimize(case, folder, ledger, budget, limits)
    finally:
        zt.runs.Run.due, time.time, time.monotonic = kept  # type: ignore[method-assign]


def _minimize(case: Case, folder: Path | None, ledger: Path | None, budget: int, limits: Limits | None) -> zt.Result:
    fun = (Objective if case.vectorised else OneByOne)(case, ledger, limits)
    return zt.minimize(
        fun,
        PROBLEM.d,
        2,
        n=None if case.vectorised else PROBLEM.n,
        budget=budget,
        method=case.method,
        estimator=zt.Estimator(q=3, mu=1e-3),
        seed=case.seed,
        workers=case.workers,
        chunk=CHUNK if case.vectorised else None,
        run=folder,
        fsync=case.fsync,
        progress=False,
    )


def _let_clocks_jump(seed: int) -> None:
    """The wall clock goes back and forth by days; the steady clock only ahead, as after a suspend."""
    rng = np.random.default_rng([seed, os.getpid()])
    wall, steady = time.time, time.monotonic
    offset = [0.0]

    def jumping() -> float:
        return wall() + float(rng.normal(0, 1e5))

    def leaping() -> float:
        offset[0] += float(rng.random() < 0.05) * float(rng.exponential(100))
        return steady() + offset[0]

    time.time, time.monotonic = jumping, leaping


@dataclass(frozen=True)
class Kill:
    """When a session is killed: a moment after so many queries, and at the latest some queries later."""

    after: int
    queries_later: int
    delay: float  # seconds; the instant is to be a random one, and nothing depends on how long this is

    @classmethod
    def drawn(cls, rng: np.random.Generator, total: int) -> Kill:
        """A random instant of a run that takes so many queries; one in eight comes while the folder is opened."""
        after = 0 if rng.random() < 1 / 8 else int(rng.integers(1, max(2, 0.8 * total)))
        return cls(after, int(rng.integers(0, 40)), float(rng.choice([0.0, rng.exponential(0.003)])))


def session(case: Case, folder: Path, ledger: Path, budget: int, kill: Kill | None) -> bool:
    """Work on the run in a process that may be killed; returns True if it came to the end."""
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        code = 1
        try:
            limits = None if kill is None else Limits(kill.after, kill.after + kill.queries_later, telling)
            if kill is not None and kill.after == 0:
                os.write(telling, b"x")
            result = run(case, folder, ledger, budget, limits)
            code = 0 if result.status in (zt.Status.BUDGET, zt.Status.CONVERGED) else 3
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    os.close(telling)
    try:
        if kill is not None and os.read(told, 1):  # nothing to read: the child has ended
            time.sleep(kill.delay)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(told)
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status) != 0:
        raise RuntimeError(f"a session of {case} ended with {os.WEXITSTATUS(status)}")
    return True


def arrived(folder: Path) -> int:
    """How many values the run folder holds now, in its newest good snapshot and the journals since."""
    if not (folder / "run.json").exists():
        return 0
    run_ = zt.runs.Run(folder, fsync="never")
    run_._name = run_name(read_description(folder)["identity"])
    try:
        found = run_._newest(0)
    finally:
        run_.close()
    base, count = (0, 0) if found.meta is None else (found.meta["round"], found.meta["nfev"])
    return count + sum(line.values.size for line in found.lines if isinstance(line, ValueLine) and line.round >= base)


def asked(ledger: Path) -> int:
    """How many queries the ledger holds."""
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def torment(case: Case, where: Path, budget: int, rng: np.random.Generator, tally: Tally, spoil: bool) -> None:
    """Kill one run until it is through, and hold it against its twin."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    folder, ledger = where / "run", where / "ledger"
    twin = run(case, None, where / "twin", budget)
    total = asked(where / "twin")
    sessions, held, noted, vain, done = 0, 0, 0, 0, False
    while True:
        done = session(case, folder, ledger, budget, None if sessions >= 12 else Kill.drawn(rng, total))
        sessions += 1
        queries, noted = asked(ledger) - noted, asked(ledger)
        if done:
            break
        tally.kills += 1
        now = arrived(folder)
        under_way = queries - (now - held)  # asked for in this session, and not on disk when it died
        tally.repeated += max(0, under_way - case.under_way)
        if spoil:
            damage(folder, rng)
        held = arrived(folder)
        vain += under_way + (now - held)  # what was under way, and what the damage took
    lost = noted - asked(where / "twin") - vain  # queries that nothing excuses
    tally.lost += abs(lost)
    if lost:
        tally.words.append(f"lost {lost} values, spoiled {spoil}: {case}")
    compare(case, folder, twin, budget, tally)


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


def compare(case: Case, folder: Path, twin: zt.Result, budget: int, tally: Tally) -> None:
    """Hold a run that came through against its twin."""
    tally.runs += 1
    result = run(case, folder, None, budget)  # it is through: this asks for nothing
    same = (
        np.array_equal(result.x, twin.x)
        and np.array_equal(result.x_last, twin.x_last)
        and result.fun == twin.fun
        and (result.nfev, result.nht, result.nit) == (twin.nfev, twin.nht, twin.nit)
        and result.trace == twin.trace
    )
    tally.differences += not same
    if not same:
        tally.words.append(f"differs: {case}")


def campaign(runs: int, seed: int, where: Path, *, show: bool = False, share: float = 1.0) -> Tally:
    """Runs over all methods, speeds, forms and policies, with this share of the usual budgets."""
    rng, tally = np.random.default_rng(seed), Tally()
    for number in range(runs):
        pause = SPEEDS[number // len(METHODS) % len(SPEEDS)]
        case = Case(
            method=METHODS[number % len(METHODS)],
            pause=pause,
            workers=int(rng.choice([1, 1, 3])),
            vectorised=bool(rng.random() < 0.3),
            fsync=str(rng.choice(["value", "batch", "never"])),
            eager=bool(rng.random() < 0.4),
            jumps=bool(rng.random() < 0.2),
            seed=number,
        )
        budget = int(share * {0.0: 3000, 0.0002: 1200, 0.002: 500}[pause])
        torment(case, where / "case", budget, rng, tally, spoil=number % 4 == 3)
        if show and (number % 10 == 9 or number == runs - 1):
            print(tally, flush=True)
    return tally


def full_disk(where: Path) -> str:
    """A run on a small tmpfs that fills up; then there is room again, and it goes on."""
    where.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        return f"not tried: a tmpfs cannot be mounted here ({made.stderr.strip()})"
    case = Case(METHODS[1], 0.0, 1, False, "batch", False, False, 0)
    ledger = where.with_name("full-ledger")
    ledger.unlink(missing_ok=True)
    try:
        twin = run(case, None, None, 3000)
        ballast = where / "ballast"
        stops = 0
        for size in (1000, 800, 700, 650, 600):  # KiB taken by somebody else, less and less
            ballast.write_bytes(b"x" * 1024 * size)
            result = run(case, where / "run", ledger, 3000)
            stops += result.status is zt.Status.DISK
            if result.status is zt.Status.BUDGET:
                break
        ballast.unlink()
        result = run(case, where / "run", ledger, 3000)
        again = asked(ledger) - twin.nfev
        same = np.array_equal(result.x, twin.x) and result.nfev == twin.nfev and result.trace == twin.trace
        return f"{stops} stops, {again} repeated queries, {'the same bits' if same else 'OTHER BITS'}"
    except OSError as error:
        return f"FAILED with {errno.errorcode.get(error.errno or 0)}: {error}"
    finally:
        subprocess.run(["umount", str(where)], check=False)


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as scratch:
        tally = campaign(runs, seed, Path(scratch), show=True)
        disk = full_disk(Path(scratch) / "disk")
    print("\n".join(tally.words))
    print(f"full disk: {disk}")
    print(f"lost values {tally.lost}, repeated queries {tally.repeated}, bit differences {tally.differences}")
    return (
        0
        if tally.clean
        and "OTHER" not in disk
        and "FAILED" not in disk
        and ", 0 repeated" in disk + ", 0 repeated" * disk.startswith("not")
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())

"""Power cuts at every instant of a run: what the modes of ``fsync`` promise is there, and the run goes on as if nothing was.

See `power_cut` for the recorder and the model of a disk.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from power_cut import (
    CHANCES,
    ROOT,
    Chance,
    Create,
    Disk,
    Entry,
    Resize,
    Sync,
    Told,
    Tree,
    Write,
    put,
    recording,
    taken,
)

import zerothresh as zt
from zerothresh.runs import Run, RunError, journal
from zerothresh.runs.inspection import inspect

PROBLEM = zt.problems.ridge(n=4, d=5, seed=0)
SETTINGS: dict[str, Any] = {"n": 4, "seed": 3}
LAG = 5  # values between two syncs in the mode "batch", when they are counted rather than timed


@dataclass(frozen=True)
class Case:
    """A run: its method, how its values come, and how often a snapshot is written.

    ``values`` is "one" (a call of `minimize` at a time), "many" (a vectorised function), "everything" (each call returns
    all components), "told" (ask and tell, batches
    at once), "forwards" or "backwards" (ask and tell, one at a time, from the first to the last or the other way round).
    A snapshot is considered after every round, and written every so many times.
    """

    method: zt.Method | zt.Program
    values: str = "one"
    snapshots: int = 1
    budget: int = 90
    k: int = 2


CASES = {
    "one value at a time": Case(zt.SZOHT(0.02, batch=2)),
    "no snapshot before the end": Case(zt.SAGASZHT(0.02), snapshots=1000),
    "many values at a time": Case(zt.FGZOHT(0.02), "many", snapshots=2, budget=400),
    "ask and tell": Case(zt.SARAHSZHT(0.02, m=3), "told", budget=200),
    "ask and tell, backwards": Case(zt.SZOHT(0.02, batch=2), "backwards", snapshots=2),
    "a program": Case(zt.methods.Auto(), snapshots=3),
    "everything at once": Case(zt.SAGASZHT(0.02), "everything", snapshots=2, budget=70),
    "a program, everything at once": Case(zt.methods.HTP(), "everything", snapshots=3, budget=40),
}
MODES = ("value", "batch", "never")
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_mode = pytest.mark.parametrize("fsync", MODES)


@dataclass(frozen=True)
class Ended:
    """How a session ended: the bits of the result and of its trace, and how many calls the folder knew at first.

    ``lost`` says that the session warned that rows of the trace are lost.
    """

    result: tuple[Any, ...]
    trace: tuple[Any, ...]
    known: int
    lost: bool = False


def ended(result: zt.Result, known: int) -> Ended:
    trace = result.trace
    rows = [np.asarray(column).tobytes() for column in (trace.nfev, trace.nht, trace.fun, *trace.support)]
    numbers = (
        result.x.tobytes(),
        result.x_last.tobytes(),
        result.fun,
        result.nfev,
        result.nht,
        result.nit,
        result.status,
    )
    return Ended(numbers, tuple(rows), known)


def session(
    case: Case,
    folder: Path | None,
    *,
    fsync: str = "value",
    told: Callable[[int], None] = lambda known: None,
    budget: int | None = None,
) -> Ended:
    """Run a case to its end; ``told`` is called with the number of values that the library has kept by then."""
    arguments: dict[str, Any] = {**SETTINGS, "method": case.method, "budget": budget or case.budget}
    if folder is not None:
        arguments.update(run=folder, fsync=fsync)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        end = (minimized if case.values in ("one", "many", "everything") else asked)(case, arguments, told)
    assert all("trace" in str(warning.message) for warning in heard), heard[0].message
    return replace(end, lost=bool(heard))


def asked(case: Case, arguments: dict[str, Any], told: Callable[[int], None]) -> Ended:
    optimizer = zt.Optimizer(5, case.k, fingerprint="ridge", **arguments)
    known = optimizer.nfev
    while not optimizer.done:
        batch = optimizer.ask()
        singles = [batch[i] for i in range(len(batch))]
        for part in {"told": [batch], "forwards": singles, "backwards": singles[::-1]}[case.values]:
            optimizer.tell(part, PROBLEM.values(part.points, part.components))
            told(optimizer.nfev)
    result = ended(optimizer.result(), known)
    optimizer.close()
    return result


def minimized(case: Case, arguments: dict[str, Any], told: Callable[[int], None]) -> Ended:
    made = 0

    def one(x: Any, i: int) -> float:
        nonlocal made
        told(made)  # the value before this one has been kept
        made += 1
        return float(PROBLEM.values(x[None], np.array([i]))[0])

    def many(points: Any, components: Any) -> Any:
        nonlocal made
        told(made)
        made += len(points)
        return PROBLEM.values(points, components)

    def everything(x: Any) -> Any:
        nonlocal made
        told(made)
        made += 1
        return PROBLEM.values(np.repeat(x[None], 4, axis=0), np.arange(4))

    if case.values == "many":
        arguments.update(vectorized=True, chunk=70)
    if case.values == "everything":
        arguments.update(outputs="components")
    function = {"one": one, "many": many, "everything": everything}[case.values]
    result = zt.minimize(function, 5, case.k, **arguments)
    return ended(result, result.nfev - made)


class Counting(journal.Syncer):
    """Syncs the journal after every few requests, rather than after a time."""

    def __init__(self, fd: int) -> None:
        self._fd, self._error, self.pending, self._requests = fd, None, False, count(1)

    def request(self) -> None:
        if next(self._requests) % LAG == 0:
            journal._sync(self._fd)

    def stop(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread, no clock, and files that are no longer than they have to be."""
    monkeypatch.setattr(journal, "Syncer", Counting)
    monkeypatch.setattr(journal, "_AHEAD", 256)


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have a snapshot written every so many times that one is considered."""

    def every(number: int) -> None:
        considered = count(1)
        monkeypatch.setattr(Run, "due", lambda self: next(considered) % number == 0)

    return every


@dataclass(frozen=True)
class Stretch:
    """A part of a log that one session has made, from entry ``begin`` on."""

    begin: int
    fsync: str


@dataclass(frozen=True)
class Instant:
    """A prefix of a log: the disk, the mode of the session, and what is promised.

    ``promised`` values are there, and the run goes on. If it is ``lenient``, the trace may be lost with a warning.
    """

    length: int
    disk: Disk
    fsync: str
    promised: int
    lenient: bool


def journals_of(log: list[Entry]) -> set[int]:
    """The numbers of the journals in a log."""
    return {entry.number for entry in log if isinstance(entry, Create) and entry.name.startswith("journal-")}


def instants(
    log: list[Entry], stretches: list[Stretch], *, works: Callable[[Entry], bool] = lambda entry: True
) -> Iterator[Instant]:
    """Every instant of the last session of a log; entries that do not ``work`` do nothing for the disk.

    With "value", a value is promised as soon as the library has been told it. With "batch", it is promised as soon as
    a sync of the journal is over that began after that. With "never", nothing is promised. A session that goes on with
    what another one has left in the mode "never" vouches for it as soon as it promises a value.
    """
    written = journals_of(log)
    disk, promised, told, lenient = Disk(), 0, [0], False
    for length, entry in enumerate(log, 1):
        session = next((stretch for stretch in reversed(stretches) if stretch.begin < length), stretches[0])
        disk.add(entry if works(entry) else Told(0))
        told.append(entry.count if isinstance(entry, Told) else told[-1])
        before = promised
        if length <= session.begin or session.fsync == "never":
            promised = 0
        elif session.fsync == "value" and isinstance(entry, Told):
            promised = entry.count
        elif session.fsync == "batch" and isinstance(entry, Sync) and entry.number in written:
            if told[entry.begun] > told[session.begin]:
                promised = told[entry.begun]
        lenient = session.fsync == "never" or (lenient and promised == before)
        if length >= stretches[-1].begin:
            yield Instant(length, disk, session.fsync, promised, lenient)


@dataclass(frozen=True)
class Found:
    """What came of a folder: how many calls it knew, or why it was refused; whether its trace was lost; what is wrong."""

    known: int = 0
    refused: str = ""
    lost: bool = False
    wrong: str = ""


@dataclass
class Cuts:
    """Goes on with the folders that power cuts leave, with each only once, and collects what is wrong.

    Arguments
    ---------
    case: the run.
    scratch: a folder that does not exist.
    twin: how the run ends if the power is not cut. If it has lost its trace, others may.
    budgets: the budgets of the sessions that go on; by default one session with the budget of the case.
    same: whether all of them have to come to the same end.
    """

    case: Case
    scratch: Path
    twin: Ended
    budgets: tuple[int, ...] = ()
    same: bool = True
    wrong: list[str] = field(default_factory=list)
    looked: int = 0
    _found: dict[bytes, Found] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scratch.mkdir()

    def all(self, instants: Iterable[Instant], *, share: float = 1.0, seed: int = 0) -> None:
        """Cut the power at all instants, in all ways, or in a share of them that depends on the seed alone."""
        chosen = np.random.default_rng(seed)
        for instant in instants:
            for i in np.flatnonzero(chosen.random(len(CHANCES)) < share).tolist():
                rng = np.random.default_rng([seed, instant.length, i])
                self.cut(instant, CHANCES[i], instant.disk.after_cut(CHANCES[i], rng))

    def cut(self, instant: Instant, chance: Chance, tree: Tree) -> None:
        """Go on with what a power cut has left."""
        self.looked += 1
        found = self._continued(tree, instant.fsync)
        wrong = found.wrong
        if found.refused:
            wrong = f"refused: {found.refused}"
        elif found.lost and not instant.lenient and not self.twin.lost:
            wrong = "the trace is lost"
        elif not found.refused and found.known < instant.promised:
            wrong = f"{instant.promised} values were promised, and {found.known} are there"
        if wrong:
            self.wrong.append(f"fsync={instant.fsync!r}, after {instant.length} entries, {chance}: {wrong}")

    def _continued(self, tree: Tree, fsync: str) -> Found:
        """Go on with a folder."""
        key = hashlib.blake2b(repr((fsync, sorted(tree.items()))).encode()).digest()
        if key not in self._found:
            shutil.rmtree(self.scratch)
            self.scratch.mkdir()
            put(tree, self.scratch)
            try:
                self._inspect()
                self._found[key] = self._go_on(fsync)
            except RunError as error:
                self._found[key] = Found(refused=str(error))
            except Exception as error:
                self._found[key] = Found(wrong=f"{type(error).__name__}: {error}")
        return self._found[key]

    def _go_on(self, fsync: str) -> Found:
        """Run to the end, with one session for each budget, and compare."""
        budgets = self.budgets or (self.case.budget,)
        ends = [session(self.case, self.scratch / "run", fsync=fsync, budget=budget) for budget in budgets]
        lost = any(end.lost for end in ends)
        if self.same:
            assert ends[-1].result == self.twin.result, f"the run came to {ends[-1].result}, not {self.twin.result}"
            assert lost or self.twin.lost or ends[-1].trace == self.twin.trace, "the trace is another one"
        return Found(ends[0].known, lost=lost)

    def _inspect(self) -> None:
        """Look at the folder from outside, which must not change it."""
        if (self.scratch / "run" / "run.json").exists():
            before = taken(self.scratch)
            inspect(self.scratch / "run")
            assert taken(self.scratch) == before, "looking at the folder has changed it"


@dataclass(frozen=True)
class Recorded:
    """A session to the end of the run: the log, where the session began in it, and how it ended."""

    log: list[Entry]
    began: Stretch
    end: Ended


def recorded(case: Case, root: Path, fsync: str, log: list[Entry] | None = None) -> Recorded:
    """Record a session; ``log`` says how what is in the folder came there."""
    with recording(root, log) as recorder:
        end = session(case, root / "run", fsync=fsync, told=recorder.told)
    return Recorded(recorder.log, Stretch(recorder.begin, fsync), end)


def explore(case: Case, fsync: str, tmp_path: Path, share: float) -> Cuts:
    """Cut the power during a run in a folder that exists."""
    (tmp_path / "disk" / "run").mkdir(parents=True)
    made = recorded(case, tmp_path / "disk", fsync)
    cuts = Cuts(case, tmp_path / "scratch", made.end)
    cuts.all(instants(made.log, [made.began]), share=share)
    return cuts


def nothing_is_wrong(*found: Cuts, at_least: int) -> None:
    wrong, looked = [word for cuts in found for word in cuts.wrong], sum(cuts.looked for cuts in found)
    assert not wrong, f"{len(wrong)} of {looked} power cuts: {wrong[0]}"
    assert looked >= at_least


@every_mode
@every_case
def test_a_power_cut_at_any_instant_loses_nothing_that_was_promised(
    case: Case, fsync: str, tmp_path: Path, snapshots: Callable[[int], None]
) -> None:
    snapshots(case.snapshots)
    nothing_is_wrong(explore(case, fsync, tmp_path, 0.005), at_least=5)


@pytest.mark.slow
@every_mode
@every_case
def test_power_cuts_at_every_instant_lose_nothing_that_was_promised(
    case: Case, fsync: str, tmp_path: Path, snapshots: Callable[[int], None]
) -> None:
    snapshots(case.snapshots)
    nothing_is_wrong(explore(case, fsync, tmp_path, 0.4), at_least=300)


# Several sessions. Their values are told in different orders, because workers may finish in any order.

TOLD = Case(zt.SZOHT(0.02, batch=2), "forwards", snapshots=2)
ORDERS = ("told", "forwards", "backwards")


def two_sessions(
    tmp_path: Path, first: str, second: str, *, times: int, share: float, cut: bool, budget: int = TOLD.budget
) -> list[Cuts]:
    """End a session by a kill or a power cut, go on in a second one, and cut the power during the second one.

    Arguments
    ---------
    tmp_path: where to work.
    first, second: the mode of each session.
    times: how often.
    share: the share of the ways to cut the power in the second session that is tried.
    cut: whether the first session ends by a power cut rather than by a kill.
    budget: the budget of the second session.
    """
    rng, found = np.random.default_rng(2), []
    for time in range(times):
        one, other = (replace(TOLD, values=str(order)) for order in rng.choice(ORDERS, 2))
        disk, again = tmp_path / f"disk-{time}", tmp_path / f"again-{time}"
        (disk / "run").mkdir(parents=True)
        again.mkdir()
        made = recorded(one, disk, first)
        log = made.log[: rng.integers(made.began.begin, len(made.log)) if rng.random() < 0.8 else None]
        put(Disk(log).after_cut(CHANCES[rng.integers(len(CHANCES))], rng) if cut else Disk(log).now(), again)
        more = recorded(replace(other, budget=budget), again, second, None if cut else log)
        case = replace(TOLD, budget=budget)
        # With another budget, F at the end of the first session was paid for, or was lost if nothing was promised.
        cuts = Cuts(case, tmp_path / f"scratch-{time}", more.end, same=budget == TOLD.budget)
        cuts.all(instants(more.log, [more.began] if cut else [made.began, more.began]), share=share, seed=time)
        found.append(cuts)
    return found


two_modes = pytest.mark.parametrize(("first", "second"), list(product(MODES, MODES)))
ending = pytest.mark.parametrize("cut", [False, True], ids=["kill", "cut"])
larger = pytest.mark.parametrize("budget", [90, 150])


@ending
@two_modes
def test_a_power_cut_in_the_second_session_loses_nothing_that_was_promised(
    first: str, second: str, cut: bool, tmp_path: Path, snapshots: Callable[[int], None]
) -> None:
    snapshots(2)
    nothing_is_wrong(*two_sessions(tmp_path, first, second, times=2, share=0.004, cut=cut), at_least=2)


@pytest.mark.slow
@larger
@ending
@two_modes
def test_power_cuts_in_the_second_session_lose_nothing_that_was_promised(
    first: str, second: str, cut: bool, budget: int, tmp_path: Path, snapshots: Callable[[int], None]
) -> None:
    snapshots(2)
    found = two_sessions(tmp_path, first, second, times=30, share=0.01, cut=cut, budget=budget)
    nothing_is_wrong(*found, at_least=100)


@pytest.mark.parametrize("fsync", ["value", "batch"])
def test_journals_that_lost_their_content_do_not_hide_later_values(
    fsync: str, tmp_path: Path, snapshots: Callable[[int], None]
) -> None:
    """The names of a snapshot and of the journal after it are there, but no content: the run begins anew, and is kept."""
    disk, again = tmp_path / "disk", tmp_path / "again"
    (disk / "run").mkdir(parents=True)
    again.mkdir()
    snapshots(2)
    made = recorded(TOLD, disk, "never")
    journals = [
        i for i, entry in enumerate(made.log) if isinstance(entry, Create) and entry.name.startswith("journal-")
    ]
    put(Disk(made.log[: journals[1] + 1]).after_cut(Chance("all", "none"), np.random.default_rng(0)), again)
    for path in (again / "run").glob("snapshot-*"):
        path.write_bytes(b"")  # as a disk that does not tell the truth about its syncs may leave it
    snapshots(1)
    more = recorded(TOLD, again, fsync)
    cuts = Cuts(TOLD, tmp_path / "scratch", more.end)
    for instant in instants(more.log, [more.began]):
        entry = more.log[instant.length - 1]
        if isinstance(entry, Told) and entry.count % 4 == 0:
            cuts.cut(instant, Chance("all", "all"), instant.disk.now())  # even a kill would do
    nothing_is_wrong(cuts, at_least=15)


def test_values_behind_a_gap_are_not_taken_for_those_of_another_round(
    tmp_path: Path, snapshots: Callable[[int], None]
) -> None:
    """The newest snapshot is lost, and so is the end of the journal before it: the journal after it does not follow."""
    snapshots(1)
    (tmp_path / "disk" / "run").mkdir(parents=True)
    made = recorded(TOLD, tmp_path / "disk", "never")
    cuts = Cuts(TOLD, tmp_path / "scratch", made.end)
    for instant in instants(made.log, [made.began]):
        tree = instant.disk.now()
        journals, stored = (sorted(path for path in tree if f"/{kind}-" in path) for kind in ("journal", "snapshot"))
        entry = made.log[instant.length - 1]
        if isinstance(entry, Told) and entry.count % 4 == 0 and len(journals) > 1 and stored[-1].endswith(".npz"):
            whole = tree[journals[-2]] or b""
            tree[journals[-2]] = whole[:99] + bytes(len(whole) - 99)  # after a line, so that no line is damaged
            tree[stored[-1]] = b""
            cuts.cut(instant, Chance("all", "some"), tree)
    nothing_is_wrong(cuts, at_least=5)


@pytest.mark.parametrize("before", [None, "never"])
@pytest.mark.parametrize("fsync", ["value", "batch"])
def test_a_power_cut_does_not_lose_the_name_of_a_new_folder(fsync: str, before: str | None, tmp_path: Path) -> None:
    """It may also be an earlier session that made the folder, and left it to the system to write its name."""
    disk = tmp_path / "disk"
    disk.mkdir()
    folder = disk / "study" / "first" / "run"
    with recording(disk) as recorder:
        if before is not None:
            session(TOLD, folder, fsync=before, told=recorder.told)
        turn = len(recorder.log)
        session(TOLD, folder, fsync=fsync, told=recorder.told, budget=150)
    *_, last = instants(recorder.log, [Stretch(turn, fsync)])
    left = last.disk.after_cut(Chance("none", "none"), np.random.default_rng(0))
    assert last.promised > 90
    assert "study/first/run/run.json" in left


@pytest.mark.parametrize("fsync", ["value", "batch"])
def test_a_power_cut_while_a_larger_budget_is_used_loses_nothing_that_was_promised(fsync: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "run").mkdir(parents=True)
    with recording(disk) as recorder:
        session(TOLD, disk / "run", fsync=fsync, told=recorder.told)
        turn = len(recorder.log)
        end = session(TOLD, disk / "run", fsync=fsync, told=recorder.told, budget=150)
    log = recorder.log
    before, after = Cuts(TOLD, tmp_path / "a", end, (90, 150)), Cuts(TOLD, tmp_path / "b", end, (150,))
    before.all(instants(log[:turn], [Stretch(recorder.begin, fsync)]), share=0.002)
    after.all(instants(log, [Stretch(recorder.begin, fsync), Stretch(turn, fsync)]), share=0.004)
    nothing_is_wrong(before, after, at_least=5)


@pytest.mark.parametrize("fsync", ["value", "batch"])
def test_a_power_cut_does_not_lose_calls_that_failed(
    fsync: str, tmp_path: Path, snapshots: Callable[[int], None]
) -> None:
    """Every third call fails at first; each call counts, and those that were promised are still counted after the cut."""
    snapshots(2)
    made = 0

    def solve(folder: Path, told: Callable[[int], None] = lambda known: None) -> zt.Result:
        def fun(x: Any, i: int) -> float:
            nonlocal made
            told(made)
            made += 1
            if made % 3 == 0:
                raise RuntimeError("the service is busy")
            return float(PROBLEM.values(x[None], np.array([i]))[0])

        return zt.minimize(
            fun, 5, 2, **SETTINGS, method=TOLD.method, budget=90, run=folder, fsync=fsync, retries=2, backoff=0
        )

    disk, scratch = tmp_path / "disk", tmp_path / "scratch"
    (disk / "run").mkdir(parents=True)
    with recording(disk) as recorder:
        solve(disk / "run", recorder.told)
    rng = np.random.default_rng(4)
    looked = 0
    for instant in instants(recorder.log, [Stretch(recorder.begin, fsync)]):
        if rng.random() < 0.1:
            looked += 1
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            put(instant.disk.after_cut(CHANCES[rng.integers(len(CHANCES))], rng), scratch)
            made = 0
            assert solve(scratch / "run").nfev - made >= instant.promised
    assert looked > 5


def test_in_the_mode_batch_a_sync_follows_every_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the thread that syncs is so quick that it serves a request at the moment when the journal looks at it."""

    class Quick(Counting):
        made: list[Quick] = []  # noqa: RUF012

        def __init__(self, fd: int) -> None:
            self._open_request = False
            super().__init__(fd)
            self.made.append(self)

        @property
        def pending(self) -> bool:
            wanted, self._open_request = self._open_request, False
            if wanted:
                journal._sync(self._fd)
            return wanted

        @pending.setter
        def pending(self, value: bool) -> None:
            self._open_request = value

        def request(self) -> None:
            self._open_request = True

    monkeypatch.setattr(journal, "Syncer", Quick)
    (tmp_path / "run").mkdir()
    open_lines = 0
    with recording(tmp_path) as recorder:

        def told(known: int) -> None:
            nonlocal open_lines
            log = recorder.log
            written = journals_of(log)
            line = max(i for i, entry in enumerate(log) if isinstance(entry, Write) and entry.number in written)
            synced = any(isinstance(entry, Sync) and entry.begun > line for entry in log[line:])
            open_lines += not synced and not Quick.made[-1]._open_request

        session(replace(TOLD, snapshots=1000), tmp_path / "run", fsync="batch", told=told)
    assert open_lines == 0


# The recorder and the disk themselves.


@pytest.mark.parametrize("names", ["journal-", "snapshot-", "trace.csv", "run"])
def test_a_sync_that_does_nothing_is_noticed(names: str, tmp_path: Path, snapshots: Callable[[int], None]) -> None:
    """The tests above would fail if the syncs of one kind of file, or those of the folder "run", were left out."""
    snapshots(1)
    (tmp_path / "disk" / "run").mkdir(parents=True)
    made = recorded(TOLD, tmp_path / "disk", "value")
    log = made.log
    idle = {
        e.number for e in log if isinstance(e, Create) and e.name.startswith(names) and not e.name.endswith(".json")
    }
    cuts, chance = Cuts(TOLD, tmp_path / "scratch", made.end), Chance("none", "none")
    for instant in instants(
        log, [made.began], works=lambda entry: not (isinstance(entry, Sync) and entry.number in idle)
    ):
        if isinstance(log[instant.length - 1], Told) and not cuts.wrong:
            cuts.cut(instant, chance, instant.disk.after_cut(chance, np.random.default_rng(0)))
    assert cuts.wrong


def test_the_recorder_and_the_disk(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"was here")
    with recording(tmp_path) as recorder:
        folder = tmp_path / "folder"
        folder.mkdir()
        fd = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"safe")
        os.fsync(fd)
        os.posix_fallocate(fd, 0, 10)
        with mmap.mmap(fd, 10) as memory:
            memory[4:8] = b"mind"
        os.close(fd)
        with open(folder / "b.part", "w") as file:
            file.write("content")
        os.replace(folder / "b.part", folder / "b")
        (tmp_path / "old").unlink()
    log = recorder.log
    rng = np.random.default_rng(0)
    disk = Disk(log)
    assert disk.now() == taken(tmp_path) == {"folder": None, "folder/a": b"safemind\0\0", "folder/b": b"content"}
    assert disk.after_cut(Chance("none", "all"), rng) == {"old": b"was here"}
    assert disk.after_cut(Chance("all", "none"), rng) == {"folder": None, "folder/a": b"safe", "folder/b": b""}
    torn = {disk.after_cut(Chance("all", "torn"), rng)["folder/a"] for _ in range(100)}
    assert torn == {b"safe" + b"mind"[:i] + bytes(6 - i) for i in range(4)}
    seen = {disk.after_cut(Chance("some", "some"), rng).get("folder/a") for _ in range(100)}
    assert seen == {None, b"safe", b"safe" + bytes(6), b"safemind" + bytes(2)}
    for number in range(1, 4):
        disk.add(Sync(number, len(log)))  # the folder "folder" and its files, not the folder that it is in
    assert disk.after_cut(Chance("none", "none"), rng) == {"old": b"was here"}
    disk.add(Sync(ROOT, len(log)))
    disk.add(Sync(4, len(log)))
    assert disk.after_cut(Chance("none", "none"), rng) == disk.now() == taken(tmp_path)


def test_a_sync_covers_what_was_done_before_it_began() -> None:
    log: list[Entry] = [
        Create(ROOT, "a", 1),
        Resize(1, 1),
        Write(1, 0, b"a"),
        Sync(ROOT, 3),
        Resize(1, 2),
        Write(1, 1, b"b"),
        Sync(1, 3),
    ]
    rng = np.random.default_rng(0)
    assert Disk(log).after_cut(Chance("none", "none"), rng) == {"a": b"a"}
    assert Disk(log).after_cut(Chance("none", "all"), rng) == {"a": b"ab"}


def test_sectors_are_written_as_they_were_at_an_instant() -> None:
    writes = [Write(1, 0, bytes([i]) * 1024) for i in range(1, 4)]
    disk = Disk([Create(ROOT, "a", 1), Sync(ROOT, 1), Resize(1, 1024), Sync(1, 3), *writes])
    rng = np.random.default_rng(0)
    seen = {disk.after_cut(Chance("none", "sectors"), rng)["a"] for _ in range(500)}
    assert seen == {bytes([i]) * 512 + bytes([j]) * 512 for i in range(4) for j in range(4)}


def test_what_escapes_the_recorder_is_noticed(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="a has been changed"),
        recording(tmp_path),
        open(tmp_path / "a", "wb") as f,
    ):
        np.arange(3).tofile(f)
    with pytest.raises(AssertionError, match="a name has been changed"), recording(tmp_path):
        os.link(tmp_path / "a", tmp_path / "b")

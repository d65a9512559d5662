"""Many cells over several processes: what is done stays done, whatever is killed."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from pickle import PicklingError
from typing import Any

from zerothresh.basics import check
from zerothresh.comparison.cell import Cell, CellFailed, Outcome, Subject, run_cell

DEATHS = 3  # of worker processes, one after the other with nothing done between, after which it is given up

Done = Callable[[Cell, Outcome, bool], None]


def run_cells(
    subjects: Mapping[str, Subject],
    cells: Sequence[Cell],
    *,
    jobs: int = 1,
    folder: Path | None = None,
    done: Done | None = None,
) -> list[Outcome]:
    """The outcomes of the cells, in their order.

    Arguments
    ---------
    subjects: what is minimised, by key.
    cells: the runs.
    jobs: processes; the outcomes do not depend on it.
    folder: where outcomes are kept as they come (``cells``), and the run folders of cells under way
        (``work``). Cells whose outcome is there are not run again; those under way go on.
    done: called with each cell and its outcome as they come, in any order, and whether it was run now.
    """
    check.count("jobs", jobs, what=" (processes)")
    found: dict[int, Outcome] = {}
    names = [cell.name(subjects[cell.subject]) for cell in cells]
    places: list[tuple[Path | None, Path | None]] = [(None, None)] * len(cells)
    if folder is not None:
        try:
            for part in ("cells", "work"):
                (folder / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"the folder {folder} cannot be used ({error}): name another") from None
        places = [(folder / "cells" / f"{name}.npz", folder / "work" / name) for name in names]
    for at, (kept, work) in enumerate(places):
        if kept is not None and work is not None and kept.exists():
            found[at] = Outcome.load(kept)
            shutil.rmtree(work, ignore_errors=True)  # of a process that was killed before it could
            if done is not None:
                done(cells[at], found[at], False)
    left = [at for at in range(len(cells)) if at not in found]
    run = _here if jobs == 1 or len(left) < 2 else _spread
    for at, outcome in run(subjects, cells, places, left, jobs):
        found[at] = outcome
        if done is not None:
            done(cells[at], outcome, True)
    return [found[at] for at in range(len(cells))]


Places = Sequence[tuple[Path | None, Path | None]]


def _here(
    subjects: Mapping[str, Subject], cells: Sequence[Cell], places: Places, left: Sequence[int], jobs: int
) -> Iterator[tuple[int, Outcome]]:
    for at in left:
        yield at, run_cell(subjects[cells[at].subject], cells[at], *places[at])


def _spread(
    subjects: Mapping[str, Subject], cells: Sequence[Cell], places: Places, left: Sequence[int], jobs: int
) -> Iterator[tuple[int, Outcome]]:
    """Over processes. A process that is killed is replaced, and its cell begun again, a few times."""
    missing, deaths = dict.fromkeys(left), 0
    while missing:
        under_way: dict[Future[Outcome], int] = {}
        try:
            with _pool(min(jobs, len(missing)), subjects) as pool:
                waiting = list(reversed(missing))
                while waiting or under_way:
                    while waiting and len(under_way) < jobs:  # no more than are worked on: so it is known which
                        at = waiting.pop()
                        under_way[pool.submit(_work, cells[at], *places[at])] = at
                    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                        outcome = future.result()
                        at = under_way.pop(future)
                        del missing[at]
                        deaths = 0
                        yield at, outcome
        except BrokenProcessPool:
            deaths += 1
            if deaths >= DEATHS:
                words = "; ".join(f"{cells[at].label}, seed {cells[at].seed}" for at in under_way.values())
                when = f"while they worked on {words}" if words else "while they started"
                raise ValueError(
                    f"worker processes were killed {deaths} times {when} (is memory short?): what is done is kept if "
                    "there is a folder; run it again with fewer jobs"
                ) from None
        except (PicklingError, AttributeError, TypeError) as error:
            if "pickle" not in str(error):
                raise
            raise ValueError(
                f"the problem or a method cannot be sent to other processes ({error}): define it at the top of a "
                "module, or take jobs=1"
            ) from None


_subjects: Mapping[str, Subject] = {}  # of this worker process


def _begin(subjects: Mapping[str, Subject]) -> None:
    """In a worker: know the subjects, and end with the parent, so that nobody holds a run folder for nobody."""
    global _subjects
    _subjects = subjects
    parent: Any = multiprocessing.parent_process()

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _work(cell: Cell, kept: Path | None, work: Path | None) -> Outcome:
    if kept is not None and kept.exists():
        return Outcome.load(kept)  # done just before another process was killed, and not heard of
    try:
        return run_cell(_subjects[cell.subject], cell, kept, work)
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("builtins", "zerothresh"):
            raise
        raise CellFailed(f"{cell.label}, seed {cell.seed}: {traceback.format_exc()}") from None  # others may not travel


@contextmanager
def _pool(jobs: int, subjects: Mapping[str, Subject]) -> Iterator[ProcessPoolExecutor]:
    """Processes that are spawned, not forked: a fork would copy the threads' locks of a live display."""
    context: Any = multiprocessing.get_context("spawn")
    before, children = set(multiprocessing.active_children()), set[Any]()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(dict(subjects),))
    try:
        try:
            with _deaf_children():
                started = [pool.submit(os.getpid) for _ in range(jobs)]  # each starts a process
        finally:
            children = set(multiprocessing.active_children()) - before
        for future in started:
            future.result()
        yield pool
    except BrokenProcessPool:
        pool.shutdown(cancel_futures=True)
        code = max((child.exitcode or 0 for child in children), default=0)
        if code > 0:  # not killed, which would be below 0: it would end so again
            raise ValueError(
                f"a worker process ended by itself, with exit code {code} (its last words are above): the problem and "
                "the methods must be in a module or a script, not in a notebook or at a prompt; a script must call "
                "this under `if __name__ == '__main__':`. Or take jobs=1"
            ) from None
        raise
    except BaseException:
        for child in children:
            child.kill()  # cells under way go on another time
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which a terminal sends to all: the parent alone answers it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say so, and only it gets Ctrl-C
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

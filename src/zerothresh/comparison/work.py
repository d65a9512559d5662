"""Run many cells over several processes; what is done is kept, whatever is killed."""

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

DEATHS = 3  # worker processes that may be killed in a row, with no run completed in between, before we give up

Done = Callable[[Cell, Outcome, bool], None]


def run_cells(
    subjects: Mapping[str, Subject],
    cells: Sequence[Cell],
    *,
    jobs: int = 1,
    folder: Path | None = None,
    done: Done | None = None,
) -> list[Outcome]:
    """Run cells, and return their outcomes in the order of the cells.

    Arguments
    ---------
    subjects: what is minimised, by key.
    cells: the runs.
    jobs: int, the number of processes; the outcomes do not depend on it.
    folder: where the outcomes (``cells``) and the run folders of unfinished cells (``work``) are kept. Cells whose
        outcome is there are not run again, and unfinished ones are continued.
    done: called as done(cell, outcome, ran) for each outcome as it arrives, in any order; ``ran`` is False if the
        outcome is from an earlier session.
    """
    check.count("jobs", jobs, what=" (processes)")
    found: dict[int, Outcome] = {}
    names = [cell.name(subjects[cell.subject]) for cell in cells]
    places: list[tuple[Path | None, Path | None]] = [(None, None)] * len(cells)
    if folder is not None:
        try:
            for part in ("cells", "work"):
                if (folder / part).is_symlink():
                    raise ValueError(f"{folder / part} is a link, which is not followed: name another folder")
                (folder / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"the folder {folder} cannot be used ({error.strerror}): name another folder") from None
        places = [(folder / "cells" / f"{name}.npz", folder / "work" / name) for name in names]
    for at, (kept, work) in enumerate(places):
        if kept is not None and work is not None and kept.exists():
            found[at] = Outcome.of(kept, cells[at], subjects[cells[at].subject])
            shutil.rmtree(work, ignore_errors=True)  # a process was killed before it could remove it
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
    """Run cells in this process."""
    for at in left:
        yield at, run_cell(subjects[cells[at].subject], cells[at], *places[at])


def _spread(
    subjects: Mapping[str, Subject], cells: Sequence[Cell], places: Places, left: Sequence[int], jobs: int
) -> Iterator[tuple[int, Outcome]]:
    """Run cells over several processes; a process that is killed is replaced, and its cell is continued."""
    missing, deaths = dict.fromkeys(left), 0
    while missing:
        under_way: dict[Future[Outcome], int] = {}
        try:
            with _pool(min(jobs, len(missing)), subjects) as pool:
                waiting = list(reversed(missing))
                while waiting or under_way:
                    # No more than one per process, so that it is known which cells a death interrupts.
                    while waiting and len(under_way) < jobs:
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
                runs = "; ".join(f"{cells[at].label}, seed {cells[at].seed}" for at in under_way.values())
                when = f"while they worked on {runs}" if runs else "while they started"
                raise ValueError(
                    f"worker processes were killed {deaths} times {when}, perhaps because memory was short. With a "
                    "folder, the finished runs are kept: run it again with fewer jobs"
                ) from None
        except (PicklingError, AttributeError, TypeError) as error:
            if "pickle" not in str(error):
                raise
            raise ValueError(
                f"the problem or a method cannot be sent to other processes ({error}): define it at the top level of "
                "a module, or use jobs=1"
            ) from None


_subjects: Mapping[str, Subject] = {}  # of this worker process


def _begin(subjects: Mapping[str, Subject]) -> None:
    """Initialise a worker: keep the subjects, and exit when the parent does, so that no run folder stays locked."""
    global _subjects
    _subjects = subjects
    parent: Any = multiprocessing.parent_process()

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _work(cell: Cell, kept: Path | None, work: Path | None) -> Outcome:
    """Run a cell in a worker process."""
    if kept is not None and kept.exists():
        # It was done just before another process was killed, so that the parent never received it.
        return Outcome.of(kept, cell, _subjects[cell.subject])
    try:
        return run_cell(_subjects[cell.subject], cell, kept, work)
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("builtins", "zerothresh"):
            raise
        # An exception of the user's own may not survive being pickled: its text does.
        raise CellFailed(f"{cell.label}, seed {cell.seed}: {traceback.format_exc()}") from None


@contextmanager
def _pool(jobs: int, subjects: Mapping[str, Subject]) -> Iterator[ProcessPoolExecutor]:
    """Start a pool of processes, spawned rather than forked: a fork would copy the locks of a live display's thread."""
    context: Any = multiprocessing.get_context("spawn")
    before, children = set(multiprocessing.active_children()), set[Any]()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(dict(subjects),))
    try:
        try:
            with _children_ignoring_ctrl_c():
                started = [pool.submit(os.getpid) for _ in range(jobs)]  # each call starts a process
        finally:
            children = set(multiprocessing.active_children()) - before
        for future in started:
            future.result()
        yield pool
    except BrokenProcessPool:
        pool.shutdown(cancel_futures=True)
        code = max((child.exitcode or 0 for child in children), default=0)
        if code > 0:  # it was not killed, which would give a negative code: a new one would end in the same way
            raise ValueError(
                f"a worker process ended by itself with exit code {code} (its own message is above). With several "
                "jobs, the problem and the methods must be defined in a module or a script, not in a notebook or at a "
                "prompt, and a script must start the comparison under `if __name__ == '__main__':`. Otherwise, use "
                "jobs=1"
            ) from None
        raise
    except BaseException:
        for child in children:
            child.kill()  # unfinished cells are continued another time
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _children_ignoring_ctrl_c() -> Iterator[None]:
    """Let processes that are started here ignore Ctrl-C, which a terminal sends to all: only the parent answers it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set this, and only the main thread receives Ctrl-C
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

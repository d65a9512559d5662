"""Problems and small comparisons for the tests of `zt.compare`; without pytest, because worker processes import it."""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from waiting import PATIENCE

import zerothresh as zt

RIDGE = zt.problems.ridge(seed=1)
ETAS = {"eta": [0.01, 0.05]}
CHUNK = 11  # calls per step of SZOHT with the default estimator, which are asked for at once


def go(problem=RIDGE, methods="szoht", k=3, **options):
    """Compare methods with a small budget and a small grid."""
    made = {"budget": 600, "grid": ETAS, "runs": 2, "progress": False}
    return zt.compare(problem, methods, k, **{**made, **options})


def by_hand(method, seed, problem=RIDGE, budget=600):
    """Make one run of a method with `minimize`."""
    return zt.minimize(problem, None, 3, budget=budget, method=method, seed=seed, monitor=problem.F)


def table(found):
    """Return all runs of a comparison, one dict per run."""
    return list(csv.DictReader(io.StringIO(found.to_csv())))


def component(x, i):
    """A function with components whose minimum has two non-zeros."""
    return float(((x - [0, 3.0, 0, 0, -2.0, 0]) ** 2).sum()) + 0.1 * i


class Bare:
    """The ridge problem without F and everything else that it knows."""

    d, n = RIDGE.d, RIDGE.n

    def values(self, points, components):
        return RIDGE.values(points, components)


@dataclass
class Noted(Bare):
    """The ridge problem with F, which notes in a file which process makes how many calls, and misbehaves on demand."""

    ledger: Path
    act: object = None
    before: int = 0  # calls that this process makes before it acts
    calls: int = field(default=0, init=False)

    fingerprint = "noted"  # the same problem, however it behaves

    def values(self, points, components):
        if self.act is not None and self.calls >= self.before:
            self.act(self)
        self.calls += len(points)
        with open(self.ledger, "a") as file:
            file.write(f"{os.getpid()} {len(points)}\n")
        return RIDGE.values(points, components)

    def F(self, x):
        return RIDGE.F(x)


def asked(ledger):
    """Return how many calls a ledger has noted."""
    return sum(int(line.split()[1]) for line in ledger.read_text().splitlines()) if ledger.exists() else 0


def interrupt(problem):
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def broken_valve(problem):
    """Raise an error of the user's own."""
    raise RuntimeError("valve 7 is stuck")


def die(problem):
    """Kill this process, if it is a worker."""
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def die_once(problem):
    """Kill the first worker that comes here."""
    flag = problem.ledger.with_suffix(".died")
    if not flag.exists():
        flag.touch()
        die(problem)


def stall(problem):
    """Never return."""
    time.sleep(PATIENCE)


def endlessly(ledger, folder):
    """Start a comparison whose runs never end: what the processes are stopped in."""
    go(Noted(Path(ledger), act=stall, before=5 * CHUNK), jobs=2, folder=folder)


def files_of(folder):
    """Return the files of a folder with their contents."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Ill(Bare):
    """A problem whose knowledge of F does not work."""

    def __init__(self, **wrong):
        vars(self).update(wrong)


def fault(*arguments):
    """Raise an error that linear algebra might raise."""
    raise np.linalg.LinAlgError("singular")


@dataclass(frozen=True)
class Mine:
    """A method of one's own: SZOHT with the first component alone."""

    eta: float
    init, update = zt.SZOHT.init, zt.SZOHT.update

    def plan(self, state, n, rng):
        return zt.Probes.gradients(at=[state.theta], of=range(1))


class Odd(Exception):
    """It is sent to another process and cannot be put together there."""

    def __init__(self, code, reason):
        super().__init__(f"{reason} ({code})")


@dataclass(frozen=True)
class Faulty(Mine):
    """With a fault, once there is something to learn."""

    def update(self, state, answers, H):
        if answers.mean().any():
            raise Odd(7, "divided by the wrong thing")
        return super().update(state, answers, H)

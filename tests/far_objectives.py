"""Objectives for worker processes, in a module that imports little: each process that gets one of them imports it."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from zlib import crc32

import numpy as np
from waiting import PATIENCE

import zerothresh as zt

D, K, M = 12, 3, 6
GOAL = np.zeros(D)
GOAL[[2, 7]] = 2.0, -1.0
MATRIX = np.random.default_rng(0).normal(size=(M, D))


def f(x):
    return float(((x - GOAL) ** 2).sum())


def residuals(x):
    return MATRIX @ (x - GOAL)


def batch(X):
    return ((X - GOAL) ** 2).sum(axis=1)


def go(fun=f, **options):
    made = {"budget": 150, "method": zt.SZOHT(0.05), "estimator": zt.Estimator(q=4), "seed": 3, "backoff": 0}
    return zt.minimize(fun, D, K, **{**made, **options})


def segfault():
    ctypes.string_at(0)


def leave():
    os._exit(3)


def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


def hang():
    time.sleep(PATIENCE)


def fail():
    raise OSError("the licence server is down")


def in_a_hole(x, every=29):
    """Some points, the same ones in every run; the start is none of them."""
    return bool(x.any()) and crc32(x.tobytes()) % every == 0


def holes(x, fun=f, act=None, every=29):
    """Fails in some places."""
    if in_a_hole(x, every):
        if act is not None:
            act()
        raise OSError("the solver did not converge")
    return fun(x)


class Counted:
    """Counts its calls in a file, and acts when their number is one of some."""

    fingerprint = "counted"

    def __init__(self, folder, act=None, when=(), fun=f):
        self.path, self.act, self.when, self.fun = str(folder / "calls"), act, set(when), fun
        Path(self.path).touch()

    def __call__(self, x):
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(file, b"%d\n" % os.getpid())
        number = os.lseek(file, 0, os.SEEK_CUR)
        os.close(file)
        if self.act is not None and len(Path(self.path).read_bytes()[:number].split()) in self.when:
            self.act()
        return self.fun(x)

    @property
    def calls(self):
        return len(Path(self.path).read_text().split())

    @property
    def processes(self):
        return set(map(int, Path(self.path).read_text().split()))


class Heavy:
    """An objective that counts in a file how often it is pickled and unpickled."""

    def __init__(self, path):
        self.path, self.data = str(path), np.arange(D)

    def __getstate__(self):
        self.note("out")
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.note("in")

    def note(self, word):
        with open(self.path, "a") as file:
            file.write(f"{word} {os.getpid()}\n")

    def __call__(self, x):
        self.note("call")
        return f(x)


class Unloadable:
    """An objective that no process can load."""

    def __setstate__(self, state):
        raise RuntimeError("no licence in this process")

    def __getstate__(self):
        return {"a": 1}

    def __call__(self, x):
        return f(x)


class Mortal(Unloadable):
    """An objective whose process dies while it loads it."""

    def __setstate__(self, state):
        os._exit(7)

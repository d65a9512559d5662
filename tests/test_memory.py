"""The optimiser's own memory stays bounded: points are made as workers free up.

With n = 10,000 components, q = 20 directions and d = 10,000, the points of one round of fgzoht are 210,000 rows of 80 kB,
17 GB in all. Each case runs in a process of its own, whose largest resident memory may grow by 500 MB.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from waiting import PATIENCE

import zerothresh as zt
from zerothresh.basics import capacity
from zerothresh.evaluate.choose import chunk_for

SCRIPT = """
import asyncio, resource, sys
import numpy as np
import zerothresh as zt

N, Q, D, K = 10_000, 20, 10_000, 10
kind, most = sys.argv[1], int(sys.argv[2])

class Enough(Exception):
    pass

class Fun:
    calls = 0
    def many(self, X, I):
        self.calls += len(X)
        if self.calls > most:
            raise Enough
        return (X[np.arange(len(I)), I] - 1) ** 2
    def __call__(self, x, i):
        return self.many(x[None], np.array([i]))[0]
    async def awaited(self, x, i):
        await asyncio.sleep(0)
        return self(x, i)

class Part:  # in a worker process
    def __call__(self, x, i):
        if i >= most // (Q + 1):
            raise Enough
        return (x[i] - 1) ** 2

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000  # MB

def options(n=N, budget=500_000, **more):
    made = {"n": n, "budget": budget, "method": zt.FGZOHT(0.1), "seed": 0, "estimator": zt.Estimator(q=Q)}
    return made | ({} if kind == "ask" else {"progress": False}) | more

zt.minimize(lambda x, i: x[0] ** 2, 50, 3, **(options(3, 300) | {"progress": False}))  # numba has compiled
before, fun = peak(), Fun()
if kind == "serial":
    found = zt.minimize(fun, D, K, **options())
elif kind == "own directions":
    found = zt.minimize(fun, D, K, **options(estimator=zt.Estimator.paper(q=Q)))
elif kind == "threads":
    found = zt.minimize(fun, D, K, workers=16, **options())
elif kind == "processes":
    found = zt.minimize(Part(), D, K, workers=zt.Processes(2), **options())
elif kind == "asyncio":
    found = asyncio.run(zt.minimize_async(fun.awaited, D, K, concurrency=50, **options()))
elif kind == "vectorised":
    found = zt.minimize(fun.many, D, K, vectorized=True, **options())
elif kind == "vectorised threads":
    found = zt.minimize(fun.many, D, K, vectorized=True, workers=16, **options())
elif kind == "auto":
    found = zt.minimize(fun.many, D, K, vectorized=True, workers=4, **options(budget=3 * most, method="auto", estimator=None))
else:
    opt = zt.Optimizer(D, K, **options())
    try:
        for part in opt.ask().split(500):
            opt.tell(part, fun.many(part.points, part.components))
    except Enough:
        pass
    assert opt.nfev > most - 500
    found = None
assert found is None or found.nfev >= most * 0.99, found
print(peak() - before)
"""
KINDS = {
    "serial": 3000,
    "own directions": 3000,
    "threads": 3000,
    "processes": 420,
    "asyncio": 3000,
    "vectorised": 5000,
    "vectorised threads": 5000,
    "auto": 20_000,
    "ask": 3000,
}
SLOW = ("own directions", "vectorised threads")  # as "serial" and "vectorised", but for one thing


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems measure resident memory in other units")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in KINDS]
)
def test_a_round_whose_points_take_17_gigabytes_takes_less_than_500_megabytes(kind):
    command = [sys.executable, "-c", SCRIPT, kind, str(KINDS[kind])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 500


def test_the_calls_of_a_vectorised_function_hold_128_mib_together_whatever_the_workers():
    assert chunk_for(10, None) == 1024
    assert chunk_for(10, None, 64) == 1024
    assert chunk_for(10_000, None, 16) * 16 * 10_000 * 8 <= 1 << 27
    assert chunk_for(10**7, None, 64) == 1
    assert chunk_for(10_000, 300, 64) == 300


def test_a_batch_makes_the_points_of_its_parts_when_they_are_asked_for(monkeypatch):
    opt = zt.Optimizer(1000, 3, n=50, budget=5000, method=zt.FGZOHT(0.1), estimator=zt.Estimator(q=20), seed=0)
    batch = opt.ask()
    assert len(batch) == 1050
    whole = batch.points
    sizes = []
    for part in batch.split(100):
        assert part._points is None
        sizes.append(len(part))
        first = sum(sizes[:-1])
        assert (part.points == whole[first : first + len(part)]).all()
        assert (part.components == batch.components[first : first + len(part)]).all()
        opt.tell(part, part.points[:, 0])
    assert sizes == [100] * 10 + [50]
    with pytest.raises(ValueError, match="size must be at least 1"):
        list(opt.ask().split(0))
    monkeypatch.setattr(capacity, "installed", lambda: 10**6)
    with pytest.raises(
        ValueError, match=r"needs at least 8\.4 MB .* go through it in parts, `for part in batch\.split"
    ):
        opt.ask().points

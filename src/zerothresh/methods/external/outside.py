"""Outside: another package's optimiser, on the same problem and with the same counter."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.methods.external.solvers import SOLVERS, Start, solve
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register


@register("outside")
@dataclass(frozen=True)
class Outside(Program):
    r"""An optimiser of another package, which minimises x -> F(H_k(x)): n calls a value.

    The hard thresholding (with bounds and groups) is inside the objective, so that what it finds is
    sparse; every value is asked for as a round of ours, so that calls are counted, and the budget, run
    folders and `zt.compare` work as with any method. Where the package gives up, it begins again from a
    random point.

    Arguments
    ---------
    solver: the package: "cma", "scipy", "nlopt", "nevergrad", "pypop7" or "evosax". SciPy is always
        there, the others come with ``pip install zerothresh[peers]``.
    algorithm: the package's own name of one of its algorithms; None: "full" (cma, or "sep"), "Powell"
        (scipy), "LN_SBPLX" (nlopt), "OnePlusOne" (nevergrad), "SEPCMAES" (pypop7), "SNES" (evosax).
    size: its first step or deviation, about the distance to the solution.
    restarts: begin again from a random point where it gives up.

    Reference: the packages' own; Hansen, *The CMA evolution strategy: a tutorial*, 2016, for cma.

    >>> Outside("scipy", "Nelder-Mead").label
    'scipy Nelder-Mead'
    """

    family: ClassVar[str] = "external"
    order: ClassVar[int] = 1
    solves: ClassVar[str] = "any F, l0 by H_k inside the objective"
    queries: ClassVar[str] = "n"
    memory: ClassVar[str] = "the package's"

    solver: str = "scipy"
    algorithm: str | None = None
    size: float = 1.0
    restarts: bool = True

    def __post_init__(self) -> None:
        check.one_of("solver", self.solver, SOLVERS)
        check.positive("size", self.size, what=" (the first step)")
        check.flag("restarts", self.restarts)
        if find_spec(self.solver) is None:
            raise ImportError(
                f"Outside({self.solver!r}) needs the package {self.solver}, which is not installed: "
                "pip install 'zerothresh[peers]'"
            )

    @property
    def label(self) -> str:
        """Its name in a comparison."""
        return self.solver if self.algorithm is None else f"{self.solver} {self.algorithm}"

    def search(self, context: Context) -> Asks:
        theta = context.theta0
        F = float((yield from context.values([theta])).mean())
        context.move(theta, F)
        x, algorithm = theta, self.algorithm or SOLVERS[self.solver][1]
        while True:
            seed = int(context.rng.integers(2**31)[0])
            start = Start(np.array(x), self.size, max(1, int(context.left // context.n)), seed)
            points = questions(partial(solve, self.solver, algorithm, start=start))
            asked = 0
            try:
                point = next(points, None)
                while point is not None:
                    asked += 1
                    trial = context.H(np.nan_to_num(point))
                    value = float((yield from context.values([trial])).mean())
                    if value < F:
                        theta, F = trial, value
                        context.move(theta, F)
                    try:
                        point = points.send(value * context.unit)
                    except StopIteration:
                        point = None
            finally:
                points.close()
            if not self.restarts or asked == 0:
                context.remark(f"{self.label} gave up")
                return
            x = self.size * context.rng.normal(context.d)


class _Left(BaseException):
    """Nobody listens any more; no `except Exception` of a package can catch it."""


def questions(search: Callable[[Callable[[Any], float]], None]) -> Generator[Array, float, None]:
    """The points that ``search(fun)`` asks ``fun`` for, one by one; each is answered by a send.

    The search runs in a thread of its own, which waits while nobody answers, and ends when the generator
    is closed. It is turned inside out that way without being written anew.

    >>> points = questions(lambda fun: print(fun([1.0, 2.0])))
    >>> next(points).tolist()
    [1.0, 2.0]
    >>> try:
    ...     points.send(5.0)
    ... except StopIteration:
    ...     print("it has ended")
    5.0
    it has ended
    """
    asked: SimpleQueue[Any] = SimpleQueue()
    told: SimpleQueue[float | None] = SimpleQueue()
    left = threading.Event()

    def fun(x: Any) -> float:
        if not left.is_set():
            asked.put(np.array(x, dtype=float).reshape(-1))
            value = told.get()
            if value is not None:
                return value
        raise _Left

    def work() -> None:
        outcome: Any = None
        try:
            if told.get() is not None:  # somebody listens
                search(fun)
        except BaseException as error:
            outcome = error
        asked.put(outcome)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    answer = 0.0
    try:
        while True:
            with warnings.catch_warnings():  # of the package alone: it works only while we wait here
                warnings.simplefilter("ignore")
                told.put(answer)
                point = asked.get()
            if isinstance(point, BaseException):
                raise RuntimeError(f"{type(point).__name__}: {point}") from point
            if point is None:
                return
            answer = yield point
    finally:
        left.set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told.put(None)
            thread.join(timeout=5.0)

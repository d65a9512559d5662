"""Outside: an optimiser of another package, on the same problem and with the same count of calls."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.methods.external.solvers import SOLVERS, Start, check_algorithm, solve
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register

FARTHEST = check.LARGEST_SIZE / 2  # the largest coordinate of a trial: packages may go on towards infinity


@register("outside")
@dataclass(frozen=True)
class Outside(Program):
    r"""An optimiser of another package, which minimises x -> F(H_k(x)): n calls per value.

    Hard thresholding, bounds and groups are part of the objective that the package sees, so that its solutions are
    sparse. The engine evaluates every point, so that all calls are counted, and the budget, run folders and
    `zt.compare` work as with any other method. When the package stops, it is restarted from a random point. If
    ``parallel`` of the run is above 1, packages with populations (cma, nevergrad, pypop7, evosax) hand out a whole one
    per round, of at least as many points as fill a round.

    Arguments
    ---------
    solver: str, default "scipy". The package: "cma", "scipy", "nlopt", "nevergrad", "pypop7" or "evosax". SciPy is
        always installed, the others with ``pip install -e '.[peers]'``.
    algorithm: str or None, default None. The package's own name of one of its algorithms. None takes "full" (cma,
        which also has "sep"), "Powell" (scipy), "LN_SBPLX" (nlopt), "OnePlusOne" (nevergrad), "SEPCMAES" (pypop7) or
        "SNES" (evosax).
    size: float, default 1. Initial step size or standard deviation, about the distance to the solution.
    restarts: bool, default True. Restart from a random point when the package stops before the budget is spent.

    Reference: the documentation of each package; for cma, Hansen, *The CMA evolution strategy: a tutorial*, 2016.

    >>> Outside("scipy", "Nelder-Mead").label
    'scipy Nelder-Mead'
    """

    family: ClassVar[str] = "external"
    order: ClassVar[int] = 1
    solves: ClassVar[str] = "any F, l0 through H_k in the objective"
    queries: ClassVar[str] = "n"
    memory: ClassVar[str] = "that of the package"
    asks_feasible: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    solver: str = "scipy"
    algorithm: str | None = None
    size: float = 1.0
    restarts: bool = True

    def __post_init__(self) -> None:
        check.one_of("solver", self.solver, SOLVERS)
        check.positive("size", self.size, what=" (the initial step size)")
        check.flag("restarts", self.restarts)
        if find_spec(self.solver) is None:
            raise ImportError(
                f"Outside({self.solver!r}) needs the package {self.solver}, which is not installed: "
                "pip install -e '.[peers]' in the folder of zerothresh installs it"
            )
        if self.algorithm is not None:
            check_algorithm(self.solver, self.algorithm)

    @property
    def label(self) -> str:
        """The name of this solver in a comparison."""
        return self.solver if self.algorithm is None else f"{self.solver} {self.algorithm}"

    def search(self, context: Context) -> Asks:
        theta = context.theta0
        F = float((yield from context.values([theta])).mean())
        context.move(theta, F)
        x, algorithm = theta, self.algorithm or SOLVERS[self.solver][1]
        while True:
            seed = int(context.rng.integers(2**31)[0])
            width = max(1, context.width // context.n)
            start = Start(np.array(x), self.size, max(1, int(context.left // context.n)), seed, width)
            points = queried_points(partial(solve, self.solver, algorithm, start=start), width)
            asked = 0
            try:
                wanted = next(points, None)
                while wanted is not None:
                    asked += 1
                    values = list[float]()
                    for part in _affordable(context, np.atleast_2d(wanted)):
                        trials = [context.H(np.clip(np.nan_to_num(x), -FARTHEST, FARTHEST)) for x in part]
                        values += (yield from context.values(trials)).mean(axis=1).tolist()
                        if min(values[-len(trials) :]) < F:
                            F = min(values[-len(trials) :])
                            theta = trials[values[-len(trials) :].index(F)]
                            context.move(theta, F)
                    told = np.array(values) * context.unit
                    try:
                        wanted = points.send(told if wanted.ndim == 2 else float(told[0]))
                    except StopIteration:
                        wanted = None
            finally:
                points.close()
            if not self.restarts or asked == 0:
                context.remark(f"The solver {self.label} stopped before the budget was spent.")
                return
            x = self.size * context.rng.normal(context.d)


def _affordable(context: Context, population: Array) -> Iterator[Array]:
    """Cut a population into rounds that the budget covers; nearly always it is one round."""
    while len(population):
        most = max(1, int(context.left // context.n))
        yield population[:most]
        population = population[most:]


class _Cancelled(BaseException):
    """The generator was closed while the search was running; an ``except Exception`` of a package does not catch it."""


def queried_points(search: Callable[[Any], None], width: int = 1) -> Generator[Array, Any, None]:
    """Turn a search that calls a function into a generator of the points that it evaluates.

    The generator yields the points at which ``search(fun)`` calls ``fun``, and expects the value of each by ``send``.
    A search may call ``fun.many(points)``: if ``width`` is above 1, they are yielded as one array, (B, d), and their
    values are expected as an array (B,). The search runs in a thread of its own, which waits for the values and ends
    when the generator is closed.

    >>> points = queried_points(lambda fun: print(fun([1.0, 2.0])))
    >>> next(points).tolist()
    [1.0, 2.0]
    >>> try:
    ...     points.send(5.0)
    ... except StopIteration:
    ...     print("the search has ended")
    5.0
    the search has ended
    """
    requests: SimpleQueue[Any] = SimpleQueue()  # points, then None or an error at the end
    values: SimpleQueue[Any] = SimpleQueue()  # None: the generator was closed
    closed = threading.Event()

    def ask(points: Array) -> Any:
        if not closed.is_set():
            requests.put(points)
            value = values.get()
            if value is not None:
                return value
        raise _Cancelled

    def many(points: Sequence[Any]) -> list[float]:
        rows = [np.array(x, dtype=float).reshape(-1) for x in points]
        if width == 1 or not rows:
            return [ask(row) for row in rows]
        return list(map(float, ask(np.array(rows))))

    def fun(x: Any) -> float:
        return float(ask(np.array(x, dtype=float).reshape(-1)))

    fun.many = many  # type: ignore[attr-defined]

    def work() -> None:
        outcome: Any = None
        try:
            if values.get() is not None:  # the generator has been started
                search(fun)
        except BaseException as error:
            outcome = error
        requests.put(outcome)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    answer = 0.0
    try:
        while True:
            with warnings.catch_warnings():  # only those of the package, which runs only while this thread waits
                warnings.simplefilter("ignore")
                values.put(answer)
                point = requests.get()
            if isinstance(point, BaseException):
                raise RuntimeError(f"{type(point).__name__}: {point}") from point
            if point is None:
                return
            answer = yield point
    finally:
        closed.set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values.put(None)
            thread.join(timeout=5.0)

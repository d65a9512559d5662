"""The optimisers of other packages, each as a function that minimises ``fun`` until the package stops."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array


class Fun(Protocol):
    """The function that a solver minimises, at one point or at a whole population."""

    def __call__(self, x: Any) -> float:
        """Return the value at a point."""

    def many(self, points: Sequence[Any]) -> list[float]:
        """Return the values at points, all of which are asked for in one round if rounds may be wide."""


@dataclass(frozen=True)
class Start:
    """The arguments of a solver: start, typical step size, largest number of evaluations, seed, and points at once."""

    x: Array
    size: float
    most: int
    seed: int
    width: int = 1

    @property
    def population(self) -> int:
        """The usual size of a population in this dimension (Hansen 2016, table 1), or one that fills a round."""
        return max(4 + int(3 * math.log(self.x.size)), self.width)


def cma(fun: Fun, start: Start, algorithm: str) -> None:
    """Run pycma, with a full covariance matrix ("full") or a diagonal one ("sep")."""
    rng = np.random.default_rng(start.seed)
    options = {
        "verbose": -9,
        "seed": np.nan,  # it would seed NumPy's global generator
        "randn": lambda *shape: rng.standard_normal(shape),
        "CMA_diagonal": algorithm == "sep",
        "popsize": start.population,
    }
    tool = import_module("cma").CMAEvolutionStrategy(start.x, start.size, options)
    while not tool.stop():
        points = tool.ask()
        tool.tell(points, fun.many(points))


def scipy(fun: Fun, start: Start, algorithm: str) -> None:
    """Run scipy.optimize.minimize; methods that need derivatives take differences, whose calls are counted."""
    options: dict[str, Any] = {"maxiter": start.most}
    if algorithm == "Powell":
        options |= {"direc": start.size * np.eye(start.x.size), "xtol": 1e-8, "ftol": 1e-12}
    elif algorithm == "Nelder-Mead":
        simplex = start.x + start.size * np.concatenate([np.zeros((1, start.x.size)), np.eye(start.x.size)])
        options |= {"initial_simplex": simplex, "adaptive": True}
    elif algorithm.startswith("COBY"):
        options |= {"initial_tr_radius" if algorithm == "COBYQA" else "rhobeg": start.size}
    import_module("scipy.optimize").minimize(fun, start.x, method=algorithm, options=options)


def nlopt(fun: Fun, start: Start, algorithm: str) -> None:
    """Run one of NLopt's derivative-free algorithms, such as LN_SBPLX."""
    library = import_module("nlopt")
    library.srand(start.seed % 2**31)
    tool = library.opt(getattr(library, algorithm), start.x.size)
    tool.set_min_objective(lambda x, gradient: fun(x))
    tool.set_initial_step(start.size)
    tool.set_xtol_rel(1e-10)
    tool.set_maxeval(min(start.most, 2**31 - 1))
    tool.optimize(start.x)


def nevergrad(fun: Fun, start: Start, algorithm: str) -> None:
    """Run one of nevergrad's optimisers, such as OnePlusOne or NGOpt."""
    library = import_module("nevergrad")
    space = library.p.Array(init=start.x.copy()).set_mutation(sigma=start.size)
    space.random_state = np.random.RandomState(start.seed % 2**32)
    tool = library.optimizers.registry[algorithm](space, budget=max(1, min(start.most, 10**7)), num_workers=start.width)
    for _ in range(0, start.most, start.width):
        candidates = [tool.ask() for _ in range(start.width)]
        for candidate, value in zip(candidates, fun.many([one.value for one in candidates]), strict=True):
            tool.tell(candidate, value)


def pypop7(fun: Fun, start: Start, algorithm: str) -> None:
    """Run one of pypop7's evolution strategies, such as SEPCMAES or MMES."""
    optimizer = getattr(import_module(f"pypop7.optimizers.es.{algorithm.lower()}"), algorithm)
    far = 1e6 * max(1.0, start.size)  # pypop7 requires bounds
    d = start.x.size
    problem = {"fitness_function": fun, "ndim_problem": d, "lower_boundary": -far * np.ones(d)}
    problem["upper_boundary"] = far * np.ones(d)
    options = {"max_function_evaluations": start.most, "seed_rng": start.seed % 2**32, "mean": start.x.copy()}
    options |= {"sigma": start.size, "verbose": 0, "is_restart": False}
    if start.width > 1:
        options["n_individuals"] = start.population
    tool = optimizer(problem, options)
    if start.width > 1:
        tool.iterate = _Rehearsed(tool, fun)
    tool.optimize()


class _Rehearsed:
    """An iteration of an optimiser of pypop7 that asks for all of its points in one round.

    pypop7 evaluates points one by one, though those of an iteration do not depend on each other. So each iteration is
    rehearsed: it runs without values, which tells its points, and then again from the same state with their values.
    """

    def __init__(self, tool: Any, fun: Fun) -> None:
        self.tool, self.fun, self.iterate = tool, fun, tool.iterate
        self.points: list[Array] = []
        self.values: list[float] = []

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        state = {name: copy.deepcopy(value) for name, value in vars(self.tool).items() if value is not self}
        self.points = []
        self.tool.fitness_function = self._note
        self.iterate(*copy.deepcopy(arguments), **copy.deepcopy(named))
        vars(self.tool).update(state)
        self.values = self.fun.many(self.points)
        self.tool.fitness_function = self._recall
        return self.iterate(*arguments, **named)

    def _note(self, x: Any) -> float:
        self.points.append(np.array(x))
        return math.inf

    def _recall(self, x: Any) -> float:
        """Return the value that is known, if this is the point of the rehearsal, or ask for it."""
        expected = bool(self.points) and np.array_equal(self.points.pop(0), x)
        value = self.values.pop(0) if self.values else math.nan
        return value if expected else self.fun(x)


def evosax(fun: Fun, start: Start, algorithm: str) -> None:
    """Run one of evosax's distribution-based algorithms, such as SNES; evosax computes in float32."""
    jax, algorithms = import_module("jax"), import_module("evosax.algorithms")
    usual = 4 + 2 * int(1.5 * np.log(start.x.size) + 0.5)
    count = max(usual, start.width + start.width % 2)  # an even number, which some algorithms require
    x = jax.numpy.asarray(start.x)
    tool = getattr(algorithms, algorithm)(population_size=count, solution=x)
    params = tool.default_params
    if hasattr(params, "std_init"):
        params = params.replace(std_init=start.size)
    key = jax.random.key(start.seed % 2**32)
    state = tool.init(key, x, params)
    while True:
        key, first, second = jax.random.split(key, 3)
        points, state = tool.ask(first, state, params)
        values = fun.many([np.asarray(point, dtype=float) for point in points])
        state, _ = tool.tell(second, points, jax.numpy.asarray(values), state, params)


# For each package, the function that runs it, and its default algorithm.
SOLVERS: dict[str, tuple[Callable[[Fun, Start, str], None], str]] = {
    "cma": (cma, "full"),
    "scipy": (scipy, "Powell"),
    "nlopt": (nlopt, "LN_SBPLX"),
    "nevergrad": (nevergrad, "OnePlusOne"),
    "pypop7": (pypop7, "SEPCMAES"),
    "evosax": (evosax, "SNES"),
}


# The methods of scipy.optimize.minimize that need no derivative of the user, in lower case: SciPy ignores the case.
_SCIPY = ("nelder-mead", "powell", "cg", "bfgs", "l-bfgs-b", "tnc", "cobyla", "cobyqa", "slsqp", "trust-constr")


def check_algorithm(solver: str, algorithm: str) -> None:
    """Raise ValueError if an installed package has no such algorithm, as far as that can be told without running it."""
    name = f"algorithm (of {solver})"
    if not isinstance(algorithm, str):
        raise ValueError(f"{name} must be the name of an algorithm, or None, not {check.shown(algorithm)}")
    if solver == "cma":
        check.one_of(name, algorithm, ("full", "sep"))
    elif solver == "scipy" and algorithm.lower() not in _SCIPY:
        check.one_of(name, algorithm, _SCIPY)
    elif solver == "nlopt":
        known = dir(import_module("nlopt"))
        check.one_of(name, algorithm, [known_name for known_name in known if known_name.startswith(("LN_", "GN_"))])


def solve(solver: str, algorithm: str, fun: Fun, start: Start) -> None:
    """Run a solver on ``fun``, with warnings of floating-point operations off."""
    with np.errstate(all="ignore"):
        SOLVERS[solver][0](fun, start, algorithm)

"""The optimisers of other packages, each as a function that minimises ``fun`` until the package stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array

Fun = Callable[[Any], float]


@dataclass(frozen=True)
class Start:
    """The arguments of a solver: start, typical step size, largest number of evaluations, and seed."""

    x: Array
    size: float
    most: int
    seed: int


def cma(fun: Fun, start: Start, algorithm: str) -> None:
    """Run pycma, with a full covariance matrix ("full") or a diagonal one ("sep")."""
    rng = np.random.default_rng(start.seed)
    options = {
        "verbose": -9,
        "seed": np.nan,  # it would seed NumPy's global generator
        "randn": lambda *shape: rng.standard_normal(shape),
        "CMA_diagonal": algorithm == "sep",
    }
    tool = import_module("cma").CMAEvolutionStrategy(start.x, start.size, options)
    while not tool.stop():
        points = tool.ask()
        tool.tell(points, [fun(point) for point in points])


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
    tool = library.optimizers.registry[algorithm](space, budget=max(1, min(start.most, 10**7)), num_workers=1)
    for _ in range(start.most):
        candidate = tool.ask()
        tool.tell(candidate, fun(candidate.value))


def pypop7(fun: Fun, start: Start, algorithm: str) -> None:
    """Run one of pypop7's evolution strategies, such as SEPCMAES or MMES."""
    optimizer = getattr(import_module(f"pypop7.optimizers.es.{algorithm.lower()}"), algorithm)
    far = 1e6 * max(1.0, start.size)  # pypop7 requires bounds
    d = start.x.size
    problem = {"fitness_function": fun, "ndim_problem": d, "lower_boundary": -far * np.ones(d)}
    problem["upper_boundary"] = far * np.ones(d)
    options = {"max_function_evaluations": start.most, "seed_rng": start.seed % 2**32, "mean": start.x.copy()}
    options |= {"sigma": start.size, "verbose": 0, "is_restart": False}
    optimizer(problem, options).optimize()


def evosax(fun: Fun, start: Start, algorithm: str) -> None:
    """Run one of evosax's distribution-based algorithms, such as SNES; evosax computes in float32."""
    jax, algorithms = import_module("jax"), import_module("evosax.algorithms")
    count = 4 + 2 * int(1.5 * np.log(start.x.size) + 0.5)  # an even number, which some algorithms require
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
        values = [fun(np.asarray(point, dtype=float)) for point in points]
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

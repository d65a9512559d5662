"""zerothresh: sparse black-box optimisation.

Minimise F(theta) = 1/n sum f_i(theta) with at most k non-zero coordinates, when all that can be done is
to ask for values f_i(theta).

A name is imported when it is first used, so that a worker process loads what its function needs, and no more.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zerothresh.version import __version__

if TYPE_CHECKING:
    from zerothresh import attack, datasets, losses, methods, problems, theory
    from zerothresh.advice import advise
    from zerothresh.api import plot
    from zerothresh.api.awaiting import minimize_async
    from zerothresh.api.minimizer import iterate, minimize
    from zerothresh.api.optimizer import Optimizer
    from zerothresh.api.result import Progress, Result
    from zerothresh.comparison import compare
    from zerothresh.constraint.shares import Budget, Simplex
    from zerothresh.constraint.threshold import hard_threshold
    from zerothresh.constraint.two_step import Ball
    from zerothresh.evaluate.worker_processes import Processes
    from zerothresh.k_path import PathResult, path
    from zerothresh.methods.paper import FGZOHT, LSVRGSZHT, PMSZHT, PSAGASZHT, SAGASZHT, SARAHSZHT, SZOHT, VRSZHT
    from zerothresh.methods.program.base_class import Program
    from zerothresh.methods.registry import register
    from zerothresh.objective.forms import Problem
    from zerothresh.rounds.estimator import Estimator
    from zerothresh.rounds.method import Method
    from zerothresh.rounds.requests import Probes
    from zerothresh.runs import RunError
    from zerothresh.session.status import Status
    from zerothresh.session.trace import Trace

__all__ = [
    "FGZOHT",
    "LSVRGSZHT",
    "PMSZHT",
    "PSAGASZHT",
    "SAGASZHT",
    "SARAHSZHT",
    "SZOHT",
    "VRSZHT",
    "Ball",
    "Budget",
    "Estimator",
    "Method",
    "Optimizer",
    "PathResult",
    "Probes",
    "Problem",
    "Processes",
    "Program",
    "Progress",
    "Result",
    "RunError",
    "Simplex",
    "Status",
    "Trace",
    "__version__",
    "advise",
    "attack",
    "compare",
    "datasets",
    "hard_threshold",
    "iterate",
    "losses",
    "methods",
    "minimize",
    "minimize_async",
    "path",
    "plot",
    "problems",
    "register",
    "theory",
]

_MODULES = {name: name for name in ("attack", "datasets", "losses", "methods", "problems", "theory")}
_MODULES["plot"] = "api.plot"
_PLACES = {  # modules, and the names of theirs that are shown here
    "advice": ("advise",),
    "api.awaiting": ("minimize_async",),
    "api.minimizer": ("iterate", "minimize"),
    "api.optimizer": ("Optimizer",),
    "api.result": ("Progress", "Result"),
    "comparison": ("compare",),
    "constraint.shares": ("Budget", "Simplex"),
    "constraint.threshold": ("hard_threshold",),
    "constraint.two_step": ("Ball",),
    "evaluate.worker_processes": ("Processes",),
    "k_path": ("PathResult", "path"),
    "methods.paper": ("FGZOHT", "LSVRGSZHT", "PMSZHT", "PSAGASZHT", "SAGASZHT", "SARAHSZHT", "SZOHT", "VRSZHT"),
    "methods.program.base_class": ("Program",),
    "methods.registry": ("register",),
    "objective.forms": ("Problem",),
    "rounds.estimator": ("Estimator",),
    "rounds.method": ("Method",),
    "rounds.requests": ("Probes",),
    "runs": ("RunError",),
    "session.status": ("Status",),
    "session.trace": ("Trace",),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    place = next((module for module, names in _PLACES.items() if name in names), None)
    if name in _MODULES:
        found = import_module(f"zerothresh.{_MODULES[name]}")
    elif place is not None:
        found = getattr(import_module(f"zerothresh.{place}"), name)
    else:
        raise AttributeError(f"module 'zerothresh' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

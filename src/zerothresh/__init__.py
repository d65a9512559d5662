"""zerothresh: sparse black-box optimisation.

Minimise F(theta) = 1/n sum f_i(theta) with at most k non-zero coordinates, when all that can be done is
to ask for values f_i(theta).
"""

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
from zerothresh.version import __version__

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

"""zerothresh: sparse black-box optimisation.

Minimise F(theta) = 1/n sum f_i(theta) with at most k non-zero coordinates, when all one can do is
ask for values f_i(theta).
"""

from zerothresh import attack, datasets, plot, problems
from zerothresh.asktell import Optimizer
from zerothresh.batch import Batch
from zerothresh.comparison import Comparison, compare
from zerothresh.engine import iterate, minimize
from zerothresh.evaluate import Evaluator, Failure
from zerothresh.methods import (
    FGZOHT,
    HTP,
    LSVRGSZHT,
    NIHT,
    PMSZHT,
    PSAGASZHT,
    SAGASZHT,
    SARAHSZHT,
    SZOHT,
    VRSZHT,
    AllOrNothing,
    Auto,
    FixedSize,
    GuidedSAGA,
    Index,
    Method,
    Program,
    methods,
    register,
)
from zerothresh.plan import Estimator, Probes
from zerothresh.problem import Problem
from zerothresh.result import Progress, Result, Status
from zerothresh.runs import RunError
from zerothresh.threshold import hard_threshold
from zerothresh.trace import Trace
from zerothresh.version import __version__

__all__ = [
    "FGZOHT",
    "HTP",
    "LSVRGSZHT",
    "NIHT",
    "PMSZHT",
    "PSAGASZHT",
    "SAGASZHT",
    "SARAHSZHT",
    "SZOHT",
    "VRSZHT",
    "AllOrNothing",
    "Auto",
    "Batch",
    "Comparison",
    "Estimator",
    "Evaluator",
    "Failure",
    "FixedSize",
    "GuidedSAGA",
    "Index",
    "Method",
    "Optimizer",
    "Probes",
    "Problem",
    "Program",
    "Progress",
    "Result",
    "RunError",
    "Status",
    "Trace",
    "__version__",
    "attack",
    "compare",
    "datasets",
    "hard_threshold",
    "iterate",
    "methods",
    "minimize",
    "plot",
    "problems",
    "register",
]

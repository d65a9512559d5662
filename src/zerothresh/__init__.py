"""zerothresh: sparse black-box optimisation.

Minimise F(theta) = 1/n sum f_i(theta) with at most k non-zero coordinates, when all one can do is
ask for values f_i(theta).
"""

from zerothresh import attack, datasets, plot, problems, theory
from zerothresh.advice import Advice, advise
from zerothresh.asktell import Optimizer
from zerothresh.batch import Batch
from zerothresh.comparison import Comparison, compare
from zerothresh.engine import iterate, minimize
from zerothresh.evaluate import Evaluator, Failure
from zerothresh.methods import (
    FGZOHT,
    HTES,
    HTP,
    HZOHT,
    LSVRGSZHT,
    NIHT,
    PMSZHT,
    PSAGASZHT,
    RSPGF,
    SAGASZHT,
    SARAHSZHT,
    SZOHT,
    VRSZHT,
    ZORO,
    ZOSGD,
    ZOSPIDER,
    ZOSVRG,
    ZSCG,
    AdaZORO,
    AllOrNothing,
    Auto,
    Ball,
    ESSwaps,
    FixedSize,
    GraCe,
    GuidedSAGA,
    Index,
    Method,
    Outside,
    Program,
    SARAHPlus,
    SparseRS,
    SZOHTTheory,
    ZOAdaMM,
    ZOProxSVRG,
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
    "HTES",
    "HTP",
    "HZOHT",
    "LSVRGSZHT",
    "NIHT",
    "PMSZHT",
    "PSAGASZHT",
    "RSPGF",
    "SAGASZHT",
    "SARAHSZHT",
    "SZOHT",
    "VRSZHT",
    "ZORO",
    "ZOSGD",
    "ZOSPIDER",
    "ZOSVRG",
    "ZSCG",
    "AdaZORO",
    "Advice",
    "AllOrNothing",
    "Auto",
    "Ball",
    "Batch",
    "Comparison",
    "ESSwaps",
    "Estimator",
    "Evaluator",
    "Failure",
    "FixedSize",
    "GraCe",
    "GuidedSAGA",
    "Index",
    "Method",
    "Optimizer",
    "Outside",
    "Probes",
    "Problem",
    "Program",
    "Progress",
    "Result",
    "RunError",
    "SARAHPlus",
    "SZOHTTheory",
    "SparseRS",
    "Status",
    "Trace",
    "ZOAdaMM",
    "ZOProxSVRG",
    "__version__",
    "advise",
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
    "theory",
]

"""Ready-made test problems.

Regressions and quadratics have an exact gradient and, if d is small, an exact k-sparse optimum. Calibrations are
simulators of which one run returns all residuals.
"""

from zerothresh.problems.calibrations import Calibration, deconvolution, mixture, ode
from zerothresh.problems.logistic_regression import Logistic, logistic
from zerothresh.problems.quadratics import Quadratic, quadratic
from zerothresh.problems.ridge_regression import Ridge, ridge, standardise

__all__ = [
    "Calibration",
    "Logistic",
    "Quadratic",
    "Ridge",
    "deconvolution",
    "logistic",
    "mixture",
    "ode",
    "quadratic",
    "ridge",
    "standardise",
]

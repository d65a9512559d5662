"""Ready-made test problems, each with its exact gradient and, if d is small, its exact k-sparse optimum."""

from zerothresh.problems.logistic_regression import Logistic, logistic
from zerothresh.problems.quadratics import Quadratic, quadratic
from zerothresh.problems.ridge_regression import Ridge, ridge, standardise

__all__ = ["Logistic", "Quadratic", "Ridge", "logistic", "quadratic", "ridge", "standardise"]

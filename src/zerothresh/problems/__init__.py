"""Ready problems, each with its exact gradient and, where d is small, its exact k-sparse optimum."""

from zerothresh.problems.logistic import Logistic, logistic
from zerothresh.problems.quadratic import Quadratic, quadratic
from zerothresh.problems.ridge import Ridge, ridge, standardise

__all__ = ["Logistic", "Quadratic", "Ridge", "logistic", "quadratic", "ridge", "standardise"]

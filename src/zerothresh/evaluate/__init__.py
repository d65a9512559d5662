"""Evaluators: the only code that calls the objective. They pass its values on as they arrive."""

from zerothresh.evaluate.base import Arrival, Evaluator, Failure
from zerothresh.evaluate.choose import evaluator_for

__all__ = ["Arrival", "Evaluator", "Failure", "evaluator_for"]

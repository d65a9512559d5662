"""Advice on a problem: what the theory promises, what to run in practice, and the gap between the two."""

from zerothresh.advice.advisor import Advice, advise
from zerothresh.advice.probing import Probe, ProbeFailed, probe

__all__ = ["Advice", "Probe", "ProbeFailed", "advise", "probe"]

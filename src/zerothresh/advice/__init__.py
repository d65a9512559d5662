"""What to run on a problem: what theory promises, what works in practice, and how far the two are apart."""

from zerothresh.advice.advisor import Advice, advise

__all__ = ["Advice", "advise"]

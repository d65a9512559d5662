"""Comparing methods: grids of hyper-parameters, several runs, several processes, and continuing after a stop."""

from zerothresh.comparison.comparing import Comparison, compare

__all__ = ["Comparison", "compare"]

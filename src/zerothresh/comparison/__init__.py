"""Comparing methods: grids, several runs, several processes, and going on after a stop."""

from zerothresh.comparison.comparing import Comparison, compare

__all__ = ["Comparison", "compare"]

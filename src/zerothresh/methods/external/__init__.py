"""Solvers of other libraries, run on a sparse problem and counted like our own."""

from zerothresh.methods.external.outside import Outside

__all__ = ["Outside"]

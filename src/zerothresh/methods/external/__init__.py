"""Solvers of other packages, run on a sparse problem and counted like the library's own methods."""

from zerothresh.methods.external.outside import Outside

__all__ = ["Outside"]

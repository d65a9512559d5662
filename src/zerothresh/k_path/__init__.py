"""Paths over k: the best points for several numbers of non-zeros, from values that are shared."""

from zerothresh.k_path.path_result import PathResult
from zerothresh.k_path.pathing import path

__all__ = ["PathResult", "path"]

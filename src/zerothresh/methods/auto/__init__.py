"""The method `auto` and its parts."""

from zerothresh.methods.auto.guided_saga import GuidedSAGA
from zerothresh.methods.auto.htp import HTP
from zerothresh.methods.auto.index import Index
from zerothresh.methods.auto.niht import NIHT
from zerothresh.methods.auto.portfolio import Auto

__all__ = ["HTP", "NIHT", "Auto", "GuidedSAGA", "Index"]

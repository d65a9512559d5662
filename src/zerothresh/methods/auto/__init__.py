"""The method `auto` and the methods it is made of."""

from zerothresh.methods.auto.automatic import Auto
from zerothresh.methods.auto.guided_saga import GuidedSAGA
from zerothresh.methods.auto.htp import HTP
from zerothresh.methods.auto.index import Index
from zerothresh.methods.auto.niht import NIHT

__all__ = ["HTP", "NIHT", "Auto", "GuidedSAGA", "Index"]

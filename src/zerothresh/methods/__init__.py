"""The methods: of the paper, from the literature, of other packages, and `auto`; `available` lists them by name.

A new method of the library is imported in the ``__init__.py`` of its own folder; this module takes over all that the
folders export.
"""

from zerothresh.methods import auto, external, literature, paper, residual
from zerothresh.methods.auto import *  # noqa: F403
from zerothresh.methods.external import *  # noqa: F403
from zerothresh.methods.literature import *  # noqa: F403
from zerothresh.methods.paper import *  # noqa: F403
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Context
from zerothresh.methods.registry import available, make, name_of, register
from zerothresh.methods.residual import *  # noqa: F403
from zerothresh.rounds.method import Iterate, Method

__all__ = ["Context", "Iterate", "Method", "Program", "available", "make", "name_of", "register"]
__all__ += auto.__all__
__all__ += external.__all__
__all__ += literature.__all__
__all__ += paper.__all__
__all__ += residual.__all__

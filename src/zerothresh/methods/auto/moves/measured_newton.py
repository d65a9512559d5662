"""Newton steps with measured second derivatives, which show whether a descent has really come to a minimum.

Quasi-Newton steps end where they gain little, which an ill-conditioned function may make them do far from its minimum.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.moves.newton_steps import newton_steps
from zerothresh.methods.auto.moves.restarts import typical_size
from zerothresh.methods.auto.moves.second_derivatives import second_derivatives
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def measured_newton(at: Position) -> Generator[Probes, Answers, bool | None]:
    """Measure all second derivatives on the coordinates that are searched, and make Newton steps with them.

    Returns
    -------
    bool or None: whether F fell by more than is negligible; None if the second derivatives cannot be measured.
    """
    if at.screened:
        return None
    F, g = at.F, (yield from at.full_gradient())
    model = yield from second_derivatives(at, g, at.C, typical_size(at) * float(np.sqrt(at.C.size)))
    if model is None:
        return None
    at.model = model
    yield from newton_steps(at, DESCENT.steps)
    return at.negligible < F - at.F

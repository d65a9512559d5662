"""Newton steps with measured second derivatives, which show whether a descent has really come to a minimum.

Quasi-Newton steps end where they gain little, which an ill-conditioned function may make them do far from its minimum.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.moves.column_probe import ColumnProbe
from zerothresh.methods.auto.moves.newton_steps import newton_steps
from zerothresh.methods.auto.oracle import ExactOracle
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def measured_newton(at: Position) -> Generator[Probes, Answers, bool | None]:
    """Measure all second derivatives on the coordinates that are searched, and make Newton steps with them.

    Returns
    -------
    bool or None: whether F fell by more than is negligible; None if the second derivatives cannot be measured.
    """
    oracle, every = at.oracle, np.arange(at.C.size)
    affordable = 2 * at.calls_available >= oracle.gradient_cost(at.C.size) * (at.C.size + 2 * DESCENT.min_gradients)
    if not isinstance(oracle, ExactOracle) or not affordable or at.screened:
        return None
    yield from at.full_gradient()
    probe, F = ColumnProbe(at), at.F
    for j in every.tolist():
        yield from probe.measure(j, every)
    eigenvalues, axes = np.linalg.eigh(probe.hessian.A)
    if not np.isfinite(eigenvalues).all():
        return None
    least = max(EPS * at.C.size * float(np.abs(eigenvalues).max(initial=0.0)), TINY)
    at.model = QuasiNewton(at.C, (axes * np.maximum(eigenvalues, least)) @ axes.T)
    yield from newton_steps(at, DESCENT.steps)
    return at.negligible < F - at.F

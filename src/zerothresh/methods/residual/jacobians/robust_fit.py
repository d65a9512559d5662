"""Sparse fits of the linearised outputs under any loss: reweighted least squares, from nearly squares to the loss.

A robust loss has many minima, because it forgets what it takes for outliers. Weights of the loss of t r, with t growing
to 1, begin near those of squares, and let the outliers go one after the other (graduated non-convexity).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.losses import Loss
from zerothresh.methods.residual.jacobians.loss_weights import total_loss, working
from zerothresh.methods.residual.jacobians.sparse_fit import Choice, SparseFit, bounded_fit
from zerothresh.methods.residual.residual_settings import FIT

Fits = list[tuple[float, Array]]  # predicted sums of losses and points, best first


def sparse_fits(
    loss: Loss | None,
    r: Array,
    J: Array,
    x: Array,
    choice: Choice,
    damping: Array,
    uniform: Callable[[int], Array],
    restarts: int,
    starts: Sequence[Indices] = (),
) -> Fits:
    """Return sparse minimisers y of the sum of losses of r + J (y - x), best first.

    Arguments
    ---------
    loss: of one output; None for squares.
    r, J, x: float64 arrays (n,), (n, d), (d,), the outputs at x and their slopes; NaN where an output is missing.
    choice: what may be non-zero.
    damping: float64 array (d,), weights of (y_j - x_j)^2 that are added.
    uniform: random numbers for the restarts of the search.
    restarts: int, how many.
    starts: supports to start from, besides those that the search finds.
    """

    def problem(y: Array, sharpness: float) -> SparseFit:
        w, u = working(loss, r + J @ (y - x), sharpness)
        return SparseFit(w[:, None] * J, w * (J @ y - u), choice, damping, x)

    def filled(S: Indices, z: Array) -> Array:
        y = np.zeros(x.size)
        y[S] = z
        return y

    if loss is None:
        return [(value, filled(S, z)) for value, S, z in problem(x, 1.0).solve(uniform, restarts, starts)]
    y = x
    for sharpness in ladder(loss, r):
        _, S, z = problem(y, sharpness).solve(uniform, 0, starts)[0]
        y = filled(S, z)
    fits = []
    for _, S, z in problem(y, 1.0).solve(uniform, restarts, starts):
        y = _settled(loss, r, J, x, choice, filled(S, z), S)
        fits.append((total_loss(loss, r + J @ (y - x)), y))
    return sorted(fits, key=lambda fit: fit[0])


def ladder(loss: Loss, r: Array) -> list[float]:
    """Return factors t, growing to 1, from one at which the weights of the loss of t r are nearly equal."""
    steps = [1.0]
    while len(steps) < FIT.sharpenings:
        w, _ = working(loss, r, steps[-1])
        if w.max() * FIT.equal < w[w > 0].min(initial=np.inf):
            break
        steps.append(steps[-1] / FIT.sharpening)
    return steps[::-1]


def _settled(loss: Loss, r: Array, J: Array, x: Array, choice: Choice, y: Array, S: Indices) -> Array:
    """Reweight on one support until the fit settles."""
    value = total_loss(loss, r + J @ (y - x))
    for _ in range(FIT.reweightings):
        w, u = working(loss, r + J @ (y - x))
        new = y.copy()
        new[S] = bounded_fit(w[:, None] * J[:, S], w * (J @ y - u), choice.low[S], choice.high[S])
        lower = total_loss(loss, r + J @ (new - x))
        if not lower < value:
            break
        settled = value - lower < FIT.settled * value
        y, value = new, lower
        if settled:
            break
    return y

"""Sparse fits of the linearised outputs under any loss: reweighted least squares, from nearly squares to the loss.

A robust loss has many minima, because it forgets what it takes for outliers. Weights of the loss of t r, with t growing
to 1, begin near those of squares, and let the outliers go one after the other (graduated non-convexity).

A linear model that is used far from its point is wrong in some outputs much more than in others, because its errors
grow with the square of the change. `far_fit` therefore treats squares as a robust loss does, and lets the outputs go
that no few columns explain: it finds the right support where squares are misled by the outputs that change most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.losses import Cauchy, Loss
from zerothresh.methods.residual.jacobians.loss_weights import slopes, total_loss, working
from zerothresh.methods.residual.jacobians.sparse_choice import Choice
from zerothresh.methods.residual.jacobians.sparse_fit import SparseFit, damped_fit
from zerothresh.methods.residual.residual_settings import FIT, TINY

Fits = list[tuple[float, Array]]  # predicted sums of losses and points, best first


def sparse_fits(
    loss: Loss | None,
    r: Array,
    J: Array,
    x: Array,
    choice: Choice,
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
    uniform: random numbers for the restarts of the search.
    restarts: int, how many.
    starts: supports to start from, besides those that the search finds.
    """

    def problem(y: Array, sharpness: float) -> SparseFit:
        w, u = working(loss, r + J @ (y - x), sharpness)
        return SparseFit(w[:, None] * J, w * (J @ y - u), choice)

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


@dataclass(frozen=True)
class FarFit:
    """A sparse fit for a point that may be far away.

    Attributes
    ----------
    share: float, the predicted sum of losses over the present one; both treat wild outputs robustly.
    y: float64 array (d,), the point.
    pull: float64 array (n,), how much each output that is predicted there still asks for a change.
    """

    share: float
    y: Array
    pull: Array


def far_fit(
    loss: Loss | None,
    r: Array,
    J: Array,
    x: Array,
    choice: Choice,
    uniform: Callable[[int], Array],
    restarts: int,
) -> FarFit:
    """Return a sparse fit for a point far from x, where the linear model is wrong in some outputs more than in others.

    The arguments are those of `sparse_fits`. Squares are replaced by the Cauchy loss, whose scale is the typical error
    that the fit by squares leaves.
    """
    value, y = sparse_fits(loss, r, J, x, choice, uniform, restarts)[0]
    robust, scale = loss, typical_error(r + J @ (y - x))
    if loss is None and scale > FIT.exact * typical_error(r):
        robust = Cauchy(scale)
        value, y = sparse_fits(robust, r, J, x, choice, uniform, restarts)[0]
    return FarFit(value / max(total_loss(robust, r), TINY), y, pull(loss, r + J @ (y - x)))


def pull(loss: Loss | None, r: Array) -> Array:
    """Return the slopes of the loss of each output; those of squares do not grow beyond the typical output."""
    if loss is not None:
        return slopes(loss, r)
    most = typical_error(r)
    return np.clip(np.nan_to_num(r), -most, most) if most > 0 else np.nan_to_num(r)


def typical_error(r: Array) -> float:
    """Return the standard deviation of the outputs by their median, which large ones do not change."""
    return float(np.nanmedian(np.abs(r))) * FIT.deviation if not np.isnan(r).all() else 0.0


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
        new[S] = damped_fit(w[:, None] * J[:, S], w * (J @ y - u), choice.low[S], choice.high[S])
        lower = total_loss(loss, r + J @ (new - x))
        if not lower < value:
            break
        settled = value - lower < FIT.settled * value
        y, value = new, lower
        if settled:
            break
    return y

"""Exchanges of members of the support, ranked by an anchored model: no calls are made here but for its entries."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.shares import ShareSet
from zerothresh.methods.auto.models.share_model import convex, minimise_shares
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT


class ShareModel(Protocol):
    """A quadratic model of F: what exchanges ask of it.

    Attributes
    ----------
    columns: the second derivatives by a coordinate, (d,), by its number.
    """

    @property
    def columns(self) -> Any: ...

    def knows(self, rows: Indices, members: Indices) -> bool:
        """Whether the mixed second derivatives of rows and members are known."""

    def block(self, rows: Indices, members: Indices) -> Array:
        """Return the second derivatives of some rows by some members."""

    def slopes(self, x: Array, rows: Indices) -> Array:
        """Return the slopes of some rows at x, NaN where they are not known."""

    def value(self, x: Array) -> float:
        """Return the model at x."""


class Exchange(NamedTuple):
    """A point on another support, and what the model says of it."""

    value: float
    point: Array


def best_on(model: ShareModel, feasible: ShareSet, x: Array, support: Indices) -> Exchange | None:
    """Minimise the model on a support; None if limits and sum leave no point, or entries are not known."""
    low, high = feasible.chosen_low[support], feasible.chosen_high[support]
    start = feasible.project_on(x, support)
    if start is None or not model.knows(support, support):
        return None
    if not support.size:
        return Exchange(model.value(start), start)
    g = model.slopes(start, support)
    if np.isnan(g).any():
        return None
    out = np.zeros(x.size)
    out[support] = minimise_shares(model.block(support, support), g, start[support], low, high, feasible.totals)
    value = model.value(out)
    return Exchange(value, out) if np.isfinite(value) else None


def ranked(model: ShareModel, feasible: ShareSet, x: Array, S: Indices, rows: Indices, least: float) -> list[Exchange]:
    """Return the exchanges of one member of S for one of the rows that lower the model, best first.

    All pairs are ranked by a model in which the members at their limits stay there; the best are then solved exactly.
    Those that lower the model by less than ``least`` are left out. Members may also leave, or others join, where that
    is feasible.
    """
    settings, now = FEASIBLE_DESCENT, model.value(x)
    outside = np.setdiff1d(rows, S)
    leaving = np.setdiff1d(S, feasible.places.forced)
    order: list[tuple[float, Indices]] = []
    g = model.slopes(x, np.union1d(S, rows))
    places = {j: i for i, j in enumerate(np.union1d(S, rows).tolist())}
    slope = {j: float(g[i]) for j, i in places.items()}
    inner = S[(x[S] > feasible.chosen_low[S]) & (x[S] < feasible.chosen_high[S])]
    g_outside = np.array([slope[j] for j in outside.tolist()])
    for i in leaving.tolist():
        gains = _gains(model, feasible, x, inner[inner != i], i, outside, slope, g_outside)
        kept = np.setdiff1d(S, [i])
        order += [(float(gain), np.union1d(kept, [j])) for j, gain in zip(outside.tolist(), gains, strict=True)]
        order.append((0.0, kept))
    if S.size < feasible.places.k:
        gains = _gains(model, feasible, x, inner, -1, outside, slope, g_outside)
        order += [(float(gain), np.union1d(S, [j])) for j, gain in zip(outside.tolist(), gains, strict=True)]
    order = [entry for entry in order if np.isfinite(entry[0]) and entry[1].size]
    order.sort(key=lambda entry: entry[0])
    found: list[Exchange] = []
    for tried, (_, support) in enumerate(order[: settings.exact_trials]):
        if found and tried >= settings.least_trials:
            break
        exchange = best_on(model, feasible, x, support)
        if exchange is not None and exchange.value < now - least:
            found.append(exchange)
    return sorted(found, key=lambda exchange: exchange.value)


def _gains(
    model: ShareModel,
    feasible: ShareSet,
    x: Array,
    inner: Indices,
    leaves: int,
    outside: Indices,
    slope: dict[int, float],
    g_outside: Array,
) -> Array:
    """Return the change of the model if a member leaves for each of those outside, while inner members follow.

    With t the new coordinate, the others are linear in t, so that the model is a parabola in t.
    """
    taken = float(x[leaves]) if leaves >= 0 else 0.0
    m, n = inner.size, outside.size
    summed = 1 if feasible.fixed_total else 0
    K = np.zeros((m + summed, m + summed))
    K[:m, :m] = convex(model.block(inner, inner))
    K[:m, m:] = K[m:, :m] = 1.0
    to_outside = model.block(inner, outside)
    g_inner = np.array([slope[j] for j in inner.tolist()])
    start = 0.0
    if leaves >= 0:
        alone = np.array([leaves])
        with_leaving, out_leaving = model.block(inner, alone)[:, 0], model.block(outside, alone)[:, 0]
        g_inner, g_outside = g_inner - taken * with_leaving, g_outside - taken * out_leaving
        start = -taken * slope[leaves] + 0.5 * taken**2 * float(model.columns[leaves][leaves])
    right = np.zeros((m + summed, n + 1))
    right[:m, 0], right[:m, 1:] = -g_inner, -to_outside
    right[m:, 0], right[m:, 1:] = taken, -1.0
    with np.errstate(all="ignore"):
        solved = np.linalg.lstsq(K, right, rcond=None)[0] if K.size else right
        base, along = solved[:, 0], solved[:, 1:]
        moved, multiplier = base[:m], float(base[m]) if summed else 0.0
        first = g_outside + to_outside.T @ moved + multiplier
        own = np.array([model.columns[j][j] for j in outside.tolist()])
        second = own + np.einsum("ij,ij->j", to_outside, along[:m]) + (along[m] if summed else 0.0)
        low, high = feasible.chosen_low[outside], feasible.chosen_high[outside]
        best = np.where(second > 0, -first / second, np.where(first > 0, low, high))
        if summed and not m:
            best = np.full(n, taken)
        t = np.clip(best, low, np.minimum(high, taken + float(np.abs(x).sum())))
        value = start + float(g_inner @ moved + 0.5 * moved @ K[:m, :m] @ moved)
        return np.asarray(value + first * t + 0.5 * second * t * t)

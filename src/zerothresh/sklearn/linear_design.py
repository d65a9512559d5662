"""The table behind a linear model: rows that occur once, with weights, and standardised columns."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from zerothresh.basics.arrays import Array, Indices

MOST_COPIES = 1000  # times the number of rows, up to which weights are written out as copies of rows


@dataclass(frozen=True)
class Rows:
    """Rows of a table with targets and weights, in an order that does not depend on theirs, each row once.

    So a weight of 2 and a row that occurs twice are the same problem, bit for bit, and so are other orders of the rows.

    Attributes
    ----------
    X: array (n, d), or a matrix of scipy.sparse in CSC format.
    y: array (n,).
    w: array (n,), the weights, with mean 1.
    copies: int array (m,), each row as often as its weight says, for metrics that know no weights; None where weights
        are not whole numbers, or the copies would be too many.
    """

    X: Any
    y: Array
    w: Array
    copies: Indices | None

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.y.size)

    @classmethod
    def of(cls, X: Any, y: Array, weights: Array | None) -> Rows:
        """Return the rows of a table, of which those without a weight are left out."""
        w = np.ones(y.size) if weights is None else np.asarray(weights, np.float64)
        kept = np.flatnonzero(w)
        if sparse.issparse(X):
            X = X.tocsr()[kept]
            X.sum_duplicates()
            X.eliminate_zeros()
            keys: Any = np.array([_key(X, i, y[row]) for i, row in enumerate(kept.tolist())], dtype=object)
        else:
            table = np.ascontiguousarray(np.column_stack([X[kept], y[kept]]) + 0.0)  # -0.0 becomes 0.0
            keys, X = table.view([("", f"V{table.itemsize * table.shape[1]}")]).ravel(), X[kept]
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        total = np.bincount(which.ravel(), weights=w[kept])
        copies = None
        if (total == np.rint(total)).all() and total.sum() <= MOST_COPIES * y.size:
            copies = np.repeat(np.arange(total.size), total.astype(np.int64))
        total = total * (total.size / total.sum())
        X = X[first].tocsc() if sparse.issparse(X) else X[first]
        return cls(X, y[kept][first], total, copies)


def _key(X: Any, i: int, y: float) -> bytes:
    """Return the bytes of a row of a matrix in CSR format and its target."""
    part = slice(X.indptr[i], X.indptr[i + 1])
    key: bytes = X.indices[part].astype(np.int64).tobytes() + X.data[part].tobytes() + np.float64(y).tobytes()
    return key


class LinearDesign:
    """Standardised columns, and the scores of linear models on them.

    The last coordinate of a point is the intercept, if there is one.

    Arguments
    ---------
    rows: Rows.
    intercept: bool, whether columns are centred.
    constant: bool, whether the last coordinate is an intercept.
    """

    def __init__(self, rows: Rows, *, intercept: bool, constant: bool) -> None:
        X, w = rows.X, rows.w / rows.w.sum()
        self.n, self.features = int(X.shape[0]), int(X.shape[1])
        self.constant = constant
        self.d: int = self.features + constant
        sparsely = sparse.issparse(X)
        size = _flat(abs(X).max(axis=0))
        self.size = np.where(size > 0, size, 1.0)
        if sparsely:
            scaled = (X @ sparse.diags_array(1.0 / self.size)).tocsc()
            same = _flat(scaled.max(axis=0)) == _flat(scaled.min(axis=0))
            mean = _flat(w @ scaled)
        else:
            scaled = X / self.size
            same = (scaled == scaled[0]).all(axis=0)
            mean = w @ scaled
        self.mean = np.where(same, _flat(scaled[[0]].toarray() if sparsely else scaled[0]), mean) * intercept
        if sparsely:
            away = scaled.copy()
            away.data -= np.repeat(self.mean, np.diff(away.indptr))
            off = 1.0 - _flat(w @ _ones_like(scaled))  # the weight of the zeros of a column
            variance = _flat(w @ away.multiply(away)) + off.clip(0.0) * self.mean**2
        else:
            variance = w @ (scaled - self.mean) ** 2
        spread = np.sqrt(variance)
        useless = (same & intercept) | (spread < np.finfo(float).tiny ** 0.5)
        self.spread = np.where(useless, 1.0, spread)
        self.useless: Indices = np.flatnonzero(useless)
        self._table = scaled if sparsely else np.asfortranarray((scaled - self.mean) / self.spread)
        self._sparsely = sparsely

    def without_constant(self) -> LinearDesign:
        """Return the same columns without a coordinate for the intercept."""
        other = copy.copy(self)
        other.constant, other.d = False, self.features
        return other

    def scores(self, points: Array) -> Array:
        """Return the scores of all rows for each point, (B, n); those of a point do not depend on the others."""
        out = np.empty((len(points), self.n))
        for b, point in enumerate(points):
            S = np.flatnonzero(point[: self.features])
            if self._sparsely:
                c = point[S] / self.spread[S]
                out[b] = self._table[:, S] @ c - self.mean[S] @ c
            else:
                out[b] = self._table[:, S] @ point[S]
            if self.constant:
                out[b] += point[-1]
        return out

    def coefficients(self, point: Array) -> tuple[Array, float]:
        """Return the coefficients and the intercept of a point in the units of the table."""
        w = point[: self.features] / self.spread
        w[self.useless] = 0.0
        intercept = float(point[-1]) if self.constant else 0.0
        return w / self.size, intercept - float(w @ self.mean)

    def point(self, coef: Array, intercept: float) -> Array:
        """Return the point that has coefficients and an intercept in the units of the table."""
        w = np.asarray(coef, np.float64) * self.size
        w[self.useless] = 0.0
        out = w * self.spread
        return np.append(out, intercept + float(w @ self.mean)) if self.constant else out


def _flat(matrix: Any) -> Array:
    """Return a matrix of one row as an array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, np.float64).ravel()


def _ones_like(X: Any) -> Any:
    """Return a sparse matrix with 1 wherever X has an entry."""
    out = X.copy()
    out.data = np.ones_like(out.data)
    return out

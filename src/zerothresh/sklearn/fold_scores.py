"""The cross-validated score of subsets of features, as a function of masks and folds."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.runs.lines import append, read

SCORES = "scores.jsonl"
Fold = tuple[Indices, Indices]


@dataclass(eq=False)
class FoldScores:
    """The negative score of an estimator on a fold, for each set of features; no pair of both is fitted twice.

    Attributes
    ----------
    estimator: what is cloned and fitted.
    X, y: the table, of which columns are taken, and the targets or None.
    folds: pairs of the rows to fit and to score.
    scorer: function of (estimator, X, y).
    parameters: what ``fit`` is given beside X and y; entries with one value per row are cut.
    error_score: "raise", or the score of a fit that fails, NaN for the worst one that was seen.
    folder: where scores are kept, so that a search that was killed fits nothing twice; None to keep none.
    known: the scores so far, by mask and fold.
    fits: the number of fits of this object.
    failure: the last exception of a fit.
    """

    estimator: Any
    X: Any
    y: Any
    folds: Sequence[Fold]
    scorer: Any
    parameters: Mapping[str, Any]
    error_score: Any = np.nan
    folder: Path | None = None
    known: dict[tuple[str, int], float] = field(default_factory=dict)
    fits: int = 0
    failure: Exception | None = None
    _lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        os.makedirs(self.folder, exist_ok=True)
        for line in read(self.folder / SCORES):
            with contextlib.suppress(KeyError, TypeError, ValueError):  # a damaged line: its fit is made again
                self.known[line["features"], line["fold"]] = float.fromhex(line["score"])

    def __call__(self, point: Array, fold: int) -> float:
        """Return the negative score of the features that are on; NaN where there is none."""
        mask = np.asarray(point) != 0
        key = (np.packbits(mask).tobytes().hex(), fold)
        if key not in self.known:
            score = self._score(mask, fold)
            with self._lock:
                self.known[key] = score
                self.fits += bool(mask.any())
                if self.folder is not None:
                    append(self.folder / SCORES, {"features": key[0], "fold": fold, "score": score.hex()})
        return -self.known[key]

    def _score(self, mask: Any, fold: int) -> float:
        if not mask.any():
            return float("nan")
        train, test = self.folds[fold]
        columns = np.flatnonzero(mask)
        try:
            model = clone(self.estimator)
            cut = {name: _rows(value, train, len(self.X_rows)) for name, value in self.parameters.items()}
            if self.y is None:
                model.fit(self.X[train][:, columns], **cut)
                score = self.scorer(model, self.X[test][:, columns])
            else:
                model.fit(self.X[train][:, columns], self.y[train], **cut)
                score = self.scorer(model, self.X[test][:, columns], self.y[test])
        except Exception as error:
            if isinstance(self.error_score, str):
                raise
            self.failure = error
            warnings.warn(
                f"a fit with {columns.size} features failed on fold {fold}: {type(error).__name__}: {error}",
                FitFailedWarning,
                stacklevel=2,
            )
            return float(self.error_score)
        number = check.real(score)
        if number is None:
            raise ValueError(f"scoring returned {check.shown(score)}: it must return one number")
        return number

    @property
    def X_rows(self) -> range:
        """The rows of the table."""
        return range(self.X.shape[0])


def _rows(value: Any, rows: Indices, n: int) -> Any:
    """Return the rows of a parameter that has one value per row; others as they are."""
    array = check.array(value) if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else None
    return value if array is None or array.ndim == 0 or array.shape[0] != n else array[rows]

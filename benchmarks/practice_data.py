"""The tables of practice.py: two of packages, whose files are read without importing them, and one of scikit-learn."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split

Row = dict[str, Any]  # what was measured of a method on a split
Table = tuple[np.ndarray, np.ndarray]
TEST_SHARE = 0.25  # of the rows


def spectra() -> Table:
    """Return 215 near-infrared spectra of 100 wavelengths, and the share of fat in per cent (PyPI: faraway, MIT)."""
    found = find_spec("faraway")
    if found is None or found.origin is None:
        raise SystemExit("the spectra are in the package faraway: pip install 'zerothresh[bench]'")
    table = pd.read_csv(Path(found.origin).parent / "datasets" / "meatspec" / "meatspec.csv.bz2")
    return table.drop(columns="fat").to_numpy(), table["fat"].to_numpy()


def genes(wheel: Path | None) -> Table:
    """Return 83 tissues with 2,308 genes, and which of four tumours each is (PyPI: islp, BSD).

    The package asks for torch, which is not needed here: ``pip install --no-deps islp``, or ``pip download --no-deps
    islp`` and the path of its wheel.
    """
    names = [f"Khan_{kind}{part}.csv" for kind in "xy" for part in ("train", "test")]
    if wheel is not None:
        with zipfile.ZipFile(wheel) as packed:
            parts = [pd.read_csv(packed.open(f"ISLP/data/{name}")).to_numpy() for name in names]
    else:
        found = find_spec("ISLP")
        if found is None or found.origin is None:
            raise SystemExit("the genes are in the package islp: pip install --no-deps islp, or give --islp WHEEL")
        folder = Path(found.origin).parent / "data"
        parts = [pd.read_csv(folder / name).to_numpy() for name in names]
    return np.vstack(parts[:2]), np.concatenate(parts[2:]).ravel()


def tumours() -> Table:
    """Return 569 tumours with 30 features, and which of them are benign (inside scikit-learn)."""
    return load_breast_cancer(return_X_y=True)


def cut(
    X: np.ndarray, y: np.ndarray, split: int, classes: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X and y of the training rows, and of the test rows, of a split."""
    if not classes:
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=split)
        return X_train, y_train, X_test, y_test
    train, test = next(StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=split).split(X, y))
    return X[train], y[train], X[test], y[test]

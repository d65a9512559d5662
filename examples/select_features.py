"""Select 4 of 30 features for a classifier by its cross-validated score, in a process that is killed in the middle.

Each fit is a call of a black box. The folder keeps every score, so that the second process pays for nothing twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from zerothresh.sklearn import SparseSelector

X, Y = load_breast_cancer(return_X_y=True)
FITS = 150


class Mortal(GaussianNB):
    """Naive Bayes, which kills its process in one of its fits."""

    fits, dies_in = 0, None

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Mortal:
        Mortal.fits += 1
        if Mortal.fits == Mortal.dies_in:
            os.kill(os.getpid(), signal.SIGKILL)  # like a power switch or the time limit of a cluster
        return super().fit(X, y, sample_weight)


SELECTOR = SparseSelector(Mortal(), 4, scoring="balanced_accuracy", cv=3, budget=FITS, random_state=0)


def select(run: str | None = None, dies_in: int | None = None) -> SparseSelector:
    """Select the features; the process dies in a given fit."""
    Mortal.dies_in = dies_in
    return clone(SELECTOR).set_params(run=run).fit(X, Y)


def main() -> None:
    if len(sys.argv) > 1:  # this is the process that dies
        select(sys.argv[1], FITS // 2)
    with tempfile.TemporaryDirectory() as folder:
        first = subprocess.run([sys.executable, __file__, f"{folder}/run"], check=False)
        print(f"The first process was killed by signal {-first.returncode} in fit {FITS // 2}.")
        second = select(f"{folder}/run")
        print(f"The second one made {second.n_fits_} fits.")
        whole = select()
        print(f"A process that is not killed makes {whole.n_fits_} fits: {FITS // 2 - 1 + second.n_fits_} in all.")
        print("the same features:", bool((second.support_ == whole.support_).all()))
        print(f"balanced accuracy in the folds: {second.score_:.3f}, with features {np.flatnonzero(second.support_)}")


if __name__ == "__main__":
    main()

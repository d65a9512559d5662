"""The model that `zerothresh attack` attacks by default: a small net for scikit-learn's digits, trained in seconds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.adapters import from_sklearn
from zerothresh.attack.classifier import Classifier
from zerothresh.basics import check

TRAINING_IMAGES = 1297  # of the 1,797 digits; the last 500, by other writers, are left to be attacked
LARGEST_SEED = 2**32 - 1
_EPOCHS = 60  # enough for this net, although scikit-learn warns that it has not converged


def digits(digit: int | None = None, *, seed: int = 0) -> tuple[Classifier, NDArray[np.float64], NDArray[np.int64]]:
    """Train a classifier of handwritten digits, and load images that it was not trained on.

    Arguments
    ---------
    digit: only the images of this digit, 0 to 9; None for all 500.
    seed: the seed of the training, 0 by default.

    Returns
    -------
    The classifier, images of shape (n, 8, 8) with values from 0 to 16, and labels of shape (n,).

    >>> classifier, images, labels = digits(3)
    >>> images.shape[1:], classifier.bounds, set(labels.tolist())
    ((8, 8), (0.0, 16.0), {3})
    """
    if digit is not None and check.count("digit", digit, low=0, what=" and at most 9, or None for all") > 9:
        raise ValueError(f"digit must be from 0 to 9, or None for all, not {digit}")
    if check.count("seed", seed, low=0) > LARGEST_SEED:
        raise ValueError(f"seed must be at most {LARGEST_SEED}, the largest that scikit-learn takes, not {seed}")
    try:
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier
    except ImportError:
        raise ImportError("the digits come with scikit-learn: pip install 'zerothresh[attack]'") from None
    table = load_digits()
    net: Any = MLPClassifier((64,), max_iter=_EPOCHS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(table.data[:TRAINING_IMAGES], table.target[:TRAINING_IMAGES])
    images, labels = table.images[TRAINING_IMAGES:], table.target[TRAINING_IMAGES:].astype(np.int64)
    chosen = slice(None) if digit is None else labels == digit
    return from_sklearn(net, bounds=(0.0, 16.0)), images[chosen], labels[chosen]

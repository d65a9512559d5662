"""The embedded default: scikit-learn's digits and a small net that is trained on them in seconds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.adapters import from_sklearn
from zerothresh.attack.classifier import Classifier

TRAINED = 1297  # of the 1,797 digits; the last 500, by other writers, are there to be attacked


def digits(digit: int | None = None, *, seed: int = 0) -> tuple[Classifier, NDArray[np.float64], NDArray[np.int64]]:
    """A classifier of digits, and the images (8 x 8, values 0 to 16) and labels that it was not trained on.

    Arguments
    ---------
    digit: only the images of this digit; None: all 500.
    seed: of the training.

    >>> classifier, images, labels = digits(3)
    >>> images.shape[1:], classifier.bounds, set(labels.tolist())
    ((8, 8), (0.0, 16.0), {3})
    """
    try:
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier
    except ImportError:
        raise ImportError("the digits come with scikit-learn: pip install 'zerothresh[attack]'") from None
    table = load_digits()
    net: Any = MLPClassifier((64,), max_iter=60, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops after 60 epochs, which is enough
        net.fit(table.data[:TRAINED], table.target[:TRAINED])
    images, labels = table.images[TRAINED:], table.target[TRAINED:].astype(np.int64)
    chosen = slice(None) if digit is None else labels == digit
    return from_sklearn(net, bounds=(0.0, 16.0)), images[chosen], labels[chosen]

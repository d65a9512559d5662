"""Estimators for scikit-learn: linear models of few features for any loss or metric, and selection of features."""

try:
    import sklearn as _sklearn  # noqa: F401  # absolute: scikit-learn itself
except ImportError as error:
    raise ImportError("zerothresh.sklearn needs scikit-learn: pip install 'zerothresh[sklearn]'") from error

from zerothresh.sklearn.sparse_classifier import SparseClassifier
from zerothresh.sklearn.sparse_regressor import SparseRegressor
from zerothresh.sklearn.sparse_selector import SparseSelector

__all__ = ["SparseClassifier", "SparseRegressor", "SparseSelector"]

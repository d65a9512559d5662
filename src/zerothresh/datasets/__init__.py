"""Real data sets: two small tables and the paper's 40 images, which the package contains, and all of CIFAR-10."""

from zerothresh.datasets.cifar10 import load_cifar10, load_cifar10_paper
from zerothresh.datasets.tabular import Table, load_autoprice, load_bodyfat

__all__ = ["Table", "load_autoprice", "load_bodyfat", "load_cifar10", "load_cifar10_paper"]

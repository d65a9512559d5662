"""Losses of single outputs: F is their mean over the outputs of a call. `zt.losses.Huber(delta=0.5)`, for one."""

from zerothresh.losses.choice import NAMES, loss_of
from zerothresh.losses.elementwise import (
    Cauchy,
    Custom,
    Huber,
    Itself,
    Loss,
    Poisson,
    Quantile,
    Squared,
)

__all__ = [
    "NAMES",
    "Cauchy",
    "Custom",
    "Huber",
    "Itself",
    "Loss",
    "Poisson",
    "Quantile",
    "Squared",
    "loss_of",
]

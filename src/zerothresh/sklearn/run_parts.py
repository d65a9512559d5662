"""Which part of a user's run folder belongs to a fit, and with which seed it goes on."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
from sklearn.utils import check_random_state

from zerothresh.runs.paths import run_path

LARGEST_SEED = 2**31 - 1
DIGITS = 16  # of a hash: enough that two fits never share a folder by chance


def part_of(run: Any, told: list[Any]) -> Path | None:
    """Return the folder within ``run`` of the fit that ``told`` describes: its data and parameters."""
    if run is None:
        return None
    try:
        name = str(joblib.hash(told))[:DIGITS]
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            "run= needs data and parameters that can be told apart later, and one of them cannot be pickled "
            f"({error}): a function has to be defined in a module, and not be a lambda"
        ) from error
    folder: Path = run_path(run) / name
    return folder


def seed_of(random_state: Any, run: Any) -> int:
    """Return the seed of a fit. With a run folder, no state means 0: the same call has to be the same search."""
    if random_state is None and run is not None:
        return 0
    return int(check_random_state(random_state).randint(LARGEST_SEED))

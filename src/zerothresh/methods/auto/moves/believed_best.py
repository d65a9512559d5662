"""Which of the points asked for is the best one, if values are random: the one that is believed to be.

The belief at a point lies between its values and what a process expects from its neighbours, the nearer to its values
the more of them there are. So a value that is low by chance is not believed.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Indices
from zerothresh.methods.auto.models.random_process import RandomProcess, fit_random, random_forms
from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.settings.active_subset_settings import BELIEF as SET


def fit_belief(search: CubeSearch, *, anew: bool) -> tuple[RandomProcess, Indices]:
    """Fit a process to the lowest and the newest values, and say which they are.

    ``anew`` tries all forms, of which the evidence chooses; otherwise the last one is kept.
    """
    used = np.arange(search.y.size)
    if used.size > SET.most_points:
        lowest = np.argsort(search.y, kind="stable")[: SET.most_points // 2]
        newest = np.setdiff1d(used, lowest)[lowest.size - SET.most_points :]
        used = np.union1d(lowest, newest)
    X, y, counts = search.Z[used], search.y[used], search.counts[used]
    candidates = random_forms(search.p) if anew or search.form is None else [search.form]
    processes = [
        fit_random(X, y, counts, form, search.parameters.get(form), search.noise.deviation) for form in candidates
    ]
    search.parameters.update((process.form, process.parameters) for process in processes)
    process = max(processes, key=lambda one: one.evidence)
    search.form = process.form
    return process, used


def believe(search: CubeSearch, process: RandomProcess, used: Indices) -> None:
    """Note and report which of the points that may be returned is believed to be the best one."""
    own = np.flatnonzero(used >= search.known)
    if not own.size:
        return
    mean, deviation = process.at_values()
    best = own[np.argmin((mean + SET.caution * deviation)[own])]
    search.best, search.level = int(used[best]), float(process.warp.original(mean[best : best + 1])[0])
    search.report(search.Z[search.best], search.level)


def report_believed_best(search: CubeSearch) -> None:
    """Report the point that is believed to be the best one."""
    believe(search, *fit_belief(search, anew=False))

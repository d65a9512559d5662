"""Which of the points asked for is the best one, if values are random: the one that is believed to be.

F is taken for the sum of a Gaussian process and of ripples that it does not follow, whose variance is what the process
takes for noise beyond the noise that is known. The belief at a point lies between its values and the process, the
nearer to its values the more of them there are. So a value that is low by chance is not believed, and neither is a
process that has smoothed F too much.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.gaussian_process import fit, forms
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.settings import BELIEF as SET
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def believed(search: CubeSearch) -> tuple[Indices, Array, Array]:
    """Return the lowest of the points that may be returned, what F is believed to be there, and how sure that is."""
    lowest = np.argsort(search.y, kind="stable")[: SET.most_points]
    X, y, counts = search.Z[lowest], search.y[lowest], search.counts[lowest]
    processes = [
        fit(X, y, counts, form, search.parameters.get(form), noise=search.noise) for form in forms(search.p, True)
    ]
    search.parameters.update((process.form, process.parameters) for process in processes)
    process = max(processes, key=lambda one: one.evidence)
    noise = square(search.noise / process.scale) / counts
    ripples = max(float(np.exp(2 * process.parameters[-1])) - square(search.noise / process.scale), 0.0)
    smooth, deviation = process.predict(X)
    share = ripples / (ripples + noise)
    mean = process.centre + process.scale * (smooth + share * (process.t - smooth))
    spread = process.scale * np.sqrt(np.square(deviation) + share * noise)
    own = lowest >= search.known
    return lowest[own], mean[own], spread[own]


def report_believed_best(search: CubeSearch) -> None:
    """Report the point that is believed to be the best one."""
    points, mean, _ = believed(search)
    if points.size:
        best = int(np.argmin(mean))
        search.report(search.Z[points[best]], float(mean[best]))


def settle(search: CubeSearch) -> Generator[Probes, Answers, None]:
    """Ask again for the best point and its rival, which might well be better, until there is none."""
    for _ in range(SET.most_repeats):
        points, mean, spread = believed(search)
        if points.size < 2:
            return
        best = int(np.argmin(mean))
        hoped = mean - SET.hoped * spread
        hoped[best] = np.inf
        rival = int(np.argmin(hoped))
        if hoped[rival] >= mean[best]:
            break
        yield from search.ask_again(int(points[max(best, rival, key=lambda i: spread[i])]))
    report_believed_best(search)

"""Methods compared on a problem with care: a grid each, several runs, fresh runs for the chosen ones."""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api import plot
from zerothresh.api.arguments import dimension_of, start_of
from zerothresh.api.optimizer import Optimizer
from zerothresh.basics import check
from zerothresh.comparison import summary
from zerothresh.comparison.cell import Cell, Outcome, Subject
from zerothresh.comparison.claim import claim
from zerothresh.comparison.grid import contestants
from zerothresh.comparison.progress import Live
from zerothresh.comparison.work import run_cells
from zerothresh.objective.forms import wrap
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method
from zerothresh.runs.identity import plain

Array = NDArray[np.float64]

IDENTITY = "comparison.json"


@dataclass(frozen=True)
class Trial:
    """A method with its hyper-parameters, and its runs."""

    method: Method
    runs: tuple[Outcome, ...]

    @property
    def ends(self) -> Array:
        """F at the end of each run; infinite where it diverged."""
        return np.array([run.end for run in self.runs])

    @property
    def mean(self) -> float:
        """Of F at the end over the runs; infinite if one of them diverged."""
        return float(self.ends.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation of F at the end over the runs (divided by their number, as in the figures)."""
        return float(self.ends.std()) if np.isfinite(self.ends).all() else np.nan

    def with_support(self, x: Array) -> int:
        """In how many runs the last iterate has the support of x."""
        support = np.flatnonzero(x)
        return sum(np.array_equal(run.support, support) for run in self.runs)


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial with the lowest F at the end, on average over the runs; the first of equals."""
    return min(trials, key=lambda trial: trial.mean)


@dataclass(frozen=True)
class Contender:
    """A label, its trials, one for each point of the grid, and the fresh runs of the best."""

    label: str
    trials: tuple[Trial, ...]
    fresh: Trial | None = None

    @property
    def best(self) -> Trial:
        """The best of the grid, by the runs that chose it."""
        return best_of(self.trials)

    @property
    def judged(self) -> Trial:
        """What it is judged by: fresh runs if there are any, else those that chose it."""
        return self.best if self.fresh is None else self.fresh


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`: ``rows()``, ``frame()``, ``to_csv()`` and ``plot()``."""

    contenders: tuple[Contender, ...]
    optimum: float | None  # F*, if the problem could tell
    optimum_x: Array | None
    budget: int

    def rows(self) -> list[dict[str, Any]]:
        """A row a method, the best first: means with 95 % intervals over the runs that it is judged by."""
        return sorted((self._row(contender) for contender in self.contenders), key=lambda row: row["F"])

    def _row(self, contender: Contender) -> dict[str, Any]:
        judged = contender.judged
        end = summary.mean(judged.ends)
        row: dict[str, Any] = {
            "method": contender.label,
            "chosen": repr(judged.method),
            "runs": len(judged.runs),
            "diverged": sum(not run.success for run in judged.runs),
            "F": end.value,
            "F_low": end.low,
            "F_high": end.high,
            "F_sd": judged.deviation,
            "nfev": float(np.mean([run.nfev for run in judged.runs])),
            "nht": float(np.mean([run.nht for run in judged.runs])),
        }
        if self.optimum is not None and self.optimum_x is not None:
            row["gap"] = end.value - self.optimum
            row["right_support"] = judged.with_support(self.optimum_x) / len(judged.runs)
        own = [run.own for run in judged.runs]
        if not np.isnan(own).any():
            row["own_support_error"] = summary.median(own).value
        return row

    def frame(self) -> Any:
        """The rows as a pandas data frame (needs pandas: the extra ``zerothresh[plot]``)."""
        try:
            import pandas
        except ImportError:
            raise ImportError("a comparison becomes a data frame with pandas: pip install 'zerothresh[plot]'") from None
        return pandas.DataFrame(self.rows())

    def to_csv(self) -> str:
        """Every run of every trial, as comma-separated values."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["method", "trial", "fresh", "run", "status", "F", "own_support_error", "nfev", "nht"])
        for contender in self.contenders:
            trials = [(trial, False) for trial in contender.trials]
            trials += [] if contender.fresh is None else [(contender.fresh, True)]
            for trial, fresh in trials:
                for number, run in enumerate(trial.runs, start=1):
                    numbers = [run.end, run.own, run.nfev, run.nht]
                    writer.writerow([contender.label, repr(trial.method), fresh, number, run.status, *numbers])
        return out.getvalue()

    def plot(self, **options: Any) -> Any:
        """F (less F*, if it is known) against #IZO and #NHT, mean and standard deviation over runs.

        A method of which a run diverged is left out.
        """
        drawn = {
            contender.label: contender.judged.runs
            for contender in self.contenders
            if all(np.isfinite(run.trace.fun).any() and run.success for run in contender.judged.runs)
        }
        if not drawn:
            diverged = all(any(not run.success for run in each.judged.runs) for each in self.contenders)
            words = (
                "a run of each method diverged: take smaller learning rates" if diverged else "pass F=... to compare"
            )
            raise ValueError(f"there is no curve to draw: {words}")
        return plot.compare(drawn, optimum=self.optimum or 0.0, **options)

    def __str__(self) -> str:
        rows = self.rows()
        lines = [f"{'method':16s} {'F at the end':>34s} {'#IZO':>10s}  chosen"]
        for row in rows:
            interval = f"{row['F']:.5g} [{row['F_low']:.5g}, {row['F_high']:.5g}]"
            lines.append(f"{row['method']:16s} {interval:>34s} {row['nfev']:10,.0f}  {row['chosen']}")
        return "\n".join(lines)


def compare(
    problem: Any,
    methods: Any,
    k: int,
    *,
    budget: int,
    grid: Mapping[str, Sequence[Any] | NDArray[Any]] | None = None,
    runs: int = 3,
    fresh: int = 0,
    estimator: Estimator | None = None,
    x0: Any = None,
    n: int | None = None,
    vectorized: bool = False,
    F: Callable[[Array], float] | None = None,
    seed: int = 0,
    jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare methods as the paper does, and with more care: each with the best of its own grid.

    Arguments
    ---------
    problem: a problem object, or a function as `minimize` takes it, with ``x0``, ``n`` and ``vectorized``.
    methods: a list of names, classes or instances, or a dict of them by label. A list of instances in
        the place of one is that label's own grid.
    k, budget: as for `minimize`; each run has the whole budget.
    grid: values to try for hyper-parameters, ``{"eta": [0.01, 0.1]}``; every combination is tried for
        the methods that have them. The best has the lowest mean of F at the end.
    runs: runs of each combination, with the seeds ``seed``, ``seed + 1``, ...
    fresh: further runs of the best, with seeds that did not choose it: what it is then judged by. Without
        them, a method with a large grid looks better than it is.
    F: exact F for the curves, not charged; by default the problem's own. Without it there are no curves,
        and F at the end is that of the best point that a run knows, as for `minimize`.
    jobs: processes. The outcome does not depend on it; the problem must be picklable if there are several.
    folder: keeps every run; called again, the comparison goes on where it was stopped. Methods may be
        added, and runs; the methods must be dataclasses, whose fields tell them apart.
    progress: True for a live display, False for none, None for one on a terminal.

    >>> import zerothresh as zt
    >>> problem = zt.problems.ridge(seed=1)
    >>> found = zt.compare(problem, ["fgzoht", "szoht"], 3, budget=5_000, grid={"eta": [0.01, 0.1]}, runs=2)
    >>> [row["method"] for row in found.rows()]
    ['fgzoht', 'szoht']
    """
    k = check.count("k", k, what=" (non-zero coordinates)")
    budget = check.count("budget", budget, what=" (calls of the objective)")
    runs, fresh = check.count("runs", runs), check.count("fresh", fresh, low=0)
    seed, jobs = check.count("seed", seed, low=0), check.count("jobs", jobs, what=" (processes)")
    grids = contestants(methods, grid)
    if x0 is not None and not isinstance(x0, (int, np.integer)):
        x0 = start_of(x0)
    subject = Subject.of(problem, x0, n, vectorized)
    if F is not None:
        check.function("F", F, "F(x)")
        subject = replace(subject, F=F)
    d = _check(subject, grids, k, budget, estimator, seed)
    where = None if folder is None else _path(folder)
    if where is not None:
        _check_names(grids)
        own = {"problem": subject.name, "k": k, "budget": budget, "estimator": plain(estimator), "seed": seed}
        told = getattr(subject.F, "__qualname__", type(subject.F).__qualname__)
        claim(where / IDENTITY, {**own, "x0": plain(subject.x0), "n": n, "F": told})

    def cells(label: str, method: Method, seeds: range) -> list[Cell]:
        return [Cell(label, method, estimator, k, budget, "problem", number) for number in seeds]

    chosen_by, judged_by = range(seed, seed + runs), range(seed + runs, seed + runs + fresh)
    first = [cell for label, grid_ in grids.items() for method in grid_ for cell in cells(label, method, chosen_by)]
    with Live(len(first) + fresh * len(grids), progress) as live:

        def run(cells: list[Cell]) -> list[Outcome]:
            return run_cells({"problem": subject}, cells, jobs=jobs, folder=where, done=live.done)

        outcomes = iter(run(first))
        trials = {
            label: tuple(Trial(method, tuple(next(outcomes) for _ in chosen_by)) for method in grid_)
            for label, grid_ in grids.items()
        }
        best = {label: best_of(tried).method for label, tried in trials.items()}
        later = iter(run([cell for label, method in best.items() for cell in cells(label, method, judged_by)]))
    contenders = tuple(
        Contender(label, tried, Trial(best[label], tuple(next(later) for _ in judged_by)) if fresh else None)
        for label, tried in trials.items()
    )
    optimum_x, optimum = _optimum(problem, k, d)
    return Comparison(contenders, optimum, optimum_x, budget)


def _check(
    subject: Subject, grids: dict[str, list[Method]], k: int, budget: int, estimator: Estimator | None, seed: int
) -> int:
    """Refuse what a run would refuse before the first one is paid for; returns d."""
    objective = wrap(subject.fun, dimension_of(subject.x0), subject.n, subject.vectorized)
    start = objective.d if subject.x0 is None else subject.x0
    arguments: dict[str, Any] = {"n": objective.n, "estimator": estimator, "seed": seed, "monitor": subject.F}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run itself says it
        for grid in grids.values():
            for method in grid:
                Optimizer(start, k, budget=budget, method=method, **arguments)
    return objective.d


def _check_names(grids: dict[str, list[Method]]) -> None:
    """Refuse methods that a folder could not tell apart, now or another time."""
    for label, grid in grids.items():
        names = {json.dumps(plain(method)) for method in grid}
        if len(names) < len(grid) or not all(map(is_dataclass, grid)):
            raise ValueError(
                f"a folder cannot tell the methods of {label!r} apart: they must be dataclasses, no two with the same "
                "values; or leave folder out"
            )


def _optimum(problem: Any, k: int, d: int) -> tuple[Array | None, float | None]:
    """F* where the problem can tell it: by enumeration, which large ones refuse."""
    if not callable(getattr(problem, "optimum", None)):
        return None, None
    try:
        x, value = problem.optimum(k)
        x, value = np.asarray(x, float), float(value)
        if x.shape != (d,) or not np.isfinite(value):
            raise TypeError(f"it gave {x!r} and {value!r}, not a point and a number")
    except (ValueError, NotImplementedError):
        return None, None
    except Exception as error:  # the runs have been made, and are worth more
        words = f"the problem's optimum({k}) raised {type(error).__name__}: {error}"
        warnings.warn(f"{words}; the comparison does without F*", stacklevel=3)
        return None, None
    return x, value


def _path(folder: Any) -> Path:
    try:
        return Path(folder).absolute()  # an objective may change the current folder
    except TypeError:
        raise ValueError(f"folder must be the path of a folder, not {folder!r}") from None

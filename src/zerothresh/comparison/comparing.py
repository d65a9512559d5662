"""Compare methods on a problem: a grid of hyper-parameters for each, several runs, and fresh runs of the best."""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api import plot
from zerothresh.api.arguments import start_of
from zerothresh.api.optimizer import Optimizer
from zerothresh.basics import check
from zerothresh.comparison import summary
from zerothresh.comparison.cell import FORMAT, Cell, Outcome, Subject
from zerothresh.comparison.folder_claim import claim_folder, folder_path
from zerothresh.comparison.grid import contestants
from zerothresh.comparison.progress import ComparisonProgress
from zerothresh.comparison.work import run_cells
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method
from zerothresh.runs.identity import plain
from zerothresh.sampling.philox import seed_of

Array = NDArray[np.float64]

IDENTITY = "comparison.json"
MOST_RUNS = 1_000_000  # with a curve and records of some 10 kB each, about what the memory of one computer holds


@dataclass(frozen=True)
class Candidate:
    """A method with one choice of its hyper-parameters, and its runs."""

    method: Method
    runs: tuple[Outcome, ...]

    @property
    def ends(self) -> Array:
        """F at the end of each run; infinite for a run that diverged."""
        return np.array([run.end for run in self.runs])

    @property
    def mean(self) -> float:
        """The mean of F at the end over the runs; infinite if one of them diverged."""
        with np.errstate(over="ignore"):  # values near the largest number have an infinite mean
            return float(self.ends.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation of F at the end over the runs (divided by their number, as in the figures)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self.ends.std()) if np.isfinite(self.ends).all() else np.nan

    def with_support(self, x: Array) -> int:
        """Return in how many runs the last iterate has the support of x."""
        support = np.flatnonzero(x)
        return sum(np.array_equal(run.support, support) for run in self.runs)


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the lowest mean of F at the end; the first one if several are equal."""
    return min(candidates, key=lambda candidate: candidate.mean)


@dataclass(frozen=True)
class Contender:
    """A method under its label: one candidate for each point of its grid, and the fresh runs of the best."""

    label: str
    candidates: tuple[Candidate, ...]
    fresh: Candidate | None = None

    @property
    def best(self) -> Candidate:
        """The best candidate of the grid, by the runs that chose it."""
        return best_of(self.candidates)

    @property
    def judged(self) -> Candidate:
        """What the method is judged by: the fresh runs if there are any, otherwise those that chose the best."""
        return self.best if self.fresh is None else self.fresh


@dataclass(frozen=True)
class Comparison:
    """What `compare` returns.

    ``print`` shows one line per method; ``rows()``, ``frame()``, ``to_csv()`` and ``plot()`` give the rest.

    Attributes
    ----------
    contenders: the methods with all their runs, in the order in which they were given.
    optimum: F*, the lowest value with at most k non-zeros, if the problem knows it; otherwise None.
    optimum_x: the point where F* is reached, array of shape (d,), or None.
    budget: the budget of each run.
    """

    contenders: tuple[Contender, ...]
    optimum: float | None
    optimum_x: Array | None
    budget: int

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per method, the best first: means with 95 % intervals over the runs that it is judged by."""
        return sorted((self._row(contender) for contender in self.contenders), key=lambda row: row["F"])

    def _row(self, contender: Contender) -> dict[str, Any]:
        """Return the row of one method."""
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
        """Return the rows as a pandas data frame (needs pandas, which the extra ``zerothresh[plot]`` installs)."""
        try:
            import pandas
        except ImportError:
            raise ImportError("a data frame needs pandas: pip install 'zerothresh[plot]'") from None
        return pandas.DataFrame(self.rows())

    def to_csv(self) -> str:
        """Return all runs of all candidates as comma-separated values, one row per run."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["method", "trial", "fresh", "run", "status", "F", "own_support_error", "nfev", "nht"])
        for contender in self.contenders:
            candidates = [(candidate, False) for candidate in contender.candidates]
            candidates += [] if contender.fresh is None else [(contender.fresh, True)]
            for candidate, fresh in candidates:
                for number, run in enumerate(candidate.runs, start=1):
                    numbers = [run.end, run.own, run.nfev, run.nht]
                    writer.writerow([contender.label, repr(candidate.method), fresh, number, run.status, *numbers])
        return out.getvalue()

    def plot(self, **options: Any) -> Any:
        """Draw F (minus F*, if it is known) against #IZO and #NHT: the mean over the runs, with a band around it.

        Methods with a run that diverged are left out. The options are those of `zt.plot.compare`.

        Returns the matplotlib figure. Raises ValueError if there is no curve to draw.
        """
        drawn = {
            contender.label: contender.judged.runs
            for contender in self.contenders
            if all(np.isfinite(run.trace.fun).any() and run.success for run in contender.judged.runs)
        }
        if not drawn:
            diverged = all(any(not run.success for run in each.judged.runs) for each in self.contenders)
            advice = (
                "a run of each method diverged: try smaller learning rates" if diverged else "pass F=... to compare"
            )
            raise ValueError(f"there is no curve to draw: {advice}")
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
    outputs: str | None = None,
    loss: Any = None,
    constraint: Any = None,
    values: Any = None,
    strict: bool = False,
    F: Callable[[Array], float] | None = None,
    seed: int = 0,
    jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare methods on a problem, each with the best point of its own grid of hyper-parameters.

    Arguments
    ---------
    problem: a problem object, or a function as `minimize` takes it (then also ``x0``, and maybe ``n`` and
        ``vectorized``).
    methods: a list of names, classes or instances, or a dict of them by label. A list of instances in the
        place of a single method is the grid of that label.
    k: int, the largest number of non-zero coordinates.
    budget: int, the largest number of calls of each run.
    grid: dict of lists, the values to try for hyper-parameters, such as ``{"eta": [0.01, 0.1]}``. Each method
        is run with every combination of those that it has; the best has the lowest mean of F at the end.
    runs: int, default 3: runs of each combination, with the seeds ``seed``, ``seed + 1``, ...
    fresh: int, default 0: further runs of the best combination, with seeds that did not choose it, by which
        the method is then judged. Without them, a method with a large grid looks better than it is.
    estimator: `Estimator` or None (default settings); methods that choose their own steps ignore it.
    x0: the start, array of shape (d,), or the dimension d; default: 0 in the dimension of the problem.
    n: int, the number of components of a function; default: it has none.
    vectorized: bool, default False: whether a function takes many points at once.
    outputs, loss: as `minimize` takes them, default None: whether one call returns many outputs, and their loss.
    constraint, values, strict: as `minimize` takes them, default None, None and False: what points are feasible.
    F: function of x, the exact F for the curves, whose calls are not counted; default: the problem's own F.
        Without it there are no curves, and F at the end is what `minimize` returns.
    seed: int, default 0.
    jobs: int, default 1: processes. The result does not depend on it. With several, the problem and the
        methods must be picklable.
    folder: a path, where every run is kept. Called again with the same folder, the comparison continues
        where it stopped; methods and runs may be added. The methods must be dataclasses, because their
        fields tell them apart.
    progress: True for a live display, False for none, None (default) for one on a terminal.

    Returns a `Comparison`.

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
    seed_of(seed + runs + fresh)  # the seeds of the runs are this one and those that follow
    if progress is not None:
        check.flag("progress", progress)
    grids = contestants(methods, grid)
    total = sum(map(len, grids.values())) * runs + len(grids) * fresh
    if total > MOST_RUNS:
        raise ValueError(
            f"the comparison has {total:,} runs, and at most {MOST_RUNS:,} are allowed, because all of them are kept "
            "in memory: ask for fewer"
        )
    if x0 is not None and not isinstance(x0, (int, np.integer)):
        x0 = start_of(x0)
    given = {"constraint": constraint, "values": values, "strict": strict}
    limits = {name: value for name, value in given.items() if value is not None and value is not False}
    subject = Subject.of(problem, x0, n, vectorized, outputs=outputs, loss=loss, limits=limits)
    if F is not None:
        check.function("F", F, "F(x)")
        subject = replace(subject, F=F)
    d = _check(subject, grids, k, budget, estimator, seed)
    where = None if folder is None else folder_path(folder)
    if where is not None:
        _check_names(grids)
        own = {"problem": subject.name, "k": k, "budget": budget, "estimator": plain(estimator), "seed": seed}
        own |= {"format": FORMAT, **subject.form}
        own |= {"limits": plain(dict(limits))} if limits else {}
        name_of_F = getattr(subject.F, "__qualname__", type(subject.F).__qualname__)
        claim_folder(where / IDENTITY, {**own, "x0": plain(subject.x0), "n": n, "F": name_of_F})

    def cells(label: str, method: Method, seeds: range) -> list[Cell]:
        return [Cell(label, method, estimator, k, budget, "problem", number) for number in seeds]

    choosing, judging = range(seed, seed + runs), range(seed + runs, seed + runs + fresh)
    first = [cell for label, points in grids.items() for method in points for cell in cells(label, method, choosing)]
    with ComparisonProgress(len(first) + fresh * len(grids), progress) as display:

        def run(cells: list[Cell]) -> list[Outcome]:
            return run_cells({"problem": subject}, cells, jobs=jobs, folder=where, done=display.done)

        outcomes = iter(run(first))
        candidates = {
            label: tuple(Candidate(method, tuple(next(outcomes) for _ in choosing)) for method in points)
            for label, points in grids.items()
        }
        best = {label: best_of(tried).method for label, tried in candidates.items()}
        later = iter(run([cell for label, method in best.items() for cell in cells(label, method, judging)]))
    contenders = tuple(
        Contender(label, tried, Candidate(best[label], tuple(next(later) for _ in judging)) if fresh else None)
        for label, tried in candidates.items()
    )
    optimum_x, optimum = _optimum(problem, k, d)
    return Comparison(contenders, optimum, optimum_x, budget)


def _check(
    subject: Subject, grids: dict[str, list[Method]], k: int, budget: int, estimator: Estimator | None, seed: int
) -> int:
    """Refuse before the first call whatever a run would refuse, and return d."""
    arguments = {"estimator": estimator, "seed": seed, **subject.checked()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run itself will warn
        for grid in grids.values():
            for method in grid:
                checked = Optimizer(k=k, budget=budget, method=method, **arguments)
    return checked.task.d


def _check_names(grids: dict[str, list[Method]]) -> None:
    """Refuse methods that a folder could not tell apart, now or when the comparison is continued."""
    for label, grid in grids.items():
        names = {json.dumps(plain(method)) for method in grid}
        if len(names) < len(grid) or not all(map(is_dataclass, grid)):
            raise ValueError(
                f"a folder cannot tell the methods of {label!r} apart: make them dataclasses, no two with the same "
                "values, or leave folder out"
            )


def _optimum(problem: Any, k: int, d: int) -> tuple[Array | None, float | None]:
    """Return the best point and F* if the problem knows them; it refuses if there are too many supports to try."""
    if not callable(getattr(problem, "optimum", None)):
        return None, None
    try:
        x, value = problem.optimum(k)
        x, value = np.asarray(x, float), float(value)
        if x.shape != (d,) or not np.isfinite(value):
            raise TypeError(f"it returned {x!r} and {value!r}, not a point and a number")
    except (ValueError, NotImplementedError):
        return None, None
    except Exception as error:  # must not lose the runs, which have been made
        reason = f"the problem's optimum({k}) raised {type(error).__name__}: {error}"
        warnings.warn(f"{reason}; the comparison does without F*", stacklevel=3)
        return None, None
    return x, value

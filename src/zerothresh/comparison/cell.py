"""One run of a comparison: what is run, and what is kept of it."""

from __future__ import annotations

import io
import json
import shutil
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.arguments import dimension_of
from zerothresh.api.minimizer import minimize, objective_of
from zerothresh.api.optimizer import Optimizer
from zerothresh.api.result import Result
from zerothresh.basics import files
from zerothresh.losses import loss_of
from zerothresh.objective.forms import Problem
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method, chooses_steps
from zerothresh.runs import fingerprint
from zerothresh.runs.failures import Failures
from zerothresh.runs.identity import loss_name, plain
from zerothresh.runs.paths import read_plain
from zerothresh.session.status import Status

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FORMAT = 2  # of a kept outcome; a folder with another one is refused before anything is read
ROWS = 200  # that are kept of a trace at most, evenly spaced in #IZO: enough to draw a curve
_MOST_BYTES = 1 << 24  # that are read of a kept outcome; a larger file was not written by us
_MOST_UNPACKED = 1 << 28  # bytes that a kept outcome may declare, so that a small file cannot fill the memory
_FIELDS = "words"  # the array of a kept outcome that holds the fields that are no arrays, as JSON
_ARRAYS = ("x", "trace", "records")  # the fields of an outcome that are arrays, or consist of them
_RECORD = "record_"  # how the names of the columns of records begin in the file of a kept outcome


@dataclass(frozen=True)
class Subject:
    """What is minimised.

    Attributes
    ----------
    fun, x0, n, vectorized, bounds, outputs, loss: as `minimize` takes them.
    limits: further arguments of `minimize` that say which points are feasible, such as ``constraint``.
    F: returns the exact value at a point; its calls are not counted. None if it is not known.
    mark: the fingerprint, taken once, so that a problem that counts its own calls stays the same problem.
    """

    fun: Any
    x0: Any = None
    n: int | None = None
    vectorized: bool = False
    F: Callable[[Array], float] | None = None
    mark: str = ""
    bounds: tuple[float, float] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    outputs: str | None = None
    loss: Any = None

    @staticmethod
    def of(problem: Any, x0: Any = None, n: int | None = None, vectorized: bool = False, **form: Any) -> Subject:
        """Return the subject of a problem object or a function, with its own F if it has one."""
        own = getattr(problem, "F", None)
        return Subject(problem, x0, n, vectorized, own if callable(own) else None, fingerprint(problem), **form)

    @property
    def form(self) -> dict[str, Any]:
        """What tells how outputs are made into F, as JSON; nothing if a call returns one value."""
        if self.outputs is None:
            return {}
        return {"outputs": self.outputs, "loss": loss_name(loss_of(self.loss))}

    def checked(self) -> dict[str, Any]:
        """Return the arguments of `Optimizer` that describe it; ValueError if it cannot be minimised."""
        objective, start = objective_of(self.fun, self.x0, self.n, self.vectorized, self.outputs, self.loss)
        many = self.outputs is not None
        n = self.n if many else objective.n
        return {
            "x0": start,
            "n": n,
            "outputs": self.outputs,
            "loss": self.loss,
            "monitor": self.F,
            "bounds": self.bounds,
            **self.limits,
        }

    @property
    def name(self) -> str:
        """The fingerprint, which is computed without a call."""
        return self.mark or fingerprint(self.fun)

    @property
    def dimension(self) -> int | None:
        """d, if the problem or the start says it."""
        own = getattr(self.fun, "d", None) if self.x0 is None else dimension_of(self.x0)
        return own if isinstance(own, int) else None

    @property
    def named(self) -> Any:
        """What is minimised, with the fingerprint that was taken at the beginning."""
        fun = self.fun
        if isinstance(fun, Problem) and callable(fun.values):
            return SimpleNamespace(d=fun.d, n=fun.n, values=fun.values, fingerprint=self.name)
        if self.outputs is not None and not callable(fun):
            return SimpleNamespace(d=fun.d, outputs=fun.outputs, fingerprint=self.name)
        called: Any = partial(fun)
        called.fingerprint = self.name
        return called


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    Attributes
    ----------
    label: the name under which the method is compared.
    method, estimator, k, budget, seed: as `minimize` takes them.
    subject: what is minimised, by its key.
    """

    label: str
    method: Method
    estimator: Estimator | None
    k: int
    budget: int
    subject: str
    seed: int

    def name(self, subject: Subject) -> str:
        """Return a name for its files that no other cell has."""
        own = {**{key: getattr(self, key) for key in ("label", "k", "budget", "seed")}, "problem": subject.name}
        own |= {"method": plain(self.method), "estimator": plain(self.estimator), "start": plain(subject.x0)}
        own |= {} if subject.bounds is None else {"bounds": plain(subject.bounds)}
        own |= subject.form
        own |= {"limits": plain(dict(subject.limits))} if subject.limits else {}
        short = "".join(c if c.isalnum() else "-" for c in self.label.lower())[:40]
        return f"{short}-{blake2b(json.dumps(own).encode(), digest_size=10).hexdigest()}"


@dataclass(frozen=True)
class Curve:
    """A thinned trace, to be drawn: columns of `Trace`, and the own-support error, F minus its minimum on the support.

    Nothing is measured on it: what depends on rows that are left out is in `Outcome`.
    """

    nfev: Indices
    nht: Indices
    fun: Array
    own: Array


@dataclass(frozen=True)
class Records:
    """The rows of the whole trace whose own-support error is lower than that of all rows before them."""

    nfev: Indices
    own: Array

    def calls_to(self, level: float) -> float:
        """Return the #IZO after which the error was at most ``level`` for the first time; infinite if never.

        >>> Records(np.array([10, 30, 90]), np.array([4.0, 2.0, 0.5])).calls_to(1.0)
        90.0
        """
        reached = np.flatnonzero(self.own <= level)
        return float(self.nfev[reached[0]]) if reached.size else np.inf


@dataclass(frozen=True)
class Outcome:
    """What is kept of a run.

    Attributes
    ----------
    status, success, nfev, nht, nit: as in the result of `minimize`.
    end: F at ``x``; infinite if the run diverged. If the subject has no F, it is the value that `minimize` returns.
    own: the own-support error at ``x``; NaN if it is not known, and infinite if the run diverged or made no step.
    changes: how often the support changed.
    rises: the sum of all increases of F from one row of the whole trace to the next; NaN if F is not known.
    lowest: the smallest F in the whole trace; infinite if F is not known.
    x: ``x_last`` of the result, the point that the paper's methods return, array of shape (d,).
    trace: the curve of the run, thinned.
    records: when the own-support error was lower than ever before, in the whole trace.
    """

    status: str
    success: bool
    end: float
    own: float
    nfev: int
    nht: int
    nit: int
    changes: int
    rises: float
    lowest: float
    x: Array
    trace: Curve
    records: Records

    @property
    def support(self) -> Indices:
        """The support of the last iterate."""
        return np.flatnonzero(self.x)

    def save(self, path: Path) -> None:
        """Write the outcome to a file, completely or not at all; it holds only numbers and text, nothing is pickled."""
        values = {key: value for key, value in asdict(self).items() if not isinstance(value, (dict, np.ndarray))}
        stream = io.BytesIO()
        records = {f"{_RECORD}{name}": column for name, column in vars(self.records).items()}
        arrays = {_FIELDS: np.array(json.dumps(values)), "x": self.x, **vars(self.trace), **records}
        np.savez_compressed(stream, **arrays)
        files.write(path, stream.getvalue())

    @staticmethod
    def load(path: Path) -> Outcome:
        """Read an outcome back; ValueError if the file is not what `save` writes."""
        try:
            with np.load(io.BytesIO(read_plain(path, _MOST_BYTES)), allow_pickle=False) as arrays:
                if sum(entry.file_size for entry in arrays.zip.infolist()) > _MOST_UNPACKED:
                    raise ValueError("it declares more data than an outcome has")
                stored = json.loads(str(arrays[_FIELDS]))
                values = {field.name: stored[field.name] for field in fields(Outcome) if field.name not in _ARRAYS}
                curve = Curve(*(arrays[field.name] for field in fields(Curve)))
                records = Records(*(arrays[f"{_RECORD}{field.name}"] for field in fields(Records)))
                outcome = Outcome(x=arrays["x"], trace=curve, records=records, **values)
            if not outcome._is_valid():
                raise ValueError("its parts have wrong types or shapes")
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{path} is not what a comparison writes ({error}): remove it and run again") from None
        return outcome

    @staticmethod
    def of(path: Path, cell: Cell, subject: Subject) -> Outcome:
        """Read the outcome of a cell; ValueError if it cannot be that of this cell."""
        outcome, d = Outcome.load(path), subject.dimension
        if outcome.nfev > cell.budget or (d is not None and outcome.x.size != d):
            raise ValueError(
                f"{path} has {outcome.nfev} calls at a point of {outcome.x.size} coordinates, which cannot be of a run "
                f"with a budget of {cell.budget} in {d} dimensions: remove it and run again"
            )
        return outcome

    def _is_valid(self) -> bool:
        """Return whether all parts have the right types and shapes, which is not certain for a file."""
        scalars = [field for field in fields(self) if field.name not in _ARRAYS]
        rows, size = _shapes(self.trace), self.trace.nfev.shape
        records, count = _shapes(self.records), self.records.nfev.shape
        return (
            all(type(getattr(self, field.name)).__name__ == field.type for field in scalars)
            and rows == [("i", size), ("i", size), ("f", size), ("f", size)]
            and records == [("i", count), ("f", count)]
            and (self.x.dtype.kind, self.x.ndim, len(size), len(count)) == ("f", 1, 1, 1)
            and all(getattr(self, name) >= 0 for name in ("nfev", "nht", "nit", "changes"))
            and bool(np.isfinite(self.x).all() and (np.diff(self.trace.nfev) >= 0).all())
            and bool((np.diff(self.records.nfev) >= 0).all() and (np.diff(self.records.own) < 0).all())
        )


def _shapes(columns: Curve | Records) -> list[tuple[str, tuple[int, ...]]]:
    """Return the kind and the shape of each column."""
    return [(column.dtype.kind, column.shape) for column in vars(columns).values()]


class CellFailed(RuntimeError):
    """The objective, F or a method raised, or the objective returned no number at the start; the message says it."""


def check_cell(subject: Subject, cell: Cell) -> None:
    """Refuse, without a call, what the run itself would refuse: a budget that is too small, say."""
    given = subject.checked()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run itself will warn
        Optimizer(
            k=cell.k,
            budget=cell.budget,
            method=cell.method,
            estimator=None if chooses_steps(cell.method) else cell.estimator,
            seed=cell.seed,
            **given,
        )


def run_cell(subject: Subject, cell: Cell, kept: Path | None = None, work: Path | None = None) -> Outcome:
    """Make one run, and return its outcome.

    Arguments
    ---------
    subject: what is minimised.
    cell: the run.
    kept: a file for the outcome; None to keep it only in memory.
    work: a run folder, from which a run that was killed is continued; it is removed at the end.
    """
    with np.errstate(all="ignore"):  # a step that is too long overflows, and is reported as divergence
        result = minimize(
            subject.named,
            subject.x0,
            cell.k,
            n=subject.n,
            vectorized=subject.vectorized,
            outputs=subject.outputs,
            loss=subject.loss,
            budget=cell.budget,
            method=cell.method,
            estimator=None if chooses_steps(cell.method) else cell.estimator,
            seed=cell.seed,
            monitor=subject.F,
            bounds=subject.bounds,
            **subject.limits,
            run=work,
            fsync="batch",
            progress=False,
        )
        if result.status is Status.INTERRUPTED:
            if work is not None and Failures(work).read():
                shutil.rmtree(work, ignore_errors=True)  # a call that was given up would count: the run begins anew
            raise KeyboardInterrupt  # Ctrl-C stops the whole comparison
        if result.status is Status.DISK:
            raise OSError(result.message)
        try:
            _check(result)
            outcome = outcome_of(result, subject)
        except Exception as error:
            in_full = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            reason = str(error) if isinstance(error, CellFailed) else in_full
            raise CellFailed(f"{cell.label}, seed {cell.seed}: {reason}") from None
    if kept is not None:
        outcome.save(kept)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    return outcome


def _check(result: Result) -> None:
    """Refuse a run that failed for a reason that has nothing to do with its learning rate."""
    reason = result.message.removesuffix("; result.failure has the traceback")
    if result.status is Status.CALLBACK_FAILED:
        reason = f"F{reason.removeprefix('the monitor')}"
    if result.status in (Status.FAILED, Status.CALLBACK_FAILED, Status.METHOD_FAILED):
        raise CellFailed(reason if result.failure is None else f"{reason}\n{result.failure.traceback}")
    if result.status is Status.BAD_VALUE and result.nit == 0:
        raise CellFailed(reason)


def outcome_of(result: Result, subject: Subject) -> Outcome:
    """Return what is kept of a result of `minimize`: measures of the whole trace, and a thinned curve."""
    trace = result.trace
    nfev, nht, fun = trace.nfev, trace.nht, trace.fun
    own = _own(subject, fun, trace.support)
    known = fun[np.isfinite(fun)]
    rows = thin(nfev)
    end = np.inf
    ended_well = bool(result.status.success)
    if ended_well:
        last = fun[-1] if fun.size else np.nan
        end = last if np.isfinite(last) else result.fun if subject.F is None else float(subject.F(result.x_last))
    return Outcome(
        status=result.status.name,
        success=ended_well,
        end=float(end) if np.isfinite(end) else np.inf,
        own=float(own[-1]) if own.size and ended_well else np.inf if _knows_own(subject) else np.nan,
        nfev=int(result.nfev),
        nht=int(result.nht),
        nit=int(result.nit),
        changes=max(0, trace.support_changes),
        rises=float(np.maximum(np.diff(known), 0.0).sum()) if known.size else np.nan,
        lowest=float(known.min(initial=np.inf)),
        x=result.x_last,
        trace=Curve(nfev[rows], nht[rows], fun[rows], own[rows]),
        records=records_of(nfev, own),
    )


def records_of(nfev: Indices, own: Array) -> Records:
    """Return the rows whose own-support error is below that of all rows before them; unknown errors are no records."""
    errors = np.where(np.isfinite(own), own, np.inf)
    before = np.concatenate([[np.inf], np.minimum.accumulate(errors)[:-1]]) if errors.size else errors
    lower = errors < before
    return Records(nfev[lower], own[lower])


def thin(nfev: Indices) -> Indices:
    """Return the rows of a trace to keep: the first, the last, and between them rows evenly spaced in #IZO."""
    if nfev.size <= ROWS:
        return np.arange(nfev.size)
    at = np.searchsorted(nfev, np.linspace(nfev[0], nfev[-1], ROWS), side="right") - 1
    return np.unique(at)


def _knows_own(subject: Subject) -> bool:
    """Return whether the own-support error can be computed."""
    return subject.F is not None and hasattr(subject.fun, "minimum_on")


def _own(subject: Subject, fun: Array, supports: Sequence[Indices]) -> Array:
    """Return the own-support error of each row; NaN where it is not known."""
    if not _knows_own(subject) or subject.F is None:
        return np.full(fun.size, np.nan)
    floors: dict[bytes, float] = {}  # the minima of F by support
    floor = np.empty(fun.size)
    for row, support in enumerate(supports):
        name = support.tobytes()
        if name not in floors:
            x = subject.fun.minimum_on(support) if support.size else np.zeros(subject.fun.d)
            floors[name] = subject.F(x)
        floor[row] = floors[name]
    return np.where(np.isfinite(fun), np.maximum(0.0, fun - floor), np.nan)

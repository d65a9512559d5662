"""One run of a comparison: what it is, and what is kept of it."""

from __future__ import annotations

import io
import json
import shutil
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.minimizer import minimize
from zerothresh.api.result import Result
from zerothresh.basics import files
from zerothresh.methods import Program
from zerothresh.objective.forms import Problem
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method
from zerothresh.runs import fingerprint
from zerothresh.runs.identity import plain
from zerothresh.runs.paths import read_plain
from zerothresh.session.status import Status

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ROWS = 200  # of a trace are kept at the most, evenly by #IZO: enough for a curve
_MOST = 1 << 24  # bytes of a kept outcome that are read at the most
_MOST_UNPACKED = 1 << 28


@dataclass(frozen=True)
class Subject:
    """What is minimised, as `minimize` takes it; ``F`` gives the exact value, and is not charged."""

    fun: Any
    x0: Any = None
    n: int | None = None
    vectorized: bool = False
    F: Callable[[Array], float] | None = None
    mark: str = ""  # its name, taken once: a problem that counts its calls stays the same problem
    bounds: tuple[float, float] | None = None

    @staticmethod
    def of(problem: Any, x0: Any = None, n: int | None = None, vectorized: bool = False) -> Subject:
        """A problem object or a function, with its own F if it has one."""
        own = getattr(problem, "F", None)
        return Subject(problem, x0, n, vectorized, own if callable(own) else None, fingerprint(problem))

    @property
    def name(self) -> str:
        """What can be told of it without a call."""
        return self.mark or fingerprint(self.fun)

    @property
    def named(self) -> Any:
        """What is minimised, under its name."""
        fun = self.fun
        if isinstance(fun, Problem) and callable(fun.values):
            return SimpleNamespace(d=fun.d, n=fun.n, values=fun.values, fingerprint=self.name)
        called: Any = partial(fun)
        called.fingerprint = self.name
        return called


@dataclass(frozen=True)
class Cell:
    """A run: a method with its hyper-parameters, an estimator, a subject (by its key) and a seed."""

    label: str
    method: Method
    estimator: Estimator | None
    k: int
    budget: int
    subject: str
    seed: int

    def name(self, subject: Subject) -> str:
        """A name for its file, which no other cell has."""
        own = {**{key: getattr(self, key) for key in ("label", "k", "budget", "seed")}, "problem": subject.name}
        own |= {"method": plain(self.method), "estimator": plain(self.estimator), "start": plain(subject.x0)}
        own |= {} if subject.bounds is None else {"bounds": plain(subject.bounds)}
        short = "".join(c if c.isalnum() else "-" for c in self.label.lower())[:40]
        return f"{short}-{blake2b(json.dumps(own).encode(), digest_size=10).hexdigest()}"


@dataclass(frozen=True)
class Curve:
    """A trace, thinned: the columns of `Trace`, and the own-support error, F less its minimum on the support."""

    nfev: Indices
    nht: Indices
    fun: Array
    own: Array


@dataclass(frozen=True)
class Outcome:
    """What is kept of a run. If the subject has no F, ``end`` is that of the result of `minimize`."""

    status: str
    success: bool
    end: float  # F at the last iterate, which the paper's methods return; infinite if the run diverged
    own: float  # F less its minimum on the support, at the last iterate; NaN if that is not known
    nfev: int
    nht: int
    nit: int
    changes: int  # how often the support changed
    x: Array  # the last iterate
    trace: Curve

    @property
    def support(self) -> Indices:
        """Of the last iterate."""
        return np.flatnonzero(self.x)

    def save(self, path: Path) -> None:
        """Write it, whole or not at all; numbers only, nothing is pickled."""
        words = {key: value for key, value in asdict(self).items() if not isinstance(value, (dict, np.ndarray))}
        stream = io.BytesIO()
        np.savez_compressed(stream, words=np.array(json.dumps(words)), x=self.x, **vars(self.trace))
        files.write(path, stream.getvalue())

    @staticmethod
    def load(path: Path) -> Outcome:
        """Read it back; ValueError if the file is not what `save` writes."""
        try:
            with np.load(io.BytesIO(read_plain(path, _MOST)), allow_pickle=False) as arrays:
                if sum(entry.file_size for entry in arrays.zip.infolist()) > _MOST_UNPACKED:
                    raise ValueError("it declares too much")
                words = json.loads(str(arrays["words"]))
                words = {field.name: words[field.name] for field in fields(Outcome) if field.name not in ("x", "trace")}
                curve = Curve(*(arrays[name] for name in ("nfev", "nht", "fun", "own")))
                outcome = Outcome(x=arrays["x"], trace=curve, **words)
            if not outcome._sound():
                raise ValueError("its parts do not fit")
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{path} is not what a comparison writes ({error}): remove it, and run again") from None
        return outcome

    def _sound(self) -> bool:
        """Whether all is of its kind, which a file need not be."""
        words = [field for field in fields(self) if field.name not in ("x", "trace")]
        rows = [(column.dtype.kind, column.shape) for column in vars(self.trace).values()]
        size = self.trace.nfev.shape
        return (
            all(type(getattr(self, field.name)).__name__ == field.type for field in words)
            and rows == [("i", size), ("i", size), ("f", size), ("f", size)]
            and (self.x.dtype.kind, self.x.ndim, len(size)) == ("f", 1, 1)
        )


class CellFailed(RuntimeError):
    """The objective raised, or gave no number at the start, or F raised; the words are the user's own."""


def run_cell(subject: Subject, cell: Cell, kept: Path | None = None, work: Path | None = None) -> Outcome:
    """The run. With ``work``, a run folder, it goes on where it was killed; its outcome is then written to ``kept``."""
    with np.errstate(all="ignore"):  # a step that is too long overflows, and is told as divergence
        result = minimize(
            subject.named,
            subject.x0,
            cell.k,
            n=subject.n,
            vectorized=subject.vectorized,
            budget=cell.budget,
            method=cell.method,
            estimator=None if isinstance(cell.method, Program) else cell.estimator,  # it chooses for itself
            seed=cell.seed,
            monitor=subject.F,
            bounds=subject.bounds,
            run=work,
            fsync="batch",
            progress=False,
        )
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # Ctrl-C is for the whole comparison
        if result.status is Status.DISK:
            raise OSError(result.message)
        try:
            _check(result)
            outcome = outcome_of(result, subject)
        except Exception as error:
            said = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            words = str(error) if isinstance(error, CellFailed) else said
            raise CellFailed(f"{cell.label}, seed {cell.seed}: {words}") from None
    if kept is not None:
        outcome.save(kept)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    return outcome


def _check(result: Result) -> None:
    """Refuse a run that failed for a reason that no learning rate can be blamed for."""
    words = result.message.removesuffix("; result.failure has the traceback")
    if result.status is Status.CALLBACK_FAILED:
        words = f"F{words.removeprefix('the monitor')}"
    if result.status in (Status.FAILED, Status.CALLBACK_FAILED):
        raise CellFailed(words if result.failure is None else f"{words}\n{result.failure.traceback}")
    if result.status is Status.BAD_VALUE and result.nit == 0:
        raise CellFailed(words)


def outcome_of(result: Result, subject: Subject) -> Outcome:
    """What is kept of a result."""
    trace = result.trace
    nfev, nht, fun = trace.nfev, trace.nht, trace.fun
    rows = thin(nfev)
    supports = trace.support
    floors: dict[bytes, float] = {}
    own = np.array([_own(subject, fun[row], supports[row], floors) for row in rows])
    end = np.inf
    if result.success:
        last = fun[-1] if fun.size else np.nan
        end = last if np.isfinite(last) else result.fun if subject.F is None else float(subject.F(result.x_last))
    return Outcome(
        status=result.status.name,
        success=bool(result.success),
        end=float(end) if np.isfinite(end) else np.inf,
        own=float(own[-1]) if rows.size and result.success else np.inf if _knows_own(subject) else np.nan,
        nfev=int(result.nfev),
        nht=int(result.nht),
        nit=int(result.nit),
        changes=max(0, trace.support_changes),
        x=result.x_last,
        trace=Curve(nfev[rows], nht[rows], fun[rows], own),
    )


def thin(nfev: Indices) -> Indices:
    """The rows to keep: the first, the last, and evenly by #IZO between."""
    if nfev.size <= ROWS:
        return np.arange(nfev.size)
    at = np.searchsorted(nfev, np.linspace(nfev[0], nfev[-1], ROWS), side="right") - 1
    return np.unique(at)


def _knows_own(subject: Subject) -> bool:
    return subject.F is not None and hasattr(subject.fun, "minimum_on")


def _own(subject: Subject, value: float, support: Indices, floors: dict[bytes, float]) -> float:
    """F less its minimum among points with the same support."""
    if not _knows_own(subject) or subject.F is None or not np.isfinite(value):
        return np.nan
    name = support.tobytes()
    if name not in floors:
        x = subject.fun.minimum_on(support) if support.size else np.zeros(subject.fun.d)
        floors[name] = subject.F(x)
    return float(np.maximum(0.0, value - floors[name]))

"""One run of a comparison: what it is, and what is kept of it."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh import files
from zerothresh.engine import minimize
from zerothresh.methods import Method
from zerothresh.plan import Estimator
from zerothresh.result import Result, Status
from zerothresh.runs import fingerprint
from zerothresh.runs.identity import plain
from zerothresh.runs.paths import read_plain

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ROWS = 200  # of a trace are kept at the most, evenly by #IZO: enough for a curve
_MOST = 1 << 24  # bytes of a kept outcome that are read at the most


@dataclass(frozen=True)
class Subject:
    """What is minimised, as `minimize` takes it; ``F`` gives the exact value, and is not charged."""

    fun: Any
    x0: Any = None
    n: int | None = None
    vectorized: bool = False
    F: Callable[[Array], float] | None = None

    @staticmethod
    def of(problem: Any) -> Subject:
        """A problem object, with its own F if it has one."""
        return Subject(problem, F=getattr(problem, "F", None))

    @property
    def name(self) -> str:
        """What can be told of it without a call."""
        return fingerprint(self.fun)


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
    """What is kept of a run."""

    status: str
    success: bool
    end: float  # F at the last iterate, which the paper's methods return; infinite if the run diverged
    own: float  # F less its minimum on the support, at the last iterate; NaN if that is not known
    nfev: int
    nht: int
    nit: int
    rises: float  # the sum of all rises of F from step to step, over F's fall from the first step to the last
    changes: int  # how often the support changed
    x: Array  # the last iterate
    trace: Curve
    seconds: float = 0.0

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
                words = json.loads(str(arrays["words"]))
                curve = Curve(*(arrays[name] for name in ("nfev", "nht", "fun", "own")))
                return Outcome(x=arrays["x"], trace=curve, **words)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{path} is not what a comparison writes ({error}): remove it, and run again") from None


class CellFailed(RuntimeError):
    """The objective raised; the words are the user's own."""


def run_cell(subject: Subject, cell: Cell, kept: Path | None = None, work: Path | None = None) -> Outcome:
    """The run. With ``work``, a run folder, it goes on where it was killed; its outcome is then written to ``kept``."""
    with np.errstate(all="ignore"):  # a step that is too long overflows, and is told as divergence
        result = minimize(
            subject.fun,
            subject.x0,
            cell.k,
            n=subject.n,
            vectorized=subject.vectorized,
            budget=cell.budget,
            method=cell.method,
            estimator=cell.estimator,
            seed=cell.seed,
            monitor=subject.F,
            run=work,
            fsync="batch",
            progress=False,
        )
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # Ctrl-C is for the whole comparison
        if result.status is Status.FAILED:
            words = "" if result.failure is None else result.failure.traceback
            raise CellFailed(f"{cell.label}, seed {cell.seed}: {result.message}\n{words}")
        if result.status is Status.DISK:
            raise OSError(result.message)
        outcome = outcome_of(result, subject)
    if kept is not None:
        outcome.save(kept)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    return outcome


def outcome_of(result: Result, subject: Subject) -> Outcome:
    """What is kept of a result."""
    trace = result.trace
    nfev, nht, fun = trace.nfev, trace.nht, trace.fun
    rows = thin(nfev)
    supports = trace.support
    floors: dict[bytes, float] = {}
    own = np.array([_own(subject, fun[row], supports[row], floors) for row in rows])
    known = fun[np.isfinite(fun)]
    end = known[-1] if known.size and np.isfinite(fun[-1]) else result.fun
    if not result.success:
        end = np.inf
    steps, fall = np.diff(known), known[0] - known[-1] if known.size else 0.0
    rises = float(steps[steps > 0].sum() / fall) if fall > 0 else np.inf
    return Outcome(
        status=result.status.name,
        success=bool(result.success),
        end=float(end) if np.isfinite(end) else np.inf,
        own=float(own[-1]) if rows.size and result.success else (np.nan if subject.F is None else np.inf),
        nfev=int(result.nfev),
        nht=int(result.nht),
        nit=int(result.nit),
        rises=rises,
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


def _own(subject: Subject, value: float, support: Indices, floors: dict[bytes, float]) -> float:
    """F less its minimum among points with the same support."""
    minimum_on = getattr(subject.fun, "minimum_on", None)
    if minimum_on is None or subject.F is None or not np.isfinite(value):
        return np.nan
    name = support.tobytes()
    if name not in floors:
        x = minimum_on(support) if support.size else np.zeros(subject.fun.d)
        floors[name] = subject.F(x)
    return max(0.0, float(value) - floors[name])

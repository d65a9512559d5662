"""The evaluations of all images before and after the search, and how an attack divides its budget."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.predictions import AttackStopped, PredictionProblem, Predictions, predict_all
from zerothresh.attack.universal_problem import Universal
from zerothresh.basics import check
from zerothresh.runs.identity import digest
from zerothresh.runs.inspection import Inspection, inspect
from zerothresh.runs.paths import PART, run_path
from zerothresh.session.status import Status

Array = NDArray[np.float64]

# Arguments of the search that hold for the evaluations too.
_PASSED_ON = ("retries", "backoff", "jitter", "timeout", "per_second", "fsync")


class Evaluations:
    """Evaluates all images before and after the search, within the budget of the attack.

    Each evaluation is n queries, and there is one for every perturbation that the search may find. With retries, 2n are
    set aside for each of them, which is room for one failure of every call; what is not set aside and not spent yet is
    the budget of the search.

    With a run folder, each evaluation has a run folder of its own beside it: FOLDER-before, FOLDER-after, and
    FOLDER-after-2, FOLDER-after-3 ... if the search continues later and finds another perturbation. They make the
    budget a hard limit over all sessions, and nothing that is in them is paid for again.

    Arguments
    ---------
    problem: the attack, with all images.
    budget: the most queries of the whole attack.
    constraint: k, bounds and groups of the search.
    arguments: the other arguments of the search, as `zt.minimize` takes them.
    perturbations: how many the search may find, 1 by default.
    """

    def __init__(
        self,
        problem: Universal,
        budget: int,
        constraint: Mapping[str, Any],
        arguments: Mapping[str, Any],
        perturbations: int = 1,
    ) -> None:
        self.problem, self.budget, self.constraint = problem, budget, constraint
        retries = check.count("retries", arguments.get("retries", 0), low=0)
        self.reserve = problem.n * (2 if retries else 1)  # queries that are set aside for each evaluation
        self._perturbations = perturbations
        self._engine = {name: arguments[name] for name in _PASSED_ON if name in arguments}
        self._on_nan = arguments.get("on_nan", "stop")
        batch = problem.classifier.batch  # one call of the engine is one call of the model, which is repeated alone
        chunk = arguments.get("chunk")
        self._engine["chunk"] = batch if chunk is None else min(batch, check.count("chunk", chunk))
        run = arguments.get("run")
        self._run = None if run is None else run_path(run)
        self._before_calls = 0
        self._after_calls: dict[str, int] = {}  # by the folder's name, or by the digest of the perturbation
        self._find_earlier_sessions()
        if self._left_after_reserves() <= 0:
            spent = f" ({self._before_calls} have been spent)" if self._before_calls else ""
            after = "the one" if perturbations == 1 else f"the {perturbations} evaluations"
            raise ValueError(
                f"budget = {budget} is too small: {self.reserve} queries are set aside for the evaluation of the "
                f"{problem.n} images before the search{spent}, and {perturbations * self.reserve} for {after} after "
                "it, which leaves none for the search; raise the budget"
            )

    @property
    def queries(self) -> int:
        """Queries that evaluations have cost in all sessions, those that failed included."""
        return self._before_calls + sum(self._after_calls.values())

    def before(self) -> Predictions:
        """The predictions for the images as they are."""
        found, result = predict_all(
            self.problem,
            np.zeros(self.problem.d),
            budget=self.budget,
            constraint=self.constraint,
            run=self._folder("before"),
            on_nan="stop" if self._on_nan == "worst" else self._on_nan,
            **self._engine,
        )
        self._before_calls = int(result.nfev)
        if found is None:
            raise _reason(result, "before the search")
        self._check_count(self._folder("before"), result)
        classifier = self.problem.classifier
        classifier.assume_kind(found.kind)  # also if a run folder knew the answers, and the model was not called
        return found

    def search_budget(self) -> int:
        """The budget of the search, which for one budget of the attack stays the same in every session.

        Evaluations of earlier perturbations reduce it when the budget is raised. A run that has begun keeps its
        budget, because the budget of a run folder can only grow; if the rest of the attack's budget no longer covers
        it, the attack is refused before anything is paid for.
        """
        spent_after = sum(self._after_calls.values())
        fresh = self._left_after_reserves() - spent_after
        search = None if self._run is None else _inspected(self._run, own=False)
        if search is None or search.budget <= fresh:
            return fresh
        if search.state != "ended" and self.queries + search.budget > self.budget:
            raise ValueError(
                f"budget = {self.budget} is too small to continue the attack in {self._run}: earlier evaluations took "
                f"{self.queries} queries, and the search may use {search.budget}; raise the budget to at least "
                f"{self.budget + search.budget - fresh}"
            )
        return search.budget

    def after(self, theta: Array, search_calls: int) -> Predictions:
        """The predictions for the attacked images, once the search has made its calls."""
        left = self.budget - self.queries - search_calls
        folder, earlier = self._folder_for(theta, left)
        limit, needed = left, self.problem.n
        if earlier is not None:
            needed -= earlier.calls - earlier.failed_calls
            limit = max(earlier.budget, left + earlier.calls) if needed == 0 else left + earlier.calls
        if needed > left:
            raise ValueError(
                f"{needed} queries are needed to evaluate what the attack did, and {max(left, 0)} are left of the "
                f"budget of {self.budget}: raise it"
            )
        found, result = predict_all(
            self.problem,
            theta,
            budget=limit,
            constraint=self.constraint,
            run=folder,
            allow_nan=self._on_nan == "worst",
            on_nan="stop" if self._on_nan == "worst" else self._on_nan,
            **self._engine,
        )
        self._after_calls[digest(theta) if folder is None else str(folder)] = int(result.nfev)
        if found is None:
            raise _reason(result, "after the search")
        self._check_count(folder, result)
        return found

    def _left_after_reserves(self) -> int:
        """What evaluations leave for the search if those afterwards stay within their reserve."""
        return self.budget - max(self.reserve, self._before_calls) - self._perturbations * self.reserve

    def _folder(self, name: str) -> Path | None:
        return None if self._run is None else Path(f"{self._run}-{name}")

    def _after_folders(self) -> list[tuple[Path, Inspection | None]]:
        """The run folders of evaluations after the search, and the next one that is free."""
        folders: list[tuple[Path, Inspection | None]] = []
        for number in count(1):
            path = Path(f"{self._run}-after" if number == 1 else f"{self._run}-after-{number}")
            folders.append((path, _inspected(path)))
            if folders[-1][1] is None:
                self._check_no_later_one(number)
                return folders
        raise AssertionError("unreachable")

    def _check_no_later_one(self, free: int) -> None:
        """Refuse folders with a gap in their numbers: what the missing one has cost would not be counted."""
        assert self._run is not None
        own = re.compile(re.escape(f"{self._run.name}-after-") + r"([1-9]\d*)")
        try:
            found = [match for name in os.listdir(self._run.parent) if (match := own.fullmatch(name))]
        except FileNotFoundError:
            return  # the folder in which the run folders will be does not exist yet
        except OSError as error:
            raise ValueError(
                f"the folder {self._run.parent} cannot be read ({error.strerror}): name another run folder"
            ) from None
        for match in found:
            if int(match[1]) > free:
                raise ValueError(
                    f"{self._run.parent / match[0]} exists, but an evaluation before it is missing: restore it from a "
                    "copy, or name another run folder"
                )

    def _find_earlier_sessions(self) -> None:
        """Read what evaluations in earlier sessions have cost."""
        if self._run is None:
            return
        before = Path(f"{self._run}-before")
        own = PredictionProblem(self.problem).fingerprint
        evaluated, search = _inspected(before), _inspected(self._run, own=False)
        for path, evaluation in [(before, evaluated), *self._after_folders()]:
            if evaluation is None:
                continue
            if evaluation.identity.get("problem") != own:
                raise ValueError(
                    f"{path} belongs to an attack on another model or on other images: name another run folder"
                )
            if evaluation.calls - evaluation.failed_calls > self.problem.n:
                raise ValueError(
                    f"{path} counts {evaluation.calls - evaluation.failed_calls} answers for {self.problem.n} images, "
                    "which no evaluation has: restore it from a copy, or name another run folder"
                )
            if evaluation.status == Status.CONVERGED.name and not self._is_complete(evaluation):
                raise ValueError(
                    f"{path} has lost answers that it had once: restore it from a copy, or name another run folder"
                )
            if path == before:
                self._before_calls = evaluation.calls
            else:
                self._after_calls[str(path)] = evaluation.calls
        if search is None and self._after_calls:
            raise ValueError(
                f"{next(iter(self._after_calls))} evaluates what a search found, but {self._run} holds no search, "
                "whose queries have to be counted: restore it from a copy, or name another run folder"
            )
        if search is not None and (evaluated is None or not self._is_complete(evaluated)):
            raise ValueError(
                f"{self._run} holds a search, but {before} does not hold the evaluation that came before it, whose "
                "queries have to be counted: restore it from a copy, or name another run folder"
            )

    def _is_complete(self, evaluation: Inspection) -> bool:
        """Whether a run folder has the answers for all images."""
        return evaluation.calls - evaluation.failed_calls == self.problem.n

    def _check_count(self, folder: Path | None, result: Any) -> None:
        """Refuse a folder that has the answers for all images, but counts fewer queries."""
        if result.nfev < self.problem.n:
            raise ValueError(
                f"{folder} counts {result.nfev} queries for {self.problem.n} images: it was changed; restore it from "
                "a copy, or name another run folder"
            )

    def _folder_for(self, theta: Array, left: int) -> tuple[Path | None, Inspection | None]:
        """The folder of the evaluation at theta, and what is in it; a new one for a new perturbation."""
        if self._run is None:
            return None, None
        for path, evaluation in self._after_folders():
            if evaluation is None:
                return path, None
            complete = self._is_complete(evaluation)
            if evaluation.identity.get("start") == digest(theta) and (
                complete or evaluation.budget <= left + evaluation.calls  # the budget of a run folder cannot shrink
            ):
                return path, evaluation
        raise AssertionError("unreachable")


def _inspected(folder: Path, *, own: bool = True) -> Inspection | None:
    """What a run folder tells; None if no run has begun in it. ValueError if none can begin in it either.

    With ``own``, which means that the name is ours and not the user's, a link is refused: it may lead anywhere.
    """
    path = run_path(folder)
    try:
        if own and path.is_symlink():
            raise ValueError(f"{path} is a link, which is not followed: remove it, or name another run folder")
        if os.path.lexists(path / "run.json"):
            return inspect(path)
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is not a folder: remove it, or name another run folder")
        if path.is_dir() and not all(name == "lock" or PART.fullmatch(name) for name in os.listdir(path)):
            raise ValueError(f"{path} holds other files and no run.json: remove it, or name another run folder")
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): name another run folder") from None
    return None


def _reason(result: Any, when: str) -> BaseException:
    """The exception for an evaluation that did not complete: the model's own, if it raised one."""
    if result.status is Status.INTERRUPTED:
        return KeyboardInterrupt(result.message)
    if result.failure is not None:
        return result.failure.error  # type: ignore[no-any-return]
    return AttackStopped(f"The evaluation of all images {when} did not complete: {result.message}.")

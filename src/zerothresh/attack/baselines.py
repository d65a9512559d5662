"""The two looks at all images, before the search and after it: in the budget, made again if they fail, and kept."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.universal_problem import Universal
from zerothresh.basics import check, files
from zerothresh.runs.identity import digest

Array = NDArray[np.float64]


class Looks:
    """n queries before the search and n after it; with retries, the budget holds room for one failure of each.

    With a run folder both are kept beside it, with what they and failed ones have cost in all sessions: the same call
    asks for neither again, and no session goes beyond the budget.
    """

    def __init__(self, problem: Universal, budget: int, retries: int, backoff: float, run: Any = None) -> None:
        self.problem, self.budget, self.backoff = problem, budget, backoff
        self.retries = check.count("retries", retries, low=0)
        self.kept = problem.n * (2 if retries else 1)  # for each look
        self.place = None if run is None else Path(f"{Path(run)}-look.npz")
        self.known = self._read()
        if self.search <= 0:
            lost = f", {self.spent} have been spent" if self.spent else ""
            raise ValueError(
                f"budget = {budget} is too small: {self.kept} queries are kept for a look at the {problem.n} images as "
                f"they are, {self.kept} for one at what the attack did{lost}, and the search needs some too"
            )

    @property
    def search(self) -> int:
        """What is left for the search: for one budget the same in each session."""
        if int(self.known.get("budget", -1)) == self.budget:
            return int(self.known["search"])
        return self.budget - 2 * self.kept - self._count("spent_after") - self._count("lost")

    @property
    def spent(self) -> int:
        """Queries that looks have cost, in all sessions: the first, last ones, and those that failed."""
        return self._count("spent") + self._count("spent_after") + self._count("lost")

    def _count(self, name: str) -> int:
        return int(self.known.get(name, 0))

    def before(self) -> Array:
        """Log-probabilities of the images as they are."""
        if "scores" not in self.known:
            scores, spent = self._ask(np.zeros(self.problem.d), self.kept)
            self._keep(scores=scores, spent=spent, kind=str(self.problem.classifier.scores))
        if self._count("budget") != self.budget:
            self._keep(search=self.search, budget=self.budget)
        return np.asarray(self.known["scores"])

    def after(self, theta: Array, searched: int, *, forgiving: bool = False) -> Array:
        """Log-probabilities of the attacked images, after so many queries of the search."""
        if str(self.known.get("theta", "")) != digest(theta):
            left = self.budget - self.spent - searched
            if left < self.problem.n:
                raise ValueError(
                    f"{self.problem.n} queries are needed for a look at what the attack did, and {max(left, 0)} are "
                    f"left of the budget of {self.budget}: raise it"
                )
            scores, spent = self._ask(theta, left, forgiving=forgiving)
            self._keep(after=scores, theta=digest(theta), spent_after=self._count("spent_after") + spent)
        return np.asarray(self.known["after"])

    def _read(self) -> dict[str, Any]:
        if self.place is None or not self.place.exists():
            return {}
        with np.load(self.place, allow_pickle=False) as held:
            known = {name: held[name] for name in held.files}
        if str(known.pop("problem", "")) != self.problem.fingerprint:
            raise ValueError(f"{self.place} belongs to another attack: name another run folder")
        if "scores" in known:
            known.setdefault("spent", np.array(self.problem.n))
            self.problem.classifier.known = str(known.get("kind", "")) or None
        return known

    def _keep(self, **more: Any) -> None:
        self.known |= more
        if self.place is None:
            return
        stream = io.BytesIO()
        np.savez(stream, **{"problem": np.array(self.problem.fingerprint), **self.known})
        self.place.parent.mkdir(parents=True, exist_ok=True)
        files.write(self.place, stream.getvalue())

    def _ask(self, theta: Array, most: int, *, forgiving: bool = False) -> tuple[Array, int]:
        """Ask, and ask again while that is allowed; with the queries that it took."""
        classifier, everything = self.problem.classifier, np.arange(self.problem.n)
        images, began = self.problem.attacked(theta[None], everything), classifier.queries
        for attempt in range(self.retries + 1):
            try:
                return classifier(images, forgiving=forgiving), classifier.queries - began
            except Exception:
                spent = classifier.queries - began
                if attempt == self.retries or spent + len(images) > most:
                    self._keep(lost=self._count("lost") + spent)
                    raise
                time.sleep(self.backoff * 2**attempt)
        raise AssertionError("unreachable")

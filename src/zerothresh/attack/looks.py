"""The two looks at all images, before the search and after it: in the budget, made again if they fail, and kept."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh import check, files
from zerothresh.attack.problem import Universal
from zerothresh.runs.identity import digest

Array = NDArray[np.float64]


class Looks:
    """n queries before the search and n after it; with retries, the budget holds room for one failure of each.

    With a run folder both are kept beside it, so that the same call asks for neither again.
    """

    def __init__(self, problem: Universal, budget: int, retries: int, backoff: float, run: Any = None) -> None:
        self.problem, self.budget, self.backoff = problem, budget, backoff
        self.retries = check.count("retries", retries, low=0)
        self.kept = problem.n * (2 if retries else 1)  # for each look
        self.place = None if run is None else Path(f"{Path(run)}-look.npz")
        self.known = self._read()
        if budget <= 2 * self.kept:
            raise ValueError(
                f"budget = {budget} is too small: {self.kept} queries are kept for a look at the {problem.n} images as "
                f"they are, {self.kept} for one at what the attack did, and the search needs some too"
            )

    @property
    def search(self) -> int:
        """What is left for the search: the same in each session of a run, unless the budget is raised after its end."""
        ended = int(self.known.get("ended", self.budget))
        return self.budget - 2 * self.kept - (int(self.known["spent_after"]) if ended != self.budget else 0)

    @property
    def spent(self) -> int:
        """Queries that the looks have cost, in all sessions."""
        return int(self.known.get("spent", 0)) + int(self.known.get("spent_after", 0))

    def before(self) -> Array:
        """Log-probabilities of the images as they are."""
        if "scores" not in self.known:
            scores, spent = self._ask(np.zeros(self.problem.d), self.kept)
            self._keep(scores=scores, spent=spent)
        return np.asarray(self.known["scores"])

    def after(self, theta: Array) -> Array:
        """Log-probabilities of the attacked images."""
        if str(self.known.get("theta", "")) != digest(theta):
            scores, spent = self._ask(theta, self.problem.classifier.queries + self.kept)
            spent += int(self.known.get("spent_after", 0))
            self._keep(after=scores, theta=digest(theta), ended=self.budget, spent_after=spent)
        return np.asarray(self.known["after"])

    def _read(self) -> dict[str, Any]:
        if self.place is None or not self.place.exists():
            return {}
        with np.load(self.place, allow_pickle=False) as held:
            known = {name: held[name] for name in held.files}
        if str(known.get("problem")) != self.problem.fingerprint:
            raise ValueError(f"{self.place} belongs to another attack: name another run folder")
        return known

    def _keep(self, **more: Any) -> None:
        self.known |= more
        if self.place is None:
            return
        stream = io.BytesIO()
        np.savez(
            stream,
            problem=np.array(self.problem.fingerprint),
            **{n: v for n, v in self.known.items() if n != "problem"},
        )
        self.place.parent.mkdir(parents=True, exist_ok=True)
        files.write(self.place, stream.getvalue())

    def _ask(self, theta: Array, most: int) -> tuple[Array, int]:
        """Ask, and ask again while that is allowed; with the queries that it took."""
        classifier, everything = self.problem.classifier, np.arange(self.problem.n)
        images, began = self.problem.attacked(theta[None], everything), classifier.queries
        for attempt in range(self.retries + 1):
            try:
                return classifier(images), classifier.queries - began
            except Exception:
                if attempt == self.retries or classifier.queries + len(images) > most:
                    raise
                time.sleep(self.backoff * 2**attempt)
        raise AssertionError("unreachable")

"""The two looks at all images, before the search and after it: in the budget, made again if they fail, and kept."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh import files
from zerothresh.attack.problem import Universal

Array = NDArray[np.float64]


class Looks:
    """n queries before the search and n after it; with retries, the budget holds room for one failure of each."""

    def __init__(self, problem: Universal, budget: int, retries: int, backoff: float) -> None:
        self.problem, self.budget, self.retries, self.backoff = problem, budget, retries, backoff
        self.kept = problem.n * (2 if retries else 1)  # for each look
        if budget <= 2 * self.kept:
            raise ValueError(
                f"budget = {budget} is too small: {self.kept} queries are kept for a look at the {problem.n} images as "
                f"they are, {self.kept} for one at what the attack did, and the search needs some too"
            )

    @property
    def search(self) -> int:
        """What is left for the search: the same in each session of a run."""
        return self.budget - 2 * self.kept

    def before(self, run: Any) -> Array:
        """Log-probabilities of the images as they are. Those of a run are kept beside its folder, not paid twice."""
        if run is None:
            return self._ask(np.zeros(self.problem.d), self.kept)
        place, name = Path(f"{run}-look.npz"), self.problem.fingerprint
        if place.exists():
            with np.load(place, allow_pickle=False) as held:
                if str(held["problem"]) == name:
                    return np.asarray(held["scores"])
            raise ValueError(f"{place} belongs to another attack: name another run folder")
        scores = self._ask(np.zeros(self.problem.d), self.kept)
        stream = io.BytesIO()
        np.savez(stream, problem=np.array(name), scores=scores)
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write(place, stream.getvalue())
        return scores

    def after(self, theta: Array) -> Array:
        """Log-probabilities of the attacked images."""
        return self._ask(theta, self.budget)

    def _ask(self, theta: Array, most: int) -> Array:
        """Ask, and ask again while that is allowed."""
        classifier, everything = self.problem.classifier, np.arange(self.problem.n)
        images = self.problem.attacked(theta[None], everything)
        for attempt in range(self.retries + 1):
            try:
                return classifier(images)
            except Exception:
                if attempt == self.retries or classifier.queries + len(images) > most:
                    raise
                time.sleep(self.backoff * 2**attempt)
        raise AssertionError("unreachable")

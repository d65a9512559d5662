"""A method of your own in one file: hard thresholding with Polyak's heavy-ball momentum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import zerothresh as zt


@dataclass(frozen=True)
class Rolling:
    """The state between two rounds: the current iterate and the previous one."""

    theta: np.ndarray
    previous: np.ndarray


@zt.register("heavy-ball")
@dataclass(frozen=True)
class HeavyBall:
    """FGZOHT with momentum; it needs n (q + 1) calls per step."""

    eta: float  # learning rate
    beta: float = 0.5  # momentum: the share of the previous step that is repeated

    def __post_init__(self) -> None:
        if not (self.eta > 0 and 0 <= self.beta < 1):
            raise ValueError(f"eta must be above 0 and beta from 0 to below 1, not {self.eta} and {self.beta}")

    def init(self, theta):
        return Rolling(theta, theta)

    def plan(self, state, n, rng):
        return zt.Probes.gradients(at=[state.theta], of=range(n))

    def update(self, state, answers, H):
        momentum = self.beta * (state.theta - state.previous)
        return Rolling(H(state.theta - self.eta * answers.mean() + momentum), state.theta)


if __name__ == "__main__":
    # On this ill-conditioned problem momentum helps at the same eta. On easier problems it does not, and SZOHT with a
    # larger eta comes close.
    problem = zt.problems.quadratic(d=50, k_true=5, condition=200, seed=1)
    for method in (zt.SZOHT(eta=0.5), HeavyBall(eta=0.5), HeavyBall(eta=0.5, beta=0.8)):
        result = zt.minimize(problem, None, 10, budget=5_000, method=method, estimator=zt.Estimator(q=25), seed=0)
        print(f"{method!s:32} F = {result.fun:.1e} after {result.nfev} calls and {result.nht} thresholdings")

"""A method of one's own, in one file: hard thresholding with a heavy ball (Polyak's momentum)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import zerothresh as zt


@dataclass(frozen=True)
class Rolling:
    """What the method knows between two rounds: the iterate and the one before."""

    theta: np.ndarray
    previous: np.ndarray


@zt.register("heavy-ball")
@dataclass(frozen=True)
class HeavyBall:
    """FGZOHT with momentum: n (q + 1) calls a step."""

    eta: float  # learning rate
    beta: float = 0.5  # how much of the last step is made again

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
    # An ill-conditioned problem, where momentum helps at the same eta. On easier ones it does not, and
    # SZOHT with a larger eta comes close.
    problem = zt.problems.quadratic(d=50, k_true=5, condition=200, seed=1)
    for method in (zt.SZOHT(eta=0.5), HeavyBall(eta=0.5), HeavyBall(eta=0.5, beta=0.8)):
        result = zt.minimize(problem, None, 10, budget=5_000, method=method, estimator=zt.Estimator(q=25), seed=0)
        print(f"{method!s:32} F = {result.fun:.1e} after {result.nfev} calls and {result.nht} thresholdings")

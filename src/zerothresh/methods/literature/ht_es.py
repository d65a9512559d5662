"""HT-ES: an evolution strategy whose mean is thresholded (NESHT)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.directions import DenseBlock
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class Population:
    """The mean of the offspring to come, and how far they are spread."""

    theta: Array
    sigma: float


@register("ht-es")
@dataclass(frozen=True)
class HTES:
    r"""Natural evolution strategy with hard thresholding: 2 pairs n calls a step.

    .. math:: \theta' = H_k\Big(\theta + \eta\,\sigma \sum_i u_i z_i\Big), \quad
        \ln\sigma' = \ln\sigma + \frac{\eta_\sigma}{2} \sum_i u_i \big(\|z_i\|^2 / d - 1\big)

    over offspring :math:`\theta + \sigma z_i` in mirrored pairs. The utilities u_i go by rank, the best
    first, so that only the order of the values counts: any increasing function of F gives the same run.
    NESHT keeps sigma; here it adapts as in separable NES, because with a fixed one steps by rank never
    get shorter than a multiple of it.

    Arguments
    ---------
    size: the first sigma, about the distance to the solution.
    pairs: mirrored pairs of offspring; 0: 2 + ln d of them.
    rate: learning rate of the mean.

    Reference: Gao et al., *Hard-thresholding meets evolution strategies in reinforcement learning*, IJCAI
    2024 (NESHT); Wierstra et al., *Natural evolution strategies*, JMLR 2014 (utilities, sigma).

    >>> HTES(size=0.5).pairs
    0
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Hard thresholding"
    order: ClassVar[int] = 14
    solves: ClassVar[str] = "any F, only the order of values counts, l0"
    queries: ClassVar[str] = "2 pairs n"
    memory: ClassVar[str] = "2 pairs d"

    size: float = 1.0
    pairs: int = 0
    rate: float = 1.0

    def __post_init__(self) -> None:
        check.positive("size", self.size, what=" (the first sigma)")
        check.count("pairs", self.pairs, low=0, what=" (mirrored pairs; 0: by the dimension)")
        check.positive("rate", self.rate, what=" (the learning rate of the mean)")

    def init(self, theta: Array) -> Population:
        return Population(theta, float(self.size))

    def plan(self, state: Population, n: int, rng: Stream) -> Probes:
        d = state.theta.size
        pairs = self.pairs or 2 + math.ceil(math.log(d))
        z = rng.normal(pairs * d).reshape(pairs, d)
        z = np.concatenate([z, -z])
        return Probes.around(state.theta, DenseBlock(z), state.sigma, len(z), range(n), z=z)

    def update(self, state: Population, answers: Answers, H: HardThreshold) -> Population:
        z, d = answers.notes["z"], state.theta.size
        u = utilities(answers.moved.mean(axis=0))
        theta = H(state.theta + self.rate * state.sigma * (u @ z))
        rate = (3 + math.log(d)) / (5 * math.sqrt(d))
        change = 0.5 * rate * float(u @ ((z * z).mean(axis=1) - 1.0))
        return Population(theta, state.sigma * math.exp(max(-1.0, min(1.0, change))))


def utilities(values: Array) -> Array:
    """Weights by rank: positive for the best, below 0 for the rest; they sum to 0. Equal values share theirs.

    >>> utilities(np.array([3.0, 1.0, 2.0, 4.0])).round(2).tolist()
    [-0.25, 0.48, 0.02, -0.25]
    """
    count = values.size
    raw = np.maximum(0.0, math.log(count / 2 + 1) - np.log(np.arange(1, count + 1)))
    raw = raw / raw.sum() - 1 / count
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(times)
    sums = np.concatenate([[0.0], np.cumsum(raw)])
    shared: Array = ((sums[ends] - sums[ends - times]) / times)[place]
    return shared

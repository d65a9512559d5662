"""HT-ES: an evolution strategy with hard thresholding of the mean (NESHT)."""

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
    """The mean and the standard deviation of the next offspring."""

    theta: Array
    sigma: float


@register("ht-es")
@dataclass(frozen=True)
class HTES:
    r"""Natural evolution strategy with hard thresholding: 2 pairs n calls per step.

    .. math:: \theta' = H_k\Big(\theta + \eta\,\sigma \sum_i u_i z_i\Big), \quad
        \ln\sigma' = \ln\sigma + \frac{\eta_\sigma}{2} \sum_i u_i \big(\|z_i\|^2 / d - 1\big)

    The offspring :math:`\theta + \sigma z_i` come in mirrored pairs. The utilities u_i depend on ranks alone:
    any increasing function of F gives the same run. NESHT keeps sigma fixed. Here it adapts as in separable NES,
    because steps that depend on ranks would never get shorter than a multiple of a fixed sigma.

    Arguments
    ---------
    size: float, default 1. Initial sigma, about the distance to the solution.
    pairs: int, default 0. Number of mirrored pairs of offspring; 0 takes 2 + ln d.
    rate: float, default 1. Learning rate of the mean.

    Reference: Gao et al., *Hard-thresholding meets evolution strategies in reinforcement learning*, IJCAI
    2024 (NESHT); Wierstra et al., *Natural evolution strategies*, JMLR 2014 (utilities, sigma).

    >>> HTES(size=0.5).pairs
    0
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Hard thresholding"
    order: ClassVar[int] = 14
    solves: ClassVar[str] = "any F, uses only the order of its values, l0"
    queries: ClassVar[str] = "2 pairs n"
    memory: ClassVar[str] = "2 pairs d"

    size: float = 1.0
    pairs: int = 0
    rate: float = 1.0

    def __post_init__(self) -> None:
        check.positive("size", self.size, what=" (the initial sigma)")
        check.count("pairs", self.pairs, low=0, what=" (mirrored pairs; 0 derives the number from the dimension)")
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
    """Weights by rank that sum to 0: positive for the best values, negative for the rest, shared by equal values.

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

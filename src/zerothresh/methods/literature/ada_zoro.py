"""AdaZORO: ZORO that learns the sparsity of the gradient, and with it the number of queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.cosamp import cosamp, on_support
from zerothresh.methods.literature.zoro import measured, measurements, signs
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.directions import DenseBlock
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class Measuring:
    """The iterate, the current guess of its gradient's sparsity and support, and the measurements made there so far."""

    theta: Array
    s: int
    support: Indices  # of the last gradient; empty before the first one
    A: Array  # (rows, d)
    y: Array  # (rows,)
    base: Array  # f_i(theta) of the components of this step
    components: Indices
    mu: float


@register("ada-zoro")
@dataclass(frozen=True)
class AdaZORO:
    r"""ZORO that learns s, the sparsity of the gradient: batch (2 s + 1) calls per step while its support stays.

    A gradient is accepted if :math:`\|A \hat g - y\| \le \varphi \|y\|`. In each step:

    1. Take 2s measurements and solve least squares on the support of the last gradient.
    2. If that gradient is not accepted, take as many further measurements as s requires, and run CoSaMP on all of
       them, old and new.
    3. If that one is not accepted either, increase s by 1 and repeat 2. From 2 d measurements on, solve plain least
       squares.

    Arguments
    ---------
    eta: float. Learning rate.
    s: int, default 1. Initial guess of the number of non-zeros of the gradient; it never decreases.
    phi: float in [0, 1), default 0.1. Relative error up to which a gradient is accepted.
    b: float, default 4. Number of measurements per non-zero and unit of ln(d/s).
    batch: int or None, default None. Number of components per step, drawn without replacement; None takes all of
        them, that is, F itself.

    Reference: Cai, McKenzie, Yin and Zhang, SIAM J. Optim. 2022 (adaptive sampling).

    The published code does not count the calls of failed attempts, repeats all measurements after each of them, and
    never uses the old support. Its measurements in 1. vanish off the support, so that they cannot detect a change of
    it; here they are full rows.

    >>> AdaZORO(eta=0.1).s
    1
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Sparse gradients by compressed sensing"
    order: ClassVar[int] = 22
    solves: ClassVar[str] = "smooth with sparse gradients, l0"
    queries: ClassVar[str] = "batch (2 s + 1) if the support stays, otherwise batch (b s ln(d/s) + 1), s learnt"
    memory: ClassVar[str] = "b s ln(d/s) d"

    eta: float
    s: int = 1
    phi: float = 0.1
    b: float = 4.0
    batch: int | None = None

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("s", self.s, what=" (the initial guess of the number of non-zeros of the gradient)")
        check.share("phi", self.phi, what=" (the relative error up to which a gradient is accepted)")
        check.positive("b", self.b, what=" (measurements per non-zero and unit of ln(d/s))")
        if self.batch is not None:
            check.count("batch", self.batch, what=" (components per step)")

    def init(self, theta: Array) -> Measuring:
        none = np.empty(0, np.int64)
        return Measuring(theta, self.s, none, np.empty((0, theta.size)), np.empty(0), np.empty(0), none, 0.0)

    def plan(self, state: Measuring, n: int, rng: Stream) -> Probes:
        d = state.theta.size
        s = min(state.s, d)
        if not state.y.size:
            of = range(n) if self.batch is None else rng.subset(n, self.batch)
            rows = min(2 * s, 2 * d) if state.support.size else measurements(self.b, s, d)
            return Probes.gradients(at=[state.theta], of=of, estimate=signs(rows))
        rows = measurements(self.b, s, d) - state.y.size  # F(theta) and the old rows are known
        z = np.where(rng.uniform(rows * d).reshape(rows, d) < 0.5, -1.0, 1.0) / np.sqrt(d)
        return Probes.around(state.theta, DenseBlock(z), state.mu, rows, state.components)

    def update(self, state: Measuring, answers: Answers, H: HardThreshold) -> Measuring:
        d = state.theta.size
        if not state.y.size:
            A, y = measured(answers)
            base, mu = np.array(answers.at_points)[0], answers.plan.estimator.mu
            state = replace(state, A=A, y=y, base=base, components=answers.components, mu=mu)
            if state.support.size:
                g = on_support(A, y, state.support)
                if self._accepts(state, g):
                    return self._step(state, g, H)
                if len(y) < 2 * d:
                    return self._ask_more(state)
        else:
            rows = answers.moved.shape[1]
            A = (answers.plan.points(0, rows) - state.theta) / state.mu
            y = ((answers.moved - state.base[:, None]) / state.mu).mean(axis=0)
            state = replace(state, A=np.concatenate([state.A, A]), y=np.concatenate([state.y, y]))
        if len(state.y) >= 2 * d:
            return self._step(state, on_support(state.A, state.y, np.arange(d)), H)
        g = cosamp(state.A, state.y, state.s)
        if self._accepts(state, g):
            return self._step(state, g, H)
        return self._ask_more(replace(state, s=state.s + 1))

    def _accepts(self, state: Measuring, g: Array) -> bool:
        """Whether a gradient explains the measurements."""
        return bool(np.linalg.norm(state.A @ g - state.y) <= self.phi * np.linalg.norm(state.y))

    def _ask_more(self, state: Measuring) -> Measuring:
        """Continue the same step with an s that requires more rows than there are, which must be fewer than 2 d."""
        d, s = state.theta.size, state.s
        while measurements(self.b, min(s, d), d) <= len(state.y):
            s += 1
        return replace(state, s=s)

    def _step(self, state: Measuring, g: Array, H: HardThreshold) -> Measuring:
        """Make the gradient step, and begin the next one without measurements."""
        theta = H(state.theta - self.eta * g)
        return replace(self.init(theta), s=state.s, support=np.flatnonzero(g))

"""Problems where one run of a simulator returns everything: a spectrum, a time series, a blurred signal.

A calibration asks which few coordinates x of a simulator explain measured data. One run gives the residuals
r(x) = simulated(x) - measured, all m of them, and F(x) = 1/m sum r_i(x)^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.problems.common import check_size, generator, numbers, point, rows

SPECIES, DEGREE = 3, 3  # of the differential equation
ACTIVE_TERMS = 5
STEPS_PER_SAMPLE = 4  # Runge-Kutta steps between two samples
LARGEST_STATE = 1e3  # concentrations beyond it have blown up: they stay there, so that residuals are finite


class Calibration:
    r"""Residuals of a simulator: :math:`r(\theta) = s(\theta) - y` and :math:`f_i(\theta) = r_i(\theta)^2`.

    Arguments
    ---------
    simulate: maps points (B, d) to what a run returns for each of them, (B, m).
    truth: the coordinates that made the data, shape (d,).
    noise: the standard deviation of the error of the measured data, relative to their root mean square; 0 by default.
    bounds: as in `zerothresh.minimize`; None by default.
    seed: the seed of the error of the data, 0 by default.

    >>> problem = mixture()
    >>> problem.d, problem.n, problem.outputs(problem.truth[None]).shape
    (40, 200, (1, 200))
    """

    def __init__(
        self,
        simulate: Callable[[Array], Array],
        truth: Array,
        *,
        noise: float = 0.0,
        bounds: tuple[float | None, float | None] | None = None,
        seed: int = 0,
    ) -> None:
        self.simulate, self.truth, self.bounds = simulate, numbers("truth", truth), bounds
        clean = simulate(self.truth[None])[0]
        self.d, self.n = self.truth.size, clean.size
        self.error = check.not_negative("noise", noise) * float(np.sqrt(np.mean(clean**2)))
        self.measured: Array = clean + self.error * generator(seed).standard_normal(self.n)

    def outputs(self, points: Array) -> Array:
        """Return the residuals of one run per point (B, d): simulated minus measured, shape (B, m)."""
        return self.simulate(np.atleast_2d(points)) - self.measured

    def values(self, points: Array, components: Indices) -> Array:
        """Evaluate f_i(x) for the rows x of ``points`` (B, d) and the ``components`` i (B,); returns shape (B,)."""
        points, components = rows(points, components, self)
        chosen: Array = self.outputs(points)[np.arange(len(points)), components]
        return chosen**2

    def F(self, x: Array) -> float:
        """Evaluate F, the mean of the squared residuals, at the point x, shape (d,)."""
        return float(np.mean(self.outputs(point(x, self)[None]) ** 2))


@dataclass(frozen=True, eq=False)
class Absorption:
    """The light that passes through a mixture: exp(-x . spectra), with the spectra (d, wavelengths)."""

    spectra: Array

    def __call__(self, points: Array) -> Array:
        # einsum does not use BLAS, so the bits of a run do not depend on the other rows of the batch
        out: Array = np.exp(-np.einsum("bd,dw->bw", points, self.spectra))
        return out


@dataclass(frozen=True, eq=False)
class Detectors:
    """What saturating detectors see of sources through a blur (d, d)."""

    blur: Array

    def __call__(self, points: Array) -> Array:
        seen = np.einsum("bd,de->be", points, self.blur)
        out: Array = seen / (1 + 0.5 * np.abs(seen))
        return out


@dataclass(frozen=True, eq=False)
class Kinetics:
    """Trajectories of concentrations u' = sum_j x_j u^p_j, by the classical method of Runge and Kutta.

    Attributes
    ----------
    powers: the exponents of the monomials, (terms, species).
    start: the initial states, (trajectories, species).
    samples: how often a trajectory is sampled.
    dt: the length of a step.
    """

    powers: Indices
    start: Array
    samples: int
    dt: float

    def __call__(self, points: Array) -> Array:
        terms, species = self.powers.shape
        weights, dt = points.reshape(len(points), species, terms), self.dt
        u, seen = np.broadcast_to(self.start, (len(points), *self.start.shape)), []
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(self.samples):
                for _ in range(STEPS_PER_SAMPLE):
                    one = self._rate(u, weights)
                    two = self._rate(u + dt / 2 * one, weights)
                    three = self._rate(u + dt / 2 * two, weights)
                    u = u + dt / 6 * (one + 2 * two + 2 * three + self._rate(u + dt * three, weights))
                    u = np.nan_to_num(np.clip(u, -LARGEST_STATE, LARGEST_STATE))
                seen.append(u)
        return np.stack(seen, axis=-1).reshape(len(points), -1)  # one time series after the other

    def _rate(self, u: Array, weights: Array) -> Array:
        table = np.stack([u**power for power in range(self.powers.max() + 1)])
        monomials = np.prod([table[self.powers[:, s], :, :, s] for s in range(self.powers.shape[1])], axis=0)
        out: Array = np.einsum("mbt,bsm->bts", monomials, weights)
        return out


def _spread(rng: np.random.Generator, d: int, k: int, low: float, high: float, apart: int = 1) -> Array:
    """A vector with k entries from low to high, at places that are at least ``apart`` from one another."""
    if k > d or (k - 1) * apart >= d:
        raise ValueError(f"k_true = {k} does not fit into d = {d}: take fewer non-zeros")
    truth, room = np.zeros(d), d - (k - 1) * (apart - 1)
    places = np.sort(rng.choice(room, k, replace=False)) + np.arange(k) * (apart - 1)
    truth[places] = rng.uniform(low, high, k)
    return truth


def mixture(
    d: int = 40, k_true: int = 3, waves: int = 200, width: float = 0.02, noise: float = 0.0, seed: int = 0
) -> Calibration:
    """Which k of d substances does a mixture contain? One run returns the spectrum of light that passes through it.

    Arguments
    ---------
    d: the number of substances, with four absorption peaks each; 40 by default.
    k_true: how many of them are in the mixture, 3 by default.
    waves: the number of wavelengths that a run returns, 200 by default.
    width: of a peak, as a share of the range of wavelengths; 0.02 by default.
    noise: the relative error of the measured spectrum, 0 by default.
    seed: the seed of the data, 0 by default.

    Returns
    -------
    The problem; amounts are not negative.
    """
    d, waves, k_true = check.count("d", d), check.count("waves", waves), check.count("k_true", k_true)
    check_size(d, waves)
    check.positive("width", width)
    rng, wave = generator(seed), np.linspace(0, 1, waves)
    spectra = np.zeros((d, waves))
    for _ in range(4):
        spectra += np.exp(-(((wave - rng.random((d, 1))) / width) ** 2))

    return Calibration(
        Absorption(spectra), _spread(rng, d, k_true, 0.3, 0.9), noise=noise, bounds=(0.0, None), seed=seed
    )


def deconvolution(d: int = 500, k_true: int = 8, width: float = 4.0, noise: float = 0.0, seed: int = 0) -> Calibration:
    """Which k of d sources sent a signal? One run returns what d detectors see, blurred and saturated.

    Arguments
    ---------
    d: the number of places on a line, each with a possible source and a detector; 500 by default.
    k_true: how many sources there are, at least six places apart; 8 by default.
    width: the standard deviation of the blur, in places; 4 by default.
    noise: the relative error of the measured signal, 0 by default.
    seed: the seed of the data, 0 by default.

    Returns
    -------
    The problem; strengths are not negative.
    """
    d, k_true = check.count("d", d), check.count("k_true", k_true)
    check_size(d, d)
    check.positive("width", width)
    places = np.arange(d)
    blur = np.exp(-0.5 * ((places[:, None] - places) / width) ** 2)

    truth = _spread(generator(seed), d, k_true, 0.5, 2.0, apart=6)
    return Calibration(Detectors(blur), truth, noise=noise, bounds=(0.0, None), seed=seed)


def ode(
    trajectories: int = 12, samples: int = 10, duration: float = 2.0, noise: float = 0.0, seed: int = 0
) -> Calibration:
    """Which 5 of 60 terms drive a differential equation? One run returns the trajectories of three species.

    The right-hand side of each species is a sum of the 20 monomials of degree at most 3 in the three concentrations,
    and x has their 60 coefficients. The true equation has a predator and its prey, and a third species that decays
    in the presence of the predator.

    Arguments
    ---------
    trajectories: the number of initial states, 12 by default.
    samples: how often each trajectory is sampled, 10 by default.
    duration: of a trajectory, 2 by default.
    noise: the relative error of the measured trajectories, 0 by default.
    seed: the seed of the data, 0 by default.

    Returns
    -------
    The problem.
    """
    trajectories, samples = check.count("trajectories", trajectories), check.count("samples", samples)
    check_size(trajectories, samples, SPECIES)
    check.positive("duration", duration)
    rng = generator(seed)
    powers = np.array([e for e in product(range(DEGREE + 1), repeat=SPECIES) if sum(e) <= DEGREE])
    place = {tuple(e): j for j, e in enumerate(powers.tolist())}
    start, terms = rng.uniform(0.3, 1.5, (trajectories, SPECIES)), len(powers)
    truth = np.zeros(SPECIES * terms)
    sizes = rng.uniform(0.8, 1.2, ACTIVE_TERMS) * [1.0, -1.0, -0.8, 0.7, -0.6]
    active = [(0, (1, 0, 0)), (0, (1, 1, 0)), (1, (0, 1, 0)), (1, (1, 1, 0)), (2, (0, 1, 1))]
    truth[[species * terms + place[e] for species, e in active]] = sizes
    dt = duration / samples / STEPS_PER_SAMPLE

    return Calibration(Kinetics(powers, start, samples, dt), truth, noise=noise, seed=seed)

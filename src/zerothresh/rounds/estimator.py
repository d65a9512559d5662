"""How a gradient is estimated from function values: the settings of eq. (3)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.sampling.directions import FAMILIES

PAPER_MU = 1e-4  # the smoothing radius of the paper's ridge experiments
_SMALLEST = 1e-250  # a smaller scale would make d / (q mu) overflow
_SAFE = 4.0  # times the smallest mu that still shows beside theta: what an error message recommends


@dataclass(frozen=True)
class Estimator:
    r"""The zeroth-order gradient estimate of eq. (3), from q directions:

    .. math:: \hat\nabla f(\theta) = \frac{d}{q\mu} \sum_{l=1}^q (f(\theta + \mu u_l) - f(\theta)) u_l

    Arguments
    ---------
    q: int, default 10: the number of directions. An estimate costs q + 1 calls (forward) or 2q (central).
    mu: float, default 1e-3: the smoothing radius, which is the length of a step; as small as the noise of the
        function allows.
    s2: int, default None: the size of the random support of a direction, at most d; None means d.
    difference: str, default "forward", as in the paper; or "central".
    directions: str, default "orthogonal"; or "sphere" (the paper's), "gaussian" (which are not normalised),
        "rademacher" or "coordinate".
    shared: bool, default True: use the same directions for the two estimates inside a difference of VR-SZHT or
        SARAH-SZHT. The paper does not say; with independent directions the difference does not vanish as the two
        points meet.
    common: bool, default True: use the same directions for all components of a round; False draws fresh directions
        for each component, as the paper's formula says.

    The defaults differ from the paper's estimator: its directions are independent ("sphere"), and each component of a
    round has directions of its own (``common=False``). Orthonormal directions leave less error for the same calls. If
    all components of a round share their directions, the error of their mean is proportional to the gradient of the
    mean, and a round is computed faster; if each has its own, the errors average out, but they are as large as the
    gradients of the components. `Estimator.paper` is the paper's own.

    >>> Estimator(q=20, mu=1e-4, directions="sphere").calls
    21
    """

    q: int = 10
    mu: float = 1e-3
    s2: int | None = None
    difference: str = "forward"
    directions: str = "orthogonal"
    shared: bool = True
    common: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", check.count("q", self.q, what=" (directions per estimate)"))
        object.__setattr__(self, "mu", check.positive("mu", self.mu, what=" (the smoothing radius)"))
        if self.mu > check.LARGEST_SIZE:
            raise ValueError(f"mu must be at most {check.LARGEST_SIZE:g} (the smoothing radius), not {self.mu!r}")
        if self.s2 is not None:
            what = " (the size of a direction's support)"
            object.__setattr__(self, "s2", check.count("s2", self.s2, what=what))
        check.one_of("difference", self.difference, ("forward", "central"))
        check.one_of("directions", self.directions, FAMILIES)
        for name in ("shared", "common"):
            object.__setattr__(self, name, check.flag(name, getattr(self, name)))
        if self.directions == "coordinate" and self.s2 not in (None, 1):
            raise ValueError(
                f"s2 = {self.s2} does not fit directions='coordinate', whose supports have size 1: "
                "leave s2 out, or take another family"
            )

    @classmethod
    def paper(cls, q: int, mu: float = PAPER_MU, s2: int | None = None) -> Estimator:
        """Return the paper's own estimator, eq. (3) to the letter.

        Its q directions are drawn independently, uniformly from the unit sphere of a random support of size s2, anew
        for each component of a round, and differences are forward. The paper does not say which directions the two
        estimates inside a difference of VR-SZHT or SARAH-SZHT have: here they have the same (``shared=True``).

        Arguments
        ---------
        q: int. The number of directions. The paper has no default: it uses 5 to 200.
        mu: float, default 1e-4, as in the paper's ridge regressions; its attacks have 1e-3. The smoothing radius.
        s2: int, default None. The size of the random support of a direction; None means d, as in its experiments.

        >>> Estimator.paper(q=200).directions
        'sphere'
        """
        return cls(q=q, mu=mu, s2=s2, difference="forward", directions="sphere", shared=True, common=False)

    @cached_property
    def calls(self) -> int:
        """The number of calls of f_i that one estimate costs."""
        return self.q + 1 if self.difference == "forward" else 2 * self.q

    def support_size(self, d: int) -> int:
        """Return s2, checked against the dimension."""
        if self.s2 is not None and self.s2 > d:
            raise ValueError(f"s2 = {self.s2} is larger than the dimension d = {d}: take s2 from 1 to {d}")
        return d if self.s2 is None else self.s2

    def largest_scale(self, d: int) -> float:
        """Return the largest |theta_j| at which a step of mu still changes theta in floating point."""
        typical = 1.0 if self.directions == "coordinate" else self.support_size(d) ** -0.5
        return self.mu * typical / float(np.finfo(float).eps)

    def check_start(self, theta: Array) -> None:
        """Refuse a mu that is lost in rounding at theta, and warn about directions that cause ties."""
        d = theta.size
        scale, largest = self.largest_scale(d), float(np.max(np.abs(theta), initial=0.0))
        if largest >= scale or scale < _SMALLEST:
            needed = max(_SAFE * self.mu * largest / scale, self.mu * _SMALLEST / scale)
            raise ValueError(
                f"mu = {self.mu:g} is so small that theta + mu u = theta in floating point (the largest "
                f"|theta_j| is {largest:g}): take mu of at least {needed:.1g}, better 1e-4 of theta's scale"
            )
        if self.directions == "rademacher" and self.q < np.log2(d):
            warnings.warn(
                f"with q = {self.q} rademacher directions at d = {d}, many coordinates of an estimate are "
                f"equal in size, and ties go to the lowest index: take q well above {np.log2(d):.0f}, or "
                "directions='orthogonal'",
                stacklevel=2,
            )

"""Best-first bisection of signed groups: the largest slopes of a sample's mean from fewer values than coordinates."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.signed_groups import SignedGroup, SignedGroups, signed_steps
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.support_polish import SampledPoint
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.grouped_slopes_settings import GROUPED_SLOPES as SETTINGS
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class FoundSlope(NamedTuple):
    """A coordinate whose slope a bisection has singled out."""

    coordinate: int
    slope: float  # of the sample's mean
    error: float  # the standard error of the slope of F: from the sample of components, and from noise


def group_step(diagnosis: Diagnosis, size: int) -> float:
    """Return the step of each coordinate of a group at which curvature and noise spoil its slope by the same amount.

    The group moves by h sqrt(size), so that curvature changes F by c h^2 size / 2: the noise at h = sqrt(2 noise /
    (c size)). The whole move stays below the natural length.
    """
    if diagnosis.estimator is not None:
        return diagnosis.mu
    longest = diagnosis.length / math.sqrt(size)
    if diagnosis.curvature <= 0:
        return longest
    return min(math.sqrt(2 * diagnosis.noise / (diagnosis.curvature * size)), longest)


class BestFirstBisection:
    """A search for the largest slopes at a point, among the coordinates that may change.

    Arguments
    ---------
    sample: the components that stand for F.
    diagnosis: the noise, the curvature and the natural length, from which the steps follow.
    at: the point, and the sample's values there.
    free: indices of the coordinates to look among.
    scale: float, factor of all steps.
    """

    def __init__(
        self, sample: ComponentSample, diagnosis: Diagnosis, at: SampledPoint, free: Indices, scale: float = 1.0
    ) -> None:
        self.sample, self.diagnosis, self.at, self.scale = sample, diagnosis, at, scale
        rng, box = sample.context.rng, sample.context.box
        self.order = free[rng.subset(free.size, free.size)]
        self.steps = np.zeros(at.theta.size)  # of each coordinate, in units of the step of its group
        signs = rng.uniform(free.size)
        if box is None:
            self.steps[free] = np.where(signs < 0.5, -1.0, 1.0)
        else:
            up, down = box.high[free] - at.theta[free], at.theta[free] - box.low[free]
            self.steps[free] = signed_steps(signs, up, down, self._step(1))
        self.groups = SignedGroups(SETTINGS.depth)
        self.asked = 0

    def _step(self, size: int) -> float:
        longest = self.diagnosis.length / math.sqrt(size)
        return max(min(self.scale * group_step(self.diagnosis, size), longest), TINY)

    def _ask(self, groups: list[Indices]) -> Generator[Probes, Answers, Array]:
        """Return the slopes of groups for each component of the sample: (groups, components)."""
        points = []
        for members in groups:
            theta = self.at.theta.copy()
            theta[members] += self._step(members.size) * self.steps[members]
            points.append(theta)
        self.asked += len(groups)
        h = np.array([self._step(members.size) for members in groups])
        values = yield from self.sample.values(points)
        return np.asarray((values - self.at.values) / h[:, None])

    def begin(self, count: int, *, check: bool = True) -> Generator[Probes, Answers, float]:
        """Ask for ``count`` groups and, to check, for all of them; return by how much their slopes do not add up.

        The deviation is relative to the largest slope of a group.
        """
        parts = np.array_split(self.order, min(count, self.order.size))
        together = [self.order] if check and len(parts) > 1 else []
        slopes = yield from self._ask(parts + together)
        for members, row in zip(parts, slopes[: len(parts)], strict=True):
            self.groups.push(members, row)
        means = slopes.mean(axis=1)
        if not together:
            return 0.0
        return float(abs(means[-1] - means[:-1].sum()) / max(float(np.abs(means[:-1]).max()), TINY))

    def signal(self) -> float:
        """Return the mean square of the groups' mean slopes over the variance of a component's, less chance.

        Its inverse is about the number of components at which a slope is as large as its standard error. What chance
        adds is taken with two standard deviations, so that an accident does not look like a signal.
        """
        slopes = np.array([group.slopes for group in self.groups])
        count, size = slopes.shape
        noise = float(slopes.var(axis=1, ddof=1).mean()) if size > 1 else 0.0
        chance = float(1 + SETTINGS.chance * math.sqrt(2 / count)) / int(size)
        return float(np.square(slopes.mean(axis=1)).mean()) / max(noise, TINY) - chance

    def coarse(self) -> list[FoundSlope]:
        """Return all coordinates with the mean slope of their group, where there are too few values to split them."""
        found = list[FoundSlope]()
        for group in self.groups:
            h, size = self._step(group.members.size), group.members.size
            error = self.sample.error(group.slopes * h) / (h * size)
            steps = self.steps[group.members]
            slopes = group.slope / size * np.sign(steps)
            found += [FoundSlope(int(j), float(v), error) for j, v in zip(group.members, slopes, strict=True)]
        return found

    def find(self, count: int, limit: int) -> Generator[Probes, Answers, list[FoundSlope]]:
        """Split groups until ``count`` coordinates have come out first.

        After ``limit`` values the search only goes down from the best group, so that it finds at least one.
        """
        found, last = list[FoundSlope](), None
        while len(found) < count and len(self.groups):
            late = self.asked >= limit
            if late and found:
                break
            group = self.groups.pop() if last is None or not late else last
            if group.members.size == 1:
                found.append(self._found(group))
                continue
            first, second = group.halves()
            slopes = (yield from self._ask([first]))[0]
            halves = SignedGroup(first, slopes), SignedGroup(second, group.slopes - slopes)
            last = max(halves, key=lambda half: abs(half.slope))
            for half in halves:
                if not (late and half is last):
                    self.groups.push(half.members, half.slopes)
            if late and last.members.size == 1:
                found.append(self._found(last))
        return found

    def _found(self, group: SignedGroup) -> FoundSlope:
        j, h = int(group.members[0]), self._step(1)
        step = float(self.steps[j])
        return FoundSlope(j, group.slope / step, self.sample.error(group.slopes * h) / (h * abs(step)))

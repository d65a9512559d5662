"""Second derivatives of F from the gradients of its components at several points.

A component has few scores, as a rule, so that its Hessian H_i has a low rank r. From Y_i = H_i S, the changes of its
gradient over steps S, the Nystrom approximation Y_i (S'Y_i)^+ Y_i' finds such a Hessian exactly with r steps, and never
exceeds it if the component is convex. The mean over the components is the Hessian of F. One gradient of F along all
coordinates brings a change for every component, so that a few gradients tell what would take one gradient per
coordinate if only F were seen.

References: Griewank and Toint, *Partitioned variable metric updates for large structured optimization problems*, 1982;
Williams and Seeger, *Using the Nystrom method to speed up kernel machines*, 2001.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import LARGEST_ROOT, TINY


class ComponentSecants:
    """Steps, and by how much the gradients of the components changed over them.

    Arguments
    ---------
    coordinates: indices of the coordinates on which gradients are known, shape (c,).
    """

    def __init__(self, coordinates: Indices) -> None:
        self.coordinates = coordinates
        self._pairs: tuple[tuple[Array, Array], ...] = ()  # steps (c,), changes of gradients (m, c), the newest first

    def __len__(self) -> int:
        return len(self._pairs)

    def after(self, C: Indices, step: Array, before: Array, now: Array) -> ComponentSecants:
        """Return these and one more change, unless it is on other coordinates; the oldest are forgotten.

        Arguments
        ---------
        C: indices of the coordinates on which the gradients are known, shape (c,).
        step: array of shape (d,), between the two points.
        before, now: arrays of shape (m, c), the gradients of the first components; their numbers may differ.
        """
        step, rows = step[C], min(len(before), len(now))
        length = float(np.linalg.norm(step))
        same = np.array_equal(C, self.coordinates) and before.shape[1] == now.shape[1]
        if not same or not length > 0 or rows * C.size > DESCENT.most_secant_numbers:
            return self
        changes = (now[:rows] - before[:rows]) / length
        if not float(np.abs(changes).max(initial=0.0)) < LARGEST_ROOT:  # its squares would overflow
            return self
        longer = ComponentSecants(self.coordinates)
        longer._pairs = ((step / length, changes), *self._pairs[: DESCENT.secants - 1])
        return longer

    @property
    def older(self) -> ComponentSecants:
        """All changes but the newest."""
        rest = ComponentSecants(self.coordinates)
        rest._pairs = self._pairs[1:]
        return rest

    def miss(self, newest: ComponentSecants, G: Array, curvatures: Array) -> float:
        """Return the error with which these changes foretell the newest one of others, over its size."""
        step, changes = newest._pairs[0]
        rows = min(len(G), len(changes))
        y = changes[:rows].mean(axis=0)
        foretold = self.hessian(G[:rows], curvatures[:rows]) @ step
        return float(np.linalg.norm(y - foretold)) / max(float(np.linalg.norm(y)), TINY)

    def believed(self, G: Array, curvatures: Array) -> ComponentSecants:
        """Return these changes, or none if the gradients alone foretell the newest one better or well enough.

        Near a minimum at which all components vanish, as where residuals become 0, the gradients tell more than changes
        over long steps do.
        """
        if not self._pairs:
            return self
        none = ComponentSecants(self.coordinates)
        limit = self.older.miss(self, G, curvatures) if len(self) > 1 else DESCENT.secant_miss
        return self if none.miss(self, G, curvatures) > limit else none

    def hessian(self, G: Array, curvatures: Array) -> Array:
        """Return the mean Hessian of the components: what the changes tell, and beyond it a term along each gradient.

        Arguments
        ---------
        G: array of shape (m, c), directions of unit length, as a rule those of the components' gradients.
        curvatures: array of shape (m,), the second derivatives of the components along these.

        Returns
        -------
        array of shape (c, c), symmetric and positive semidefinite.
        """
        total, first = np.zeros((G.shape[1], G.shape[1])), 0
        for last in sorted({min(len(changes), len(G)) for _, changes in self._pairs} | {len(G)}):
            rows = slice(first, last)
            pairs = [(step, changes[rows]) for step, changes in self._pairs if len(changes) >= last]
            for factors in _factors(pairs, G[rows], curvatures[rows]):
                total += factors.T @ factors
            first = last
        return total / max(len(G), 1)


def _orthonormal(S: Array, Y: Array) -> tuple[Array, Array]:
    """Return Q with orthonormal columns and Z with Z_i = H_i Q: of each step what is new after those before it."""
    Q, Z = np.empty((len(S), 0)), np.empty((*Y.shape[:2], 0))
    for s, y in zip(S.T, np.moveaxis(Y, 2, 0), strict=True):
        known = Q.T @ s
        new = s - Q @ known
        size = float(np.linalg.norm(new))
        if size > DESCENT.secant_independence:
            Q = np.column_stack([Q, new / size])
            Z = np.concatenate([Z, ((y - Z @ known) / size)[:, :, None]], axis=2)
    return Q, Z


def _factors(pairs: list[tuple[Array, Array]], G: Array, curvatures: Array) -> list[Array]:
    """Return arrays u of shape (m, c) such that the Hessian of component i is the sum of the u_i u_i'."""
    out, rest, left = list[Array](), np.maximum(curvatures, 0.0), G
    if pairs:
        S, Y = np.array([step for step, _ in pairs]).T, np.stack([changes for _, changes in pairs], axis=2)
        Q, Z = _orthonormal(S, Y)
        M = np.einsum("ct,mcs->mts", Q, Z)
        eigenvalues, axes = np.linalg.eigh(0.5 * (M + M.transpose(0, 2, 1)))
        largest = eigenvalues[:, -1:]
        clear = eigenvalues > np.maximum(DESCENT.secant_share * largest, TINY)
        weights = np.where(clear, 1 / np.sqrt(np.where(clear, eigenvalues, 1.0)), 0.0)
        factors = np.einsum("mcs,mst->mct", Z, axes) * weights[:, None, :]
        out = [factors[:, :, t] for t in range(factors.shape[2])]
        rest = np.maximum(curvatures - sum(np.square(np.einsum("mc,mc->m", u, G)) for u in out), 0.0)
        left = G - (G @ Q) @ Q.T  # what is not known vanishes along the steps
    share = np.einsum("mc,mc->m", left, G)  # of the direction, squared
    scale = np.where(share > DESCENT.secant_share, np.sqrt(rest) / np.maximum(share, TINY), 0.0)
    return [*out, left * scale[:, None]]

"""Functions that return many outputs per call, and the checks of what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.losses import Itself, Loss, loss_of
from zerothresh.objective.forms import RETURNED, TOLD, BadLoss, BadValue, Objective, Wording, components_of

MOST_NUMBERS = 1 << 24  # outputs of a call of a vectorised function, if the user does not say how many points it gets
KINDS = ("residuals", "components")
FUNCTION = Wording("the function returned")


class Policy:
    """What is expected of the outputs of a call.

    Arguments
    ---------
    loss: Loss of one output; F, its mean, has to be finite.
    m: int, default None: the number of outputs; None as long as it is not known.
    on_nan: str, default "stop". With "mask", NaN is a missing output; with "worst", anything goes.
    """

    def __init__(self, loss: Loss, m: int | None = None, on_nan: str = "stop") -> None:
        self.loss, self.m, self.on_nan = loss, m, on_nan
        self.labels: Any = None  # the index of the first pandas Series

    def check(self, value: Any, calls: int | None, wording: Wording) -> Array:
        """Return the outputs as a table.

        Arguments
        ---------
        value: what a function returned, or a user told.
        calls: int, the number of calls whose outputs it holds; None for one call, whose outputs are a vector.
        wording: how messages name the source of the value.

        Returns
        -------
        The outputs, (calls, m). Raises `BadValue` with the reason if the value is refused.
        """
        must = f"{wording.allowed} a vector of outputs" if calls is None else f"{wording.allowed} an array of shape "
        size = "m" if self.m is None else str(self.m)
        must += "" if calls is None else f"({calls}, {size}), the outputs of one call per row"
        if value is None:
            raise BadValue(f"{wording.given} None; {must}" + ("" if wording is TOLD else " (is a `return` missing?)"))
        array = check.array(value)
        if array is None:
            raise BadValue(f"{wording.given} {check.shown(value)}; {must}, all of them real numbers")
        if array.dtype.kind not in "fiub":
            raise BadValue(f"{wording.given} {check.shown(value)} ({array.dtype}); {must}, all of them real numbers")
        if calls is None and array.ndim == 0:
            raise BadValue(
                f"{wording.given} the number {check.shown(value)}; {must} (leave outputs out if it is F itself)"
            )
        if array.ndim != (1 if calls is None else 2) or (calls is not None and len(array) != calls) or array.size == 0:
            hint = (
                " (pass vectorized=True if it takes many points at once)" if calls is None and array.ndim == 2 else ""
            )
            raise BadValue(f"{wording.given} an array of shape {array.shape}; {must}{hint}")
        if self.m is not None and array.shape[-1] != self.m:
            raise BadValue(
                f"{wording.given} {array.shape[-1]} outputs per call, where {self.m} were expected; each call must "
                "return the same outputs in the same order (return NaN for a missing one, with on_nan='mask')"
            )
        self.check_labels(labels_of(value), wording)
        with np.errstate(all="ignore"):
            table = array.astype(np.float64).reshape(-1, array.shape[-1])
        self._check_finite(table, wording)
        return table

    def check_labels(self, labels: Any, wording: Wording) -> None:
        """Refuse a pandas Series (or a data frame of rows) whose labels are not those of the first one."""
        if labels is not None and self.labels is not None and not bool(labels.equals(self.labels)):
            raise BadValue(
                f"{wording.given} a pandas object with the labels {check.shown(list(labels[:3]))} ..., which are not "
                f"those of the first call, {check.shown(list(self.labels[:3]))} ...; each call must return the same "
                "outputs in the same order (return NaN for a missing one, with on_nan='mask')"
            )

    def _check_finite(self, table: Array, wording: Wording) -> None:
        """Refuse outputs from which no finite F follows, unless the worst ones may take their place."""
        try:
            with np.errstate(all="ignore"):
                losses = self.loss.value(table)
        except Exception as error:
            raise BadLoss(f"the loss failed on the outputs of a call: {type(error).__name__}: {error}") from error
        if self.on_nan == "worst":
            return
        finite = np.isfinite(losses) & np.isfinite(table)
        if self.on_nan == "mask":
            missing = np.isnan(table)
            if missing.all(axis=1).any():
                raise BadValue(f"{wording.given} no output that is there: all {table.shape[1]} are NaN")
            finite |= missing
        if finite.all():
            return
        row, output = (int(place[0]) for place in np.nonzero(~finite))
        where = f"output {output}" if len(table) == 1 else f"output {output} of point {row} of the batch"
        entry = float(table[row, output])
        if np.isfinite(entry):
            raise BadValue(f"{wording.given} {entry!r} as {where}, whose loss is not finite")
        hint = " (on_nan='mask' takes NaN for a missing output)" if np.isnan(entry) else ""
        raise BadValue(f"{wording.given} {entry!r} as {where}; {wording.allowed} finite numbers{hint}")

    def learn(self, m: int, labels: Any = None) -> None:
        """Take note of the number of outputs, and of their labels, which later calls have to repeat."""
        self.m = m
        if self.labels is None:
            self.labels = labels


def labels_of(value: Any) -> Any:
    """Return the labels of the outputs in a pandas Series, or in a data frame of one call per row; None for others."""
    if not type(value).__module__.startswith("pandas"):
        return None
    labels = getattr(value, "columns", getattr(value, "index", None))
    return labels if check.has_function(labels, "equals") else None


def policy_for(outputs: Any, loss: Any, n: Any, on_nan: str) -> Policy | None:
    """Return what is expected of the outputs of a call, from the arguments of a run; None if a call returns one value.

    Arguments
    ---------
    outputs: "residuals", "components", or None if a call returns one value.
    loss: the loss of one residual, as `zerothresh.losses.loss_of` takes it, or None.
    n: int, the number of outputs, or None if the first call tells it.
    on_nan: str, what happens to outputs that are not finite.
    """
    if outputs is None:
        if loss is not None:
            raise ValueError("loss goes with outputs='residuals': it is the loss of each residual that a call returns")
        if isinstance(on_nan, str) and on_nan == "mask":
            raise ValueError("on_nan='mask' goes with outputs=...: it leaves missing outputs out of the mean")
        return None
    check.one_of("outputs", outputs, KINDS)
    if outputs == "components" and loss is not None:
        raise ValueError(
            "loss goes with outputs='residuals'; with outputs='components' the outputs are the f_i themselves"
        )
    found = Itself() if outputs == "components" else loss_of(loss)
    m = None if n is None else components_of(n)
    size = getattr(found, "size", None)
    if size is not None and m is not None and m != size:
        raise ValueError(
            f"n = {m} outputs were announced, but the loss is one of {size} outputs: both must be the same"
        )
    return Policy(found, size if m is None else m, on_nan)


class VectorObjective(Objective):
    """A user's function that returns all outputs of a point by one call.

    Arguments
    ---------
    function: the user's function, called as f(x), which returns (m,), or f(X), which returns (B, m).
    d: int, the dimension of a point.
    policy: Policy, what is expected of the outputs.
    vectorized: bool, whether the function takes many points at once.
    """

    def __init__(self, function: Callable[..., Any], d: int, policy: Policy, *, vectorized: bool) -> None:
        super().__init__(function, d, 1, takes_component=False, vectorized=vectorized)
        self.policy = policy

    def value(self, point: Array, component: int) -> Any:
        """Return the outputs at a point, (1, m), and their labels, if they have some that are not known yet."""
        if self.vectorized:
            return self._checked(self.function(point[None]), 1, RETURNED)
        return self._checked(self.function(point), None, FUNCTION)

    def batch(self, points: Array, components: Indices) -> Any:
        """Return the outputs at a batch of points, (B, m), and their labels, likewise."""
        return self._checked(self.function(points), len(points), RETURNED)

    def accept(self, answer: Any, calls: int | None) -> Any:
        """Return what `value` or `batch` returns if this is what the function returned."""
        return self._checked(answer, calls, FUNCTION if calls is None else RETURNED)

    def _checked(self, value: Any, calls: int | None, wording: Wording) -> tuple[Array, Any]:
        table = self.policy.check(value, calls, wording)
        return table, labels_of(value) if self.policy.labels is None else None

    def most_points(self, chunk: int) -> int:
        """Return the most points per call of a vectorised function, whose outputs have to fit into memory, too."""
        if self.chunk is not None or self.policy.m is None:
            return chunk
        return max(1, min(chunk, MOST_NUMBERS // self.policy.m))

    def known(self) -> tuple[Any, ...]:
        """Return the number of outputs and their labels, too."""
        return self.finite, self.policy.m, self.policy.labels

    def learn(self, known: tuple[Any, ...]) -> None:
        """Take over what another process knows by now."""
        self.finite, self.policy.m, self.policy.labels = known

    def arrived(self, answer: Any) -> Array:
        """Return the outputs, one row per call; the first ones tell what later ones have to be like."""
        table, labels = answer
        self.policy.check_labels(labels, FUNCTION)  # another worker may have been the first one meanwhile
        if self.policy.m is None or labels is not None:
            self.policy.learn(table.shape[1], labels)
        out: Array = table
        return out


def wrap_vector(fun: Any, d: int | None, policy: Policy, vectorized: bool) -> VectorObjective:
    """Make an objective of a function that returns many outputs per call.

    Arguments
    ---------
    fun: a function of x, or of X if it is vectorised; or an object with ``d`` and ``outputs(points)``, which returns
        an array of shape (B, m).
    d: the dimension; None if only the function or the object knows it, as its attribute ``d``.
    policy: what is expected of the outputs.
    vectorized: whether the function takes many points at once. ``outputs`` of an object always does.
    """
    vectorized = check.flag("vectorized", vectorized)
    if not isinstance(fun, type) and not callable(fun) and check.has_function(fun, "outputs"):
        own = check.count("the problem's d", getattr(fun, "d", None))
        if d is not None and d != own:
            raise ValueError(f"x0 has length {d}, but the problem has d = {own}: pass a start of length {own}")
        return VectorObjective(fun.outputs, own, policy, vectorized=True)
    if not callable(fun):
        raise ValueError(
            "fun must be a function of x that returns a vector of outputs, or an object with d and outputs(points), "
            f"not {type(fun).__name__}"
        )
    if d is None:
        d = check.whole(getattr(fun, "d", None))  # a function may know its own dimension
    if d is None:
        raise ValueError("x0 must be the starting point, or the dimension d as a whole number")
    form = "fun(X)" if vectorized else "fun(x)"
    misfit = check.call_misfit(fun, ["X" if vectorized else "x"])
    if misfit is not None:
        raise ValueError(
            f"fun has the signature {misfit[0]}, but with outputs=... it is called as {form}, and returns all outputs: "
            f"{misfit[1]}"
        )
    return VectorObjective(fun, d, policy, vectorized=vectorized)

"""The method `gauss-newton`: sparse Gauss-Newton for functions whose calls return all residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.replay import Replayed
from zerothresh.methods.registry import register
from zerothresh.methods.residual.linearised import Linearised
from zerothresh.methods.residual.sparse_gauss_newton import gauss_newton
from zerothresh.rounds.task import Task


@register("gauss-newton")
@dataclass(frozen=True)
class GaussNewton(Program):
    """Sparse Gauss-Newton on the residuals of each call: about d calls in all.

    Every call returns all outputs, ``outputs="residuals"``. Columns of the Jacobian are differences, asked for
    together; the support is the best one of the linearised model, and every step teaches the Jacobian. It ends when the
    outputs are matched up to their noise, or when no exchange and no restart finds anything better.

    Arguments
    ---------
    width: int, default None. The calls that take no longer together than one; None takes ``parallel`` of the run. If it
        exceeds k, rounds are filled: groups of columns along with the first look, a fit along with the splits of
        groups, and with every step the columns of the support at the new point, others that may be wanted next, and
        shorter steps. That takes fewer rounds, and more calls. The result depends on it, and not on the number of
        workers.

    Reference: Cartis and Roberts, *A derivative-free Gauss-Newton method*, Math. Prog. Comp. 2019, for k = d.

    >>> GaussNewton()
    GaussNewton(width=None)
    """

    family: ClassVar[str] = "residual"
    solves: ClassVar[str] = "mean loss of residuals, l0"
    queries: ClassVar[str] = "d + 2 for a support, 1 per step"
    memory: ClassVar[str] = "m per call + 2 m d"
    keeps_constraints: ClassVar[bool] = False
    must_improve: ClassVar[bool] = True
    needs_outputs: ClassVar[bool] = True

    width: int | None = None

    def __post_init__(self) -> None:
        if self.width is not None:
            check.count("width", self.width, what=" (the calls that take no longer together than one), or None")

    def begin(self, task: Task) -> Replayed:
        if task.outputs is None or task.outputs.kind != "residuals":
            raise ValueError(
                "The method gauss-newton needs the residuals of each call: write outputs='residuals', and let the "
                "function return all of them as an array of shape (m,)."
            )
        return super().begin(task)

    def search(self, context: Context) -> Asks:
        context.certified = yield from gauss_newton(Linearised(context, self.width or context.width))

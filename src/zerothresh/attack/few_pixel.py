"""The search behind ``attack="best"``: extreme values, swaps of pixels, and races between candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zerothresh.attack.corner_moves import CornerMoves, Grid
from zerothresh.attack.mixed_moves import MixedMoves
from zerothresh.attack.swap_search import Rules, SwapSearch
from zerothresh.basics import check
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context


@dataclass(frozen=True)
class FewPixel(Program):
    r"""Random search by swaps between corners of the box; candidates race on a few components first.

    The iterate has k groups (pixels, or single coordinates if there are no groups) at corners of the box. A candidate
    swaps some of its groups for others at random corners. Once single groups are swapped, a candidate may instead
    shift a group to a neighbouring pixel or change one of its colours. In round r,

    .. math:: s = \max(1, \mathrm{share} \cdot k / (1 + r / 5))

    groups are swapped. Groups that seem dispensable go first: of three, the one whose removal raised the loss least in
    the races so far. A round races a few candidates on a few components, mostly on those that are not at the lowest
    value yet. The best one is then evaluated on 2, 4, 8 ... times as many components as long as the loss falls, and
    becomes the iterate if it falls over all of them. If races fail one after another, up to sixteen are run side by
    side, which makes larger batches for the model and costs hardly any queries.

    The loss is

    .. math:: \sum_i \log \left(1 + \frac{f_i(\theta) - m}{\bar f - m}\right),
        \quad \bar f \text{ the mean at the start, } m \text{ the lowest value seen}

    so that one component far from 0 counts less than several that are near: where not all of them can reach 0, more
    of them do.

    If there are many components, only the first are used at first. Their number doubles when all of them are at 0, or
    after ``passes`` calls of each.

    Components are assumed to be at least 0, as losses are: the search ends when all of them are 0.

    It needs finite bounds. It is not for smooth problems whose solution lies inside the box, and is therefore not
    among `zt.methods.available()`.

    Arguments
    ---------
    grid: (rows, columns, down, right), if the coordinates are an image: the coordinate below j is j + down, the
        one to the right is j + right. None: no group has neighbours.
    candidates: candidates per race. More of them make larger batches, and cost more queries.
    first: components that are used at first.
    passes: calls of each component in use before their number is doubled.
    share: the share of the groups that is swapped at first, above 0 and at most 1.
    mixed: whether whole pixels are raced against single colours, where k counts these and ``grid`` is given.

    Reference: Croce, Andriushchenko, Singh, Flammarion and Hein (2022), Sparse-RS, AAAI, for swaps at extreme
    values with a decreasing number of swaps; the rest is new here.
    """

    grid: Grid | None = None
    candidates: int = 4
    first: int = 16
    passes: int = 30
    share: float = 0.4
    mixed: bool = True

    def __post_init__(self) -> None:
        if self.grid is not None:
            if not isinstance(self.grid, Sequence) or isinstance(self.grid, (str, bytes)) or len(self.grid) != 4:
                raise ValueError(f"grid must be (rows, columns, down, right), not {self.grid!r}")
            object.__setattr__(self, "grid", tuple(check.count("grid", number) for number in self.grid))
        for name in ("candidates", "first", "passes"):
            check.count(name, getattr(self, name))
        if check.positive("share", self.share, what=" and at most 1") > 1:
            raise ValueError(f"share must be above 0 and at most 1, not {self.share!r}")
        check.flag("mixed", self.mixed)

    def search(self, context: Context) -> Asks:
        context.random = True  # the iterate is the result, even if F itself was lower once
        search = SwapSearch(
            moves_for(context, self.grid, context.k, mixed=self.mixed), self.rules, context, lambda: context.left
        )
        yield from search.begin()
        context.move(search.theta, search.fun)
        while not search.ended:
            yield from search.round()
            context.move(search.theta, search.fun)

    @property
    def rules(self) -> Rules:
        """The settings that its search needs."""
        return Rules(self.candidates, self.first, self.passes, self.share)


def moves_for(context: Context, grid: Grid | None, k: int, *, mixed: bool) -> CornerMoves:
    """The moves of a search: where k counts single colours of pixels, also whole pixels, if one fits into k."""
    if mixed and grid is not None and context.constraint.groups is None:
        channels = context.d // (grid[0] * grid[1])
        if channels > 1 and channels * grid[0] * grid[1] == context.d and k >= channels:
            return MixedMoves(context, grid, k)
    return CornerMoves(context, grid, k)

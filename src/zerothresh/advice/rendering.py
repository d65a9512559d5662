"""Advice as tables, at 80 columns or more."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from zerothresh.advice.advisor import Advice
    from zerothresh.advice.forecast import Forecast


def text(advice: Advice, width: int = 80) -> str:
    """As plain text."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(advice)
    return out.getvalue()


def tables(advice: Advice) -> Iterator[RenderableType]:
    """All parts, one under the other."""
    yield _problem(advice)
    yield Text("\nIn theory", style="bold")
    yield _theory(advice)
    if advice.orders:
        yield Text("\nOrders of the papers, constants taken as 1", style="bold")
        yield _rows({name: number(value) for name, value in advice.orders.items()})
    if advice.apart:
        yield Text("\nHow far theory and practice are apart", style="bold")
        yield _apart(advice)
    yield Text("\nIn practice", style="bold")
    for place, one in enumerate(advice.practice):
        title = Text(f"{place + 1}. {one.name}", style="bold")
        cost = f"about {number(one.calls)} calls, budget {one.budget:,}" if one.calls else f"budget {one.budget:,}"
        title.append(f": {one.why}; {cost}", style="not bold")
        yield title
        yield Padding(Text(advice.command(place), style="cyan"), (0, 0, 0, 3))
    about = "about " if advice.probe is not None and advice.probe.components < advice.probe.n else ""
    for trial in advice.trials:
        yield Text(
            f"tried {trial.name}: F from {about}{trial.start:.4g} to {trial.end:.4g} with {trial.calls:,} calls "
            f"({trial.status}, {trial.support} non-zeros)"
        )


def number(value: float | None) -> str:
    """Short: whole numbers up to a million, else three digits."""
    if value is None:
        return "-"
    if abs(value) >= 1e6:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _rows(rows: dict[str, str]) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table


def _problem(advice: Advice) -> Table:
    asked = advice.asked
    given = "" if advice.k_star_given else " (assumed: k/2)"
    rows = {
        "problem": f"n = {asked.n:,}, d = {asked.d:,}, k = {asked.k:,}, k* = {asked.k_star:,}{given}, "
        f"eps = {asked.eps:g}",
        "curvature": f"rho^- = {asked.rho_minus:.3g}, rho^+ = {asked.rho_plus:.3g}, kappa = {asked.kappa:.3g}",
    }
    if (seen := advice.probe) is not None:
        minus, plus = seen.constants.minus, seen.constants.plus
        rows["probed"] = (
            f"{seen.queries:,} calls, {seen.directions} directions, {seen.components} of {seen.n} components; "
            f"rho^- in [{minus.low:.2g}, {minus.high:.2g}], rho^+ in [{plus.low:.2g}, {plus.high:.2g}] "
            f"(2 standard errors); F alone: rho^+ = {seen.whole.rho_plus:.3g}"
        )
        rows["seen"] = seen.look.summary() + ("" if seen.trusted else ": curvatures mean little here")
    return _rows(rows)


def _theory(advice: Advice) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("converges", no_wrap=True)
    table.add_column("with, or why not", overflow="fold")
    table.add_column("calls", justify="right", no_wrap=True)
    for one in advice.theory:
        table.add_row(one.method, "yes" if one.converges else "no", Text(_settings(one, advice)), number(one.queries))
    return table


def _settings(one: Forecast, advice: Advice) -> str:
    if not one.converges:
        return one.why
    words = [f"{one.why} (best {one.q:,})", f"k = {advice.asked.k}", f"s2 = {one.s2}", f"eta = {one.eta:.3g}"]
    if one.m is not None:
        words.insert(2, f"m = {one.m:,}")
    return ", ".join(words)


def _apart(advice: Advice) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("theory", "practice", "times"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for one in advice.apart:
        table.add_row(one.what, number(one.theory), number(one.practice), number(one.share), one.note)
    return table

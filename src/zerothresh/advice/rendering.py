"""Show advice as tables that fit into 80 columns."""

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
    """Return advice as plain text."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(advice)
    return out.getvalue()


def tables(advice: Advice) -> Iterator[RenderableType]:
    """Yield all parts of the advice, from top to bottom."""
    yield from _opening(advice)
    yield Text("\nIn practice", style="bold")
    for place, one in enumerate(advice.practice):
        title = Text(f"{place + 1}. {one.name}", style="bold")
        forecast = f"It needs about {number(one.calls)} calls; the" if one.calls else "The"
        title.append(f": {one.why}. {forecast} budget is {one.budget:,}.", style="not bold")
        yield title
        yield Padding(Text(advice.command(place), style="cyan"), (0, 0, 0, 3))
    about = "about " if advice.probe is not None and advice.probe.components < advice.probe.n else ""
    for trial in advice.trials:
        yield Text(
            f"Trial of {trial.name}: F went from {about}{trial.start:.4g} to {trial.end:.4g} in {trial.calls:,} calls "
            f"({trial.status}, {trial.support} non-zeros)."
        )
    yield Text("\nThe problem", style="bold")
    yield _problem(advice)
    yield Text("\nIn theory", style="bold")
    yield Text(_in_plain_words(advice))
    yield _theory(advice)
    if advice.orders:
        yield Text("\nCalls by the orders of the papers, with all constants set to 1", style="bold")
        yield _rows({name: number(value) for name, value in advice.orders.items()})
    if advice.apart:
        yield Text("\nThe gap between theory and practice", style="bold")
        yield _apart(advice)


def _opening(advice: Advice) -> Iterator[RenderableType]:
    """What to run, why, and what to know beside it, in a line each as far as the width allows."""
    first = advice.practice[0]
    yield Text("Run   ", style="bold").append(advice.command(0), style="not bold cyan")
    yield Text("Why   ", style="bold").append(f"{first.why}.", style="not bold")
    gradient = advice.asked.n * (advice.asked.d + 1)
    noisy = advice.probe is not None and advice.probe.diagnosis.random
    know = f"a gradient over all coordinates takes {gradient:,} calls" + ("; values are noisy" if noisy else "")
    promised = [one.method for one in advice.theory if one.converges]
    theory = f"theorems cover {', '.join(promised)}" if promised else "no theorem covers this problem, as is usual"
    yield Text("Know  ", style="bold").append(f"{know}; {theory}.", style="not bold")


def _in_plain_words(advice: Advice) -> str:
    """What the table of theorems says, as sentences."""
    if any(one.converges for one in advice.theory):
        return (
            "For the methods with a yes, a theorem guarantees that F - F* falls to the chosen share within the calls "
            "of the last column. In practice far fewer are enough."
        )
    return (
        "No theorem of the papers says anything about this problem. They ask for many more non-zeros than the solution "
        "has, because keeping the k largest entries can undo a part of each step. That is a limit of the proofs: "
        "methods work with far smaller k, as the gap below shows."
    )


def number(value: float | None) -> str:
    """Write a number shortly: as an integer from 100 to a million, otherwise with three digits."""
    if value is None:
        return "-"
    if abs(value) >= 1e6:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _rows(rows: dict[str, str]) -> Table:
    """A table of two columns without a header."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table


def _problem(advice: Advice) -> Table:
    """The problem, its curvatures, and how they were measured."""
    asked = advice.asked
    given = "" if advice.k_star_given else " (assumed, k/2)"
    rows = {
        "problem": f"n = {asked.n:,}, d = {asked.d:,}, k = {asked.k:,}, k* = {asked.k_star:,}{given}, "
        f"eps = {asked.eps:g}",
        "curvature": f"rho^- = {asked.rho_minus:.3g}, rho^+ = {asked.rho_plus:.3g}, kappa = {asked.kappa:.3g}",
    }
    if (probe := advice.probe) is not None:
        minus, plus = probe.constants.minus, probe.constants.plus
        rows["probing"] = (
            f"{probe.queries:,} calls, {probe.directions} directions, {probe.components} of {probe.n} components; "
            f"rho^- in [{minus.low:.2g}, {minus.high:.2g}], rho^+ in [{plus.low:.2g}, {plus.high:.2g}] "
            f"(2 standard errors); rho^+ of F = {probe.whole.rho_plus:.3g}"
        )
        doubt = "" if probe.trusted else "; curvatures mean little for such a function"
        rows["diagnosis"] = probe.diagnosis.summary() + doubt
    return _rows(rows)


def _theory(advice: Advice) -> Table:
    """One row per method with a theorem."""
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("converges", no_wrap=True)
    table.add_column("settings, or why not", overflow="fold")
    table.add_column("calls", justify="right", no_wrap=True)
    for one in advice.theory:
        table.add_row(one.method, "yes" if one.converges else "no", Text(_settings(one, advice)), number(one.queries))
    return table


def _settings(one: Forecast, advice: Advice) -> str:
    """The settings with the fewest calls, or the reason why there are none."""
    if not one.converges:
        return one.why
    parts = [f"{one.why} (best {one.q:,})", f"k = {advice.asked.k}", f"s2 = {one.s2}", f"eta = {one.eta:.3g}"]
    if one.m is not None:
        parts.insert(2, f"m = {one.m:,}")
    return ", ".join(parts)


def _apart(advice: Advice) -> Table:
    """What the theory requires beside what is enough in practice."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("theory", "practice", "factor"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for one in advice.apart:
        table.add_row(one.what, number(one.theory), number(one.practice), number(one.share), one.note)
    return table

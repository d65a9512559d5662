"""`zerothresh reproduce`: the paper's experiments from one command."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zerothresh.cli.say import BadInput, refusing, speaking

if TYPE_CHECKING:
    from zerothresh.reproduce.study import Study
    from zerothresh.reproduce.verdict import Verdict

_HELP = """Reproduce the paper's ridge experiments: tables, figures, and a verdict on each of its claims.

EXPERIMENT is ridge (synthetic), bodyfat, autoprice, or all.

What is done is kept in the folder as it comes: after a stop, the same command goes on."""


def reproduce(
    experiment: Annotated[str, typer.Argument(help="ridge, bodyfat, autoprice or all.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The report folder: new, empty, or of the same experiment (default: report/EXPERIMENT)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One panel and fewer runs: about a minute, instead of many.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the problems and the runs.")] = 0,
    budget: Annotated[
        int | None, typer.Option(help="Calls of a component (#IZO) for each run, instead of the paper's.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; the numbers do not depend on it (default: one a processor).")
    ] = None,
) -> None:
    """Reproduce the paper's experiments."""
    with speaking():
        from zerothresh.reproduce import folder as report
        from zerothresh.reproduce import study as studying
        from zerothresh.reproduce.display import Grid
        from zerothresh.reproduce.experiments import EXPERIMENTS

        if experiment not in (*EXPERIMENTS, "all"):
            raise BadInput(f"there is no experiment {experiment!r}: take {', '.join(EXPERIMENTS)} or all")
        names = list(EXPERIMENTS) if experiment == "all" else [experiment]
        folder = Path("report") / (f"{experiment}-quick" if quick else experiment) if out is None else out
        begun = time.perf_counter()
        with refusing():
            made = [EXPERIMENTS[name](quick=quick, seed=seed) for name in names]
            if budget is not None:
                made = [one.with_budget(budget) for one in made]
            wanted = report.identity(made, quick=quick)
            if report.prepare(folder, wanted):
                typer.echo(f"going on with what is in {folder}", err=True)
            studies = []
            for one in made:
                with Grid(one) as grid:
                    workers = _processors() if jobs is None else jobs
                    studies.append(studying.run(one, jobs=workers, folder=folder, done=grid.done))
            found = report.write(folder, studies, wanted, time.perf_counter() - begun)
        for study in studies:
            _show(study)
        _say(found)
        typer.echo(f"Report: {folder / 'index.html'}")


reproduce.__doc__ = _HELP


def _processors() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _show(study: Study) -> None:
    """The methods in the last panel, with fresh runs."""
    from rich.console import Console
    from rich.table import Table

    from zerothresh.comparison.statistics import mean, median

    panel = next((p for p in study.experiment.panels if (p.k, p.q) == (3, 200)), study.experiment.panels[-1])
    title = f"{study.experiment.title}, {panel}, {study.experiment.budget:,} #IZO"
    header = ("method", "eta", "F - F*, as in paper", "eta", "fresh runs", "own support", "right")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    for label in study.labels():
        first, judged = study.find(label, panel, fresh=False), study.find(label, panel)
        if first is None or judged is None:
            continue
        gap, fresh = mean(first.measures(fresh=False).gap).value, judged.measures(fresh=True)
        shown = f"{fresh.gap.mean():.1e}", f"{median(fresh.own).value:.1e}", f"{fresh.right.mean():.0%}"
        rates = [f"{eta:g}" if eta == eta else "-" for eta in (first.eta, judged.eta)]  # auto has none
        table.add_row(label, rates[0], f"{gap:.1e}", rates[1], *shown)
    Console().print(table)
    typer.echo("own support: F less its minimum on the final support, the median\nright: runs with the best support\n")


def _say(found: list[Verdict]) -> None:
    """The verdicts, a line or two each."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Verdicts", title_justify="left", box=None, pad_edge=False)
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("cases", no_wrap=True)
    for verdict in found:
        table.add_row(verdict.claim, verdict.outcome, verdict.tally)
    Console().print(table)

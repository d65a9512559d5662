"""`zerothresh reproduce`: the paper's experiments from one command."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zerothresh.cli.messages import BadInput, refusing, speaking

if TYPE_CHECKING:
    from zerothresh.reports.verdict import Verdict
    from zerothresh.reproduce.ridge.study import Study

_HELP = """Reproduce the paper's experiments: tables, figures, and a verdict on each of its claims.

EXPERIMENT is ridge (synthetic), bodyfat, autoprice, or all of these; or attack, the few-pixel attacks.

What is done is kept in the folder as it comes: after a stop, the same command goes on."""


def reproduce(
    experiment: Annotated[str, typer.Argument(help="ridge, bodyfat, autoprice, all; or attack.")],
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
    name: Annotated[
        str, typer.Option("--class", help="Of attack: airplane, ship, bird, dog or all.", metavar="CLASS")
    ] = "all",
    cifar10: Annotated[
        Path | None, typer.Option(help="Of attack: CIFAR-10, an archive or a folder, to try other images too.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; the numbers do not depend on it (default: one a processor).")
    ] = None,
) -> None:
    """Reproduce the paper's experiments."""
    with speaking():
        if experiment == "attack":
            if budget is not None:
                raise BadInput("attack has the paper's budget and two larger ones: leave --budget out")
            _attack(name, out, quick=quick, seed=seed, cifar10=cifar10, jobs=_processors() if jobs is None else jobs)
            return
        from zerothresh.reports import folder as report
        from zerothresh.reproduce.live_display import Grid
        from zerothresh.reproduce.ridge import study as studying
        from zerothresh.reproduce.ridge.experiments import EXPERIMENTS

        if experiment not in (*EXPERIMENTS, "all"):
            raise BadInput(f"there is no experiment {experiment!r}: take {', '.join(EXPERIMENTS)} or all, or attack")
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


def _attack(name: str, out: Path | None, *, quick: bool, seed: int, cifar10: Path | None, jobs: int) -> None:
    """The few-pixel attacks."""
    from zerothresh.datasets.cifar10 import PAPER_IDS
    from zerothresh.reports.folder import prepare
    from zerothresh.reproduce.cifar import experiment as attack
    from zerothresh.reproduce.cifar import report as attack_report
    from zerothresh.reproduce.live_display import Bar

    if name not in (*PAPER_IDS, "all"):
        raise BadInput(f"there is no class {name!r} in the paper's attacks: take {', '.join(PAPER_IDS)} or all")
    folder = Path("report") / (f"attack-{name}-quick" if quick else f"attack-{name}") if out is None else out
    begun = time.perf_counter()
    try:
        with refusing():
            plan = attack.plan_of(list(PAPER_IDS) if name == "all" else [name], quick=quick, seed=seed, cifar10=cifar10)
            wanted = attack.identity(plan)
            if prepare(folder, wanted):
                typer.echo(f"going on with what is in {folder}", err=True)
            made = []
            for one in plan.names:
                runs, queries = (number // len(plan.names) for number in (plan.runs, plan.queries))
                typer.echo(f"{one}: {runs} runs, at most {queries:,} queries", err=True)
                with Bar(one, runs, queries) as bar:
                    made.append(attack.run(plan, one, jobs=jobs, folder=folder, done=bar.done))
            found = attack_report.write(folder, plan, made, wanted, time.perf_counter() - begun)
    except (ImportError, FileNotFoundError) as error:
        raise BadInput(str(error)) from None
    for of in made:
        tables = [attack_report.as_in_the_paper(of), attack_report.with_care(of)]
        for table in tables if of.crowd is None else [*tables, attack_report.for_all(of)]:
            _print(table.title, table.header, table.rows)
    _say(found)
    typer.echo(f"Report: {folder / 'index.html'}")


def _print(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, word in enumerate(header):
        table.add_column(word, justify="left" if place == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(console.width, 108)
    console.print(table)
    typer.echo("")


def _processors() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _show(study: Study) -> None:
    """The methods in the last panel, with fresh runs."""
    from rich.console import Console
    from rich.table import Table

    from zerothresh.comparison.summary import mean, median

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

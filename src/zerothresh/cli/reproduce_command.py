"""`zerothresh reproduce`: run the paper's experiments and write a report."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerothresh.cli.messages import BadInput, refusing, say, speaking

if TYPE_CHECKING:
    from zerothresh.reports.verdict import Verdict
    from zerothresh.reproduce.ridge.study import Study

EXAMPLE = "Example: zerothresh reproduce ridge --quick --out report/ridge"

_WIDE = 108  # columns for the tables of the attacks, which do not fit into 80

_HELP = """Reproduce the paper's experiments: tables, figures, and a verdict on each of its claims.

EXPERIMENT is a ridge regression: ridge (synthetic data), bodyfat, autoprice, or all three (all); or attack: few-pixel \
attacks on CIFAR-10.

Every finished run is kept in the report folder. After an interruption, the same command continues."""


def reproduce(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="ridge, bodyfat, autoprice, all, or attack.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The report folder: new, empty, or with earlier work on the same experiment (default: "
            "report/EXPERIMENT).",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One panel and fewer runs: about a minute instead of many.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The seed of the problems and the runs.")] = 0,
    budget: Annotated[
        int | None,
        typer.Option(
            help="Calls of a component (#IZO) per run, instead of the paper's number. For attack: the largest budget "
            "of the fresh runs, which have 600, 6,000 and 60,000 queries."
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--class", help="For attack: airplane, ship, bird, dog or all.", metavar="CLASS")
    ] = "all",
    cifar10: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="For attack: CIFAR-10, as an archive or a folder, to try further images as well."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Number of processes; the results do not depend on it (default: one per processor)."),
    ] = None,
) -> None:
    """Reproduce the paper's experiments."""
    with speaking():
        from zerothresh.basics import check

        with refusing():
            workers = _processors() if jobs is None else check.count("--jobs", jobs, what=" (processes)")
        if experiment == "attack":
            _attack(name, out, quick=quick, seed=seed, budget=budget, cifar10=cifar10, jobs=workers)
        else:
            _ridge(experiment, out, quick=quick, seed=seed, budget=budget, jobs=workers)


reproduce.__doc__ = _HELP


def _ridge(experiment: str, out: Path | None, *, quick: bool, seed: int, budget: int | None, jobs: int) -> None:
    """Run the ridge experiments, write the report, and print a summary."""
    from zerothresh.reports.report_folder import prepare
    from zerothresh.reproduce.live_display import GridDisplay
    from zerothresh.reproduce.ridge import ridge_report
    from zerothresh.reproduce.ridge.experiments import EXPERIMENTS
    from zerothresh.reproduce.ridge.study import check_runs, run

    if experiment not in (*EXPERIMENTS, "all"):
        raise BadInput(f"there is no experiment {experiment!r}: choose {', '.join(EXPERIMENTS)} or all, or attack")
    names = list(EXPERIMENTS) if experiment == "all" else [experiment]
    folder = _folder(out, experiment, quick)
    begun = time.perf_counter()
    with refusing():
        experiments = [EXPERIMENTS[name](quick=quick, seed=seed) for name in names]
        if budget is not None:
            experiments = [one.with_budget(budget) for one in experiments]
        for one in experiments:
            check_runs(one)
        identity = ridge_report.identity(experiments, quick=quick)
        if prepare(folder, identity):
            _announce_continuation(folder)
        studies = []
        for one in experiments:
            with GridDisplay(one) as display:
                studies.append(run(one, jobs=jobs, folder=folder, done=display.done))
        verdicts = ridge_report.write(folder, studies, identity, time.perf_counter() - begun)
    for study in studies:
        _show_study(study)
    _show_verdicts(verdicts)
    say(f"Report: {folder / 'index.html'}")


def _attack(
    name: str, out: Path | None, *, quick: bool, seed: int, budget: int | None, cifar10: Path | None, jobs: int
) -> None:
    """Run the few-pixel attacks, write the report, and print a summary."""
    from zerothresh.datasets.cifar10 import PAPER_IDS
    from zerothresh.reports.report_folder import prepare
    from zerothresh.reproduce.cifar import experiment as attack
    from zerothresh.reproduce.cifar import report as attack_report
    from zerothresh.reproduce.live_display import BarDisplay

    if name not in (*PAPER_IDS, "all"):
        raise BadInput(f"there is no class {name!r} in the paper's attacks: choose {', '.join(PAPER_IDS)} or all")
    folder = _folder(out, f"attack-{name}", quick)
    begun = time.perf_counter()
    try:
        with refusing():
            names = list(PAPER_IDS) if name == "all" else [name]
            plan = attack.plan_of(names, quick=quick, seed=seed, cifar10=cifar10, most=budget)
            identity = attack.identity(plan)
            if prepare(folder, identity):
                _announce_continuation(folder)
            results = []
            for one in plan.names:
                runs, queries = (number // len(plan.names) for number in (plan.runs, plan.queries))
                say(f"{one}: {runs} runs, at most {queries:,} queries", err=True)
                with BarDisplay(one, runs, queries) as display:
                    results.append(attack.run(plan, one, jobs=jobs, folder=folder, done=display.done))
            verdicts = attack_report.write(folder, plan, results, identity, time.perf_counter() - begun)
    except (ImportError, FileNotFoundError) as error:
        raise BadInput(str(error)) from None
    for of in results:
        tables = [attack_report.as_in_the_paper(of), attack_report.with_care(of)]
        for table in tables if of.crowd is None else [*tables, attack_report.for_all(of)]:
            _print_table(table.title, table.header, table.rows, width=_WIDE)
            say("")
    _show_verdicts(verdicts)
    say(f"Report: {folder / 'index.html'}")


def _folder(out: Path | None, name: str, quick: bool) -> Path:
    """Return the report folder."""
    return Path("report") / (f"{name}-quick" if quick else name) if out is None else out


def _announce_continuation(folder: Path) -> None:
    """Say that earlier work is continued."""
    say(f"continuing the work in {folder}", err=True)


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], width: int = 0) -> None:
    """Print a table with its first column left-justified, at least ``width`` columns wide if it needs them."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(console.width, width)
    console.print(table)


def _show_study(study: Study) -> None:
    """Print the methods in one panel: that of the paper's figure if it was run, otherwise the last one."""
    from zerothresh.comparison.summary import mean, median
    from zerothresh.reproduce.ridge.experiments import FIGURED

    panel = FIGURED if FIGURED in study.experiment.panels else study.experiment.panels[-1]
    rows = []
    for label in study.labels():
        first, judged = study.find(label, panel, fresh=False), study.find(label, panel)
        if first is None or judged is None:
            continue
        gap, fresh = mean(first.measures(fresh=False).gap).value, judged.measures(fresh=True)
        numbers = f"{fresh.gap.mean():.1e}", f"{median(fresh.own).value:.1e}", f"{fresh.right.mean():.0%}"
        etas = [f"{eta:g}" if eta == eta else "-" for eta in (first.eta, judged.eta)]  # auto has none
        rows.append([label, etas[0], f"{gap:.1e}", etas[1], *numbers])
    title = f"{study.experiment.title}, {panel}, {study.experiment.budget:,} #IZO"
    header = ("method", "eta", "as in paper", "eta", "fresh runs", "own support", "best support")
    _print_table(title, header, rows)
    say(
        "as in paper: mean of F - F* at the end, over the runs that chose eta\n"
        "fresh runs: the same over runs that did not choose eta\n"
        "own support: median of F minus its minimum on the final support, over fresh runs\n"
        "best support: share of fresh runs that end with the best support\n"
    )


def _show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print the verdicts, one or two lines each."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Verdicts", title_justify="left", box=None, pad_edge=False)
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("cases", no_wrap=True)
    for verdict in verdicts:
        table.add_row(verdict.claim, verdict.outcome, verdict.tally)
    Console().print(table)

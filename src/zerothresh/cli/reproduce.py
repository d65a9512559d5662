"""`zerothresh reproduce`: the paper's experiments from one command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerothresh.cli.say import refusing, speaking

if TYPE_CHECKING:
    from zerothresh.reproduce.ridge import RidgeComparison

reproduce = typer.Typer(help="Reproduce the paper's experiments.", no_args_is_help=True)


@reproduce.callback()
def experiments() -> None:
    """Reproduce the paper's experiments: each gives a table here and a report folder."""


@reproduce.command("ridge", epilog="Example: zerothresh reproduce ridge --runs 10 --out report/ridge10")
def ridge(
    out: Annotated[
        Path, typer.Option(help="The report folder: new, empty, or with an earlier report of this experiment.")
    ] = Path("report/ridge"),
    runs: Annotated[int, typer.Option(help="Runs of each method and learning rate.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the problem and the first run; the next run has the next seed.")] = 0,
    budget: Annotated[
        int, typer.Option(help="Calls of a component (#IZO) for each run; the paper has 80,000.")
    ] = 80_000,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; the numbers do not depend on it (default: one a processor).")
    ] = None,
) -> None:
    """Compare all methods on the paper's ridge regression: a table, two figures, a report."""
    with speaking():
        from zerothresh import report
        from zerothresh.reproduce import ridge as experiment
        from zerothresh.reproduce import ridge_report

        cells = len(experiment.METHODS) * len(experiment.ETAS) * runs
        with refusing():
            report.prepare(out, ridge_report.EXPERIMENT)
            with _Live(cells) as live:
                comparison = experiment.run_ridge(
                    runs=runs, seed=seed, budget=budget, jobs=_processors() if jobs is None else jobs, done=live.done
                )
            ridge_report.write(comparison, out)
        _show(comparison, ridge_report.HEADER, ridge_report.rows(comparison))
        typer.echo(f"Report: {out / 'index.html'}")


def _processors() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Live:
    """Runs done, the best so far and the time left: a bar on a terminal, plain lines elsewhere."""

    def __init__(self, cells: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.cells, self.count, self.lowest, self.best = cells, 0, float("inf"), ""
        console = Console(stderr=True)
        self.bar: Any = None
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"))
            self.bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
            self.task = self.bar.add_task("starting", total=cells)

    def __enter__(self) -> _Live:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def done(self, cell: Any, result: Any) -> None:
        """Take note of a run."""
        from zerothresh.reproduce.compare import end_of

        self.count += 1
        if end_of(result) < self.lowest:
            self.lowest = end_of(result)
            self.best = f"best {cell.label} eta={cell.method.eta:g} F={self.lowest:.6f}"
        if self.bar is not None:
            self.bar.update(self.task, completed=self.count, description=self.best)
        elif self.count == self.cells or self.count % max(1, self.cells // 7) == 0:
            typer.echo(f"{self.count} of {self.cells} runs; {self.best}", err=True)


def _show(comparison: RidgeComparison, header: tuple[str, ...], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    setting = comparison.setting
    title = (
        f"Ridge, k = {setting.k}, {setting.budget:,} #IZO, {len(comparison.seeds)} runs, F* = {comparison.optimum:.6f}"
    )
    table = Table(title=title, caption="eta: the best of the grid; support: runs that end with the best support")
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console().print(table)

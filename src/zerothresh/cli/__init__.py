"""The `zerothresh` command."""

from __future__ import annotations

from typing import Annotated

import typer

from zerothresh.cli.advise_command import EXAMPLES, advise
from zerothresh.cli.attack_command import EXAMPLE as ATTACK_EXAMPLE
from zerothresh.cli.attack_command import attack
from zerothresh.cli.export_command import export
from zerothresh.cli.methods_command import list_methods
from zerothresh.cli.reproduce_command import reproduce
from zerothresh.cli.show_command import show
from zerothresh.cli.solve_command import EXAMPLE, solve

app = typer.Typer(
    help="Sparse black-box optimisation: at most k non-zero coordinates, from function values alone.",
    epilog="Start with `zerothresh methods`, then `zerothresh solve --help`. What to run? `zerothresh advise --help`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("methods")(list_methods)
app.command("solve", epilog=EXAMPLE, no_args_is_help=True)(solve)
app.command("advise", epilog=EXAMPLES, no_args_is_help=True)(advise)
app.command("show", epilog="Example: zerothresh show runs/a", no_args_is_help=True)(show)
app.command(
    "export", epilog="Example: zerothresh export runs/a --trace trace.csv --best best.npy", no_args_is_help=True
)(export)
app.command("attack", epilog=ATTACK_EXAMPLE)(attack)
app.command("reproduce", epilog="Example: zerothresh reproduce ridge --quick --out report/ridge", no_args_is_help=True)(
    reproduce
)


def _version(wanted: bool) -> None:
    if wanted:
        from zerothresh import __version__

        typer.echo(f"zerothresh {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command."""
    app(prog_name="zerothresh")

"""The `zerothresh` command with its subcommands, and the entry point of the package."""

from __future__ import annotations

from typing import Annotated

import typer

from zerothresh.cli.advise_command import EXAMPLES as ADVISE_EXAMPLES
from zerothresh.cli.advise_command import advise
from zerothresh.cli.attack_command import EXAMPLE as ATTACK_EXAMPLE
from zerothresh.cli.attack_command import attack
from zerothresh.cli.export_command import export
from zerothresh.cli.methods_command import list_methods
from zerothresh.cli.path_command import EXAMPLE as PATH_EXAMPLE
from zerothresh.cli.path_command import path
from zerothresh.cli.reproduce_command import EXAMPLE as REPRODUCE_EXAMPLE
from zerothresh.cli.reproduce_command import reproduce
from zerothresh.cli.show_command import show
from zerothresh.cli.solve_command import EXAMPLE as SOLVE_EXAMPLE
from zerothresh.cli.solve_command import solve

app = typer.Typer(
    help="Minimise black-box functions with at most k non-zero coordinates, from function values alone.",
    epilog="Start with `zerothresh solve --help`. `zerothresh methods` lists the methods, and `zerothresh advise` "
    "helps to choose one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("methods")(list_methods)
app.command("solve", epilog=SOLVE_EXAMPLE, no_args_is_help=True)(solve)
app.command("path", epilog=PATH_EXAMPLE, no_args_is_help=True)(path)
app.command("advise", epilog=ADVISE_EXAMPLES, no_args_is_help=True)(advise)
app.command("show", epilog="Example: zerothresh show runs/a", no_args_is_help=True)(show)
app.command(
    "export", epilog="Example: zerothresh export runs/a --trace trace.csv --best best.npy", no_args_is_help=True
)(export)
app.command("attack", epilog=ATTACK_EXAMPLE)(attack)
app.command("reproduce", epilog=REPRODUCE_EXAMPLE, no_args_is_help=True)(reproduce)


def _show_version(wanted: bool) -> None:
    """Print the version and exit, if --version was given."""
    if wanted:
        from zerothresh import __version__

        typer.echo(f"zerothresh {__version__}")
        raise typer.Exit


@app.callback()
def common_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Minimise black-box functions with at most k non-zero coordinates, from function values alone."""


def main() -> None:
    """Run the command line; the entry point of the package."""
    app(prog_name="zerothresh")

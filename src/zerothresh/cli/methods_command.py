"""`zerothresh methods`: list the methods that `zerothresh solve` can run."""

from __future__ import annotations

import inspect
import json
from itertools import groupby
from typing import Annotated, Any

import typer

from zerothresh.cli.messages import say, speaking


def list_methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """List all methods with their hyper-parameters, default values, and number of calls per step."""
    with speaking():
        described = describe()
        if as_json:
            say(json.dumps(described, indent=2))
            return
        _show(described)


def describe() -> list[dict[str, Any]]:
    """Describe each method as a dict: name, class, family, hyper-parameters and summary, in the order of the list."""
    from zerothresh.methods.registry import available, family_of

    return [
        {
            "name": name,
            "class": method.__name__,
            "family": family_of(method),
            "parameters": _parameters(method),
            "summary": _summary(method),
        }
        for name, method in available().items()
    ]


def _parameters(method: type) -> list[dict[str, Any]]:
    """The hyper-parameters of a class; defaults are written as in Python, and None where a value is required."""
    out = []
    example = _example(method)
    for parameter in inspect.signature(method).parameters.values():
        required = parameter.default is parameter.empty
        # The signature does not show what a dataclass's default_factory makes; an instance does.
        default = None if required else repr(getattr(example, parameter.name, parameter.default))
        out.append({"name": parameter.name, "required": required, "default": default})
    return out


def _example(method: type) -> Any:
    """An instance to read defaults from; None if the required hyper-parameters are not numbers."""
    parameters = inspect.signature(method).parameters.values()
    try:
        return method(**{p.name: 1 for p in parameters if p.default is p.empty})
    except (TypeError, ValueError):
        return None


def _summary(method: type) -> str:
    """The first paragraph of a class's docstring: what the method is, and how many calls it makes."""
    return " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())


def _show(described: list[dict[str, Any]]) -> None:
    """Print one table per family."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from zerothresh.methods.registry import FAMILIES

    console = Console()
    for family, entries in groupby(described, key=lambda entry: entry["family"]):
        title = Text(FAMILIES[family], style="bold")
        table = Table(title=title, title_justify="left", show_lines=True, expand=True)
        table.add_column("name, class", no_wrap=True)
        table.add_column("hyper-parameters", no_wrap=True)
        table.add_column("description")
        for entry in entries:
            parameters = [f"{p['name']} (required)" if p["required"] else _assigned(p) for p in entry["parameters"]]
            name = Text(entry["name"], style="bold")
            name.append(f"\n{entry['class']}", style="dim not bold")
            table.add_row(name, Text("\n".join(parameters)), Text(entry["summary"]))
        console.print(table)
    console.print(
        "A call is one evaluation of one component f_i. n is the number of components, q the number of directions per "
        "gradient estimate. Run a method with: zerothresh solve --method NAME --set PARAMETER=VALUE"
    )


def _assigned(parameter: dict[str, Any]) -> str:
    return f"{parameter['name']}={parameter['default']}"

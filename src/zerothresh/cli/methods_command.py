"""`zerothresh methods`: what there is to choose from."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from zerothresh.cli.messages import speaking


def list_methods(as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False) -> None:
    """List the methods, their hyper-parameters with defaults, and what a step costs."""
    with speaking():
        described = describe()
        if as_json:
            typer.echo(json.dumps(described, indent=2))
            return
        _show(described)


def describe() -> list[dict[str, Any]]:
    """Name, class, hyper-parameters and summary of each method."""
    from zerothresh.methods.registry import available

    return [
        {"name": name, "class": method.__name__, "parameters": _parameters(method), "summary": _summary(method)}
        for name, method in available().items()
    ]


def _parameters(method: type) -> list[dict[str, Any]]:
    """Each with its default as it is written in Python; ``null`` and required if there is none."""
    out = []
    made = _example(method)
    for parameter in inspect.signature(method).parameters.values():
        required = parameter.default is parameter.empty
        # A dataclass's default_factory is known only to an instance.
        default = None if required else repr(getattr(made, parameter.name, parameter.default))
        out.append({"name": parameter.name, "required": required, "default": default})
    return out


def _example(method: type) -> Any:
    """An instance, to read defaults from; None if the method wants more than numbers."""
    parameters = inspect.signature(method).parameters.values()
    try:
        return method(**{p.name: 1 for p in parameters if p.default is p.empty})
    except (TypeError, ValueError):
        return None


def _summary(method: type) -> str:
    """The docstring up to its formula or its arguments."""
    paragraphs = (inspect.getdoc(method) or "").split("\n\n")
    kept: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith((".. math", "Arguments", "Reference", ">>>")):
            break
        kept.append(" ".join(paragraph.split()))
    return " ".join(kept)


def _show(described: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True, caption="q directions an estimate, n components; see zerothresh solve --help")
    table.add_column("method, class", no_wrap=True)
    table.add_column("hyper-parameters", no_wrap=True)
    table.add_column("what it is, and its calls of f_i")
    for entry in described:
        parameters = [f"{p['name']} (required)" if p["required"] else _assigned(p) for p in entry["parameters"]]
        name = Text(entry["name"], style="bold")
        name.append(f"\n{entry['class']}", style="dim not bold")
        table.add_row(name, Text("\n".join(parameters)), Text(entry["summary"]))
    Console().print(table)


def _assigned(parameter: dict[str, Any]) -> str:
    return f"{parameter['name']}={parameter['default']}"

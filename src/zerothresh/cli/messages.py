"""What the command prints: one sentence for bad input, the user's own traceback, tables; and its exit codes."""

from __future__ import annotations

import errno
import io
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from zerothresh.basics.foreign_text import printable

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130  # shells use 130 for a command that Ctrl-C ended

_INTERNAL = (  # files whose frames come before the user's code in a traceback
    str(Path(__file__).parents[1]),
    "<frozen importlib",
    str(Path("importlib", "__init__.py")),
    str(Path("concurrent", "futures")),
)


# What the library calls its arguments, and how a user of the command writes them.
_AS_OPTIONS = {
    "pass n=...": "add --components N",
    "leave n out": "leave --components out",
    "n was given": "--components was given",
    "pass vectorized=True": "add --vectorized",
    "fun must be": "the objective must be",
    "fun has the": "the objective has the",
    "max_time = ": "--max-time ",
    "max_time": "--max-time",
    "on_nan='retry' needs retries": "--on-nan retry needs --retries",
    "on_nan='mask'": "--on-nan mask",
    "outputs=...": "--outputs",
    "pass outputs='residuals' or outputs='components'": "add --outputs residuals or --outputs components",
    "outputs='residuals'": "--outputs residuals",
    "outputs='components'": "--outputs components",
    "outputs must be": "--outputs must be",
    "leave outputs out": "leave --outputs out",
    "loss goes with": "--loss goes with",
    "loss must be": "--loss must be",
    "on_nan": "--on-nan",
    "on_error": "--on-error",
    "per_second must": "--per-second must",
    "jitter must": "--jitter must",
    "probe = ": "--probe is ",
    "probe must be": "--probe must be",
}


class BadInput(Exception):
    """The input cannot be used; the message says why, and what to do."""


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text; what a terminal would obey or not show becomes ?, because a part of it may be a stranger's."""
    typer.echo(printable(str(text), lines=True), err=err, nl=nl)


@contextmanager
def speaking() -> Iterator[None]:
    """Print what goes wrong as one sentence, and warnings as one line.

    The exit code is 2 for bad input, 130 after Ctrl-C, and 1 if the system refuses something: a full disk, say.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # not every terminal can show every character
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except BadInput as error:
            say(f"zerothresh: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            say("zerothresh: stopped by Ctrl-C or SIGTERM", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # nobody reads the output any more, as after `| head`
                raise
            say(f"zerothresh: {error}", err=True)
            raise typer.Exit(FAILED) from None


@contextmanager
def refusing() -> Iterator[None]:
    """Turn the library's refusals into bad input; errors of the objective never come this way."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise BadInput(as_options(str(error))) from None
    except MemoryError as error:
        raise BadInput(f"this needs more memory than there is ({error}): make the problem smaller") from None


def as_options(message: str) -> str:
    """Rewrite a message of the library so that it names options of the command instead of arguments."""
    for argument, option in _AS_OPTIONS.items():
        message = message.replace(argument, option)
    return message


def own_traceback(error: BaseException) -> str:
    """Return a traceback from the user's first frame on, without the frames of this package that led there."""
    frame = error.__traceback__
    while frame is not None and any(part in frame.tb_frame.f_code.co_filename for part in _INTERNAL):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame))


def print_rows(title: str, rows: dict[str, str]) -> None:
    """Print a table of names and values, which may come from a stranger's file."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, title=Text(printable(title)), title_justify="left", box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(printable(name)), Text(printable(value, lines=True)))
    Console().print(table)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning of this package as one line, and others as Python does."""
    if issubclass(category, UserWarning):
        say(f"warning: {message}", err=True)
    else:
        say(warnings.formatwarning(message, category, filename, lineno, line), err=True, nl=False)

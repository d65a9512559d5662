"""Turn arguments of the command line into the objective, the start and the method."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from zerothresh.cli.messages import BadInput, own_traceback, refusing


def objective(target: str) -> Any:
    """Return the object that ``module:function`` or ``path/to/file.py:function`` names."""
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise BadInput(f"the objective must be module:function or path/to/file.py:function, not {target!r}")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = _file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except BadInput:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and f"{where}.".startswith(f"{error.name}."):
            raise BadInput(
                f"there is no module {error.name!r} in the current folder or among the installed packages. To use a "
                f"file, write path/to/file.py:{name}"
            ) from None
        raise _broken(where, error) from None
    except (Exception, SystemExit) as error:
        raise _broken(where, error) from None
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [known for known in dir(found) if not known.startswith("_")])
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise BadInput(f"{where} has nothing named {part!r}{hint}")
        found = getattr(found, part)
    return found


def _file(path: Path) -> ModuleType:
    """Import a file as a module."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}: write path/to/file.py:function")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that it can import other files of its folder
    name = f"zerothresh_objective_{path.stem}"  # a file may have the name of an installed module
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up here
    spec.loader.exec_module(module)
    return module


def _broken(where: str, error: BaseException) -> BadInput:
    """Print the traceback of an import that failed, and return the error to raise."""
    typer.echo(own_traceback(error), err=True, nl=False)
    return BadInput(f"{where} could not be imported: {type(error).__name__} (its traceback is above)")


def start(x0: Path | None, dim: int | None, fun: Any) -> Any:
    """Return the start, or the dimension, or None for a problem object that knows its own dimension."""
    import numpy as np

    from zerothresh.objective.forms import Problem

    if x0 is None:
        if dim is None and not isinstance(fun, Problem):
            raise BadInput("--dim is needed, the length d of the vectors that the function takes; or --x0 start.npy")
        return dim
    try:
        theta = np.load(x0, allow_pickle=False)
    except FileNotFoundError:
        raise BadInput(f"--x0 {x0} does not exist: name a .npy file of numbers") from None
    except OSError as error:
        raise BadInput(f"--x0 {x0} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError):  # NumPy's own message advises to unpickle the file, which would run its code
        raise BadInput(f"--x0 {x0} is not a .npy file of numbers: write one with numpy.save") from None
    if dim is not None and np.shape(theta) != (dim,):
        raise BadInput(f"--x0 {x0} has shape {np.shape(theta)}, but --dim is {dim}: leave --dim out, or correct it")
    return theta


def method(name: str, settings: list[str]) -> Any:
    """Return the method of that name, with its hyper-parameters from a list of ``key=value``."""
    import inspect

    from zerothresh.methods.registry import available, make, missing_parameters, registered_name

    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals and value):
            raise BadInput(f"--set takes key=value, for example --set eta=0.01, not {setting!r}")
        if key in options:
            raise BadInput(f"--set {key}=... is given twice: give it once")
        options[key] = _parsed(value)
    with refusing():
        known = registered_name(name, argument="--method")
        missing = missing_parameters(available()[known], options)
        unknown = options.keys() - inspect.signature(available()[known]).parameters.keys()
        if missing and not unknown:
            raise BadInput(f"{known} needs {' and '.join(missing)}: add {' '.join(f'--set {m}=...' for m in missing)}")
        try:
            return make(known, options)
        except ImportError as error:  # a solver of a package that is not installed
            raise BadInput(str(error)) from None


def _parsed(text: str) -> int | float | str:
    """Return a number if the text is one, otherwise the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

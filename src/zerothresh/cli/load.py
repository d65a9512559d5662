"""Turn arguments of the command line into the objective, the start and the method."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import io
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from zerothresh.cli.messages import BadInput, own_traceback, refusing, say

if TYPE_CHECKING:
    from zerothresh.problems.linear_table import LinearTable

MOST_BYTES = 1 << 31  # that are read of a file of arrays: 170,000 images of CIFAR-10 in float32


def objective(target: str) -> Any:
    """Return the object that ``module:function`` or ``path/to/file.py:function`` names."""
    where, _, name = target.rpartition(":")
    if not where or not name:
        raise BadInput(f"the objective must be module:function or path/to/file.py:function, not {target!r}")
    is_file = where.endswith(".py")
    if not is_file and not all(part.isidentifier() for part in where.split(".")):
        raise BadInput(f"{where!r} is not the name of a module: write module:function or path/to/file.py:function")
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = _file(Path(where)) if is_file else importlib.import_module(where)
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
        try:
            found = getattr(found, part)
        except AttributeError:
            near = difflib.get_close_matches(part, [known for known in dir(found) if not known.startswith("_")])
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise BadInput(f"{where} has nothing named {part!r}{hint}") from None
        except Exception as error:  # of the user's own code: a property, or a __getattr__ of the module
            raise _broken(f"{part!r} of {where}", error) from None
    return found


def values(given: str | None) -> str | list[float] | None:
    """Return what --values names: a kind of values, or the numbers themselves."""
    if given is None or not any(c.isdigit() for c in given):
        return given
    try:
        return [float(part) for part in given.split(",")]
    except ValueError:
        raise BadInput(
            f"--values must be integers, bytes, on/off or numbers separated by commas, not {given!r}"
        ) from None


def _file(path: Path) -> ModuleType:
    """Import a file as a module."""
    if not os.path.isfile(path):  # which is also false of a name that no file can have
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
    say(own_traceback(error), err=True, nl=False)
    return BadInput(f"{where} could not be imported: {type(error).__name__} (its traceback is above)")


def start(x0: Path | None, dim: int | None, fun: Any) -> Any:
    """Return the start, or the dimension, or None for a problem object that knows its own dimension."""
    import numpy as np

    from zerothresh.objective.forms import Problem

    if x0 is None:
        if dim is None and not isinstance(fun, Problem) and not hasattr(fun, "d"):
            raise BadInput("--dim is needed, the length d of the vectors that the function takes; or --x0 start.npy")
        return dim
    theta = read_array(x0, "--x0")
    if dim is not None and np.shape(theta) != (dim,):
        raise BadInput(f"--x0 {x0} has shape {np.shape(theta)}, but --dim is {dim}: leave --dim out, or correct it")
    return theta


def read_array(path: Path, option: str) -> Any:
    """Read a .npy file, which may be anybody's: nothing in it is unpickled, and no pipe is waited for."""
    import numpy as np

    content = _content(path, f"{option} {path}", "name a .npy file of numbers")
    try:
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception:  # NumPy's own message advises to unpickle the file, which would run its code
        raise BadInput(f"{option} {path} is not a .npy file of numbers: write one with numpy.save") from None


def read_arrays(path: Path, names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Read some arrays of an .npz file, which may be anybody's.

    Arguments
    ---------
    path: the file.
    names: the arrays that are wanted, of which some may be missing.

    Returns the arrays that it has by name, and the names of all its arrays.
    """
    import zipfile

    import numpy as np

    content = _content(path, str(path), "name an .npz file of plain arrays")
    found: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            wanted = {name: entries[name] for name in names if name in entries}
            if sum(entry.file_size for entry in wanted.values()) > MOST_BYTES:
                raise BadInput(f"{path} holds more than {MOST_BYTES:,} bytes of images: attack fewer at a time")
            for name, entry in wanted.items():
                array = np.lib.format.read_array(io.BytesIO(archive.read(entry)), allow_pickle=False)
                found[name] = array
    except BadInput:
        raise
    except Exception:  # whatever a damaged or forged file makes the readers of zip and npy raise
        raise BadInput(f"{path} is not an .npz file of plain arrays: write one with numpy.savez") from None
    return found, list(entries)


def _content(path: Path, named: str, remedy: str) -> bytes:
    """Return the content of a regular file of a sensible size."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BadInput(f"{named} is not a file: {remedy}")
        if found.st_size > MOST_BYTES:
            raise BadInput(f"{named} has more than {MOST_BYTES:,} bytes: {remedy}")
        return path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{named} does not exist: {remedy}") from None
    except OSError as error:
        raise BadInput(f"{named} cannot be read ({error.strerror}): {remedy}") from None
    except ValueError:
        raise BadInput(f"{named} is not a path: {remedy}") from None


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


def loss(text: str | None) -> Any:
    """Return the loss that the option ``--loss`` describes: a name, or a name with its parameter, as in huber:0.5."""
    from zerothresh.basics import check
    from zerothresh.losses import NAMES, Cauchy, Huber, Quantile

    if text is None or ":" not in text:
        return text
    name, _, number = text.partition(":")
    of_number = {"huber": Huber, "cauchy": Cauchy, "quantile": Quantile}
    if check.one_of("--loss", name, NAMES) not in of_number:
        raise BadInput(f"--loss {name} takes no parameter")
    try:
        parameter = float(number)
    except ValueError:
        raise BadInput(f"--loss must be a name, or a name and a number as in huber:0.5, not {text!r}") from None
    made: Any = of_number[name](parameter)
    return made


MOST_LISTED = 10**6  # numbers of a list such as 0:99


def whole_numbers(option: str, text: str) -> list[int]:
    """Return the whole numbers of a list such as 0,3,10:12, where 10:12 stands for 10, 11 and 12."""
    found: list[int] = []
    for part in text.split(","):
        first, colon, last = part.strip().partition(":")
        try:
            low = int(first)
            high = int(last) if colon else low
        except ValueError:
            raise BadInput(f"{option} takes whole numbers such as 0,3,10:12, not {text!r}") from None
        if high < low:
            raise BadInput(f"{option} {text!r} has the range {part.strip()}, which ends before it begins")
        if high - low + len(found) >= MOST_LISTED:
            raise BadInput(f"{option} {text!r} lists more than {MOST_LISTED:,} numbers")
        found += range(low, high + 1)
    return found


def coordinates(option: str, text: str | None) -> list[int] | None:
    """Return the coordinates of --include or --exclude."""
    return None if text is None else whole_numbers(option, text)


def bounds(pair: tuple[float, float] | None, file: Path | None, found: TableProblem | None = None) -> Any:
    """Return the bounds as `zt.minimize` takes them; those of a table's coefficients are in its units."""
    if found is not None:
        return found.bounds(bounds(pair, file))
    if file is None:
        return pair
    if pair is not None:
        raise BadInput("--bounds holds for all coordinates, and --bounds-file for each: give one of the two")
    table = _table_of(file, "--bounds-file")
    if table.ndim != 2 or table.shape[1] != 2:
        raise BadInput(f"--bounds-file {file} has the shape {table.shape}: it must have two columns, low and high")
    return table[:, 0], table[:, 1]


def groups(file: Path | None) -> Any:
    """Return the labels of --groups."""
    if file is None:
        return None
    if file.suffix == ".npy":
        return read_array(file, "--groups")
    text = _content(file, f"--groups {file}", "name a .npy file, or text with a label on each line")
    labels = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return [number[label] for label in labels]


def _table_of(file: Path, option: str) -> Any:
    """Return the numbers of a .npy file, or of text with numbers between commas or blanks."""
    import numpy as np

    if file.suffix == ".npy":
        return np.asarray(read_array(file, option), float)
    text = _content(file, f"{option} {file}", "name a .npy file, or text with numbers").decode(errors="replace")
    try:
        rows = [[float(cell) for cell in line.replace(",", " ").split()] for line in text.splitlines() if line.strip()]
        return np.array(rows, float)
    except ValueError:
        raise BadInput(f"{option} {file} must hold numbers, with commas or blanks between them") from None


def need_matplotlib(option: str) -> None:
    """Refuse an option before anything is paid for, if what it needs is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise BadInput(f"{option} needs matplotlib: pip install 'zerothresh[plot]'")


INTERCEPT = "intercept"
FIRST_LEVEL = 1.0  # standard deviations of the target above its mean, where the search for a model begins


class TableProblem(NamedTuple):
    """A linear model of a table: the problem, the names of its coordinates, and how its target was read."""

    problem: LinearTable
    names: tuple[str, ...]
    classes: tuple[str, ...] | None
    loss: str

    def start(self, x0: Path | None) -> Any:
        """Return the start: an intercept above most of the target, or its log-odds, unless the user has one.

        Nearly all rows are then off to the same side. In the midst of them, a loss with a kink has kinks all around; at
        0, the result would depend on the origin of the target.
        """
        import numpy as np

        if x0 is not None:
            return read_array(x0, "--x0")
        theta, y = np.zeros(self.problem.d), self.problem.y
        if self.loss == "logistic":
            share = np.clip(y.mean(), 1 / y.size, 1 - 1 / y.size)
            theta[-1] = np.log(share / (1 - share))
        else:
            theta[-1] = y.mean() + FIRST_LEVEL * y.std()
        return theta

    def k(self, k: int) -> int:
        """Return k with the place of the intercept."""
        if not 1 <= k < self.problem.d:
            raise BadInput(f"k = {k} is not possible: the table has {self.problem.d - 1} columns beside the target")
        return k + 1

    def include(self, chosen: list[int] | None, excluded: list[int] | None, ks: list[int]) -> list[int]:
        """Return what is always in the model: what the user wants, and the intercept."""
        wanted = set(chosen or [])
        for j in sorted(wanted & set(excluded or [])):
            raise BadInput(
                f"column {self.names[j]!r} is in both --include and --exclude: remove it from one of the two"
            )
        if len(wanted) > min(ks):
            raise BadInput(
                f"--include names {len(wanted)} columns, but k = {min(ks)}: take a larger k or a shorter list"
            )
        return [*wanted, self.problem.d - 1]

    def bounds(self, given: Any) -> Any:
        """Return bounds of the coefficients, in the units of the table, as bounds of the coordinates.

        Arguments
        ---------
        given: None, or the lower and the upper bounds, each a number or an array with an entry for each column.
        """
        import numpy as np

        if given is None:
            return None
        columns = self.problem.d - 1
        sides = []
        for side, none in zip(given, (-np.inf, np.inf), strict=True):
            array = np.asarray(side, float)
            if array.shape not in ((), (columns,)):
                raise BadInput(f"--bounds-file has {array.size} lines, but the table has {columns} columns")
            bad = np.flatnonzero(~np.broadcast_to(array <= 0 if none < 0 else array >= 0, columns))
            if bad.size:
                name, number = self.names[bad[0]], np.broadcast_to(array, columns)[bad[0]]
                raise BadInput(
                    f"the {'lower' if none < 0 else 'upper'} bound of column {name!r} is {number:g}: bounds must "
                    "contain 0, because most coefficients of a sparse model are 0"
                )
            sides.append(np.append(self.problem.spread * array, none))  # the intercept is free
        return sides[0], sides[1]

    def refuse(self, options: dict[str, Any]) -> None:
        """Refuse options that would hold for coordinates the user does not see: standardised ones."""
        for option, value in options.items():
            if value is not None:
                raise BadInput(
                    f"{option} does not go with --csv, whose columns are standardised inside; --bounds and "
                    "--bounds-file hold for the coefficients in the units of the table"
                )

    def is_useless(self, x: Any) -> bool:
        """Return whether the intercept alone would be as good on the rows of the table."""
        return not self.problem.F(x) < self.problem.F(self.problem.constant())

    def advice(self, calls: int) -> str:
        """Say what to do about a model that is no better than the intercept alone."""
        return (
            "the model is no better than the intercept alone: a call is the loss of one row, so that "
            f"{calls:,} calls are {calls / self.problem.n:.1f} passes over the table; give a larger --budget"
        )

    def model(self, x: Any) -> dict[str, float]:
        """Return the coefficients that are not 0 by name, in the units of the table, the intercept first."""
        values = self.problem.coefficients(x)
        chosen = {self.names[j]: float(values[j]) for j in range(len(values) - 1) if x[j] != 0}
        return {INTERCEPT: float(values[-1]), **chosen}


def table(file: Path, target: str | None, loss_text: str | None) -> TableProblem:
    """Return the linear model of a CSV file."""
    import numpy as np

    from zerothresh.basics import check
    from zerothresh.datasets.csv_file import parse
    from zerothresh.losses import NAMES, loss_of
    from zerothresh.problems import linear_table

    if target is None:
        raise BadInput("--csv needs --target, the column to predict")
    text = _content(file, f"--csv {file}", "name a CSV file").decode("utf-8-sig", errors="replace")
    try:
        columns = parse(text, target)
        for j in np.flatnonzero((columns.X[0] == columns.X).all(axis=0)).tolist():
            raise ValueError(f"column {columns.names[j]!r} has the same value in all rows: leave it out")
        if columns.labelled:
            say("zerothresh: the first column has no name; it is taken as labels of the rows, and left out", err=True)
        name = "mse" if loss_text is None else loss_text
        own = {"mae": linear_table.absolute, "mape": linear_table.relative, "logistic": linear_table.log_loss}
        if name == "logistic" and not np.isin(columns.y, (0.0, 1.0)).all():
            raise ValueError(f"--loss logistic needs a target of two values: {target!r} has others than 0 and 1")
        if name == "mape" and (columns.y == 0).any():
            raise ValueError(f"--loss mape divides by the target, which is 0 in some rows of {target!r}")
        known = own.get(name)
        if known is None and name != "mse":
            check.one_of("--loss", name.partition(":")[0], ("mse", *own, *(one for one in NAMES if one != "poisson")))
        value = known or linear_table.OfResidual(loss_of(loss("squared" if name == "mse" else name)).value)
        return TableProblem(
            linear_table.LinearTable(columns.X, columns.y, value), (*columns.names, INTERCEPT), columns.classes, name
        )
    except ValueError as error:
        raise BadInput(f"--csv {file}: {error}") from None


def model_lines(found: TableProblem, target: str | None, x: Any) -> list[str]:
    """Return the model as lines: a coefficient per line, in the units of the table, and what it is worth."""
    model = found.model(x)
    wide = max(map(len, model))
    of = str(target)
    if found.classes is not None:
        of = f"{target}, which is 1 for {found.classes[1]!r} and 0 for {found.classes[0]!r}"
    if found.loss == "logistic":
        of = f"the log-odds of {repr(found.classes[1]) if found.classes is not None else f'{target} = 1'}"
    worth, alone = found.problem.F(x), found.problem.F(found.problem.constant())
    return [
        f"model of {of}:",
        *(f"  {name.ljust(wide)}  {value: .6g}" for name, value in model.items()),
        f"{found.loss} on the rows of the table: {worth:.6g}; with the intercept alone: {alone:.6g}",
    ]


def names_in(option: str, text: str | None, found: TableProblem | None) -> list[int] | None:
    """Return coordinates that are given by number, or by the name of a column."""
    from zerothresh.datasets.csv_file import MOST_SHOWN

    if text is None or found is None:
        return coordinates(option, text)
    out = list[int]()
    columns = found.names[:-1]
    for part in text.split(","):
        name = part.strip()
        if name in columns:
            out.append(columns.index(name))
        elif name == INTERCEPT:
            raise BadInput(f"{option} names the intercept, which is always in the model: name columns only")
        elif not name.replace(":", "").isdigit():
            some = ", ".join(columns[:MOST_SHOWN]) + (", ..." if len(columns) > MOST_SHOWN else "")
            raise BadInput(f"{option} names {name!r}, but the columns are {some}")
        else:
            numbers = whole_numbers(option, name)
            if max(numbers) >= len(columns):
                raise BadInput(f"{option} names column {max(numbers)}, but columns go from 0 to {len(columns) - 1}")
            out += numbers
    return out

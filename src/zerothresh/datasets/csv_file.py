"""Reading a table of numbers from a CSV file, with sentences for what cannot be used."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array

MOST_SHOWN = 8  # names that a message lists
CLASSES = 2  # values of a target that is no number, as in yes and no


class Columns(NamedTuple):
    """A table: the names of the features, their values (n, d), the target (n,), and its classes if it is no number."""

    names: tuple[str, ...]
    X: Array
    y: Array
    classes: tuple[str, ...] | None


def parse(text: str, target: str) -> Columns:
    """Return the table in a CSV text whose first line has the names; ValueError says what cannot be used.

    A target of two values that are no numbers becomes 0 and 1, in alphabetical order.

    >>> parse("a,b,y\\n1,2,no\\n3,4,yes\\n", "y").y
    array([0., 1.])
    """
    rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    if len(rows) < 3:
        raise ValueError("it needs a line with the names of the columns, and at least two lines of values")
    head = [name.strip() for name in rows[0]]
    if len(set(head)) < len(head):
        raise ValueError("two columns have the same name")
    if target not in head:
        some = ", ".join(head[:MOST_SHOWN]) + (", ..." if len(head) > MOST_SHOWN else "")
        raise ValueError(f"it has no column {target!r}: its columns are {some}")
    for line, row in enumerate(rows, start=1):
        if len(row) != len(head):
            raise ValueError(f"line {line} has {len(row)} cells, and the first line {len(head)}")
    columns = {name: [row[place].strip() for row in rows[1:]] for place, name in enumerate(head)}
    wanted = columns.pop(target)
    if not columns:
        raise ValueError("it has no column beside the target")
    y, classes = _target(wanted, target)
    return Columns(tuple(columns), np.column_stack([_numbers(n, cells) for n, cells in columns.items()]), y, classes)


def _target(cells: list[str], name: str) -> tuple[Array, tuple[str, ...] | None]:
    """Return the target as numbers, and its classes if it has no numbers."""
    values = sorted(set(cells))
    try:
        float(values[0])
    except ValueError:
        if len(values) == CLASSES and all(values):
            return np.array([float(cell == values[1]) for cell in cells]), tuple(values)
    return _numbers(name, cells), None


def _numbers(name: str, cells: list[str]) -> Array:
    """Return a column as numbers."""
    for line, cell in enumerate(cells, start=2):
        try:
            number = float(cell)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            what = "is empty" if not cell else f"is {cell!r:.40}, no finite number"
            raise ValueError(
                f"column {name!r} in line {line} {what}: leave the column or the line out, or fill it with numbers "
                "(a category as one column of 0 and 1 per value)"
            )
    return np.array([float(cell) for cell in cells])

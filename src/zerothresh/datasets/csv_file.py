"""Reading a table of numbers from a CSV file, with sentences for what cannot be used."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array

MOST_SHOWN = 8  # names that a message lists
CLASSES = 2  # values of a target that is no number, as in yes and no
SEPARATORS = ",;\t"  # of cells; a comma is the decimal point of tables that have a semicolon here


class Columns(NamedTuple):
    """A table: the names of the features, their values (n, d), the target (n,), and how both were read.

    ``classes`` has the two words of a target that is no number; ``labelled`` says whether a first column without a name
    was left out, as programs write it for the labels of the rows.
    """

    names: tuple[str, ...]
    X: Array
    y: Array
    classes: tuple[str, ...] | None
    labelled: bool


def parse(text: str, target: str) -> Columns:
    """Return the table in a CSV text whose first line has the names; ValueError says what cannot be used.

    The cells are separated by commas, semicolons (then a comma is a decimal point) or tabs. A target of two values that
    are no numbers becomes 0 and 1, in alphabetical order.

    >>> parse("a,b,y\\n1,2,no\\n3,4,yes\\n", "y").y
    array([0., 1.])
    """
    separator = _separator(text)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(cell.strip() for cell in row)]
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
    labelled = not head[0]
    unnamed = [place for place, name in enumerate(head, start=1) if not name and place > 1]
    if unnamed:
        raise ValueError(f"column {unnamed[0]} has no name in the first line: give it one, or leave it out")
    columns = {name: [row[place].strip() for row in rows[1:]] for place, name in enumerate(head) if name}
    if separator == ";":
        columns = {name: [cell.replace(",", ".") for cell in cells] for name, cells in columns.items()}
    wanted = columns.pop(target)
    if not columns:
        raise ValueError("it has no column beside the target")
    y, classes = _target(wanted, target)
    X = np.column_stack([_numbers(name, cells) for name, cells in columns.items()])
    return Columns(tuple(columns), X, y, classes, labelled)


def _separator(text: str) -> str:
    """Return the separator that cuts the first line into the most cells; a comma if none does."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return max(SEPARATORS, key=lambda separator: len(next(csv.reader([first], delimiter=separator), [])))


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

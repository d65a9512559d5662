"""The two tables of the package. `data/README.md` says where they come from and how to generate their files."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check

Array = NDArray[np.float64]

BODYFAT = """Body fat of 252 men, with 14 measurements of each.

Features: density of the body from underwater weighing (g/cm^3); age (years); weight (lb); height
(inches); and the circumferences (cm) of neck, chest, abdomen, hip, thigh, knee, ankle, biceps,
forearm and wrist.
Target: siri, the percentage of body fat by Siri's equation, 495 / density - 450, cut off at 0.
Therefore density alone explains nearly all of it.

No row was dropped. Three of the 18 columns of the source were dropped: brozek, adipos and free, which
are computed from other columns. Values that look wrong were not changed: in rows 47, 75 and 95 (counted
from 0) density and siri do not agree, and the man in row 41 is 29.5 inches tall.

Provenance: the table `fat` of the Python package faraway 0.0.6 (Julian Faraway). The data were
supplied by A. Garth Fisher, Brigham Young University, and published by Johnson (1996).
Licence: the package states the MIT licence. The note that was published with the data says that
Dr. Fisher permits their free distribution and their use for non-commercial purposes. Respect both.

Cite: K. W. Penrose, A. G. Nelson, A. G. Fisher (1985). Generalized body composition prediction
equation for men using simple measurement techniques. Medicine and Science in Sports and Exercise
17(2), 189. R. W. Johnson (1996). Fitting percentage of body fat to simple body measurements.
Journal of Statistics Education 4(1).
"""

AUTOPRICE = """Prices of 159 cars of 1985, with 15 numeric features of each: the table known as autoPrice.

Features: symboling (insurance risk, -3 safe to 3 risky), normalized-losses (insurance losses
per year, relative to cars of the same size), wheel-base, length, width, height (inches), curb-weight
(lb), engine-size (cubic inches), bore, stroke (inches), compression-ratio, horsepower, peak-rpm,
city-mpg, highway-mpg.
Target: price, in dollars.

Of the 205 cars of the source, the 46 with a missing value in any of its 26 columns were dropped. So
were its 10 columns that are not numeric.

Provenance: the Automobile data of the UCI Machine Learning Repository (`imports-85`), as
distributed with the Python package orange3 3.40.0. Jeffrey C. Schlimmer compiled them in 1987 from Ward's
Automotive Yearbook 1985 and from reports of insurers.
Licence: CC BY 4.0, https://creativecommons.org/licenses/by/4.0/. The changes are described above.

Cite: J. Schlimmer (1985). Automobile [Dataset]. UCI Machine Learning Repository.
https://doi.org/10.24432/C5B01C
"""


class Table(dict[str, Any]):
    """A data set: a dict whose entries can also be read as attributes.

    Attributes
    ----------
    data: the features, shape (rows, features); for images, shape (images, rows, columns, channels).
    target: the target of each row, shape (rows,).
    feature_names: the name of each feature (tables only).
    target_name: the name of the target (tables only).
    target_names: the names of the classes (images only).
    ids: the number of each image in its split (images only).
    DESCR: a description of the data, with their provenance and licence.
    filename: the name of the file that the data were read from.

    >>> table = load_autoprice()
    >>> table.target is table["target"]
    True
    """

    __slots__ = ()  # attributes cannot be set, so they never differ from the entries

    data: Array
    target: Array
    feature_names: list[str]
    target_name: str
    DESCR: str
    filename: str

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this table has no attribute {name!r}; it has {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


@overload
def load_bodyfat(*, return_X_y: Literal[False] = False) -> Table: ...
@overload
def load_bodyfat(*, return_X_y: Literal[True]) -> tuple[Array, Array]: ...
def load_bodyfat(*, return_X_y: bool = False) -> Table | tuple[Array, Array]:
    """Load the body fat of 252 men, with 14 measurements of each.

    `DESCR` describes the licence, what was left out and which values look wrong.

    Arguments
    ---------
    return_X_y: whether to return the pair (data, target) instead of a `Table`; False by default.

    Returns
    -------
    A `Table`, or the features, shape (252, 14), and the target, shape (252,).

    >>> table = load_bodyfat()
    >>> table.data.shape, table.target_name, table.feature_names[:3]
    ((252, 14), 'siri', ['density', 'age', 'weight'])
    >>> X, y = load_bodyfat(return_X_y=True)

    Johnson (1996), Fitting percentage of body fat to simple body measurements, Journal of Statistics
    Education 4(1).
    """
    check.flag("return_X_y", return_X_y)
    table = _load("bodyfat.csv", BODYFAT)
    return (table.data, table.target) if return_X_y else table


@overload
def load_autoprice(*, return_X_y: Literal[False] = False) -> Table: ...
@overload
def load_autoprice(*, return_X_y: Literal[True]) -> tuple[Array, Array]: ...
def load_autoprice(*, return_X_y: bool = False) -> Table | tuple[Array, Array]:
    """Load the prices of 159 cars of 1985, with 15 numeric features of each.

    `DESCR` describes the licence and what was left out.

    Arguments
    ---------
    return_X_y: whether to return the pair (data, target) instead of a `Table`; False by default.

    Returns
    -------
    A `Table`, or the features, shape (159, 15), and the target, shape (159,).

    >>> table = load_autoprice()
    >>> table.data.shape, table.target_name, table.feature_names[:2]
    ((159, 15), 'price', ['symboling', 'normalized-losses'])
    >>> X, y = load_autoprice(return_X_y=True)

    Schlimmer (1985), Automobile, UCI Machine Learning Repository, https://doi.org/10.24432/C5B01C.
    """
    check.flag("return_X_y", return_X_y)
    table = _load("autoprice.csv", AUTOPRICE)
    return (table.data, table.target) if return_X_y else table


def _load(filename: str, description: str) -> Table:
    """Read a table from its file, which has a line of column names and the target in the last column."""
    # Not opened as a path, because the package may be inside a zip file.
    header, *lines = (files(__package__) / "data" / filename).read_text(encoding="ascii").splitlines()
    *names, target = header.split(",")
    rows = np.loadtxt(lines, delimiter=",", dtype=np.float64)
    return Table(
        data=rows[:, :-1].copy(),  # a copy, so that the arrays do not share memory with each other
        target=rows[:, -1].copy(),
        feature_names=names,
        target_name=target,
        DESCR=description,
        filename=filename,
    )

"""Loading the tables. `data/README.md` says where they come from, and how they are made again."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BODYFAT = """Body fat of 252 men, and 14 numbers about each.

Features: density of the body from underwater weighing (g/cm^3); age (years); weight (lb); height
(inches); and the circumferences (cm) of neck, chest, abdomen, hip, thigh, knee, ankle, biceps,
forearm and wrist.
Target: siri, the percentage of body fat by Siri's equation, 495 / density - 450, cut off at 0. So
density alone explains nearly all of it.

No row was dropped. Of the 18 columns of the source, three were: brozek, adipos and free, which are
computed from others. Values that look wrong were left as they are: the density of rows 47, 75
and 95 (from 0) does not fit their siri, and the man of row 41 is 29.5 inches tall.

Provenance: the table `fat` of the Python package faraway 0.0.6 (Julian Faraway). The data were
supplied by A. Garth Fisher, Brigham Young University, and published by Johnson (1996).
Licence: the package says MIT. The note published with the data says that Dr. Fisher permits to
distribute them freely, and to use them for non-commercial purposes. Heed both.

Cite: K. W. Penrose, A. G. Nelson, A. G. Fisher (1985). Generalized body composition prediction
equation for men using simple measurement techniques. Medicine and Science in Sports and Exercise
17(2), 189. R. W. Johnson (1996). Fitting percentage of body fat to simple body measurements.
Journal of Statistics Education 4(1).
"""

AUTOPRICE = """Prices of 159 cars of 1985, and 15 numbers about each: the table known as autoPrice.

Features: symboling (insurance risk, -3 safe to 3 risky), normalized-losses (insurance losses a
year, relative to cars of the same size), wheel-base, length, width, height (inches), curb-weight
(lb), engine-size (cubic inches), bore, stroke (inches), compression-ratio, horsepower, peak-rpm,
city-mpg, highway-mpg.
Target: price, in dollars.

Of the 205 cars of the source, the 46 with a missing value in any of its 26 columns were dropped,
and then its 10 columns that are words.

Provenance: the Automobile data of the UCI Machine Learning Repository (`imports-85`), as carried
by the Python package orange3 3.40.0. Jeffrey C. Schlimmer put them together in 1987 from Ward's
Automotive Yearbook 1985 and from reports of insurers.
Licence: CC BY 4.0, https://creativecommons.org/licenses/by/4.0/. What was changed is said above.

Cite: J. Schlimmer (1985). Automobile [Dataset]. UCI Machine Learning Repository.
https://doi.org/10.24432/C5B01C
"""


class Table(dict[str, Any]):
    """A table: a dict whose entries can be read as attributes.

    >>> table = load_autoprice()
    >>> table.target is table["target"]
    True
    """

    __slots__ = ()  # an attribute cannot be set, so that it never differs from its entry

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
            raise AttributeError(f"a table has no {name!r}; it has {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


@overload
def load_bodyfat(*, return_X_y: Literal[False] = False) -> Table: ...
@overload
def load_bodyfat(*, return_X_y: Literal[True]) -> tuple[Array, Array]: ...
def load_bodyfat(*, return_X_y: bool = False) -> Table | tuple[Array, Array]:
    """The body fat of 252 men and 14 numbers about each, as a `Table` or as (data, target).

    The licence, what was left out and which values look wrong are in `DESCR`.

    >>> table = load_bodyfat()
    >>> table.data.shape, table.target_name, table.feature_names[:3]
    ((252, 14), 'siri', ['density', 'age', 'weight'])
    >>> X, y = load_bodyfat(return_X_y=True)

    Johnson (1996), Fitting percentage of body fat to simple body measurements, Journal of Statistics
    Education 4(1).
    """
    table = _load("bodyfat.csv", BODYFAT)
    return (table.data, table.target) if return_X_y else table


@overload
def load_autoprice(*, return_X_y: Literal[False] = False) -> Table: ...
@overload
def load_autoprice(*, return_X_y: Literal[True]) -> tuple[Array, Array]: ...
def load_autoprice(*, return_X_y: bool = False) -> Table | tuple[Array, Array]:
    """The prices of 159 cars of 1985 and 15 numbers about each, as a `Table` or as (data, target).

    The licence and what was left out are in `DESCR`.

    >>> table = load_autoprice()
    >>> table.data.shape, table.target_name, table.feature_names[:2]
    ((159, 15), 'price', ['symboling', 'normalized-losses'])
    >>> X, y = load_autoprice(return_X_y=True)

    Schlimmer (1985), Automobile, UCI Machine Learning Repository, https://doi.org/10.24432/C5B01C.
    """
    table = _load("autoprice.csv", AUTOPRICE)
    return (table.data, table.target) if return_X_y else table


def _load(filename: str, description: str) -> Table:
    """A table from its file: a line of names, the target last."""
    # Not by a path: the package may be inside a zip file.
    header, *lines = (files(__package__) / "data" / filename).read_text(encoding="ascii").splitlines()
    *names, target = header.split(",")
    rows = np.loadtxt(lines, delimiter=",", dtype=np.float64)
    return Table(
        data=rows[:, :-1].copy(),  # apart from the target: who changes one does not hold on to the other
        target=rows[:, -1].copy(),
        feature_names=names,
        target_name=target,
        DESCR=description,
        filename=filename,
    )

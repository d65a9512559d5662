"""The names of coordinates: given by the user, or those of a pandas Series that is the start."""

from __future__ import annotations

from typing import Any

from zerothresh.basics import check


def names_of(names: Any, x0: Any, d: int) -> tuple[str, ...] | None:
    """Return the name of each of d coordinates, or None if there are no names.

    Arguments
    ---------
    names: a sequence of strings, or None.
    x0: the start; if it is a pandas Series and no names are given, they are its index.
    d: int, the dimension.
    """
    if names is None and type(x0).__module__.startswith("pandas"):
        names = getattr(x0, "index", None)
    if names is None:
        return None
    try:
        found = () if isinstance(names, (str, bytes)) else tuple(str(name) for name in names)
    except Exception:  # whatever an object does that is asked for its items
        found = ()
    if len(found) != d:
        raise ValueError(f"names must be {d} names, one per coordinate, not {check.shown(names)}")
    return found

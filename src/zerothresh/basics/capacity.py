"""How much memory this machine has, so that arguments that need more are refused before anything is allocated."""

from __future__ import annotations

import os

NUMBER = 8  # bytes of a float64 or an int64
_UNKNOWN = 1 << 46  # bytes, 64 TiB: taken where the system does not say how much it has; few machines have more
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def installed() -> int:
    """Return how many bytes of memory this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # a system without these names
        return _UNKNOWN


def size(count: int) -> str:
    """Return a number of bytes as text.

    >>> size(24 * 10**12), size(2**200)
    ('24 TB', '1.61e+42 EB')
    """
    number, unit = float(min(count, 10**300)), 0  # no float is much larger
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g} {_UNITS[unit]}"


def need(count: int, what: str, advice: str) -> None:
    """Raise ``ValueError`` if this machine does not have so many bytes of memory.

    Arguments
    ---------
    count: how many bytes are needed at least.
    what: the arguments that need them, as the beginning of a sentence.
    advice: what to do instead, as the end of one.
    """
    here = installed()
    if count > here:
        raise ValueError(f"{what} needs at least {size(count)} of memory, and this machine has {size(here)}: {advice}")

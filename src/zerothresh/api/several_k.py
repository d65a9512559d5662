"""The argument ``ks``: several numbers of non-zeros."""

from __future__ import annotations

from typing import Any

from zerothresh.basics import check


def values_of_k(ks: Any) -> list[int]:
    """Return the values of k in increasing order, each once."""
    if isinstance(ks, (str, bytes)) or check.whole(ks) is not None:
        raise ValueError(f"ks must be several whole numbers, such as [1, 2, 5] or range(1, 21), not {check.shown(ks)}")
    try:
        given = list(ks)
    except TypeError:
        raise ValueError(f"ks must be several whole numbers, such as [1, 2, 5], not {check.shown(ks)}") from None
    if not given:
        raise ValueError("ks is empty: give at least one k, such as [1, 2, 5]")
    return sorted({check.count("each k", k, what=" (non-zero coordinates)") for k in given})

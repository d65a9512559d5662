"""Texts of strangers: cut to a length that a message, a line of a file and a reader can take."""

from __future__ import annotations

ELLIPSIS = " [...] "  # stands where characters were left out


def shorten(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters: a longer one loses its middle.

    >>> shorten("a short one", 20)
    'a short one'
    >>> shorten("it begins, goes on and on, and ends", 20)
    'it begins [...] ends'
    """
    if len(text) <= most:
        return text
    kept = max(0, most - len(ELLIPSIS))
    tail = kept // 3
    return text[: kept - tail] + ELLIPSIS + text[len(text) - tail :]

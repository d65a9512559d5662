"""Text of unknown origin, such as a name in somebody's file, made safe to print."""

from __future__ import annotations

import unicodedata

_SUBSTITUTE = "?"  # stands for a character that cannot be seen


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return a text in which every character can be seen, so that it cannot move a cursor or hide what it says.

    Control characters, marks that change the direction of writing, and halves of broken characters become ``?``.
    Spaces of all kinds become plain ones.

    Arguments
    ---------
    text: the text.
    lines: whether line breaks and tabs are kept; by default each becomes a space.

    >>> printable("red \x1b[31m alert"), printable("a\nb"), printable("a\nb", lines=True)
    ('red ?[31m alert', 'a b', 'a\nb')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c in "\n\t") else _replaced(c) for c in text)


def _replaced(character: str) -> str:
    """What stands for a character that is not printable."""
    is_space = character in "\t\n\r" or unicodedata.category(character) in ("Zs", "Zl", "Zp")
    return " " if is_space else _SUBSTITUTE

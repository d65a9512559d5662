"""Text for LaTeX: one function for all tables, so that no name can break a file or run a command in it."""

from __future__ import annotations

from zerothresh.basics.foreign_text import printable

_LETTERS = {"η": r"$\eta$", "±": r"$\pm$", "∞": r"$\infty$", "λ": r"$\lambda$", "μ": r"$\mu$", "θ": r"$\theta$"}
_SIGNS = {c: f"\\{c}" for c in "#%&_${}"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # a straight double quote needs a package
}
_AFTER_A_ROW = "[*"  # at the beginning of a row, LaTeX would take these for arguments of the \\ before


def latex_text(text: str) -> str:
    r"""Return a text that LaTeX typesets as it is: special characters are escaped, and a line break is a space.

    >>> latex_text("50 % of a_b & $c$"), latex_text("[0, 1]")
    ('50 \\% of a\\_b \\& \\$c\\$', '{[}0, 1]')
    """
    escaped = "".join((_LETTERS | _SIGNS).get(c, c) for c in printable(text))
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped and escaped[0] in _AFTER_A_ROW else escaped

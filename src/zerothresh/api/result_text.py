"""A result as people look at it: F, the point with names, the calls, why it ended, and what the method did."""

from __future__ import annotations

import html
import math
import textwrap
from typing import TYPE_CHECKING, Any

from zerothresh.api.arms_plot import spans

if TYPE_CHECKING:
    from zerothresh.api.result import Result

MOST_COORDINATES = 20  # of the support that are listed
MOST_REMARKS = 8  # of the method that are listed, the last ones
WIDTH = 80  # characters


def as_text(result: Result) -> str:
    """Return a result as text of at most 80 columns."""
    rows = _rows(result)
    size = max(len(name) for name, _ in rows) + 1
    lines = list[str]()
    for name, texts in rows:
        for place, text in enumerate(texts):
            head = (name if place == 0 else "").rjust(size) + (": " if place == 0 else "  ")
            lines += textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) or [head]
    return "\n".join(line.rstrip() for line in lines)


def as_html(result: Result) -> str:
    """Return a result as a table for a notebook."""
    rows = []
    for name, texts in _rows(result, aligned=False):
        cell = "<br>".join(html.escape(text) for text in texts)
        rows.append(f"<tr><th>{html.escape(name)}</th><td>{cell}</td></tr>")
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _rows(result: Result, *, aligned: bool = True) -> list[tuple[str, list[str]]]:
    """Return the rows by their names, each with one or several texts."""
    get = result.get
    rows = [("F", ["not known" if math.isnan(result.fun) else f"{result.fun:.8g}"])]
    rows.append(("calls", [f"{result.nfev:,} of {get('budget', result.nfev):,}, in {result.nit:,} steps"]))
    success = "as it should" if result.success else "without success"
    rows.append(("ended", [f"{success} ({getattr(result.status, 'name', result.status)})"]))
    rows.append(("message", [str(result.message)]))
    rows.append(("support", _support(result, aligned)))
    if get("stages"):
        made = {name: sum(length for _, length in bars) for name, bars in spans(result).items()}
        rows.append(("calls by", [", ".join(f"{name} {calls:,}" for name, calls in made.items())]))
    remarks = [remark for _, remark in get("remarks") or []]
    if remarks:
        rows.append(("found", remarks[-MOST_REMARKS:]))
    if get("method") is not None:
        rows.append(("method", [f"{result.method}, seed {get('seed')}"]))
    return rows


def _support(result: Result, aligned: bool) -> list[str]:
    """Return the non-zeros of the point, one per line, with names and standard errors if there are any."""
    support, x, names = result.support.tolist(), result.x, result.get("names")
    lines = [f"{len(support)} of {x.size:,} coordinates"]
    labels = [str(j) if names is None else str(names[j]) for j in support[:MOST_COORDINATES]]
    values = [f"{x[j]:.6g}" for j in support[:MOST_COORDINATES]]
    errors = _errors(result, len(support))
    wide, far = max(map(len, labels), default=0), max(map(len, values), default=0)
    for label, value, error in zip(labels, values, errors, strict=False):
        pair = f"{label.rjust(wide)}  {value.rjust(far)}" if aligned else f"{label} = {value}"
        lines.append(pair + error)
    more = len(support) - MOST_COORDINATES
    return [*lines, f"... and {more:,} more"] if more > 0 else lines


def _errors(result: Result, count: int) -> list[str]:
    """Return the standard error of each coordinate of the support, as text."""
    fit: Any = result.get("fit")
    if fit is None or len(fit.standard_errors) != count:
        return [""] * count
    return ["" if math.isnan(error) else f" +- {error:.2g}" for error in fit.standard_errors.tolist()]

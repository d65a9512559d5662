"""The HTML page of a report: one file without further parts, for a screen, a phone and paper."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zerothresh.basics.foreign_text import printable
from zerothresh.reports.figures import Drawn
from zerothresh.reports.tables import ReportTable
from zerothresh.reports.verdict import DEPENDS, FAILS, HOLDS, UNDECIDED, Verdict


@dataclass(frozen=True)
class Section:
    """A part of the page, for example one experiment.

    Attributes
    ----------
    name: the anchor of its heading.
    title: the heading.
    paragraphs: the text below the heading.
    figures, tables: shown after the text, in this order; tables without rows are left out.
    colours: colours of methods by label, shown beside the labels in the tables.
    """

    name: str
    title: str
    paragraphs: Sequence[str]
    figures: Sequence[Drawn]
    tables: Sequence[ReportTable]
    colours: Mapping[str, str]


def render_page(
    title: str,
    lead: Sequence[str],
    verdicts: Sequence[tuple[Verdict, Drawn]],
    cases: ReportTable | None,
    sections: Sequence[Section],
    notes: Sequence[str],
    files: Sequence[str],
    versions: str,
) -> str:
    """Return the whole page as HTML.

    Arguments
    ---------
    title: the title.
    lead: paragraphs below the title.
    verdicts: verdicts with their figures; may be empty.
    cases: a table of all cases behind the verdicts, or None.
    sections: the parts of the page.
    notes: how the numbers were computed, as a list at the end.
    files: names of other files in the folder, which the foot of the page links to.
    versions: the software that computed the numbers, in one line.
    """
    links = [
        *([("verdicts", "Verdicts")] if verdicts else []),
        *((section.name, section.title) for section in sections),
        ("how", "Methods"),
    ]
    body = ["<nav>" + " ".join(f'<a href="#{_escaped(name)}">{_escaped(text)}</a>' for name, text in links) + "</nav>"]
    body += [f"<p>{_escaped(paragraph)}</p>" for paragraph in lead]
    if verdicts:
        body.append('<h2 id="verdicts">Verdicts</h2>')
        body += [_verdict(verdict, figure) for verdict, figure in verdicts]
    if cases is not None:
        body.append(_table(cases, {}))
    for section in sections:
        body.append(f'<h2 id="{_escaped(section.name)}">{_escaped(section.title)}</h2>')
        body += [f"<p>{_escaped(paragraph)}</p>" for paragraph in section.paragraphs]
        body += [_figure(figure) for figure in section.figures]
        body += [_table(table, section.colours) for table in section.tables if table.rows]
    body.append('<h2 id="how">How it was computed</h2>\n<ul>')
    body += [f"<li>{_escaped(note)}</li>" for note in notes]
    body.append("</ul>")
    named = ", ".join(f'<a href="{_escaped(name)}">{_escaped(name)}</a>' for name in files)
    footer = f"In this folder: {named}.<br>Computed with {_escaped(versions)}."
    return _PAGE.format(title=_escaped(title), body="\n".join(body), footer=footer)


def _escaped(text: str) -> str:
    """Return text that a browser shows as it is, in an element or in the value of an attribute."""
    return html.escape(printable(text))


_SIGNS = {HOLDS: "good", DEPENDS: "mixed", FAILS: "bad", UNDECIDED: "open"}


def _verdict(verdict: Verdict, figure: Drawn) -> str:
    """Return a verdict with its evidence, and its figure to unfold."""
    return (
        f'<div class="verdict {_SIGNS[verdict.outcome]}"><p><strong>{_escaped(verdict.claim)}</strong> '
        f'<span class="outcome">{_escaped(verdict.outcome)}</span></p>'
        f"<p>{_escaped(verdict.sentence)}</p>"
        f'<p class="soft">{_escaped(verdict.source)} · {_escaped(verdict.tally)}</p>'
        f'<p class="soft">{_escaped(verdict.evidence)}</p>'
        f"<details><summary>All cases</summary>{_figure(figure)}</details></div>"
    )


def _table(table: ReportTable, colours: Mapping[str, str]) -> str:
    """Return a table with links to its files."""

    def cell(text: str) -> str:
        chip = f'<span class="chip" style="background:{_escaped(colours[text])}"></span>' if text in colours else ""
        return f"<td>{chip}{_escaped(text)}</td>"

    name = _escaped(table.name)
    head = "".join(f'<th scope="col">{_escaped(name)}</th>' for name in table.header)
    rows = "\n".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in table.rows)
    inner = (
        f'<div class="wide" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n'
        "</table></div>"
        f'<p class="soft">{_escaped(table.note)} <a href="{name}.csv">CSV</a>, '
        f'<a href="{name}.tex">LaTeX</a></p>'
    )
    title = _escaped(table.title)
    return f"<details><summary>{title}</summary>{inner}</details>" if table.folded else f"<h3>{title}</h3>\n{inner}"


def _figure(figure: Drawn) -> str:
    """Return a figure, embedded in the page, with links to its files."""
    source = base64.b64encode(figure.svg).decode()
    name, kind = _escaped(figure.name), "wide columns" if figure.wide else "wide"
    image = f'<img src="data:image/svg+xml;base64,{source}" alt="{_escaped(figure.alt)}">'
    return (
        f'<figure id="figure-{name}"><div class="{kind}" tabindex="0">{image}</div>'
        f"<figcaption><strong>{_escaped(figure.title)}.</strong> {_escaped(figure.caption)} "
        f'<a href="{name}.png">PNG</a>, <a href="{name}.pdf">PDF</a></figcaption></figure>'
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
:root {{ --ink: #1d2430; --soft: #5a6475; --paper: #fff; --line: #d8dde6; --band: #f4f6f9; --link: #0b5cad;
  --good: #1a7f4b; --mixed: #9a6700; --bad: #b3261e; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e6e9ef; --soft: #a3acbb; --paper: #14181f; --line: #333b48; --band: #1c222b; --link: #7db7f5;
    --good: #57c98a; --mixed: #e0b050; --bad: #ff8a80; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }}
a {{ color: var(--link); }}
nav a {{ margin-right: 1rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }}
h2 {{ font-size: 1.3rem; margin: 2.5rem 0 .5rem; padding-top: .5rem; border-top: 1px solid var(--line); }}
h3 {{ font-size: 1.05rem; margin: 1.75rem 0 .5rem; }}
figure {{ margin: 1.5rem 0; }}
/* The colours of the figures are chosen for white, so that they keep a white background in dark mode. */
figure img {{ display: block; width: 100%; height: auto; background: #fff; border: 1px solid var(--line);
  border-radius: .5rem; }}
figcaption, footer, .soft {{ color: var(--soft); font-size: .9rem; }}
figcaption {{ margin-top: .4rem; }}
.verdict {{ border-left: .3rem solid var(--line); background: var(--band); padding: .5rem .9rem; margin: .7rem 0; }}
.verdict p {{ margin: .2rem 0; }}
.verdict.good {{ border-color: var(--good); }} .good .outcome {{ color: var(--good); }}
.verdict.mixed {{ border-color: var(--mixed); }} .mixed .outcome {{ color: var(--mixed); }}
.verdict.bad {{ border-color: var(--bad); }} .bad .outcome {{ color: var(--bad); }}
.outcome {{ font-weight: 700; white-space: nowrap; border: 1px solid; border-radius: 1rem; padding: 0 .6rem;
  font-size: .85rem; }}
.columns img {{ min-width: 44rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .88rem; }}
th, td {{ padding: .3rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }}
th:nth-child(-n+2), td:nth-child(-n+2) {{ text-align: left; }}
thead th {{ color: var(--soft); font-weight: 600; }}
details {{ margin: 1.25rem 0; }} summary {{ cursor: pointer; font-weight: 600; }}
.chip {{ display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .5em;
  border: 1px solid var(--soft); print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
li {{ margin: .3rem 0; }}
@media print {{
  :root {{ --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; --band: #fff; }}
  body {{ max-width: none; padding: 0; font-size: 10pt; }}
  nav {{ display: none; }}
  details::details-content {{ content-visibility: visible; }} /* closed ones are printed too */
  .columns img {{ min-width: 0; }}
  figure, tr, .verdict {{ break-inside: avoid; }}
  h2, h3 {{ break-after: avoid; }}
  .wide {{ overflow: visible; }}
  table {{ font-size: 7.5pt; }} th, td {{ padding: .15rem .3rem; white-space: normal; }}
}}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
<footer><p>{footer}</p></footer>
</body>
</html>
"""

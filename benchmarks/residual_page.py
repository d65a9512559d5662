"""Write docs/residuals.md from what residuals.py measured.

    python benchmarks/residuals.py --set former --json former.json
    python benchmarks/residuals.py --set judge --json judge.json
    python benchmarks/residual_page.py former.json judge.json

Several files of one set are joined: a draw that stands in two of them is taken from the later one. What the page shows
is kept in docs/residuals.json, where a set that is not given stays as it was; without arguments, the page is made from
that file again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from residual_peers import FEW, SECONDS, SHARE, SOLVERS, WIDE
from residual_tables import LEVELS, RIVALS, Measured, fewer, goals, lost, of_case, profile, thinned

ROOT = Path(__file__).parent.parent
KEPT, PAGE = (ROOT / "docs" / name for name in ("residuals.json", "residuals.md"))
SETS = {"former": "Development seeds, from 1000 on", "judge": "Judging seeds, from 11000 on"}
TEXT = """# How many runs it takes where one run returns everything

This page is made by `benchmarks/residual_page.py` from the figures of `benchmarks/residuals.py`, which are in
`docs/residuals.json`; only its text is written by hand. `make residuals` measures everything anew. How to call it is in
[the user's guide](guide.md#one-run-returns-everything), how it works in
`src/zerothresh/methods/residual/sparse_gauss_newton.py`.

## How to read it

- A **run** is one call of the function, which returns all residuals. F is the mean of their squares.
- A sparse problem is **solved** when a run at a feasible point has the right support and F at most 1e-6 of that at the
  start. A cell says how many of the draws were solved, and the median and the range of the runs that this took. With
  noise or outliers, where F stays above 0, the right support must be there when the solver ends, and all runs count.
- The parameters and the starts of all problems are random. `gauss-newton` was developed on seeds below 9000; the
  **judging seeds** are run only at the end, and no constant is chosen by them.
- `gauss-newton` and `auto` know k and see the residuals. `auto` on F sees one number per run. DFO-LS, SciPy's
  `least_squares` and Py-BOBYQA know no sparsity: they minimise over all coordinates with {share:.0%} of the budget of
  20 runs per coordinate, and then over the k largest.
- DFO-LS, SciPy, Py-BOBYQA and `auto` on F get at most {few} draws of a sparse problem, {seconds:.0f} seconds for each,
  because the work of the first and the third between runs grows fast with d, and none with d above {wide}. `auto` gets
  {few} draws, too. A dash means that a solver was not run. "(clock)" marks a cell where it was stopped by the clock in
  at least one draw: how far it would have come is not known.

{former}

{judge}

## What to keep in mind

- Where one run returns few outputs, or where the outputs are no smooth functions of x, the linear model has little to
  offer, and [`auto`](auto.md) turns to other strategies.
- On the Moré-Wild set, the runs to a level of F depend on which minimum a solver finds: problems with several minima
  (osborne-1, osborne-2, the larger Chebyshev quadratures) decide much of the mean, and of what stays unsolved.
"""
DENSE = """### The Moré-Wild set, k = d

How many times fewer runs than DFO-LS a solver takes until F has come within a part of the distance from the start to
the best F that {rivals} found: geometric means over problems and starts. A problem that is not solved is charged its
whole budget of 100 runs per coordinate and 100 more. `lost` counts the starts that stay unsolved at one of these levels
although DFO-LS solves them, `gained` those that DFO-LS leaves unsolved.
"""


def cell(rows: list[Measured]) -> str:
    """Return solved draws, median and range of runs, and whether the clock has stopped one."""
    if not rows:
        return "-"
    solved = [row["runs"] for row in rows if row["runs"] is not None]
    late = " (clock)" if any(row["late"] for row in rows) else ""
    if not solved:
        return f"0 of {len(rows)}{late}"
    between = f" ({min(solved):,} to {max(solved):,})" if len(solved) > 1 else ""
    return f"{len(solved)} of {len(rows)}: {np.median(solved):,.0f}{between}{late}"


def dense_table(measured: list[Measured]) -> list[str]:
    """Return the ratios on the Moré-Wild set as a Markdown table."""
    lines = [f"| solver | starts | {' | '.join(f'{level:g}' for level in LEVELS)} | lost | gained |"]
    lines.append("|---|---:" + "|---:" * (len(LEVELS) + 2) + "|")
    for name, solver in SOLVERS.items():
        rows = profile(measured, name)
        if rows and name != "dfols":
            ratios = " | ".join(f"{fewer(rows, place):.2f}" for place in range(len(LEVELS)))
            gained = len(lost([(problem, budget, ours, theirs) for problem, budget, theirs, ours in rows]))
            lines.append(f"| {solver.label} | {len(rows)} | {ratios} | {len(lost(rows))} | {gained} |")
    return lines if len(lines) > 2 else []


def solvers_table(measured: list[Measured], table: str) -> list[str]:
    """Return the runs of all solvers on the cases of a table as a Markdown table."""
    of = [row for row in measured if row["table"] == table]
    names = [name for name in SOLVERS if any(row["solver"] == name for row in of)]
    if not of:
        return []
    lines = [f"| problem | {' | '.join(SOLVERS[name].label for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for case in dict.fromkeys(row["case"] for row in of):
        lines.append(f"| {case} | {' | '.join(cell(of_case(of, table, case, name)) for name in names)} |")
    return lines


def workers_table(measured: list[Measured]) -> list[str]:
    """Return seconds, runs and waves of all draws on one and on 16 workers as a Markdown table."""
    lines = [
        "| link and k, d = 100 | method | seed | one worker | 16 workers | faster |",
        "|---|---|---:|---|---|---:|",
    ]
    for row in measured:
        if row["table"] == "workers":
            alone, many = row["serial"], row["16 workers"]
            cells = [f"{seconds:.1f} s, {runs} runs, {waves} waves" for seconds, runs, waves, _ in (alone, many)]
            name = SOLVERS[row["solver"]].label
            lines.append(
                f"| {row['case']} | {name} | {row['seed']} | {cells[0]} | {cells[1]} | {alone[0] / many[0]:.1f} |"
            )
    return lines if len(lines) > 2 else []


def goals_table(kept: list[dict[str, Any]]) -> list[str]:
    """Return one row per goal as a Markdown table."""
    lines = ["| table | case | measured | goal | met |", "|---|---|---|---|---|"]
    lines += [
        f"| {one['table']} | {one['case']} | {one['measured']} | {one['goal']} | {'yes' if one['met'] else '**no**'} |"
        for one in kept
    ]
    return [*lines, "", f"{sum(one['met'] for one in kept)} of {len(kept)} goals are met."]


def chapter(title: str, measured: list[Measured]) -> str:
    """Return what was measured on one set."""
    if not measured:
        return f"## {title}\n\nNot measured yet."
    rivals = " or ".join(SOLVERS[name].label for name in RIVALS)
    parts = [
        ("### Goals", goals_table([asdict(one) for one in goals(measured)])),
        ("### Sparse problems", solvers_table(measured, "sparse")),
        (DENSE.format(rivals=rivals).rstrip(), dense_table(measured)),
        ("### Noise of 1e-3 in every output of every run", solvers_table(measured, "noise")),
        ("### 10 % outliers, d = 100, by the loss", solvers_table(measured, "robust")),
        ("### 16 workers, 50 ms per run", workers_table(measured)),
    ]
    return "\n\n".join([f"## {title}", *("\n\n".join([head, "\n".join(lines)]) for head, lines in parts if lines)])


def key(row: Measured) -> tuple[str, str, int, str]:
    """What identifies a measurement."""
    return row["table"], row["case"], row["seed"], row["solver"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", help="files that residuals.py wrote with --json")
    paths = parser.parse_args().paths
    kept: dict[str, list[Measured]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    given: dict[str, dict[Any, Measured]] = {}
    for path in paths:
        content = json.loads(path.read_text())
        given.setdefault(content["set"], {}).update({key(row): row for row in content["measured"]})
    kept |= {name: thinned(list(rows.values())) for name, rows in given.items()}
    if paths:
        KEPT.write_text(json.dumps(kept).replace("}, {", "},\n{") + "\n")
    PAGE.write_text(page(kept))


def page(kept: dict[str, list[Measured]]) -> str:
    """Return the page that shows what was measured."""
    limits = {"share": SHARE, "few": FEW, "seconds": SECONDS, "wide": WIDE}
    return TEXT.format(**limits, **{name: chapter(title, kept.get(name, [])) for name, title in SETS.items()})


if __name__ == "__main__":
    main()

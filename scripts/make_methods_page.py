"""Make docs/methods.md: a table of all methods, from the code and from what benchmarks/methods.py measured.

python scripts/make_methods_page.py            writes the page
python scripts/make_methods_page.py --check    says whether it is up to date
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import zerothresh as zt
from zerothresh.rounds.method import is_sparse

ROOT = Path(__file__).parents[1]
PAGE, MEASURED = ROOT / "docs" / "methods.md", ROOT / "docs" / "methods.json"
PARTS = {
    "Beyond the paper": ("auto", "niht", "htp", "index", "guided-saga"),
    "The paper's": ("fgzoht", "szoht", "pm-szht", "p-saga-szht", "saga-szht", "lsvrg-szht", "vr-szht", "sarah-szht"),
    "Hard thresholding, values only": ("sarah-plus", "hzo-ht", "szoht-theory", "ht-es"),
    "Sparse gradients by compressed sensing": ("zoro", "ada-zoro", "grace"),
    "l1 relaxations": ("rspgf", "zscg", "zo-prox-svrg"),
    "No sparsity, for reference": ("zo-sgd", "zo-svrg", "zo-spider", "zo-adamm"),
    "Search without gradients": ("sparse-rs", "es-swaps"),
    "Other packages": ("outside",),
}
WORDS = """# All methods

Made by `scripts/make_methods_page.py` from the code and from `docs/methods.json`, which `benchmarks/methods.py`
measures; nothing below these lines is written by hand.

Calls a step are calls of single components f_i; memory is in numbers beside the points of a round. A method without
the l0 constraint is marked with a star; with `threshold=True` it hands out H_k of its iterate. All others of its
settings have defaults: `zerothresh methods` lists them, and `help(zt.methods.ZORO)` explains them.

The last column of each table is measured: expected calls until F - F\\* is {tolerance:g} of what it was, over {seeds}
seeds, on six problems of `benchmarks/queries.py`, in this order: {problems}.
A dash: not within {cap} calls; a run that misses the goal counts with all of them, so that a number half as large is a
run of three on a wrong support. Learning rates are the best of a ladder, in units of the problem's own curvature, and
first steps are the size of the optimum, both of which no user knows; `auto` has nothing set.
[queries.md](queries.md) has more problems, and longer searches for the paper's settings.
"""


def reference(method: type) -> str:
    """What the docstring says after "Reference:", up to the next paragraph."""
    found = re.search(r"Reference: (.*?)(?:\n\n|$)", inspect.getdoc(method) or "", flags=re.DOTALL)
    return " ".join(found[1].split()).rstrip(".") if found else "this library"


def required(method: type) -> str:
    """The hyper-parameters without a default."""
    found = [f"`{p.name}`" for p in inspect.signature(method).parameters.values() if p.default is p.empty]
    return ", ".join(found) or "nothing"


def sparse(method: type) -> bool:
    """Whether its iterates keep the l0 constraint, as it comes."""
    needed = [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty]
    return is_sparse(method(**dict.fromkeys(needed, 1)))


def calls(measured: dict[str, Any], name: str, problems: list[str]) -> str:
    """The six numbers of a method."""
    cells = measured.get(name)
    if cells is None:
        return "not measured"
    return " / ".join("-" if cells[p]["calls"] is None else f"{cells[p]['calls']:.0f}" for p in problems)


def rows(name: str, measured: dict[str, Any], problems: list[str]) -> list[str]:
    """The rows of a method: one, or one for each package behind it."""
    method: Any = zt.methods.available()[name]
    star = "" if sparse(method) else "\\*"
    head = f"| `{name}`{star} | `{method.__name__}` | {method.solves} | {method.queries} | {method.memory} | "
    head += f"{required(method)} | {reference(method)} | "
    packages = [other for other in measured if other.startswith(f"{name} ")]
    if not packages:
        return [f"{head}{calls(measured, name, problems)} |"]
    told = "; ".join(f"{other.removeprefix(name).strip()}: {calls(measured, other, problems)}" for other in packages)
    return [f"{head}{told} |"]


def page() -> str:
    """The whole page."""
    kept = json.loads(MEASURED.read_text())
    problems, measured = kept["problems"], kept["methods"]
    listed = [name for names in PARTS.values() for name in names]
    missing = set(zt.methods.available()) - set(listed)
    if missing:
        raise SystemExit(f"PARTS of {Path(__file__).name} says nothing of {', '.join(sorted(missing))}")
    words = {"tolerance": kept["tolerance"], "seeds": kept["seeds"], "cap": f"{kept['cap']:,}"}
    lines = [WORDS.format(problems=", ".join(problems), **words)]
    for part, names in PARTS.items():
        lines += [
            f"## {part}\n",
            "| name | class | solves | calls a step | memory | must be set | reference | calls to goal |",
        ]
        lines += [
            "|---|---|---|---|---|---|---|---|",
            *(row for name in names for row in rows(name, measured, problems)),
        ]
        lines += [""]
    return "\n".join(lines)


def main() -> None:
    """Write the page, or say whether it is up to date."""
    made = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != made:
            raise SystemExit("docs/methods.md is not up to date: python scripts/make_methods_page.py")
        return
    PAGE.write_text(made)


if __name__ == "__main__":
    main()

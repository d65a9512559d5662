"""Make docs/methods.md: tables of all methods, from the code and from the measurements of benchmarks/methods.py.

python scripts/make_methods_page.py            write the page
python scripts/make_methods_page.py --check    fail if the page is not up to date
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import zerothresh as zt
from zerothresh.methods.registry import FAMILIES, family_of
from zerothresh.rounds.method import is_sparse

ROOT = Path(__file__).parents[1]
PAGE, MEASURED = ROOT / "docs" / "methods.md", ROOT / "docs" / "methods.json"
INTRODUCTION = """# All methods

This page is made by `scripts/make_methods_page.py` from the code and from `docs/methods.json`, the measurements of
`benchmarks/methods.py`. Do not edit it by hand.

How to read the tables:

- **Calls per step** are calls of single components f_i.
- **Memory** is the number of floats that a method keeps, in addition to the points of a round.
- **Required** are the hyper-parameters that have no default. `zerothresh methods` lists the others with their defaults,
  and `help(zt.methods.ZORO)` explains them.
- **A star** marks a method whose iterates do not keep the l0 constraint. With `threshold=True` it returns H_k of its
  iterate.
- **Calls to the goal** are measured: the expected number of calls until F - F\\* is {tolerance:g} of its initial value,
  over {seeds} seeds, on six problems of `benchmarks/queries.py`, in this order: {problems}. A dash means that no run
  reached the goal within {cap} calls. A run that misses the goal counts with all of its calls, so a number above half
  of that limit usually means that one run of {seeds} ended on a wrong support.

Methods that estimate gradients use `zt.Estimator`. Its defaults differ from the paper's estimator: its directions are
orthonormal, which leaves less error for the same calls, and all components of a round share them.
`estimator=zt.Estimator.paper(q=...)` runs a method with the paper's own; the measurements below have the default kind
of directions.

The measurements favour methods with settings: a learning rate is the best of a small grid, in units of the problem's
curvature, and an initial step has the size of the optimum. No user knows either number. `auto` has no settings.
[queries.md](queries.md) has more problems, and a more thorough tuning of the paper's methods.
"""
COLUMNS = ("name", "class", "solves", "calls per step", "memory", "required", "reference", "calls to the goal")


def reference(method: type) -> str:
    """What the docstring says after "Reference:", up to the next paragraph."""
    found = re.search(r"Reference: (.*?)(?:\n\n|$)", inspect.getdoc(method) or "", flags=re.DOTALL)
    return " ".join(found[1].split()).rstrip(".") if found else "this library"


def required(method: type) -> list[str]:
    """The hyper-parameters without a default."""
    return [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty]


def sparse(method: type) -> bool:
    """Whether the iterates keep the l0 constraint with the default settings."""
    return is_sparse(method(**dict.fromkeys(required(method), 1)))


def calls(cells: dict[str, Any] | None, problems: list[str]) -> str:
    """The measured numbers of a method, one per problem."""
    if cells is None:
        return "not measured"
    return " / ".join("-" if cells[p]["calls"] is None else f"{cells[p]['calls']:.0f}" for p in problems)


def row(name: str, method: Any, measured: dict[str, Any], problems: list[str]) -> str:
    """The row of a method; one that runs other packages has the measurements of each of them in it."""
    numbers = calls(measured.get(name), problems)
    packages = [other.removeprefix(f"{name} ") for other in measured if other.startswith(f"{name} ")]
    if packages:
        numbers = "; ".join(f"{package}: {calls(measured[f'{name} {package}'], problems)}" for package in packages)
    star = "" if sparse(method) else "\\*"
    names = ", ".join(f"`{one}`" for one in required(method)) or "none"
    cells = (f"`{name}`{star}", f"`{method.__name__}`", method.solves, method.queries, method.memory, names)
    return f"| {' | '.join([*cells, reference(method), numbers])} |"


def sections() -> dict[str, dict[str, type]]:
    """The methods by heading: those of a family under its heading, those from the literature by topic."""
    out: dict[str, dict[str, type]] = {}
    for name, method in zt.methods.available().items():
        heading = FAMILIES[family_of(method)]
        topic = vars(method).get("topic")
        heading = heading if topic is None else f"{heading}: {topic[0].lower()}{topic[1:]}"
        out.setdefault(heading, {})[name] = method
    return out


def page() -> str:
    """The whole page."""
    stored = json.loads(MEASURED.read_text())
    problems, measured = stored["problems"], stored["methods"]
    lines = [
        INTRODUCTION.format(
            problems=", ".join(problems),
            tolerance=stored["tolerance"],
            seeds=stored["seeds"],
            cap=f"{stored['cap']:,}",
        )
    ]
    for heading, methods in sections().items():
        lines += [f"## {heading}\n", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
        lines += [row(name, method, measured, problems) for name, method in methods.items()]
        lines += [""]
    return "\n".join(lines)


def main() -> None:
    """Write the page, or check that it is up to date."""
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            raise SystemExit("docs/methods.md is not up to date: run python scripts/make_methods_page.py")
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()

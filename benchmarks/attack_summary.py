"""The measured numbers in the text of docs/attack.md, from the tables of the benchmark.

    python benchmarks/attack_summary.py

It reads docs/attack-benchmark.md, which benchmarks/attack.py writes, and docs/attack-art.json, which
benchmarks/attack_art.py writes, and replaces the text between the marks in docs/attack.md. Both benchmarks do this too
when they write their results. A sentence that is not true of the tables any more is an error: then it must be written
anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
BENCHMARK, ART, PAGE = (DOCS / name for name in ("attack-benchmark.md", "attack-art.json", "attack.md"))
MARK, ART_MARK = "<!-- attack benchmark -->", "<!-- attack by art -->"

BEST = "best"
OURS = (BEST, "best, 20 pixels")
SEARCHES = ("random search", "Sparse-RS", "random search, 60 channels")
GRADIENTS = ("FGZOHT", "SZOHT", "VR-SZHT", "SAGA-SZHT", "SARAH-SZHT", "auto")
FEW, MANY = "The paper's ten images of a class", "All test images of a class that the net classifies correctly"
ALIKE = 0.9  # with a success rate of at least this, an attack fools nearly all images


@dataclass(frozen=True)
class Row:
    """A row of the benchmark's tables: an attack on the images of all classes, on one net and with one budget."""

    net: str
    budget: int
    attack: str
    runs: int
    rate: float
    times: float | None  # the queries used, as a multiple of those of best; None if the table does not say
    behind: bool  # whether its success rate is clearly below that of best


def rows_of(page: str, part: str) -> list[Row]:
    """Return the rows of a part of the benchmark's page, which has one table per net."""
    text = page.split(f"## {part}\n", 1)[1].split("\n## ", 1)[0]
    found, names = [], []
    for line in text.splitlines():
        cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:1] == ["net"]:
            names = cells
        elif not cells or len(cells) != len(names):
            names = []  # a table of another kind, or none
        elif not cells[0].startswith("---"):
            row = dict(zip(names, cells, strict=True))
            times = row.get("queries used", "").partition(", x ")[2].split(" ")[0]
            rate, budget = float(row["all classes"].split(" ")[0]), int(row["queries"].replace(",", ""))
            runs = int(row["runs per class"])
            behind = row["best minus this"].endswith(" ahead")
            found.append(Row(row["net"], budget, row["attack"], runs, rate, float(times) if times else None, behind))
    return found


def summary(page: str) -> str:
    """Return the sentences on the benchmark, as a Markdown list."""
    few, many = rows_of(page, FEW), rows_of(page, MANY)
    small, *larger = sorted({row.budget for row in few})
    lines = [
        f"On the paper's ten images, `best` has the highest success rate at {small:,} queries: {_leads(few, small)}."
    ]
    searches = _some(few, larger, SEARCHES)
    if min(row.rate for row in searches) < ALIKE:
        raise ValueError("random searches do not fool nearly all images with larger budgets any more")
    times = [row.times for row in searches if row.times is not None]
    lines.append(
        f"With {_and([f'{budget:,}' for budget in larger])} queries, random searches also fool all or nearly all of "
        f"the ten images ({_range([row.rate for row in searches])}), so that success rates hardly distinguish them "
        f"from `best`: it is clearly ahead in {sum(row.behind for row in searches)} of {len(searches)} comparisons. "
        f"They use {_range(times, '.1f')} times as many queries as `best`."
    )
    parts = []
    for budget in larger:
        chosen = _some(few, [budget], GRADIENTS)
        seeds = sorted({row.runs for row in chosen})
        count = f"{' or '.join(map(str, seeds))} seed{'' if seeds == [1] else 's'}"
        parts.append(f"{_range([row.rate for row in chosen])} with {budget:,} queries ({count})")
    lines.append(f"The paper's methods and `auto` have success rates of {_and(parts)}, depending on method and net.")
    for budget in sorted({row.budget for row in many}):
        seeds = [row.runs for row in many if row.budget == budget]
        lines.append(
            f"With one perturbation for all test images of a class and {budget:,} queries, `best` leads: "
            f"{_leads(many, budget)} ({min(seeds)} to {max(seeds)} seeds)."
        )
    return "\n".join(f"- {line}" for line in lines)


def _some(rows: list[Row], budgets: list[int], attacks: tuple[str, ...]) -> list[Row]:
    """Return the rows of some attacks with some budgets."""
    return [row for row in rows if row.budget in budgets and row.attack in attacks]


def _leads(rows: list[Row], budget: int) -> str:
    """Say for each net what the success rates of `best` and of the next attack that is not ours are."""
    parts = []
    for net in dict.fromkeys(row.net for row in rows):
        rates = {row.attack: row.rate for row in rows if row.net == net and row.budget == budget}
        if rates[BEST] < max(rates.values()):
            raise ValueError(f"best is not the first at {budget} queries on the net {net} any more")
        name = max((name for name in rates if name not in OURS), key=lambda name: rates[name])
        parts.append(f"{rates[BEST]:.3f} on the net `{net}`, where the next attack ({name}) has {rates[name]:.3f}")
    return _and(parts, "; ")


def _range(numbers: list[float], form: str = ".3f") -> str:
    """Return the smallest and the largest of some numbers."""
    return f"{min(numbers):{form}} to {max(numbers):{form}}"


def _and(parts: list[str], comma: str = ", ") -> str:
    """Join parts of a sentence."""
    if len(parts) < 3 and comma == ", ":
        return " and ".join(parts)
    return comma.join(parts)


def art_sentence(measured: dict[str, Any], page: str) -> str:
    """Return the sentence on ART's attack, beside `best` with the same net and budget."""
    told = measured["rows"][0]
    (best,) = (r for r in rows_of(page, FEW) if (r.net, r.budget, r.attack) == (told["net"], told["budget"], BEST))
    return (
        f"Its success rate over the four classes is {told['rate']:.2f} [{told['low']:.2f}, {told['high']:.2f}] with at "
        f"most {told['budget']:,} queries on the net `{told['net']}` ({told['seeds']} seeds; {told['dense']:.2f} "
        f"before it is reduced), where that of `best` is {best.rate:.2f}."
    )


def put(text: str, mark: str, page: Path = PAGE) -> None:
    """Replace the text between the two marks of a page."""
    before, _, after = page.read_text().split(mark)
    page.write_text(f"{before}{mark}\n{text}\n{mark}{after}")


def main() -> None:
    """Write all sentences."""
    page = BENCHMARK.read_text()
    put(summary(page), MARK)
    put(art_sentence(json.loads(ART.read_text()), page), ART_MARK)


if __name__ == "__main__":
    main()

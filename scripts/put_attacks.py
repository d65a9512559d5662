"""Put the results of the paper's attacks into the documentation, together with the numbers behind them.

    python scripts/put_attacks.py report/attack

It writes docs/attack-reproduction.json from the files of the report; from that the section between the marks in
docs/reproduction.md and the table between those in README.md; and the pictures docs/pictures/attack-*.png. With
--redraw instead of a folder, it writes the section and the table anew from the numbers that are there.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
PAGE, NUMBERS = ROOT / "docs" / "reproduction.md", ROOT / "docs" / "attack-reproduction.json"
PICTURES = ROOT / "docs" / "pictures"
CARD = ROOT / "src" / "zerothresh" / "attack" / "nets" / "README.md"
MARK = "<!-- attack -->"
CLASSES = ("airplane", "ship", "bird", "dog")
BUDGETS = ("600", "6000")  # the budgets that the page shows; the first is the paper's
LEAST = 20  # fresh runs with the paper's budget, for results that are kept
KEPT = ("quick", "seed", "choosing", "judging", "version", "created", "seconds_of_this_session", "versions", "runs")
KEPT += ("right", "verdicts")
WIDTH, COLOURS = 829, 80  # of the pictures: narrow enough for a page, and colourful enough for a photograph
ROUNDS = 3  # of k-means after the choice of the colours, which brings back light grey lines

Rows = list[dict[str, str]]


def numbers_of(folder: Path) -> dict[str, Any]:
    """Return what is kept of a report."""
    manifest = json.loads((folder / "manifest.json").read_text())
    wanted = [f"attack {name}" for name in CLASSES]
    fresh = manifest["judging"]
    if manifest["quick"] or manifest["experiments"] != wanted or fresh[BUDGETS[0]] < LEAST or BUDGETS[1] not in fresh:
        raise SystemExit("This is not a full reproduction of the attacks: run `make reproduce` first.")
    names = ["attack-gains", "attack-lowest", "cases"]
    names += [f"attack-{name}-{part}" for name in CLASSES for part in ("paper", "care", "labels")]
    return {
        **{name: manifest[name] for name in KEPT},
        "net": accuracy(CARD.read_text()),
        "tables": {name: table_of(folder / f"{name}.csv") for name in names},
    }


def table_of(path: Path) -> Rows:
    """Return the rows of a CSV file, with numbers of at most four digits."""
    with path.open(newline="") as file:
        return [{name: rounded(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def rounded(cell: str) -> str:
    """Return a number with four digits, and any other text as it is."""
    return f"{float(cell):.4g}" if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", cell) else cell


def accuracy(card: str) -> str:
    """Return what the card of the net says on its accuracy."""
    (found,) = re.findall(r"^\| test accuracy \| (.*) \|$", card, flags=re.MULTILINE)
    return str(found)


def section(numbers: dict[str, Any]) -> str:
    """Return the section of the page."""
    tables, fresh = numbers["tables"], numbers["judging"]
    runs = " and ".join(f"{fresh[budget]} fresh runs with {int(budget):,} queries" for budget in BUDGETS)
    parts = [
        "## Few-pixel attacks on CIFAR-10",
        "`make reproduce` writes this section and its pictures; no number in it is written by hand.",
        "The paper looks for one perturbation that changes at most 60 of 3,072 numbers and that, added to each of ten "
        "test images of a class, makes a net misclassify as many of them as possible. We use its images, its loss and "
        "its settings (μ = 0.001, q = 10, m = 10, 600 queries, η from 0.001, 0.005, 0.01 and 0.05). `p-SAGA-SZHT`, "
        "`LSVRG-SZHT`, `auto` and [`best`](attack.md) are added. The paper prints η for airplane only, and does not "
        "say which images its net misclassifies before the attack.",
        "**The net is another one.** The paper attacks a net from the supplementary material of de Vazelhes et al. "
        "(2022), which we could not obtain. Ours is the small net that comes with the package; its accuracy, by its "
        f"[model card](../src/zerothresh/attack/nets/README.md), is {numbers['net']}. Therefore the verdicts below say "
        "whether a claim carries over to this net. They cannot refute the paper's figures.",
        f"For each class, every method was run {numbers['choosing']} times with each η to choose one by the paper's "
        f"criterion, the lowest value along a run. With that η there are {runs} ({numbers['runs']:,} runs in all). The "
        "verdicts on the paper's claims are computed from the fresh runs with the paper's 600 queries, and the loss is "
        "that of the last iterate.",
        "Most classes means more than half of the four. A class says yes if the variance-reduced method that other "
        "runs chose is clearly lower than both vanilla methods, and no only if each of the three is clearly higher "
        "than one of the vanilla methods, because the paper says that there is one. Each claim is a short function in "
        "`src/zerothresh/reproduce/cifar/attack_claims.py`.",
        verdicts(numbers["verdicts"]),
        "### Variance-reduced and vanilla methods",
        "By how much the loss of each variance-reduced method is lower than that of FGZOHT and SZOHT, over fresh runs "
        "with 600 queries (means with 95 % intervals; above 0, the variance-reduced method is lower). The method that "
        "was the lowest in the runs that chose η is the one by which the first claim is judged, so that the choice of "
        "the best of three does not count in its favour.",
        gains(tables["attack-gains"]),
        "The paper shows one run of each method. The next table has the share of seeds with which each method ends "
        "with the lowest loss of the five, if each is run once. If the methods did not differ, a variance-reduced one "
        "would be the lowest with 3 of 5 seeds, because there are three of them.",
        shares(tables["attack-lowest"]),
    ]
    for name in CLASSES:
        parts += class_parts(name, numbers)
    return "\n\n".join(parts)


def verdicts(found: list[dict[str, Any]]) -> str:
    """Return the table of verdicts, and the evidence below it."""
    rows = [[v["claim"], v["source"], v["verdict"], v["sentence"]] for v in found]
    lines = [
        markdown(["claim", "source", "verdict", "in one sentence"], rows),
        "",
        "The evidence for each verdict:",
        "",
    ]
    lines += [f"- **{v['claim']}**: {v['verdict']} ({v['cases']}). {v['evidence']}" for v in found]
    return "\n".join(lines)


def short_table(found: list[dict[str, Any]]) -> str:
    """Return the paper's own claims on its attacks as a table, for the README."""
    rows = [[v["claim"], v["verdict"], v["sentence"]] for v in found if v["source"].startswith("paper")]
    return markdown(["claim on the attacks, on another net", "verdict", "in one sentence"], rows)


def gains(rows: Rows) -> str:
    """Return the table of differences between variance-reduced and vanilla methods."""
    header = ["class", "method", "lowest in other runs", "below FGZOHT by", "below SZOHT by"]
    shown = []
    for row in rows:
        spans = [span(row[other], row[f"low_{other}"], row[f"high_{other}"]) for other in ("FGZOHT", "SZOHT")]
        shown.append([row["class"], row["method"], row["chosen"], *spans])
    return markdown(header, shown)


def shares(rows: Rows) -> str:
    """Return the table of how often each method ends lowest."""
    methods = [name for name in rows[0] if name != "class" and not name.startswith("reduced")]
    shown = []
    for row in rows:
        whole = span(row["reduced"], row["reduced_low"], row["reduced_high"], least=0.0, most=1.0)
        shown.append([row["class"], *(f"{float(row[name]):.2f}" for name in methods), whole])
    return markdown(["class", *methods, "a variance-reduced one"], shown)


def class_parts(name: str, numbers: dict[str, Any]) -> list[str]:
    """Return the parts of the section that show one class."""
    single, care, labels = (numbers["tables"][f"attack-{name}-{part}"] for part in ("paper", "care", "labels"))
    fresh = {(row["method"], row["budget"]): row for row in care}
    header = ["method", "η", "η, paper", "fooled", "paper", "lowest F", "η, fresh"]
    for budget in BUDGETS:
        header += [f"success rate, {int(budget):,}", f"loss, {int(budget):,}"]
    rows = []
    for row in single:
        method, printed = row["method"], row["differ_paper"]
        shown = [method, eta(row["eta"]), eta(row["eta_paper"]), f"{row['fooled']} of {row['right']}"]
        shown += [f"{printed} of 10" if printed else "-", f"{float(row['lowest_F']):.2f}"]
        shown.append(eta(fresh[method, BUDGETS[0]]["eta"]))
        for budget in BUDGETS:
            made = fresh[method, budget]
            shown.append(span(made["rate"], made["rate_low"], made["rate_high"], least=0.0, most=1.0))
            shown.append(span(made["loss"], made["loss_low"], made["loss_high"], least=0.0))
        rows.append(shown)
    right, first = numbers["right"][name], list(labels[0])
    many = numbers["judging"][BUDGETS[0]]
    return [
        f"### {name.capitalize()}",
        f"The net classifies {right} of the ten images correctly before the attack. Left: one run per method, as in "
        "the paper, with the η that reaches the lowest value; “paper” counts the labels in its table that differ from "
        f"the class. Right: fresh runs, with 95 % intervals ({many} runs with {int(BUDGETS[0]):,} queries).",
        markdown(header, rows),
        f"![{name}: the mean loss along one run of each method](pictures/attack-{name}-curves.png)",
        f"![{name}: the perturbation of each method and the attacked images](pictures/attack-{name}-pictures.png)",
        f"<details><summary>{name}: all labels, ours and those that the paper prints</summary>",
        markdown(first, [list(row.values()) for row in labels]),
        "</details>",
    ]


def eta(text: str) -> str:
    """Return a learning rate; 0 and nothing stand for none."""
    return f"{float(text):g}" if text and float(text) else "-"


def span(value: str, low: str, high: str, *, least: float = -math.inf, most: float = math.inf) -> str:
    """Return a number with its interval, which cannot go beyond the least and the most that are possible."""
    return f"{float(value):.2f} [{max(float(low), least):.2f}, {min(float(high), most):.2f}]"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put(page: Path, text: str) -> None:
    """Replace the text between the two marks of a page."""
    before, _, after = page.read_text().split(MARK)
    page.write_text(f"{before}{MARK}\n{text}\n{MARK}{after}")


def draw(folder: Path) -> None:
    """Write the pictures of the report in a small size."""
    for name in (f"attack-{name}-{part}.png" for name in CLASSES for part in ("curves", "pictures")):
        with Image.open(folder / name) as picture:
            small = picture.convert("RGB").resize(
                (WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.BOX
            )
        few = small.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=ROUNDS)
        few.save(PICTURES / name, optimize=True)


def main() -> None:
    """Read the report, check it, and write the page."""
    if sys.argv[1:] != ["--redraw"]:
        folder = Path(sys.argv[1])
        NUMBERS.write_text(json.dumps(numbers_of(folder), indent=1, ensure_ascii=False) + "\n")
        draw(folder)
    numbers = json.loads(NUMBERS.read_text())
    put(PAGE, section(numbers))
    put(ROOT / "README.md", short_table(numbers["verdicts"]))
    print(f"Wrote {len(numbers['verdicts'])} verdicts on the attacks to docs/reproduction.md and {NUMBERS.name}.")


if __name__ == "__main__":
    main()

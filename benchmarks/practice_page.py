"""Write docs/practice.md and its pictures from what practice.py, practice_mixture.py and portfolios.py measured.

    python benchmarks/practice_page.py report/practice*.json

What the page shows is kept in docs/practice.json, where examples that are not given stay as they were; without
arguments, the page is made from that file again. The words around the tables are in practice_words.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from practice_data import Row
from practice_mixture import FIRST

mpl.use("agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent
KEPT, PAGE, PICTURES = (ROOT / "docs" / name for name in ("practice.json", "practice.md", "pictures"))
WORDS = Path(__file__).with_name("practice_words.md")
SAME = 1e-9  # two scores that differ by rounding only
LEAST_GAP = 1e-5  # per cent; smaller gaps are drawn there
OURS, THEIRS = "#c0392b", "#7f8c8d"


def spread(values: list[float], digits: int = 3) -> str:
    """Return the mean and its standard error."""
    array = np.array(values)
    error = f" ± {array.std(ddof=1) / np.sqrt(array.size):.{digits}f}" if array.size > 1 else ""
    return f"{array.mean():.{digits}f}{error}"


def methods(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the rows of each method, in the order in which they were measured."""
    return {name: [row for row in rows if row["method"] == name] for name in dict.fromkeys(r["method"] for r in rows)}


def table(rows: list[Row], columns: dict[str, str], digits: int = 3) -> str:
    """Return means and standard errors of all methods as a Markdown table."""
    lines = [f"| method | {' | '.join(columns.values())} | seconds |", "|---" * (len(columns) + 2) + "|"]
    for name, of in methods(rows).items():
        cells = []
        for column in columns:
            values = [row[column] for row in of if column in row]
            whole = column in ("calls", "fits", "features")
            cells.append("" if not values else f"{np.mean(values):,.0f}" if whole else spread(values, digits))
        lines.append(f"| {name} | {' | '.join(cells)} | {np.mean([row['seconds'] for row in of]):.1f} |")
    return "\n".join(lines)


def wins(rows: list[Row], one: str, other: str, key: str) -> str:
    """Return in how many splits a method is better than, as good as and worse than another one."""
    pairs = [(a[key], b[key]) for a in rows for b in rows
             if (a["method"], b["method"]) == (one, other) and a["split"] == b["split"]]  # fmt: skip
    better = sum(a > b + SAME for a, b in pairs)
    worse = sum(a < b - SAME for a, b in pairs)
    return f"better in {better}, as good in {len(pairs) - better - worse} and worse in {worse} of {len(pairs)} splits"


def genes_words(rows: list[Row]) -> dict[str, str]:
    """Return the sentences on the genes."""
    forward, ours = (methods(rows)[name] for name in ("SequentialFeatureSelector", "zerothresh, selector"))
    share = np.mean([row["fits"] for row in forward]) / np.mean([row["fits"] for row in ours])
    return {
        "genes_wins": wins(rows, "zerothresh, selector", "SequentialFeatureSelector", "train"),
        "genes_test": wins(rows, "zerothresh, selector", "SequentialFeatureSelector", "test"),
        "genes_random": wins(rows, "zerothresh, selector, random start", "SequentialFeatureSelector", "train"),
        "genes_share": f"{share:,.0f}",
    }


def markers_words(rows: list[Row]) -> dict[str, str]:
    """Return the sentences on cold and warm starts."""
    warm = [row for row in rows if "begun" in row]
    return {
        "warm": str(len(warm)),
        "below_start": str(sum(row["train"] < row["begun"] - SAME for row in warm)),
        "below_cold": str(sum(row["train"] < row["cold"] - SAME for row in warm)),
        "above_cold": str(sum(row["train"] > row["cold"] + SAME for row in warm)),
    }


def mixture_table(rows: list[Row]) -> str:
    """Return what is missing of the strength of the best mixture, for each method and number of measurements."""
    lines = ["| method | measurements | plants | missing, all plants | missing, first plants | seconds |"]
    lines.append("|---|---:|---:|---|---|---:|")
    first = len({row["split"] for row in rows if row["method"] == "baybe"})
    for name, of in methods(rows).items():
        for budget in sorted({row["budget"] for row in of}):
            these = [row for row in of if row["budget"] == budget]
            some = [row["curve"][-1] for row in these if row["split"] < first]
            seconds = np.mean([row["seconds"] for row in these])
            missing = spread([row["curve"][-1] for row in these])
            shared = spread(some) if some else ""
            lines.append(f"| {NAMES[name]} | {budget} | {len(these)} | {missing} | {shared} | {seconds:.1f} |")
    return "\n".join(lines)


NAMES = {"auto": "zerothresh, auto", "random": "random mixtures", "baybe": "BayBE"}


def portfolio_table(rows: list[Row]) -> str:
    """Return the gap of each file and weight to the quadratic program."""
    weights = sorted({row["weight"] for row in rows})
    lines = [
        f"| file | assets | {' | '.join(f'lambda = {w:g}' for w in weights)} | seconds |",
        "|---" * (len(weights) + 3) + "|",
    ]
    for number in sorted({row["file"] for row in rows}):
        of = {row["weight"]: row for row in rows if row["file"] == number}
        gaps = " | ".join(
            f"{abs(of[w]['gap']) if abs(of[w]['gap']) < 5e-6 else of[w]['gap']:.5f} %" if w in of else ""
            for w in weights
        )
        seconds = np.mean([row["seconds"] for row in of.values()])
        lines.append(f"| port{number} | {next(iter(of.values()))['assets']} | {gaps} | {seconds:.0f} |")
    return "\n".join(lines)


def bars(rows: list[Row], key: str, label: str, path: Path) -> None:
    """Draw means and standard errors of all methods."""
    of = methods(rows)
    values = {name: np.array([row[key] for row in these]) for name, these in of.items()}
    figure, axes = plt.subplots(figsize=(7, 0.38 * len(of) + 1.1), layout="constrained")
    for place, (name, found) in enumerate(values.items()):
        error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else 0
        colour = OURS if name.startswith("zerothresh") else THEIRS
        axes.errorbar(found.mean(), place, xerr=error, fmt="o", capsize=3, color=colour)
        axes.plot(found, np.full(found.size, place), "|", alpha=0.3, color="black", markersize=5)
    axes.set_yticks(range(len(of)), list(of))
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def warm_picture(rows: list[Row], path: Path) -> None:
    """Draw the AUC at the start against that at the end, on the rows that are fitted."""
    figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
    for name, mark in {"zerothresh, warm from L1": "o", "zerothresh, warm from abess": "s"}.items():
        of = [row for row in rows if row["method"] == name]
        axes.plot(
            [row["begun"] for row in of], [row["train"] for row in of], mark, label=name.removeprefix("zerothresh, ")
        )
    low = min(row["begun"] for row in rows if "begun" in row)
    axes.plot([low, 1], [low, 1], color=THEIRS, label="as good as the start")
    axes.set_xlabel("AUC of the start, training rows")
    axes.set_ylabel("AUC at the end, training rows")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def mixture_picture(rows: list[Row], path: Path) -> None:
    """Draw what is missing of the best strength against the measurements, on the plants that all methods have met."""
    first = len({row["split"] for row in rows if row["method"] == "baybe"}) or len({row["split"] for row in rows})
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, of in methods(rows).items():
        for budget, line in zip(sorted({row["budget"] for row in of}), ("-", "--"), strict=False):
            curves = [row["curve"] for row in of if row["budget"] == budget and row["split"] < first]
            length = min(map(len, curves))
            mean = np.mean([curve[:length] for curve in curves], axis=0)
            axes.plot(np.arange(1, length + 1), mean, line, label=f"{NAMES[name]}, {budget} measurements")
    axes.set_ylim(0, 1)
    axes.set_xlabel("measurements")
    axes.set_ylabel(f"missing of the best strength, mean of {first} plants")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def portfolio_picture(rows: list[Row], path: Path) -> None:
    """Draw the gap against calls for each file."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for place, number in enumerate(sorted({row["file"] for row in rows})):
        for row in (row for row in rows if row["file"] == number):
            calls, gaps = np.array(row["curve"]).T
            label = f"port{number}, {row['assets']} assets" if row["weight"] == min(r["weight"] for r in rows) else None
            axes.plot(calls, np.maximum(gaps, LEAST_GAP), color=f"C{place}", label=label, alpha=0.8)
    axes.axhline(0.01, color="black", linestyle=":", label="the goal, 0.01 %")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("calls")
    axes.set_ylabel("gap to the quadratic program, %")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def page(kept: dict[str, list[Row]]) -> str:
    """Return the page."""
    words: dict[str, Any] = {name: str(len({row["split"] for row in rows})) for name, rows in kept.items()}
    words = {f"{name}_splits": number for name, number in words.items()}
    words |= genes_words(kept["genes"]) | markers_words(kept["markers"])
    scores = {"train": "training rows", "test": "test rows"}
    words["wavelengths_table"] = table(
        kept["wavelengths"], scores | {"rmse": "error, test", "features": "wavelengths", "calls": "calls"}
    )
    words["wavelengths_wins"] = wins(kept["wavelengths"], "zerothresh, tolerance", "zerothresh, squared", "test")
    words["wavelengths_abess"] = wins(kept["wavelengths"], "zerothresh, tolerance", "abess", "test")
    words["genes_table"] = table(kept["genes"], {"train": "in the folds", "test": "test rows", "fits": "fits"})
    words["markers_table"] = table(kept["markers"], scores | {"features": "features", "calls": "calls"}, 4)
    words["markers_test"] = wins(kept["markers"], "zerothresh, cold", "abess", "test")
    words["mixture_table"] = mixture_table(kept["mixture"])
    baybe = [row["seconds"] / (row["budget"] - FIRST) for row in kept["mixture"] if row["method"] == "baybe"]
    words["baybe_seconds"] = f"{np.mean(baybe):.0f}"
    words["baybe_splits"] = str(len({row["split"] for row in kept["mixture"] if row["method"] == "baybe"}))
    words["portfolio_table"] = portfolio_table(kept["portfolios"])
    words["worst_gap"] = f"{max(row['gap'] for row in kept['portfolios']):.4f}"
    words["portfolio_cases"] = str(len(kept["portfolios"]))
    text = WORDS.read_text()
    for name, value in words.items():
        text = text.replace("{" + name + "}", value)
    return text


def draw(kept: dict[str, list[Row]]) -> None:
    """Draw all pictures."""
    bars(kept["wavelengths"], "test", "share of test spectra within 1 % of fat", PICTURES / "practice-wavelengths.png")
    bars(kept["genes"], "test", "balanced accuracy on test rows", PICTURES / "practice-genes.png")
    warm_picture(kept["markers"], PICTURES / "practice-markers.png")
    mixture_picture(kept["mixture"], PICTURES / "practice-mixture.png")
    portfolio_picture(kept["portfolios"], PICTURES / "practice-portfolios.png")


def rounded(row: Row) -> Row:
    """Return a row with few digits, as it is kept."""
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*")
    paths = parser.parse_args().paths
    kept: dict[str, list[Row]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    given: dict[str, list[Row]] = {}
    for path in paths:
        for row in json.loads(path.read_text()):
            given.setdefault(row.pop("example"), []).append(rounded(row))
    kept |= given
    if paths:
        KEPT.write_text(json.dumps(kept).replace("}, {", "},\n{") + "\n")
    draw(kept)
    PAGE.write_text(page(kept))


if __name__ == "__main__":
    main()

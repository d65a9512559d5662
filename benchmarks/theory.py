"""Compare the theory with measurements on quadratics.

    python benchmarks/theory.py [--quick] [--redraw] [inequalities | conflict | plane | complexity | outgoing ...]

The parts are the slack of the inequalities, the conflict between gradient error and expansivity, the (q, k) plane, the
exponents of the complexities, and the outgoing iterate of an epoch. The script prints its measurements, keeps them in
docs/theory.json, draws docs/pictures/theory-*.png, and puts the tables into docs/theory.md. All parts take about 25
minutes on one core, more than half of them for the plane. With --quick they take a minute, and nothing is written. With
--redraw the pictures and tables are made again from docs/theory.json.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import conflict
import exponents
import inequalities
import numpy as np
import outgoing
import plane
import theory_pictures

from zerothresh import theory

DOCS = Path(__file__).parents[1] / "docs"
PARTS = ("inequalities", "conflict", "plane", "complexity", "outgoing")
SHOWN_K = 32  # the k of the tables of the plane that have one k only: in the middle, and far above k*


def measure(part: str, quick: bool) -> Any:
    """Measure one part and return plain numbers."""
    few = 10 if quick else 1
    if part == "inequalities":
        rows = [
            *inequalities.expansivity(24_000 // few),
            *inequalities.moments(4000 // few),
            *inequalities.bent(2000 // few),
            *inequalities.chosen(4000 // few),
            *inequalities.steps(2000 // few),
            *inequalities.lemmas(1000 // few),
            *inequalities.memory(1000 // few),
            *inequalities.epochs(50 // few),
        ]
        run = inequalities.szoht_run(3 if not quick else 1, 400 if not quick else 60)
        return {"rows": [asdict(one) | {"holds": one.holds} for one in rows], "run": asdict(run)}
    if part == "conflict":
        draws = 2000 // few
        return {
            "error": conflict.gradient_error(draws),
            "expansion": conflict.expansion(),
            "rates": conflict.rates(),
            "reduced": conflict.reduced(draws // 4),
        }
    if part == "plane":
        seeds = 1 if quick else 3
        small: dict[str, Any] = {"qs": (4, 64), "ks": (2, 16), "etas": (0.1, 0.03)}
        found: dict[str, Any] = {
            "own": plane.sweep(seeds, own=True, **(small if quick else {"qs": plane.OWN_QS, "ks": plane.OWN_KS})),
            "common": plane.sweep(seeds, **(small if quick else {})),
            "floors": plane.floors(1, (64,), (1, 10)) if quick else plane.floors(seeds),
        }
        size = {"d": plane.D, "s2": plane.D, "k_star": plane.K_STAR, "kappa": 1.0}
        return found | {"szoht_q": theory.szoht_q(**size), "vr_k": theory.vr_least_k(k_star=1, kappa=1.0)}
    if part == "outgoing":
        return [asdict(one) for one in (outgoing.compare(1, (10,)) if quick else outgoing.compare(7))]
    values = exponents.VALUES if not quick else {"kappa": (2, 4, 8), "q": (3, 10, 30)}
    return [asdict(one) for one in exponents.slopes(1 if quick else 3, values)]


def report(part: str, found: Any) -> list[str]:
    """Return the lines of a part's table in Markdown."""
    if part == "inequalities":
        lines = ["| inequality | cases | largest measured / bound | median | holds |", "|---|---|---|---|---|"]
        for one in found["rows"]:
            error = f" ± {one['error']:.1g}" if one["error"] else ""
            holds = "yes" if one["holds"] else "no"
            lines.append(
                f"| {one['what']} | {one['cases']:,} | {one['largest']:.3g}{error} | {one['median']:.2g} | {holds} |"
            )
        words = found["run"]["words"]
        lines += ["", "| SZOHT where its theorem holds | theory | measured |", "|---|---|---|"]
        lines.append(f"| factor per step, of the distance | {words['rate']:.4f} | {words['rate seen']:.4f} |")
        steps = [math.ceil(math.log(1e-3) / (2 * math.log(words[key]))) for key in ("rate", "rate seen")]
        lines.append(f"| steps until the gap is 1/1000 | {steps[0]:,} | {steps[1]:,} |")
        lines.append(f"| floor of the squared distance | {words['floor']:.2g} | {words['floor seen']:.2g} |")
        return lines
    if part == "conflict":
        lines = ["| q | " + " | ".join(name for name in found["reduced"] if name != "q") + " |"]
        lines.append("|---" * (len(found["reduced"])) + "|")
        for place, q in enumerate(found["reduced"]["q"]):
            cells = [f"{values[place]:.2g}" for name, values in found["reduced"].items() if name != "q"]
            lines.append(f"| {q} | {' | '.join(cells)} |")
        return lines
    if part == "plane":
        return plane_tables(found)
    if part == "outgoing":
        lines = ["| method | m | calls, from the last iterate | calls, from a random one |", "|---|---|---|---|"]
        return lines + [
            f"| {one['method']} | {one['m']} | {one['last']:,.0f} | {one['random']:,.0f} |" for one in found
        ]
    lines = [
        "| method | against | exponent of calls | paper | with q | of thresholdings |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        error = f" ± {one['error']:.2f}" if one["error"] else ""
        order = exponents.PAPER.get(f"{one['method']}, with q")
        with_q = "" if order is None else _exponent(exponents.slope_of(order, one["name"], tuple(one["at"])))
        seen, nht = _exponent(one["exponent"]), _exponent(one["nht_exponent"])
        lines.append(
            f"| {one['method']} | {one['name']} | {seen}{error} | {_exponent(one['paper'])} | {with_q} | {nht} |"
        )
    return lines


def plane_tables(found: dict[str, Any]) -> list[str]:
    """Return the tables of the plane, first by the paper's law of directions and then by the library's."""
    tables = [["**The paper's estimator: directions of its own for each component**", ""], law_tables(found["own"])]
    tables += [floor_tables(found), ["**Common directions for all components**", ""], law_tables(found["common"])]
    return [line for table in tables for line in table][:-1]


def lines_of(words: str, heads: list[Any], rows: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table of Markdown, and an empty one."""
    lines = [f"| {words} | " + " | ".join(f"{head:,}" for head in heads) + " |", "|---" * (len(heads) + 1) + "|"]
    return [*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()), ""]


def law_tables(found: dict[str, Any]) -> list[str]:
    """Return the tables of one law: with the best learning rate, by learning rate, and in calls."""
    qs, ks, etas = found["q"], found["k"], found["eta"]

    def cell(q: int | None) -> str:
        return "-" if q is None else f"{q:,}"

    least = {
        f"{name}: below {words}": [cell(q) for q in plane.boundary(plane.best(cube), ks, qs, goal).values()]
        for words, goal in (("1/100", 1e-2), ("1/10,000", 1e-4))
        for name, cube in found["left"].items()
    }
    few = {name: [f"{gap:.1g}" for gap in plane.best(cube)[:, 0]] for name, cube in found["left"].items()}
    k = SHOWN_K if SHOWN_K in ks else ks[-1]
    stable = {
        name: [cell(plane.boundary(np.array(one, float), ks, qs, goal=1.0)[k]) for one in cube]
        for name, cube in found["left"].items()
    }
    calls = {
        f"{name}, to {words}": [rounded(x) for x in table[ks.index(k)]]
        for words, goal in (("1/100", "0.01"), ("1/10,000", "0.0001"))
        for name, table in found["calls"][goal].items()
    }
    return [
        *lines_of("least q with the best eta, by k", ks, least),
        *lines_of(f"gap left with the best eta and q = {qs[0]}, by k", ks, few),
        *lines_of(f"least q that does not diverge at k = {k}, by eta", etas, stable),
        *lines_of(f"calls with the best eta at k = {k}, by q", qs, calls),
    ]


def floor_tables(found: dict[str, Any]) -> list[str]:
    """Return what the methods leave by the paper's law: against eta, against q, and against m."""
    own, floors = found["own"], found["floors"]
    k = own["k"].index(SHOWN_K) if SHOWN_K in own["k"] else -1
    by_eta = {
        f"{name}, q = {q}": [gap_of(one) for one in np.array(cube, float)[:, k, own["q"].index(q)]]
        for q in own["q"][:3:2]  # 1 and 16
        for name, cube in own["left"].items()
    }
    by_q, by_m = (
        {name: [gap_of(one[name]) for one in floors[by]] for name in plane.METHODS} for by in ("by_q", "by_m")
    )
    at = f"k = {floors['k']}, eta = {floors['eta']:g}"
    small = f"k = {floors['k']}, eta = {floors['small_eta']:g}, q = {floors['small_q']}"
    reduced = {name: cells for name, cells in by_m.items() if name in ("VR-SZHT", "SARAH-SZHT")}
    others = [f"{name} {by_m[name][floors['m'].index(plane.M)]}" for name in ("SZOHT", "FGZOHT")]
    return [
        *lines_of(f"gap left at k = {own['k'][k]}, by eta", own["eta"], by_eta),
        *lines_of(f"gap left at {at}, by q", floors["q"], by_q),
        *lines_of(f"gap left at {small}, by m ({', '.join(others)})", floors["m"], reduced),
    ]


def gap_of(gap: float) -> str:
    """Write a gap that is left, as a share of the first one."""
    return "diverges" if not gap < 1 else f"{gap:.1e}".replace("e-0", "e-")


def rounded(calls: float) -> str:
    """Write a number of calls with two digits, or a dash if the goal was not reached."""
    return f"{float(f'{calls:.2g}'):,.0f}" if math.isfinite(calls) else "-"


def _exponent(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"


def put(page: Path, part: str, lines: list[str]) -> None:
    """Put a table into the page, between its markers."""
    marker = f"<!-- measured: {part} -->"
    text = page.read_text()
    pattern = re.escape(marker) + ".*?" + re.escape(marker)
    body = "\n".join([marker, "", *lines, "", marker])
    page.write_text(re.sub(pattern, lambda _: body, text, flags=re.DOTALL))


def errata() -> list[str]:
    """Return the lines of the table of `zt.theory.ERRATA`."""
    lines = ["| | where | printed | what is wrong | what we use |", "|---|---|---|---|---|"]
    for one in theory.ERRATA:
        printed = f"`{one.printed}`" if one.printed != "-" else ""
        cells = (f"`{one.key}`", one.where, printed, one.wrong, one.used)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="measure less, and write nothing")
    parser.add_argument("--redraw", action="store_true", help="measure nothing: use docs/theory.json")
    arguments = parser.parse_args()
    store = DOCS / "theory.json"
    kept = json.loads(store.read_text()) if store.exists() else {}
    for part in arguments.parts or PARTS:
        if part not in PARTS:
            parser.error(f"There is no part {part}. The parts are {', '.join(PARTS)}.")
        begun = time.perf_counter()
        if not arguments.redraw:
            kept[part] = json.loads(json.dumps(measure(part, arguments.quick)))
        print(f"== {part} ({time.perf_counter() - begun:.0f} s)")
        print("\n".join(report(part, kept[part])), flush=True)
        if not arguments.quick:
            store.write_text(json.dumps(_short(kept), indent=1) + "\n")
            put(DOCS / "theory.md", part, report(part, kept[part]))
            if part in theory_pictures.DRAW:
                theory_pictures.DRAW[part](kept[part], DOCS / "pictures")
    if not arguments.quick:
        put(DOCS / "theory.md", "errata", errata())
    if "inequalities" in kept:
        rows = kept["inequalities"]["rows"]
        proved = [one for one in rows if "exact" not in one["what"] and "draw chose" not in one["what"]]
        worst = max(one["largest"] for one in proved)
        print(f"largest measured / bound of what is proved: {worst:.2f} (should be at most 1)")
        beyond = next(one["largest"] for one in rows if "draw chose" in one["what"])
        print(f"measured / bound where Lemma 2 is used outside its assumptions: {beyond:.2f}")


def _short(value: Any) -> Any:
    """Round numbers to five digits, which is more than their accuracy."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()

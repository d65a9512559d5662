"""Put the verdicts of a full reproduction into the documentation, together with the numbers behind them.

    python scripts/put_verdicts.py report/all/manifest.json

It writes docs/reproduction.json, the text between the marks in README.md (the paper's claims) and in
docs/reproduction.md (all claims and the evidence), and the pictures docs/pictures/reproduction*.png.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
MARK = "<!-- verdicts -->"
TABLE_MARK = "<!-- table of verdicts -->"
WORDS = {
    "holds": "hold",
    "does not hold": "do not hold",
    "depends": "depend on the setting",
    "undecided": "are undecided",
}
WIDTH, COLOURS = 1100, 128  # of a picture in the documentation: enough to read it, and small in the repository
ROUNDS = 3  # of k-means after the choice of the colours, which keeps lines of similar colours apart
KEPT = ("experiments", "quick", "seed", "budgets", "version", "created", "versions", "verdicts")


def summary(verdicts: list[dict[str, Any]]) -> str:
    """Return one sentence that counts the verdicts of each kind."""
    counts = {kind: sum(v["verdict"] == kind for v in verdicts) for kind in WORDS}
    parts = [f"{count} {WORDS[kind]}" for kind, count in counts.items() if count]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"
    return f"Of {len(verdicts)} claims, {listed}."


def table(verdicts: list[dict[str, Any]]) -> str:
    """Return the verdicts as a Markdown table, each claim with its verdict in one sentence."""
    rows = [f"| {v['claim']} | {v['source']} | {v['verdict']} | {v['sentence']} |" for v in verdicts]
    return "\n".join(["| claim | source | verdict | in one sentence |", "|---|---|---|---|", *rows]).replace(
        "F*", "F\\*"
    )


def short_table(verdicts: list[dict[str, Any]]) -> str:
    """Return the paper's own claims as a Markdown table, for the README."""
    rows = [f"| {v['claim']} | {v['verdict']} | {v['sentence']} |" for v in verdicts if v["source"].startswith("paper")]
    return "\n".join(["| claim | verdict | in one sentence |", "|---|---|---|", *rows]).replace("F*", "F\\*")


def evidence(verdicts: list[dict[str, Any]]) -> str:
    """Return the verdicts as a Markdown list, each with its evidence."""
    lines = [f"- **{v['claim']}** ({v['source']}): {v['verdict']} ({v['cases']}). {v['evidence']}" for v in verdicts]
    return "\n".join(lines).replace("F*", "F\\*")


def put(page: Path, text: str, mark: str = MARK) -> None:
    """Replace the text between the two marks of a page."""
    before, _, after = page.read_text().split(mark)
    page.write_text(f"{before}{mark}\n{text}\n{mark}{after}")


def put_picture(parts: list[Path], name: str) -> None:
    """Write pictures, one below the other, as one picture of the documentation with few colours."""
    pictures = []
    for part in parts:
        with Image.open(part) as picture:
            picture.thumbnail((WIDTH, WIDTH))
            pictures.append(picture.convert("RGB"))
    whole = Image.new("RGB", (max(p.width for p in pictures), sum(p.height for p in pictures)), "white")
    top = 0
    for picture in pictures:
        whole.paste(picture, (0, top))
        top += picture.height
    few = whole.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=ROUNDS)
    few.save(ROOT / "docs" / "pictures" / f"{name}.png", optimize=True)


def main() -> None:
    """Read the manifest, check it, and write the pages."""
    manifest = json.loads(Path(sys.argv[1]).read_text())
    if manifest["quick"] or manifest["budgets"] != [80_000, 100_000, 100_000]:
        raise SystemExit("This is not a full reproduction of all experiments: run `make reproduce` first.")
    kept = {name: manifest[name] for name in KEPT}
    (ROOT / "docs" / "reproduction.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    put(ROOT / "README.md", f"{summary(manifest['verdicts'])}\n\n{short_table(manifest['verdicts'])}")
    put(ROOT / "docs" / "reproduction.md", table(manifest["verdicts"]), TABLE_MARK)
    put(ROOT / "docs" / "reproduction.md", evidence(manifest["verdicts"]))
    report = Path(sys.argv[1]).parent
    put_picture([report / "ridge-k3-own.png"], "reproduction")
    put_picture([report / f"{name}-ladders.png" for name in manifest["experiments"]], "reproduction-ladders")
    print(f"Wrote {len(manifest['verdicts'])} verdicts to README.md, docs/reproduction.md and docs/reproduction.json.")


if __name__ == "__main__":
    main()

"""Put the verdicts of a full reproduction into the documentation, together with the numbers behind them.

    python scripts/put_verdicts.py report/all/manifest.json

It writes docs/reproduction.json, the text between the marks in README.md (a summary) and in docs/reproduction.md (the
table and the evidence), and the picture docs/pictures/reproduction.png.
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
KEPT = ("experiments", "quick", "seed", "budgets", "version", "created", "versions", "verdicts")


def summary(verdicts: list[dict[str, Any]]) -> str:
    """Return one sentence that counts the verdicts of each kind."""
    counts = {kind: sum(v["verdict"] == kind for v in verdicts) for kind in WORDS}
    parts = [f"{count} {WORDS[kind]}" for kind, count in counts.items() if count]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"
    return f"Of {len(verdicts)} claims, {listed}."


def table(verdicts: list[dict[str, Any]]) -> str:
    """Return the verdicts as a Markdown table with one row per claim."""
    rows = [f"| {v['claim']} | {v['source']} | {v['verdict']} | {v['cases']} |" for v in verdicts]
    return "\n".join(["| claim | source | verdict | cases |", "|---|---|---|---|", *rows])


def evidence(verdicts: list[dict[str, Any]]) -> str:
    """Return the verdicts as a Markdown list, each with its evidence."""
    lines = [f"- **{v['claim']}** ({v['source']}): {v['verdict']} ({v['cases']}). {v['evidence']}" for v in verdicts]
    return "\n".join(lines).replace("F*", "F\\*")


def put(page: Path, text: str, mark: str = MARK) -> None:
    """Replace the text between the two marks of a page."""
    before, _, after = page.read_text().split(mark)
    page.write_text(f"{before}{mark}\n{text}\n{mark}{after}")


def main() -> None:
    """Read the manifest, check it, and write the pages."""
    manifest = json.loads(Path(sys.argv[1]).read_text())
    if manifest["quick"] or manifest["budgets"] != [80_000, 100_000, 100_000]:
        raise SystemExit("This is not a full reproduction of all experiments: run `make reproduce` first.")
    kept = {name: manifest[name] for name in KEPT}
    (ROOT / "docs" / "reproduction.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    put(ROOT / "README.md", summary(manifest["verdicts"]))
    put(ROOT / "docs" / "reproduction.md", table(manifest["verdicts"]), TABLE_MARK)
    put(ROOT / "docs" / "reproduction.md", evidence(manifest["verdicts"]))
    with Image.open(Path(sys.argv[1]).with_name("ridge-k3-own.png")) as picture:
        picture.thumbnail((1100, 1100))
        picture.convert("RGB").quantize(96).save(ROOT / "docs" / "pictures" / "reproduction.png", optimize=True)
    print(f"Wrote {len(manifest['verdicts'])} verdicts to README.md, docs/reproduction.md and docs/reproduction.json.")


if __name__ == "__main__":
    main()

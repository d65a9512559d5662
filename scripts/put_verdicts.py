"""Put the verdicts of a full reproduction into the README and docs/reproduction.md, and keep what they come from.

    python scripts/put_verdicts.py report/all/manifest.json

Writes docs/reproduction.json, what is between the marks in the two pages, and the picture.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
MARK = "<!-- verdicts -->"
KEPT = ("experiments", "quick", "seed", "budgets", "version", "created", "versions", "verdicts")


def table(verdicts: list[dict[str, Any]]) -> str:
    """The verdicts in Markdown, a row a claim."""
    rows = [f"| {v['claim']} | {v['source']} | {v['verdict']} | {v['cases']} |" for v in verdicts]
    return "\n".join(["| claim | source | verdict | cases |", "|---|---|---|---|", *rows])


def evidence(verdicts: list[dict[str, Any]]) -> str:
    """The verdicts with what they rest on."""
    lines = [f"- **{v['claim']}** ({v['source']}): {v['verdict']} ({v['cases']}). {v['evidence']}" for v in verdicts]
    return "\n".join(lines).replace("F*", "F\\*")


def put(page: Path, text: str) -> None:
    """Replace what is between the marks."""
    before, _, after = page.read_text().split(MARK)
    page.write_text(f"{before}{MARK}\n{text}\n{MARK}{after}")


def main() -> None:
    """Read, check, write."""
    manifest = json.loads(Path(sys.argv[1]).read_text())
    if manifest["quick"] or manifest["budgets"] != [80_000, 100_000, 100_000]:
        raise SystemExit("only a full reproduction of all experiments goes into the README")
    kept = {name: manifest[name] for name in KEPT}
    (ROOT / "docs" / "reproduction.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    put(ROOT / "README.md", table(manifest["verdicts"]))
    put(ROOT / "docs" / "reproduction.md", evidence(manifest["verdicts"]))
    with Image.open(Path(sys.argv[1]).with_name("ridge-k3-own.png")) as picture:
        picture.thumbnail((1100, 1100))
        picture.convert("RGB").quantize(96).save(ROOT / "docs" / "pictures" / "reproduction.png", optimize=True)
    print(f"{len(manifest['verdicts'])} verdicts in README.md, docs/reproduction.md and docs/reproduction.json")


if __name__ == "__main__":
    main()

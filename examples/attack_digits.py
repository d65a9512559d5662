"""Fool a classifier of digits on all images of one digit at once, with three pixels; nothing is downloaded."""

from __future__ import annotations

import zerothresh as zt


def main() -> None:
    classifier, images, labels = zt.attack.digits(3)
    found = zt.attack.universal(classifier, images, labels, k=3, budget=3000, seed=0)
    print(found)
    for promise, kept in found.promises().items():
        print(f"{'kept' if kept else 'BROKEN'}: {promise}")
    for row, column in zip(*found.perturbation.nonzero(), strict=True):
        print(f"pixel ({row}, {column}): {found.perturbation[row, column]:+g}")


if __name__ == "__main__":
    main()

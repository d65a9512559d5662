"""Run folders that an earlier version of the library began, to be continued by this one.

``python tests/folders.py --write auto htp`` begins those of some methods with the version at hand, and leaves each in
the middle of a round; without names it begins all of them. The format of a folder has a number of its own (its
schema), and as long as that number and the method stay, a new version has to go on with them. Methods of the family of
``auto`` may change: the folders in ``tests/data/old-run-folders`` were begun by their earlier versions.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bits import ESTIMATORS, outcome
from zoo import instance

import zerothresh as zt

FOLDERS = Path(__file__).parent / "data" / "run-folders"
OLD_FOLDERS = FOLDERS.with_name("old-run-folders")
BUDGET = 500
TOLD = 250  # about as many values have been told when the earlier version was killed
NAMES = ("fgzoht", "saga-szht", "vr-szht", "hzo-ht", "zo-sgd", "auto", "htp", "index")


def problem() -> Any:
    """Six components in eight dimensions."""
    return zt.problems.quadratic(d=8, k_true=2, n=6, condition=4, spread=0.3, seed=1)


def opened(name: str, folder: Path | None) -> zt.Optimizer:
    """The optimiser of a folder; without one, of the whole run."""
    arguments: dict[str, Any] = {"budget": BUDGET, "n": 6, "seed": 11, "estimator": ESTIMATORS["default"]}
    return zt.Optimizer(8, 3, method=instance(name), run=folder, **arguments)


def finish(optimizer: zt.Optimizer) -> dict[str, Any]:
    """Ask and tell up to the end."""
    objective = problem()
    while not optimizer.done:
        batch = optimizer.ask()
        optimizer.tell(batch, objective.values(batch.points, batch.components))
    return outcome(optimizer.result())


def begin(name: str, folder: Path, *, snapshots: bool) -> None:
    """Tell about `TOLD` values, the last of them a part of a round, and leave without closing."""
    objective, optimizer = problem(), opened(name, folder)
    if snapshots:
        optimizer.recorded.record._run.due = lambda: True  # type: ignore[attr-defined]
    while not optimizer.done:
        batch = optimizer.ask()
        last = optimizer.nfev + len(batch) >= TOLD
        part = batch[: max(1, len(batch) // 2)] if last else batch
        optimizer.tell(part, objective.values(part.points, part.components))
        if last:
            break
    assert not optimizer.done, "the run has ended before it could be left"


def main(names: Sequence[str]) -> None:
    """Begin the folders of some methods anew."""
    table = FOLDERS / "expected.json"
    expected = json.loads(table.read_text()) if table.exists() else {}
    for name in names:
        for snapshots in (False, True):
            label = f"{name}-{'snapshots' if snapshots else 'journal'}"
            shutil.rmtree(FOLDERS / label, ignore_errors=True)
            (FOLDERS / label).mkdir(parents=True)
            if os.fork() == 0:
                begin(name, FOLDERS / label, snapshots=snapshots)
                os._exit(0)
            os.wait()
            expected[label] = finish(opened(name, None))
    table.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--write"] or not set(sys.argv[2:]) <= set(NAMES):
        sys.exit(__doc__)
    main(sys.argv[2:] or NAMES)
    print(sum(1 for _ in FOLDERS.iterdir()) - 1, "folders,", np.__version__)

"""Ask and tell: the loop is yours, for a laboratory, a queue of jobs or a server that runs the experiments.

Here the "laboratory" answers a whole batch at once, its log is kept, and the run is stopped by hand
when the loss is low enough.
"""

from __future__ import annotations

import numpy as np

import zerothresh as zt

DOSES = {4: 1.5, 11: -2.0, 26: 1.0}  # what the laboratory knows and we do not
best = np.zeros(30)
best[list(DOSES)] = list(DOSES.values())


def laboratory(recipes: np.ndarray) -> np.ndarray:
    """The loss of each recipe of a batch."""
    return np.sqrt(1 + ((recipes - best) ** 2).sum(axis=1)) - 1


opt = zt.Optimizer(30, 3, budget=3_000, method=zt.FGZOHT(eta=0.5), seed=1)
log: list[tuple[int, float]] = []
while not opt.done:
    batch = opt.ask()  # batch.points is (B, d); batch.components is all 0, because F is one function
    values = laboratory(batch.points)
    opt.tell(batch, values)
    log.append((len(batch), float(values.min())))
    if len(log) % 3 == 0:
        print(f"batch {len(log):2d}: {opt.nfev:3d} calls, lowest loss in it {values.min():.2e}")
    if values.min() < 1e-4:
        opt.stop("good enough")  # one more batch: F at the result

result = opt.result()
print(f"{result.status.name}: {result.message}; F = {result.fun:.1e} after {result.nfev} of {result.budget} calls")
for j in result.support:
    print(f"ingredient {j:2d}: {result.x[j]:6.3f} (best {best[j]:4.1f})")

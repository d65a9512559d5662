"""Ask and tell: you own the loop, for example because a laboratory, a job queue or a server provides the values.

In this example the "laboratory" measures a whole batch at once and the program keeps a log. The program stops the run
as soon as the loss is low enough.
"""

from __future__ import annotations

import numpy as np

import zerothresh as zt

DOSES = {4: 1.5, 11: -2.0, 26: 1.0}  # the best recipe, which only the laboratory knows
best = np.zeros(30)
best[list(DOSES)] = list(DOSES.values())


def laboratory(recipes: np.ndarray) -> np.ndarray:
    """Return the loss of each recipe, an array of shape (B,) for recipes of shape (B, 30)."""
    return np.sqrt(1 + ((recipes - best) ** 2).sum(axis=1)) - 1


opt = zt.Optimizer(30, 3, budget=3_000, method=zt.FGZOHT(eta=0.5), seed=1)
log: list[tuple[int, float]] = []
while not opt.done:
    batch = opt.ask()  # batch.points has shape (B, d); batch.components is all 0, because F is one function
    values = laboratory(batch.points)
    opt.tell(batch, values)
    log.append((len(batch), float(values.min())))
    if len(log) % 3 == 0:
        print(f"batch {len(log):2d}: {opt.nfev:3d} calls so far, lowest loss in this batch {values.min():.2e}")
    if values.min() < 1e-4:
        opt.stop("good enough")  # one more batch follows, which evaluates F at the result

result = opt.result()
print(f"{result.status.name}: {result.message}; F = {result.fun:.1e} after {result.nfev} of {result.budget} calls")
for j in result.support:
    print(f"ingredient {j:2d}: {result.x[j]:6.3f} (best {best[j]:4.1f})")

"""Compare the iterates from which the next epoch of VR-SZHT and SARAH-SZHT may start: the last one, or a random one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from exponents import BASE, STEPS, hits
from inequalities import Quadratics

import zerothresh as zt

INNER = (10, 40)  # steps per epoch: the paper's m, and a longer epoch
SPREAD = 0.1  # of the components' gradients at theta*, so that there is a variance to reduce
MOST = 2e5  # calls of a run


@dataclass(frozen=True)
class Outgoing:
    """The fewest calls over learning rates, each the median over problems, until the gap is 1/1000."""

    method: str
    m: int
    last: float
    random: float


def compare(seeds: int, inner: tuple[int, ...] = INNER) -> list[Outgoing]:
    """Return the calls of both methods for each number of inner steps."""
    d, n, k, q = (int(BASE[name]) for name in ("d", "n", "k", "q"))
    boxes = [
        Quadratics(d=d, n=n, k_star=3, kappa=BASE["kappa"], spread=SPREAD, seed=seed, extremes=True)
        for seed in range(seeds)
    ]
    out = []
    for name, made in (("VR-SZHT", zt.VRSZHT), ("SARAH-SZHT", zt.SARAHSZHT)):
        for m in inner:
            fewest = {}
            for output in ("last", "random"):
                medians = []
                for factor in STEPS:
                    eta = factor / (boxes[0].rho_plus * (1 + (2 * k + 5) / q))
                    method = made(eta=eta, m=m, output=output)
                    medians.append(
                        np.median([hits(method, box, k, q, seed, MOST)[0] for seed, box in enumerate(boxes)])
                    )
                fewest[output] = float(min(medians))
            out.append(Outgoing(name, m, **fewest))
    return out

"""Choose at most 8 of 60 assets, each with a share of 0 or from 2 % to 30 %, from the values of a risk alone.

The risk is the mean loss in the worst 5 % of 500 scenarios (the expected shortfall), less a tenth of the mean return. A
program that draws scenarios is often a black box: it has neither slopes nor a matrix of covariances. Every queried
portfolio is one that could be bought (``strict=True``): the shares sum to 1, and none is below 2 % or above 30 %.
"""

from __future__ import annotations

import numpy as np

import zerothresh as zt

ASSETS, SCENARIOS, HELD = 60, 500, 8

_rng = np.random.default_rng(7)
_market = _rng.standard_t(4, size=(SCENARIOS, 3)) * [0.04, 0.02, 0.015]
_exposure = np.abs(_rng.normal(0.8, 0.4, size=(3, ASSETS)))
_own = _rng.standard_t(5, size=(SCENARIOS, ASSETS)) * _rng.uniform(0.01, 0.06, ASSETS)
RETURNS = _market @ _exposure + _own + _rng.normal(0.006, 0.004, ASSETS)


def risk(x: np.ndarray) -> float:
    """Return the mean loss in the worst 5 % of the scenarios, less a tenth of the mean return."""
    gains = RETURNS @ x
    worst = np.sort(gains)[: SCENARIOS // 20]
    return float(-worst.mean() - 0.1 * gains.mean())


def main() -> None:
    rules = zt.Budget(total=1, low=0.02, high=0.3)
    result = zt.minimize(risk, ASSETS, HELD, budget=6000, constraint=rules, strict=True, seed=0, progress=False)
    alone = min(risk(asset) for asset in np.eye(ASSETS))
    drawn = np.random.default_rng(0)
    names = [drawn.choice(ASSETS, HELD, replace=False) for _ in range(6000)]
    equal = min(risk(np.bincount(chosen, minlength=ASSETS) / HELD) for chosen in names)
    print(f"{result.nfev} portfolios were tried; the best one has a risk of {result.fun:.4f}")
    print(f"the best of 6000 random choices with equal shares: {equal:.4f}; the best single asset: {alone:.4f}")
    print("asset  share")
    for asset in result.support:
        print(f"{asset:5d}  {100 * result.x[asset]:4.1f} %")
    print(f"the shares sum to {result.x.sum():.6f}; {result.support.size} assets are held, at most {HELD} may be")
    print("each share is at least 2 % and at most 30 %:", bool((result.x[result.support] >= 0.02).all()))


if __name__ == "__main__":
    main()

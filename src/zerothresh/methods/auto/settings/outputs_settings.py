"""Linearised outputs: calls that return many residuals."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputsSettings:
    """How long the linear model of the outputs may go on."""

    steps: int = 10  # calls per non-zero beyond the columns: a support and its minimum take about six (benchmarks)
    doubling: int = 2  # calls since the last gain, over those until then, that are allowed in any case: as for a leader
    least_truth: float = 0.1  # of the falls that it predicts must come about: trust regions shrink below that, too


OUTPUTS = OutputsSettings()

"""How well predictions of the linear model come true."""

from __future__ import annotations

from dataclasses import dataclass

from zerothresh.methods.residual.residual_settings import STEP


@dataclass(frozen=True)
class TrackRecord:
    """Falls of the sum of losses of late: those predicted for steps, and those that steps made."""

    predicted: float = 0.0
    made: float = 0.0

    def after(self, predicted: float, fall: float) -> TrackRecord:
        """Return the record after one more step, in which older ones count less."""
        return TrackRecord(
            STEP.forget_falls * self.predicted + predicted, STEP.forget_falls * self.made + max(fall, 0.0)
        )

    @property
    def truth(self) -> float:
        """The share of the predicted falls that came about; 1 as long as nothing was predicted."""
        return self.made / self.predicted if self.predicted > 0 else 1.0

"""What is done about calls that fail, and when time is up."""

from __future__ import annotations

from dataclasses import dataclass

from zerothresh.basics import check
from zerothresh.evaluate.base import Failure, WorkerDied
from zerothresh.objective.forms import BadLoss, BadValue

LONGEST_PAUSE = 60.0  # seconds between two tries: a service that is down for longer is asked once per minute
ON_NAN = ("stop", "worst", "retry", "mask")  # what may happen to a value that is not finite
ON_ERROR = ("stop", "worst")  # what may happen to a call that has failed for good
RETRIES_OF_DEATH = 1  # at least, of a call whose process died: it may have been killed for the memory of another one
MOST_DOUBLINGS = 20  # of the pause, so that the power below stays a number


@dataclass(frozen=True)
class Faults:
    """The policy for calls that fail.

    Arguments
    ---------
    retries: int, default 0: how often a call that failed is made again; at least once if its worker process died.
    backoff: float, default 0.1: seconds before the first retry; doubled for each further one.
    max_time: float, default None: seconds after which no more calls are begun.
    on_nan: str, default "stop": with "retry", a value that is not finite is asked for again.
    on_error: str, default "stop": with "worst", a call that has failed for good counts as the worst value seen.
    """

    retries: int = 0
    backoff: float = 0.1
    max_time: float | None = None
    on_nan: str = "stop"
    on_error: str = "stop"

    def __post_init__(self) -> None:
        check.count("retries", self.retries, low=0)
        check.not_negative("backoff", self.backoff, what=" (seconds)")
        check.one_of("on_nan", self.on_nan, ON_NAN)
        check.one_of("on_error", self.on_error, ON_ERROR)
        if self.on_nan == "retry" and self.retries == 0:
            raise ValueError("on_nan='retry' needs retries of at least 1: how often a call may be made again")
        if self.max_time is not None:
            check.positive("max_time", self.max_time, what=" (seconds), or None")

    def may_retry(self, error: BaseException, tried: int) -> bool:
        """Return whether a call that has failed ``tried`` times is made again.

        A loss that fails is no failing call: it would fail on the same outputs again.
        """
        if isinstance(error, BadLoss):
            return False
        if isinstance(error, BadValue) and self.on_nan != "retry":
            return False
        least = RETRIES_OF_DEATH if isinstance(error, WorkerDied) else 0
        return tried <= max(self.retries, least)

    def takes_worst(self, failure: Failure) -> bool:
        """Return whether the worst value seen takes the place of a call that has failed for good.

        A call that was never made tells nothing about its point, and what a call returned is the matter of ``on_nan``.
        """
        return self.on_error == "worst" and failure.begun and not isinstance(failure.error, (BadValue, BadLoss))

    def pause(self, tried: int) -> float:
        """Return the seconds to wait before a call that has failed ``tried`` times is made again."""
        return min(LONGEST_PAUSE, self.backoff * 2.0 ** min(tried - 1, MOST_DOUBLINGS))

"""What is done about calls that fail, and when time is up."""

from __future__ import annotations

import random
from dataclasses import dataclass

from zerothresh.basics import check
from zerothresh.evaluate.base import CallCancelled, ClusterLost, Failure, WorkerDied
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
    jitter: float, default 0.0: each pause is multiplied by a random number between 1 - jitter and 1 + jitter.
    """

    retries: int = 0
    backoff: float = 0.1
    max_time: float | None = None
    on_nan: str = "stop"
    on_error: str = "stop"
    jitter: float = 0.0

    def __post_init__(self) -> None:
        check.count("retries", self.retries, low=0)
        check.not_negative("backoff", self.backoff, what=" (seconds)")
        if check.not_negative("jitter", self.jitter, what=" (a share of the pause)") > 1:
            raise ValueError(f"jitter must be at most 1 (a share of the pause), not {check.shown(self.jitter)}")
        check.one_of("on_nan", self.on_nan, ON_NAN)
        check.one_of("on_error", self.on_error, ON_ERROR)
        if self.on_nan == "retry" and self.retries == 0:
            raise ValueError("on_nan='retry' needs retries of at least 1: how often a call may be made again")
        if self.max_time is not None:
            check.positive("max_time", self.max_time, what=" (seconds), or None")

    def may_retry(self, error: BaseException, tried: int) -> bool:
        """Return whether a call that has failed ``tried`` times is made again.

        A loss that fails is no failing call: it would fail on the same outputs again. A lost cluster takes no calls.
        """
        if isinstance(error, (BadLoss, ClusterLost)):
            return False
        if isinstance(error, BadValue) and self.on_nan != "retry":
            return False
        least = RETRIES_OF_DEATH if isinstance(error, WorkerDied) else 0
        return tried <= max(self.retries, least)

    def takes_worst(self, failure: Failure) -> bool:
        """Return whether the worst value seen takes the place of a call that has failed for good.

        A call that was never made, was cancelled, or whose cluster was lost, tells nothing about its point. What a call
        returned is the matter of ``on_nan``.
        """
        told = failure.begun and not isinstance(failure.error, (BadValue, BadLoss, CallCancelled, ClusterLost))
        return self.on_error == "worst" and told

    def pause(self, tried: int) -> float:
        """Return the seconds to wait before a call that has failed ``tried`` times is made again.

        The jitter is drawn from the system, not from the seed, because programs with one seed that use the same service
        are those which should not come back at the same instant. It changes nothing but the time.
        """
        pause = min(LONGEST_PAUSE, self.backoff * 2.0 ** min(tried - 1, MOST_DOUBLINGS))
        return pause * (1.0 + self.jitter * random.SystemRandom().uniform(-1.0, 1.0)) if self.jitter else pause

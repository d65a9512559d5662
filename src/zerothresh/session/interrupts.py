"""Ctrl-C: a request that is taken up between two calls, so that no value is lost and nothing is left half done."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from zerothresh.evaluate.base import Evaluator

WAITING = "stopping; calls in progress are finished, and their values kept; press Ctrl-C again to give them up"
LAST = 3  # the request that raises wherever the program is: somebody wants to leave at any price


class Interrupts:
    """A context in which Ctrl-C asks a run to stop.

    The first one lets the calls in progress finish and keeps their values; the second one gives them up. Only the
    third one raises ``KeyboardInterrupt`` wherever the program is. SIGTERM does the same if it was made to act like
    Ctrl-C before. Outside the main thread, and where somebody else handles Ctrl-C, this changes nothing.

    Arguments
    ---------
    evaluator: Evaluator, which begins no more calls after the first request.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.requests = 0
        self._acknowledged = False  # whether the run knows that it should stop
        self._handler = _Handler(self._take, (signal.SIGINT, signal.SIGTERM))

    def requested(self) -> bool:
        """Whether somebody wants the run to stop."""
        if self.requests or self.evaluator.cancelled:
            self._acknowledged = True
        return self._acknowledged

    def _take(self) -> None:
        """Take note of a request; this runs as a signal handler, between any two instructions of the main thread."""
        self.requests += 1
        if self.requests == 1:
            self.evaluator.halt()
            with suppress(Exception):  # standard error may be closed, or in use at this very moment
                print(f"zerothresh: {WAITING}", file=sys.stderr, flush=True)
        elif self.requests < LAST:
            self.evaluator.leave()
        else:
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        self._handler.install()
        return self

    def __exit__(self, *error: object) -> None:
        self._handler.remove()
        if self.requests and not self._acknowledged:  # it came too late for the run, and is not passed over
            self._acknowledged = True
            raise KeyboardInterrupt


class Deferred:
    """A context that Ctrl-C does not break off: ``KeyboardInterrupt`` is raised at its end."""

    __slots__ = ("_came", "_handler")

    def __init__(self) -> None:
        self._came = 0
        self._handler = _Handler(self._take, (signal.SIGINT,))

    def _take(self) -> None:
        self._came += 1
        if self._came >= LAST:
            raise KeyboardInterrupt

    def __enter__(self) -> None:
        self._handler.install()

    def __exit__(self, *error: object) -> None:
        self._handler.remove()
        if self._came:
            raise KeyboardInterrupt


class _Handler:
    """A function in the place of Python's own handler of Ctrl-C, as long as it is installed."""

    __slots__ = ("_numbers", "_react", "_taken")

    def __init__(self, react: Callable[[], None], numbers: tuple[signal.Signals, ...]) -> None:
        self._react, self._numbers = react, numbers
        self._taken: tuple[signal.Signals, ...] = ()

    def install(self) -> None:
        """Take over the signals that would raise ``KeyboardInterrupt``."""
        if threading.current_thread() is threading.main_thread():
            usual = signal.default_int_handler
            self._taken = tuple(n for n in self._numbers if signal.getsignal(n) is usual)
            try:
                for number in self._taken:
                    signal.signal(number, self)
            except BaseException:  # a signal that is not taken over yet
                self.remove()
                raise

    def remove(self) -> None:
        """Put Python's own handler back, unless somebody else has put another one there since."""
        for number in self._taken:
            if signal.getsignal(number) is self:
                signal.signal(number, signal.default_int_handler)
        self._taken = ()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self._react()
        except KeyboardInterrupt:
            self.remove()  # also if it comes while this is being removed
            raise

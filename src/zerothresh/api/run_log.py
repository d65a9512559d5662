"""The log of a run: what pipes, files and CI get instead of a progress line."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from zerothresh.api.run_status import RunStatus, clock
from zerothresh.basics.foreign_text import printable

if TYPE_CHECKING:
    from zerothresh.rounds.search import Stage

LOGGER = logging.getLogger("zerothresh")
SHORTEST, SHARE, LONGEST = 10.0, 0.05, 300.0  # seconds between two lines: this share of the time so far, in this range
PULSE = 1.0  # seconds between two looks at whether a line is due while no value arrives
MOST_STAGES = 50  # stages that are announced; a method of one's own may have one per round


class RunLog:
    """Writes lines at the start of a run, when a new stage begins, every 10 seconds (later less often), and at the end.

    The lines go to the logger "zerothresh" with the level INFO, and so to where the user's configuration of `logging`
    sends them. Without such a configuration they go nowhere, or to the standard error stream if ``wanted``.

    Arguments
    ---------
    status: function that returns where the run is.
    stages: function that returns the stages that have begun so far.
    wanted: bool, whether the user has asked for progress.
    """

    def __init__(self, status: Callable[[], RunStatus], stages: Callable[[], Sequence[Stage]], wanted: bool) -> None:
        self.heard = LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers()
        self.active = self.heard or wanted
        self._status, self._stages = status, stages
        self._due = SHORTEST  # seconds from the beginning
        self._seen = 0  # stages that have been looked at
        self._announced: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._pulse: threading.Thread | None = None

    def begin(self, text: str) -> None:
        """Write the first line, and watch the time from now on, also while no value arrives."""
        self._seen = max(0, len(self._stages()) - 1)  # of a run that goes on, the stage it is in counts as new
        self._write(text)
        self.look()
        self._pulse = threading.Thread(target=self._watch, name="zerothresh-log", daemon=True)
        self._pulse.start()

    def look(self) -> None:
        """Write a line for each stage that is new, and one if the last line is old; nothing if another thread does."""
        if self._lock.acquire(blocking=False):
            try:
                self._announce()
                status = self._status()
                if status.elapsed >= self._due:
                    self._due = status.elapsed + min(LONGEST, max(SHORTEST, SHARE * status.elapsed))
                    self._write(status.sentence())
            finally:
                self._lock.release()

    def end(self, reason: str) -> None:
        """Write why the run ended; no line follows."""
        self._over.set()
        if self._pulse is not None:
            self._pulse.join()
        self._announce()
        status = self._status()
        made = f"{status.calls:,} of {status.budget:,} calls in {clock(status.elapsed)}"
        self._write(f"ended after {made}, {status.best}: {reason}")

    def _watch(self) -> None:
        """Look once per second until the run is over."""
        while not self._over.wait(PULSE):
            self.look()

    def _announce(self) -> None:
        """Write a line for each stage whose name is new; a method may come back to a stage many times."""
        stages = self._stages()
        for calls, name in stages[self._seen :]:
            if name not in self._announced and len(self._announced) < MOST_STAGES:
                self._announced.add(name)
                self._write(f"after {calls:,} calls: {name}")
        self._seen = len(stages)

    def _write(self, text: str) -> None:
        """Write one line; a log that cannot be written does not end a run."""
        line = printable(text)
        with suppress(Exception):
            if self.heard:
                LOGGER.info("%s", line)
            else:
                print(f"zerothresh: {line}", file=sys.stderr, flush=True)

"""The log of a long run on the standard error stream, for commands in pipes, files and CI."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from zerothresh.cli.messages import say

QUIET = 10.0  # seconds; a command that ends sooner has shown its result before anybody wonders where it is


class LongRunHandler(logging.Handler):
    """Prints log lines on the standard error stream, but none of a command that takes less than ten seconds."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._begun = time.monotonic()
        self._kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line, after those that were kept back; or keep it back."""
        self._kept.append(record.getMessage())
        if time.monotonic() - self._begun >= QUIET:
            for line in self._kept:
                say(f"zerothresh: {line}", err=True)
            self._kept.clear()


@contextmanager
def long_run_log() -> Iterator[None]:
    """Print the log of a run that takes long, unless the user's own module has set up `logging` for that.

    This is a context; ``long_run_log()(function)`` is the function in that context.
    """
    logger = logging.getLogger("zerothresh")
    if logger.isEnabledFor(logging.INFO) and logger.hasHandlers():
        yield
        return
    handler, before = LongRunHandler(), (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # handlers of the user's module may be for warnings only
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]

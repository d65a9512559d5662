"""The errors that run folders raise."""

from __future__ import annotations

import errno


class RunError(ValueError):
    """A run folder cannot be used; the message gives the reason."""


class LockLost(OSError):
    """The folder is no longer locked by this process, so that nothing more may be written into it."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.ENOLCK, why)

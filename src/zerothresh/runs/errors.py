"""The error that run folders raise."""

from __future__ import annotations


class RunError(ValueError):
    """A run folder cannot be used; the message gives the reason."""

"""What a run folder refuses."""

from __future__ import annotations


class RunError(ValueError):
    """A run folder that cannot be used, with the reason."""

"""Run folders: a run that was killed continues where it stopped, and no value is paid for twice."""

from zerothresh.runs.errors import RunError
from zerothresh.runs.folder import Recovered, Run, stored_budget, stored_seed, stored_width
from zerothresh.runs.identity import fingerprint, identity_of
from zerothresh.runs.journal import FSYNC_MODES, FailureLine, ValueLine

__all__ = [
    "FSYNC_MODES",
    "FailureLine",
    "Recovered",
    "Run",
    "RunError",
    "ValueLine",
    "fingerprint",
    "identity_of",
    "stored_budget",
    "stored_seed",
    "stored_width",
]

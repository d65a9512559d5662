"""A search on a linear model, which goes on as long as what the model predicts comes true."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from zerothresh.methods.auto.settings.outputs_settings import OUTPUTS
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def trusted(
    search: Asks, context: Context, patience: int, truth: Callable[[], float]
) -> Generator[Probes, Answers, tuple[Any, str]]:
    """Pass on what a search asks, until it ends or predicts badly without having gained anything of late.

    Arguments
    ---------
    search: the search.
    context: the run, which the search moves.
    patience: int, calls that it may make in any case; after a gain, it may double its calls.
    truth: tells the share of the predicted falls of F that came about of late.

    Returns
    -------
    what the search returned, and a sentence if it was stopped.
    """
    begun, fall, answers = context.used, context.fall, None
    while True:
        try:
            request = next(search) if answers is None else search.send(answers)
        except StopIteration as stop:
            return stop.value, ""
        if context.fall > fall:
            fall, patience = context.fall, max(patience, OUTPUTS.doubling * (context.used - begun))
        if context.used - begun > patience and truth() < OUTPUTS.least_truth:
            return None, f"of the falls of F that it predicted of late, only {truth():.0%} came about"
        answers = yield request

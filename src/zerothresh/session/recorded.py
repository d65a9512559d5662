"""A session and the record that is kept of it: every change goes to the record first, and then to the session."""

from __future__ import annotations

from typing import Protocol

from zerothresh.basics.arrays import Array
from zerothresh.evaluate.base import Failure
from zerothresh.session.machine import Session
from zerothresh.session.status import Status


class Record(Protocol):
    """What is kept of a session, so that nothing that was paid for is lost."""

    trouble: OSError | None
    """Why no more should be asked for, although everything so far has been written."""

    def claim(self, session: Session) -> None:
        """Make sure that the values of the open round will find a place; raise OSError if they would not."""

    def values(self, session: Session, start: int, values: Array) -> None:
        """Keep values of the open round from row ``start`` on."""

    def failure(self, session: Session, failure: Failure) -> None:
        """Keep a call that failed."""

    def replaced(self, session: Session, failure: Failure) -> None:
        """Keep why a call failed whose values will be replaced; it is counted with them."""

    def settle(self, session: Session) -> None:
        """Take note that the session has moved: it may be between two rounds, or have ended."""

    def close(self, session: Session) -> None:
        """Let go of whatever the record is kept in."""


class NoRecord:
    """Nothing is kept."""

    trouble: OSError | None = None

    def claim(self, session: Session) -> None:
        pass

    def values(self, session: Session, start: int, values: Array) -> None:
        pass

    def failure(self, session: Session, failure: Failure) -> None:
        pass

    def replaced(self, session: Session, failure: Failure) -> None:
        pass

    def settle(self, session: Session) -> None:
        pass

    def close(self, session: Session) -> None:
        pass


class RecordedSession:
    """A session wrapped by its record; the loop, and ask and tell, change a session only through this."""

    __slots__ = ("record", "session")

    def __init__(self, session: Session, record: Record) -> None:
        self.session, self.record = session, record

    def claim(self) -> None:
        """Before the open round is asked for: claim the place for its values."""
        self.record.claim(self.session)

    def deliver(self, start: int, values: Array, *, paid: bool = False) -> bool:
        """Keep values of the open round, and then let the session take them; return whether a step was made.

        If they cannot be kept, ``OSError`` is raised and nothing has changed, so that they can be told again. Values
        that are ``paid`` for, and that nobody else has, are counted and used all the same; the record is in trouble.
        """
        try:
            self.record.values(self.session, start, values)
        except OSError as error:
            if not paid:
                raise
            self.record.trouble = error
        stepped = self.session.deliver(start, values)
        self.record.settle(self.session)
        return stepped

    def fail(self, failure: Failure) -> None:
        """Keep and charge a call that failed; it is charged although it could not be kept."""
        try:
            self.record.failure(self.session, failure)
        except OSError as error:
            self.record.trouble = error
        self.session.fail(failure)

    def replace(self, failure: Failure) -> bool:
        """Let NaN stand for what a call that failed for good should have returned; the session replaces it.

        So the call is counted once, and the journal tells a later session which values were replaced. Returns whether a
        step was made.
        """
        try:
            self.record.replaced(self.session, failure)
        except OSError as error:
            self.record.trouble = error
        return self.deliver(failure.row, self.session.no_values(failure), paid=True)

    def finish(self, status: Status, message: str, *, failure: Failure | None = None, final: bool = True) -> None:
        """End the run for a reason; see `Session.finish`."""
        self.session.finish(status, message, failure=failure, final=final)
        self.record.settle(self.session)

    def stop_for_user_error(self, function: str, error: BaseException) -> None:
        """End the run because the user's callback failed; see `Session.stop_for_user_error`."""
        self.session.stop_for_user_error(function, error)
        self.record.settle(self.session)

    def check_fit(self, missing: list[tuple[int, int]]) -> bool:
        """End the run if the rest of the open round does not fit into the limits; return whether it goes on."""
        goes_on = self.session.check_fit(missing)
        self.record.settle(self.session)
        return goes_on

    def close(self) -> None:
        """Let go of the record; the run can be opened again."""
        self.record.close(self.session)

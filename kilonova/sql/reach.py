"""Whether a database answers, and waiting until it does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.core.errors import Conflict, Unavailable
from kilonova.sql.address import shown
from kilonova.sql.engine import Database, unreachable

LOG = logging.getLogger(__name__)

SAY_EVERY: Final = 5.0  # seconds
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 2.0
_PING: Final = sa.text("SELECT 1")


class DatabaseUnreachable(Unavailable):
    code, message = "database_unreachable", "The database {database} does not answer: {reason}."


class DatabaseRefuses(Conflict):
    code, message = "database_refuses", "The database {database} refuses: {reason}."


def wait(
    database: Database, seconds: float = 0, *,
    say: Callable[[str], object] = LOG.warning, stop: threading.Event | None = None,
) -> bool:  # fmt: skip
    """Return True once the database answers, and False when `stop` was set meanwhile.

    Says why it does not answer at once and every few seconds. DatabaseUnreachable after `seconds` (0 tries once).
    """
    deadline = clock.monotonic() + seconds
    pause, said = _FIRST_PAUSE, -SAY_EVERY
    while True:
        reason = why_unreachable(database)
        if reason is None:
            return True
        now = clock.monotonic()
        if now >= deadline:
            raise DatabaseUnreachable(database=shown(database.url), reason=reason)
        if now - said >= SAY_EVERY:
            say(f"Waiting for the database {shown(database.url)}: {reason}")
            said = now
        pause = min(pause, deadline - now)
        if stop is None:
            clock.sleep(pause)
        elif stop.wait(pause):
            return False
        pause = min(pause * 2, _LONGEST_PAUSE)


def why_unreachable(database: Database) -> str | None:
    """The reason why a database does not answer, in the words of its driver; None when it does."""
    try:
        with database.read() as connection:
            connection.execute(_PING)
    except sa.exc.SQLAlchemyError as error:
        if not unreachable(error):
            raise
        return reason(error)
    return None


def reason(error: BaseException) -> str:
    """What a driver said, in one line: PostgreSQL's says where it tried to connect, and only then what happened."""
    cause = getattr(error, "orig", None) or error
    words = cause.args[-1] if cause.args and isinstance(cause.args[-1], str) else str(cause)
    lines = [line.strip() for line in words.splitlines() if line.strip()] or [type(cause).__name__]
    line = next((line for line in lines if "failed: " in line), lines[0])
    return line.rpartition("failed: ")[2].rstrip(".")


@contextmanager
def in_words(database: Database) -> Iterator[None]:
    """What goes wrong with a database inside is DatabaseUnreachable or DatabaseRefuses, in the words of its driver."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        kind = DatabaseUnreachable if unreachable(error) else DatabaseRefuses
        raise kind(database=shown(database.url), reason=reason(error)) from error

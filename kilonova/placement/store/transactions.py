"""Write transactions of the placement database: retried on races nobody asked about, logged, and noted.

Locks are taken in one global order, so that writers wait but do not deadlock: consumers by uuid, then providers by
id, then the change log. A note of each committed transaction is kept in memory, so that the process that wrote does
not have to read the log to know what it did.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from kilonova.core import clock, ids
from kilonova.core.errors import Conflict
from kilonova.core.metrics import OFF, Meters
from kilonova.placement.errors import ConcurrentUpdate
from kilonova.placement.metrics import CONFLICTS, conflict_kind
from kilonova.placement.store import changes
from kilonova.placement.store.changes import What
from kilonova.sql.engine import Database

T = TypeVar("T")

RETRIES = 10
"""Attempts for one write before the race is reported."""

_SQLSTATES = frozenset({"40P01", "40001"})  # PostgreSQL: deadlock, serialisation
_MYSQL_CODES = frozenset({1213, 1205, 1020})  # deadlock, lock wait timeout, record has changed


_LOST = "Resource providers or consumers involved were changed by other requests each time; try again."


class Race(Exception):
    """The transaction met somebody else's; doing it all again will see their result."""


class Transaction:
    """A write transaction: its connection and what it touched so far."""

    __slots__ = ("connection", "touched")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.touched: dict[int, What] = {}

    def touch(self, provider_id: int, what: What = What.WHOLE) -> None:
        """Readers have to look at this provider again."""
        if what > self.touched.get(provider_id, 0):
            self.touched[provider_id] = what

    def touch_names(self) -> None:
        """A trait, class or consumer type was made, renamed or deleted."""
        self.touched[changes.CATALOGUE] = What.NAMES


@dataclass(frozen=True, slots=True, eq=False)
class Note:
    """One committed transaction of this process: the slot it was logged under and what it touched."""

    slot: int
    touched: dict[int, What]


class Notes:
    """What this process committed and its snapshot has not applied yet.

    A note is announced before the commit and confirmed after it. A reader that had to go through the log calls
    `forget`, because it cannot know which of the announced ones it has seen there: those are then never confirmed,
    and the reader will find out from the counters. So a confirmed note is always visible and never applied before.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._announced: set[Note] = set()
        self._confirmed: list[Note] = []

    def announce(self, note: Note) -> None:
        """To be called before the commit."""
        with self._lock:
            self._announced.add(note)

    def confirm(self, note: Note) -> None:
        """To be called after the commit."""
        with self._lock:
            if note in self._announced:
                self._announced.discard(note)
                self._confirmed.append(note)

    def withdraw(self, note: Note) -> None:
        """The commit failed, or may have failed."""
        with self._lock:
            self._announced.discard(note)

    def take(self) -> list[Note]:
        """The confirmed notes, oldest first; they are gone from here."""
        with self._lock:
            notes, self._confirmed = self._confirmed, []
        return notes

    def forget(self) -> None:
        """Drop everything: the reader has been to the log."""
        with self._lock:
            self._announced.clear()
            self._confirmed.clear()


class Writer:
    """Runs write transactions on one placement database."""

    def __init__(self, database: Database, *, retries: int = RETRIES, meters: Meters = OFF) -> None:
        self.database, self.meters = database, meters
        self.notes = Notes()
        self._retries = retries

    def run(self, work: Callable[[Transaction], T]) -> T:
        """The result of `work(transaction)`, committed together with its log entry.

        A deadlock, a serialisation failure, a unique or foreign key violation and `Race` run it again from the
        start after a short random pause. ConcurrentUpdate when the races do not end.
        """
        for attempt in range(1, self._retries + 1):
            try:
                return self._once(work)
            except Conflict as error:
                self.meters.record(CONFLICTS, 1, conflict_kind(error))
                raise
            except (Race, exc.DBAPIError) as error:
                if not _retryable(error):
                    raise
                last = attempt == self._retries
                self.meters.record(CONFLICTS, 1, "lost" if last else "race")
                if last:
                    raise ConcurrentUpdate(_LOST) from error
                clock.sleep(ids.uniform(0.0, 0.002 * attempt))
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Transaction], T]) -> T:
        note: Note | None = None
        try:
            with self.database.write() as connection:
                transaction = Transaction(connection)
                result = work(transaction)
                if transaction.touched:
                    note = Note(changes.append(connection, transaction.touched), transaction.touched)
                    self.notes.announce(note)
        except BaseException:
            if note is not None:
                self.notes.withdraw(note)
            raise
        if note is not None:
            self.notes.confirm(note)
        return result


def _retryable(error: Exception) -> bool:
    if isinstance(error, Race | exc.IntegrityError):
        return True
    original = getattr(error, "orig", None)
    if getattr(original, "sqlstate", None) in _SQLSTATES:
        return True
    arguments: tuple[object, ...] = getattr(original, "args", ())
    return len(arguments) > 0 and arguments[0] in _MYSQL_CODES


def matched(statement: sa.sql.expression.Executable, connection: Connection, parameters: Mapping[str, Any]) -> int:
    """Run a statement and answer how many rows it matched."""
    return int(connection.execute(statement, parameters).rowcount)


def inserted(statement: sa.Insert, connection: Connection, row: Mapping[str, Any]) -> int:
    """Insert one row and answer its new id."""
    key = connection.execute(statement, row).inserted_primary_key
    if key is None:
        raise RuntimeError("the driver gave no key for a new row")
    return int(key[0])

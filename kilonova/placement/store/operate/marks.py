"""What `import` brought here, so that the next import knows what may go when the source no longer has it.

The table is made by the first import and is in no revision: the service never looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.sql import migrate
from kilonova.sql.engine import Database
from kilonova.sql.types import new_metadata

_metadata = new_metadata()
_marks = sa.Table(
    "import_marks",
    _metadata,
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
)
_TRANSACTIONS: Final = "transactions"
_ALL = sa.select(_marks.c.kind, _marks.c.name)
_ADD = sa.insert(_marks)
_DROP = sa.delete(_marks).where(_marks.c.kind == sa.bindparam("k"), _marks.c.name == sa.bindparam("n"))


@dataclass(frozen=True)
class Marks:
    """Names by kind (`provider`: uuids, `class`, `trait`). transactions: how many were committed here by then."""

    names: dict[str, set[str]]
    transactions: int | None


def prepare(database: Database) -> None:
    """Make the table if it is missing."""
    migrate.complete(database, _metadata)


def load(connection: Connection) -> Marks:
    """What was brought; nothing where no import was made."""
    names: dict[str, set[str]] = {}
    if sa.inspect(connection).has_table(_marks.name):
        for kind, name in connection.execute(_ALL):
            names.setdefault(kind, set()).add(name)
    counts = names.pop(_TRANSACTIONS, None)
    return Marks(names, int(counts.pop()) if counts else None)


def save(connection: Connection, old: Marks, names: dict[str, Iterable[str]], transactions: int) -> None:
    """Write down what is here now; only what differs."""
    before = {(kind, name) for kind, known in old.names.items() for name in known}
    if old.transactions is not None:
        before.add((_TRANSACTIONS, str(old.transactions)))
    now = {(kind, name) for kind, known in names.items() for name in known} | {(_TRANSACTIONS, str(transactions))}
    if gone := sorted(before - now):
        connection.execute(_DROP, [{"k": kind, "n": name} for kind, name in gone])
    if new := sorted(now - before):
        connection.execute(_ADD, [{"kind": kind, "name": name} for kind, name in new])

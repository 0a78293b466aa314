"""The side of `import` that is written: one transaction, the ids of names in it, and what was done so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.placement.store.changes import What
from kilonova.placement.store.names import is_custom
from kilonova.placement.store.operate import source as foreign
from kilonova.placement.store.operate.source import Source
from kilonova.placement.store.schema import allocations as allocation_rows
from kilonova.placement.store.schema import consumer_types, inventories, provider_traits, resource_classes, traits
from kilonova.placement.store.transactions import Transaction

TABLES: Final = {"class": resource_classes, "trait": traits, "type": consumer_types}
_USERS: Final = {
    "class": (inventories.c.class_id, allocation_rows.c.class_id),
    "trait": (provider_traits.c.trait_id,),
}
_UNUSED: Final = {
    kind: sa.select(TABLES[kind].c.id).where(
        TABLES[kind].c.name == sa.bindparam("n"), *(~sa.exists().where(user == TABLES[kind].c.id) for user in users)
    )
    for kind, users in _USERS.items()
}
_STAMP: Final = {
    kind: sa.update(table)
    .where(table.c.name == sa.bindparam("n"))
    .values(created_at=sa.bindparam("c"), updated_at=sa.bindparam("u"))
    for kind, table in TABLES.items()
}
_DELETE: Final = {kind: sa.delete(TABLES[kind]).where(TABLES[kind].c.id == sa.bindparam("i")) for kind in _USERS}


@dataclass
class Target:
    """ids: by kind of name, then name. done: rows by (what, how), for the report."""

    transaction: Transaction
    ids: dict[str, dict[str, int]] = field(default_factory=dict)
    done: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def connection(self) -> Connection:
        """The transaction's."""
        return self.transaction.connection

    def write(self, statement: sa.Executable, rows: Sequence[Mapping[str, Any]], what: str, how: str) -> None:
        """Run a statement for each of some rows, and count them."""
        if rows:
            self.connection.execute(statement, rows)
            self.done[what, how] += len(rows)

    def touch(self, provider_ids: Iterable[int], what: What = What.WHOLE) -> None:
        """Readers have to look at these again."""
        for provider_id in provider_ids:
            self.transaction.touch(provider_id, what)


def bring_names(target: Target, source: Source) -> None:
    """Make every class, trait and consumer type that the source has, of the same times, and learn all ids."""
    for kind, table in TABLES.items():
        have = {row.name: (row.created_at, row.updated_at) for row in target.connection.execute(sa.select(table))}
        theirs = foreign.read_names(source, kind)
        rows = [{"name": name, **stamps._asdict()} for name, stamps in theirs if name not in have]
        target.write(sa.insert(table), rows, _WORDS[kind], "made")
        old = [{"n": name, "c": at[0], "u": at[1]} for name, at in theirs if have.get(name, at) != at]
        target.write(_STAMP[kind], old, _WORDS[kind], "changed")
        if rows or old:
            target.transaction.touch_names()
        target.ids[kind] = {row.name: row.id for row in target.connection.execute(sa.select(table.c.name, table.c.id))}


def remove_names(target: Target, source: Source, brought: Mapping[str, set[str]]) -> None:
    """Take away custom names that an import brought, that the source has no longer, and that nobody uses."""
    for kind, statement in _UNUSED.items():
        theirs = {name for name, _ in foreign.read_names(source, kind)}
        gone = sorted(name for name in brought.get(kind, ()) if name not in theirs and is_custom(name))
        rows = [
            {"i": row.id} for name in gone if (row := target.connection.execute(statement, {"n": name}).first())
        ]
        target.write(_DELETE[kind], rows, _WORDS[kind], "removed")
        if rows:
            target.transaction.touch_names()


_WORDS: Final = {"class": "resource classes", "trait": "traits", "type": "consumer types"}

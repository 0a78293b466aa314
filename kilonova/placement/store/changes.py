"""The change log: which providers each transaction touched, in an order that no reader can miss.

Each connection owns one of 64 counter rows. A transaction's last act is to add one to its row and append its changes
under that revision; the row's lock makes the order within a slot the commit order, so a reader that remembers a
revision per slot never skips a transaction that commits late. A reader compares the sum of all counters (one cheap
statement) and reads the log only when it moved. Old rows are pruned; a reader that needs them starts anew.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.placement.store.schema import change_heads, changes

SLOTS = 64
KEPT = 2000
"""Revisions kept per slot."""

CATALOGUE = 0
"""The provider id that stands for the catalogue of names (traits, classes, consumer types)."""

_PRUNE_EVERY = 500


class What(enum.IntEnum):
    """How much of a provider has to be read again."""

    USAGE = 1
    WHOLE = 2
    NAMES = 3


@dataclass(frozen=True, slots=True)
class Delta:
    """What moved between two positions; `complete` is False when the log no longer reaches back that far."""

    heads: dict[int, int]
    touched: dict[int, What]
    complete: bool


_TOTAL = sa.select(sa.func.sum(change_heads.c.revision))
_HEADS = sa.select(change_heads.c.slot, change_heads.c.revision)
_ADVANCE = (
    sa.update(change_heads).where(change_heads.c.slot == sa.bindparam("s")).values(revision=change_heads.c.revision + 1)
)
_APPEND = sa.insert(changes).from_select(
    ["slot", "revision", "position", "provider_id", "what"],
    sa.select(
        change_heads.c.slot,
        change_heads.c.revision,
        sa.bindparam("n", type_=sa.Integer),
        sa.bindparam("p", type_=sa.Integer),
        sa.bindparam("w", type_=sa.SmallInteger),
    ).where(change_heads.c.slot == sa.bindparam("s")),
)
_PRUNE = sa.delete(changes).where(
    changes.c.slot == sa.bindparam("s"),
    changes.c.revision
    <= sa.select(change_heads.c.revision).where(change_heads.c.slot == sa.bindparam("s")).scalar_subquery()
    - sa.bindparam("k", type_=sa.Integer),
)
_SINCE = sa.select(changes.c.revision, changes.c.provider_id, changes.c.what).where(
    changes.c.slot == sa.bindparam("s"), changes.c.revision > sa.bindparam("r")
)


def create_heads(connection: Connection) -> None:
    """Make the counter rows of a new database."""
    connection.execute(sa.insert(change_heads), [{"slot": slot, "revision": 0} for slot in range(SLOTS)])


def append(connection: Connection, touched: Mapping[int, What], *, keep: int = KEPT) -> int:
    """Write down what this transaction touched, last thing before the commit; the slot it went to."""
    info = connection.info
    slot = info.get("slot")
    if slot is None:
        slot = info["slot"] = ids.choice(range(SLOTS))
        info["until_prune"] = ids.choice(range(_PRUNE_EVERY))
    connection.execute(_ADVANCE, {"s": slot})
    rows = [
        {"s": slot, "n": n, "p": provider_id, "w": int(what)} for n, (provider_id, what) in enumerate(touched.items())
    ]
    connection.execute(_APPEND, rows if len(rows) > 1 else rows[0])
    info["until_prune"] -= 1
    if info["until_prune"] <= 0:
        info["until_prune"] = _PRUNE_EVERY
        connection.execute(_PRUNE, {"s": slot, "k": keep})
    return int(slot)


def total(connection: Connection) -> int:
    """The sum of all counters: the number of transactions ever committed."""
    return int(connection.execute(_TOTAL).scalar_one() or 0)


def heads(connection: Connection) -> dict[int, int]:
    """Every slot's revision, read in one statement."""
    return {row.slot: row.revision for row in connection.execute(_HEADS)}


def since(connection: Connection, position: Mapping[int, int]) -> Delta:
    """What was touched after `position` (a result of `heads`)."""
    now = heads(connection)
    touched: dict[int, What] = {}
    complete = True
    for slot, revision in now.items():
        before = position.get(slot, 0)
        if revision == before:
            continue
        seen = set()
        for at, provider_id, what in connection.execute(_SINCE, {"s": slot, "r": before}):
            seen.add(at)
            _merge(touched, provider_id, What(what))
        complete = complete and all(at in seen for at in range(before + 1, revision + 1))
    return Delta(now, touched, complete)


def merged(parts: Iterable[Mapping[int, What]]) -> dict[int, What]:
    """Several transactions' changes as one."""
    touched: dict[int, What] = {}
    for part in parts:
        for provider_id, what in part.items():
            _merge(touched, provider_id, what)
    return touched


def _merge(touched: dict[int, What], provider_id: int, what: What) -> None:
    if what > touched.get(provider_id, 0):
        touched[provider_id] = what

"""`import`: make this database equal to one of OpenStack's Placement.

Everything is one transaction here and one snapshot there: an import that is killed, or whose result differs from the
source, leaves the database as it was. A second import writes what differs. It takes away what the source has no
longer, if an import brought it (see `marks`); what others made or changed here it does not touch unasked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kilonova.core.errors import Conflict
from kilonova.placement.store import changes
from kilonova.placement.store.claims import Incomplete
from kilonova.placement.store.operate import (
    books,
    comparison,
    marks,
    mirror_consumers,
    mirror_providers,
    mirror_stock,
    source,
)
from kilonova.placement.store.operate.comparison import Compared
from kilonova.placement.store.operate.marks import Marks
from kilonova.placement.store.operate.source import Provider, Source
from kilonova.placement.store.operate.target import Target, bring_names, remove_names
from kilonova.placement.store.prepare import REVISIONS
from kilonova.placement.store.transactions import Transaction, Writer
from kilonova.sql import foreign, migrate, reach
from kilonova.sql.engine import Database

_TRIES: Final = 3
_NAMED: Final = 3

Progress = Callable[[str, int, int], None]
"""Told what is being brought, how many are done, and of how many."""


class MadeHere(Conflict):
    code = "providers_made_here"
    message = (
        "Here are {count} providers that the source does not have and no import brought ({names}):"
        " keep them with --merge, or make all equal to the source with --overwrite."
    )


class ChangedHere(Conflict):
    code = "changed_since_import"
    message = (
        "Others have written here since the last import ({count} transactions), so this database may be in service:"
        " bring the source's state over it with --overwrite, or with --merge to keep providers made here."
    )


@dataclass(frozen=True, slots=True)
class How:
    """merge: keep providers that were made here. overwrite: keep nothing. dry_run: undo all at the end.

    incomplete: the owner of consumers without a record.
    """

    merge: bool = False
    overwrite: bool = False
    dry_run: bool = False
    incomplete: Incomplete = field(default_factory=Incomplete)


@dataclass(frozen=True, slots=True)
class Outcome:
    """done: rows by (what, how). notes: sentences about what is not brought as it is."""

    compared: list[Compared]
    done: Mapping[tuple[str, str], int]
    notes: list[str]
    written: bool

    @property
    def equal(self) -> bool:
        """Whether both sides are the same."""
        return all(row.source == row.here for row in self.compared)


class _Undone(Exception):
    """Rolls the transaction back."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def run(database: Database, address: str, how: How, progress: Progress) -> Outcome:
    """Import from the database at an address. Nothing is written when the outcome is not `written`.

    MadeHere, ChangedHere, SourceUnusable, NameTakenHere; AddressUnusable, DatabaseUnreachable, DatabaseRefuses;
    DatabaseEmpty and its like when the tables here are not up to date.
    """
    with reach.in_words(database):
        migrate.require(database, REVISIONS)
    with foreign.snapshot(address) as connection:
        there = source.opened(connection)

        def work(transaction: Transaction) -> Outcome:
            return _work(transaction, there, how, progress)

        with reach.in_words(database):
            if not how.dry_run:
                marks.prepare(database)
            try:
                return Writer(database, retries=_TRIES).run(work)
            except _Undone as undone:
                return undone.outcome


def _work(transaction: Transaction, there: Source, how: How, progress: Progress) -> Outcome:
    target, brought = Target(transaction), marks.load(transaction.connection)
    total = changes.total(transaction.connection)
    theirs = source.read_providers(there)
    kept = _kept(target, theirs, brought, total, how)
    bring_names(target, there)
    kept_ids = [row.id for uuid, row in mirror_providers.ours(target).items() if uuid in kept]
    kept_consumers = mirror_consumers.only_here(target, there, kept_ids)
    ids = mirror_providers.bring(target, theirs, kept)
    _stock(target, there, ids, progress)
    _consumers(target, there, ids, how, progress)
    mirror_consumers.remove_gone(target, there, kept_consumers)
    remove_names(target, there, brought.names)
    books.settle_used(transaction)
    outcome = Outcome(
        comparison.compare(there, transaction.connection, kept_ids, kept_consumers),
        Counter({key: count for key, count in target.done.items() if count}),
        comparison.left_out(there), not how.dry_run,
    )  # fmt: skip
    if how.dry_run or not outcome.equal:
        raise _Undone(Outcome(outcome.compared, outcome.done, outcome.notes, written=False))
    names: dict[str, Any] = {
        "provider": [one.uuid for one in theirs],
        **{kind: [name for name, _ in source.read_names(there, kind)] for kind in ("class", "trait")},
    }
    marks.save(transaction.connection, brought, names, total + bool(transaction.touched))
    return outcome


def _kept(target: Target, theirs: list[Provider], brought: Marks, total: int, how: How) -> set[str]:
    """The uuids of providers to keep although the source does not have them. MadeHere, ChangedHere."""
    if how.overwrite:
        return set()
    known = {one.uuid for one in theirs} | brought.names.get("provider", set())
    made_here = {uuid: row.name for uuid, row in mirror_providers.ours(target).items() if uuid not in known}
    if how.merge:
        return set(made_here)
    if made_here:
        names = sorted(made_here.values())
        shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        raise MadeHere(count=len(names), names=shown)
    if brought.transactions is not None and brought.transactions != total:
        raise ChangedHere(count=total - brought.transactions)
    return set()


def _stock(target: Target, there: Source, ids: Mapping[int, int], progress: Progress) -> None:
    order, size = list(ids), mirror_stock.BATCH
    for start in range(0, len(order), size):
        mirror_stock.bring(target, there, ids, order[start : start + size])
        progress("providers", min(start + size, len(order)), len(order))


def _consumers(target: Target, there: Source, ids: Mapping[int, int], how: How, progress: Progress) -> None:
    nobody = (how.incomplete.project_id, how.incomplete.user_id)
    of, done = comparison.allocations(there), 0
    for page in source.consumer_pages(there, nobody):
        done += mirror_consumers.bring(target, there, ids, page)
        progress("allocations", done, of)

"""The state of Placement's database, check by check, for an upgrade or a call for support."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core.errors import KilonovaError
from kilonova.placement.store import changes, names
from kilonova.placement.store.prepare import REVISIONS
from kilonova.placement.store.schema import (
    allocations,
    change_heads,
    consumers,
    inventories,
    resource_classes,
    resource_providers,
    traits,
)
from kilonova.placement.store.schema import changes as change_rows
from kilonova.sql import migrate, reach
from kilonova.sql.address import shown
from kilonova.sql.engine import Database


class Result(enum.IntEnum):
    """How a check ended; the greatest is the command's exit code."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    result: Result
    details: str


_count = sa.func.count
_PROVIDERS = sa.select(_count(), _count(resource_providers.c.root_id.distinct())).select_from(resource_providers)
_ROOTLESS = sa.select(_count()).where(resource_providers.c.root_id.is_(None))
_ROWS = {
    "Inventories": sa.select(_count()).select_from(inventories),
    "Allocations": sa.select(_count()).select_from(allocations),
    "Consumers": sa.select(_count()).select_from(consumers),
}
_INCOMPLETE = sa.select(_count()).where(consumers.c.project_id == sa.bindparam("project"))
_LOG = sa.select(_count()).select_from(change_rows)
_SLOTS = sa.select(_count(), sa.func.sum(change_heads.c.revision)).select_from(change_heads)


def checks(database: Database, nobody: str) -> list[Check]:
    """All checks, as far as they can be made. nobody: the project of incomplete consumers."""
    found: list[Check] = []
    for name, check in (("Database", _database), ("Revision", _revision)):
        try:
            with reach.in_words(database):
                found.append(Check(name, Result.SUCCESS, check(database)))
        except KilonovaError as error:
            return [*found, Check(name, Result.FAILURE, error.text)]
    steps: Sequence[Callable[[Connection, str], list[Check]]] = (_names, _counts, _trees, _incomplete, _log)
    try:
        with reach.in_words(database), database.read() as connection:
            for step in steps:
                found += step(connection, nobody)
    except KilonovaError as error:
        found.append(Check("Database", Result.FAILURE, error.text))
    return found


def _database(database: Database) -> str:
    reach.wait(database)
    return shown(database.url)


def _revision(database: Database) -> str:
    migrate.require(database, REVISIONS)
    return f"{migrate.stamp(database)}, the newest"


def _names(connection: Connection, _nobody: str) -> list[Check]:
    missing = []
    for table, wanted in ((resource_classes, names.standard_classes()), (traits, names.standard_traits())):
        have = set(connection.execute(sa.select(table.c.name)).scalars())
        missing += [name for name in wanted if name not in have]
    if not missing:
        return [Check("Standard names", Result.SUCCESS, "complete")]
    text = f"{len(missing)} are missing ({missing[0]} and so on): run `kilonova placement db sync`"
    return [Check("Standard names", Result.WARNING, text)]


def _counts(connection: Connection, _nobody: str) -> list[Check]:
    providers, roots = connection.execute(_PROVIDERS).one()
    found = [Check("Providers", Result.SUCCESS, f"{providers} in {roots} trees")]
    for name, statement in _ROWS.items():
        found.append(Check(name, Result.SUCCESS, str(connection.execute(statement).scalar_one())))
    return found


def _trees(connection: Connection, _nobody: str) -> list[Check]:
    count = connection.execute(_ROOTLESS).scalar_one()
    text = f"{count} providers have none: run `kilonova placement heal`" if count else "every provider has one"
    return [Check("Roots", Result.FAILURE if count else Result.SUCCESS, text)]


def _incomplete(connection: Connection, nobody: str) -> list[Check]:
    count = connection.execute(_INCOMPLETE, {"project": nobody}).scalar_one()
    text = f"{count} have no project but {nobody}: usage of projects does not count them" if count else "none"
    return [Check("Incomplete consumers", Result.WARNING if count else Result.SUCCESS, text)]


def _log(connection: Connection, _nobody: str) -> list[Check]:
    rows = connection.execute(_LOG).scalar_one()
    slots, transactions = connection.execute(_SLOTS).one()
    text = f"{int(transactions or 0)} transactions so far, {rows} changes kept, {slots} heads"
    if slots == changes.SLOTS:
        return [Check("Change log", Result.SUCCESS, text)]
    return [Check("Change log", Result.FAILURE, f"{text} of {changes.SLOTS}: writes fail until the others are there")]

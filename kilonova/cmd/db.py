"""`kilonova db`: the tables of every database that a configuration names.

With none of `--api`, `--cell`, `--placement` these are the databases with a `connection`, and all of them as files when
there is none. The cells are those of the registry, and the one that `[database]` names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kilonova.cmd import configuration, tables
from kilonova.core.errors import KilonovaError

if TYPE_CHECKING:
    from kilonova.sql.engine import Database

GROUPS: Final = {"api": "api_database", "cell": "database", "placement": "placement_database"}
LOCAL: Final = "local"
ACTIONS: Final = {
    "sync": "make the tables, or bring them up to date; may be repeated",
    "version": "show the revision that each database is at",
}


@dataclass(frozen=True)
class Target:
    """One database. revisions: the package that has its revisions."""

    name: str
    database: Database
    prepare: Callable[[Database], None]
    revisions: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options and actions."""
    configuration.options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in ACTIONS.items():
        child = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        configuration.options(child, inner=True)
        for kind, group in GROUPS.items():
            where = "every cell's database" if kind == "cell" else f"the database of [{group}]"
            child.add_argument(f"--{kind}", dest="kinds", action="append_const", const=kind, help=f"only {where}")
        names, text = ("--local_cell", "--local-cell"), "only the database of [database]"
        child.add_argument(*names, dest="kinds", action="append_const", const=LOCAL, help=text)
        if name == "version":
            tables.options(child)


def run(arguments: argparse.Namespace) -> int:
    """Do the action. Exit code 1 when a database could not be synced; the others are nevertheless."""
    return sync(arguments) if arguments.action == "sync" else version(arguments)


def sync(arguments: argparse.Namespace) -> int:
    """Prepare each database and say what was done."""
    failed = False
    for target in targets(arguments):
        try:
            print(f"{target.name}: {_synced(target, arguments.wait)}", flush=True)
        except KilonovaError as error:
            failed = True
            print(f"kilonova: {target.name}: {error.text}", file=sys.stderr, flush=True)
        finally:
            target.database.dispose()
    return 1 if failed else 0


def version(arguments: argparse.Namespace) -> int:
    """Show where each database is."""
    from kilonova.sql import migrate, reach
    from kilonova.sql.address import shown

    rows = []
    for target in targets(arguments):
        known = migrate.revisions(target.revisions)
        try:
            reach.wait(target.database, arguments.wait, say=configuration.say)
            with reach.in_words(target.database):
                revision = migrate.stamp(target.database)
            state = _state(revision, known)
        except KilonovaError as error:
            revision, state = None, error.text
        rows.append((target.name, shown(target.database.url), revision, known[-1], state))
        target.database.dispose()
    tables.show(("Database", "Address", "Revision", "Newest", "State"), rows, arguments.format)
    return 0


def targets(arguments: argparse.Namespace) -> Iterator[Target]:
    """The databases, the API's first: once it has tables, it says which cells there are."""
    from kilonova.conf import databases
    from kilonova.db import prepare as compute
    from kilonova.placement.store import prepare as placement

    conf = configuration.load(arguments)
    place = configuration.load(arguments, "placement")
    of = {kind: place if kind == "placement" else conf for kind in GROUPS}
    named = {kind for kind, group in GROUPS.items() if databases.is_named(of[kind], group)}
    chosen = set(arguments.kinds or named or GROUPS)
    if "api" in chosen:
        yield Target("api", databases.open_database(conf, "api_database"), compute.prepare_api, compute.API_REVISIONS)
    if "placement" in chosen:
        database = databases.open_database(place, "placement_database")
        yield Target("placement", database, placement.prepare, placement.REVISIONS)
    if LOCAL in chosen:
        yield Target("cell", databases.open_database(conf, "database"), compute.prepare_cell, compute.CELL_REVISIONS)
    elif "cell" in chosen:
        registry = "api" in chosen or "api" in named or not named
        for name, database in _cells(conf, arguments.wait if registry else None):
            yield Target(name, database, compute.prepare_cell, compute.CELL_REVISIONS)


def _cells(conf: Any, patience: float | None) -> Iterator[tuple[str, Database]]:
    """Name and database of every cell: those of the registry, then the configuration's where it is another.

    patience: seconds to wait for the registry; None when it is not to be looked at.
    """
    from kilonova.conf import databases

    addresses = {} if patience is None else _registered(conf, patience)
    open_database = databases.opener(conf)
    for address, name in addresses.items():
        yield name, open_database(address)
    if databases.address(conf, "database") not in addresses:
        yield "cell", databases.open_database(conf, "database")


def _registered(conf: Any, patience: float) -> dict[str, str]:
    """Address to name of the cells that the registry has; none while the API database has no tables."""
    from kilonova.cells import registry
    from kilonova.conf import databases
    from kilonova.sql import migrate, reach

    api = databases.open_database(conf, "api_database")
    try:
        reach.wait(api, patience, say=configuration.say)
        with reach.in_words(api):
            if migrate.stamp(api) is None:
                return {}
            return {row.database_connection: row.name or row.uuid for row in registry.listed(api)}
    finally:
        api.dispose()


def _synced(target: Target, patience: float) -> str:
    from kilonova.sql import migrate, reach
    from kilonova.sql.address import shown

    reach.wait(target.database, patience, say=configuration.say)
    with reach.in_words(target.database):
        before = migrate.stamp(target.database)
        target.prepare(target.database)
        after = migrate.stamp(target.database)
    where = shown(target.database.url)
    if before == after:
        return f"{where} is at revision {after} already"
    if before in (None, migrate.MAKING):
        return f"{where} made at revision {after}"
    return f"{where} brought from revision {before} to {after}"


def _state(revision: str | None, known: list[str]) -> str:
    from kilonova.sql.migrate import MAKING

    if revision == MAKING:
        return "being made, or left half made: run `kilonova db sync`"
    if revision is None:
        return "no tables: run `kilonova db sync`"
    if revision == known[-1]:
        return "up to date"
    return "older: run `kilonova db sync`" if revision in known else "newer than this program"

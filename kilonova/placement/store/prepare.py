"""A new database from the table definitions, stamped; an existing one brought up to date, and to today's names."""

from __future__ import annotations

from kilonova.placement.store import changes, names
from kilonova.placement.store.schema import metadata, resource_classes, traits
from kilonova.placement.store.transactions import Transaction, Writer
from kilonova.sql import migrate
from kilonova.sql.engine import Database

REVISIONS = "kilonova.placement.store.migrations"


def prepare(database: Database) -> None:
    """Make the tables and standard names that are missing. Several processes may do so at once.

    Raises what `sql.migrate.prepare` raises for a database that is newer or not ours.
    """
    migrate.prepare(database, metadata, REVISIONS, seed=changes.create_heads)
    Writer(database).run(sync_names)


def sync_names(transaction: Transaction) -> None:
    """Add the standard classes and traits that this database has not seen yet."""
    added = names.add_missing(transaction.connection, resource_classes, names.standard_classes())
    added += names.add_missing(transaction.connection, traits, names.standard_traits())
    if added:
        transaction.touch_names()

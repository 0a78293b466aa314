"""A new database from the table definitions, stamped; an existing one brought to today's standard names.

Long-lived databases are upgraded by the migrations beside this file; a test proves that both ways give the same
tables.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from kilonova.placement.store import changes, names
from kilonova.placement.store.schema import metadata, resource_classes, traits
from kilonova.placement.store.transactions import Transaction, Writer
from kilonova.sql.engine import Database

HEAD = "0001"
"""The newest migration."""

VERSION_TABLE = "alembic_version"


def prepare(database: Database) -> None:
    """Create the tables and standard names when they are missing. Several processes may do so at once."""
    try:
        with database.write() as connection:
            if not sa.inspect(connection).has_table(VERSION_TABLE):
                create(connection)
    except (exc.OperationalError, exc.ProgrammingError, exc.IntegrityError):
        # Another process was creating the tables at the same moment; look whether it succeeded.
        with database.read() as connection:
            if not sa.inspect(connection).has_table(VERSION_TABLE):
                raise
    Writer(database).run(sync_names)


def create(connection: Connection) -> None:
    """All tables, the counters of the change log and the stamp."""
    metadata.create_all(connection)
    changes.create_heads(connection)
    stamp = sa.Table(VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))
    stamp.create(connection)
    connection.execute(sa.insert(stamp), {"version_num": HEAD})


def sync_names(transaction: Transaction) -> None:
    """Add the standard classes and traits that this database has not seen yet."""
    added = names.add_missing(transaction.connection, resource_classes, names.standard_classes())
    added += names.add_missing(transaction.connection, traits, names.standard_traits())
    if added:
        transaction.touch_names()

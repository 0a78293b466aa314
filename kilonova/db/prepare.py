"""The API database and cell databases as a program finds them: made new, or brought up to date."""

from __future__ import annotations

from kilonova.db import api_schema, cell_schema
from kilonova.sql import migrate
from kilonova.sql.engine import Database

API_REVISIONS = "kilonova.db.migrations.api"
CELL_REVISIONS = "kilonova.db.migrations.cell"


def prepare_api(database: Database) -> None:
    """The tables of the API database, as of today. Raises what `sql.migrate.prepare` raises."""
    migrate.prepare(database, api_schema.metadata, API_REVISIONS)


def prepare_cell(database: Database) -> None:
    """The tables of a cell database, as of today. Raises what `sql.migrate.prepare` raises."""
    migrate.prepare(database, cell_schema.metadata, CELL_REVISIONS)


def require_api(database: Database) -> None:
    """Nothing for an API database that is as of today. Raises what `sql.migrate.require` raises."""
    migrate.require(database, API_REVISIONS)


def require_cell(database: Database) -> None:
    """The same for a cell database."""
    migrate.require(database, CELL_REVISIONS)

"""Read by alembic: the tables that these revisions lead to."""

from __future__ import annotations

from kilonova.db.cell_schema import metadata
from kilonova.sql import revisions

revisions.run(metadata)

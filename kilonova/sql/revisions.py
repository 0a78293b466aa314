"""What every `env.py` of our migrations does: run revisions on the connection that `sql.migrate` lends.

Only alembic imports this, through an `env.py`.
"""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context

from kilonova.sql import types

_NAMED = {id(getattr(types, name)): name for name in ("Timestamp", "LongText", "Json", "Uuid", "BigId")}


def run(metadata: sa.MetaData) -> None:
    """Run what alembic was asked for, against the tables of `metadata`."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        render_as_batch=True,  # SQLite changes a table by making it anew
        render_item=_by_name,
        user_module_prefix="types.",
    )
    with context.begin_transaction():
        context.run_migrations()


def _by_name(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """Our own column types keep their names in a generated revision."""
    name = _NAMED.get(id(item)) if kind == "type" else None
    return f"types.{name}" if name else False

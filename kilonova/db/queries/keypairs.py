"""Key pairs of users."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.db.api_schema import key_pairs
from kilonova.sql.engine import Database

_ONE = sa.select(key_pairs).where(
    sa.and_(key_pairs.c.user_id == sa.bindparam("b_user"), key_pairs.c.name == sa.bindparam("b_name"))
)


def get(database: Database, user_id: str, name: str) -> Any | None:
    """A user's key pair (a row), or None."""
    with database.read() as connection:
        return connection.execute(_ONE, {"b_user": user_id, "b_name": name}).first()

"""Key pairs of users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.db.api_schema import key_pairs
from kilonova.sql.engine import Connection, Database

_K = key_pairs.c
_ONE = sa.select(key_pairs).where(sa.and_(_K.user_id == sa.bindparam("b_user"), _K.name == sa.bindparam("b_name")))
_PAGE = (
    sa.select(key_pairs)
    .where(sa.and_(_K.user_id == sa.bindparam("b_user"), _K.name > sa.bindparam("b_after")))
    .order_by(_K.name)
    .limit(sa.bindparam("b_limit", type_=sa.Integer))
)
_COUNT = sa.select(sa.func.count()).where(_K.user_id == sa.bindparam("b_user"))
_INSERT = sa.insert(key_pairs)
_DELETE = sa.delete(key_pairs).where(sa.and_(_K.user_id == sa.bindparam("b_user"), _K.name == sa.bindparam("b_name")))


def get(database: Database, user_id: str, name: str) -> Any | None:
    """A user's key pair (a row), or None."""
    with database.read() as connection:
        return connection.execute(_ONE, {"b_user": user_id, "b_name": name}).first()


def page(database: Database, user_id: str, limit: int, after: str = "") -> list[Any]:
    """At most `limit` of a user's key pairs with names after `after`, by name."""
    with database.read() as connection:
        return list(connection.execute(_PAGE, {"b_user": user_id, "b_after": after, "b_limit": limit}))


def count(connection: Connection, user_id: str) -> int:
    """How many key pairs a user has."""
    return int(connection.execute(_COUNT, {"b_user": user_id}).scalar_one())


def insert(connection: Connection, values: Mapping[str, Any]) -> None:
    """Add a key pair. IntegrityError when the user has one of that name."""
    connection.execute(_INSERT, {"created_at": clock.utcnow(), **values})


def taken(error: Exception) -> bool:
    """Whether a unique value is there already."""
    return isinstance(error, sa.exc.IntegrityError)


def delete(connection: Connection, user_id: str, name: str) -> bool:
    """Remove a key pair; False when there was none."""
    return connection.execute(_DELETE, {"b_user": user_id, "b_name": name}).rowcount == 1

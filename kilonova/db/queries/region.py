"""Where the region's broker is, for conductors of cells that have a broker of their own."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.db.api_schema import region
from kilonova.sql.engine import Database

_ROW = 1
_READ = sa.select(region.c.transport_url).where(region.c.id == _ROW)
_CHANGE = region.update().where(region.c.id == _ROW).values(
    transport_url=sa.bindparam("b_url"), updated_at=sa.bindparam("b_now")
)  # fmt: skip


def transport_url(db: Database) -> str | None:
    """The address that a process of the region told last, or None when none has been started yet."""
    with db.read() as connection:
        found = connection.execute(_READ).scalar()
    return None if found is None else str(found)


def tell(db: Database, url: str) -> None:
    """A process of the region says where it lives; nothing is written when that is known."""
    if transport_url(db) == url:
        return
    values = {"b_url": url, "b_now": clock.utcnow()}
    try:
        with db.write() as connection:
            if not connection.execute(_CHANGE, values).rowcount:
                row = {"id": _ROW, "transport_url": url, "created_at": clock.utcnow()}
                connection.execute(region.insert(), row)
    except sa.exc.IntegrityError:  # another process told it in this moment
        with db.write() as connection:
            connection.execute(_CHANGE, values)

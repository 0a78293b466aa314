"""What is on a host or on its way: what stands against changing its zone, or removing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from kilonova.db.cell_schema import instances, migrations
from kilonova.sql.engine import Connection

_I, _M = instances.c, migrations.c

FINISHED: Final = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
"""Statuses of migrations that go on no more."""

_ON = (
    sa.select(_I.host, _I.id, _I.uuid, _I.display_name)
    .where(_I.host.in_(sa.bindparam("b_hosts", expanding=True)), _I.deleted == sa.false(), _I.hidden == sa.false())
    .order_by(_I.id)
)
_BUSY = (
    sa.select(_I.host).distinct()
    .where(_I.host.in_(sa.bindparam("b_hosts", expanding=True)), _I.deleted == sa.false())
)  # fmt: skip
_MOVING = (
    sa.select(_M.id)
    .where(
        sa.or_(_M.source_compute == sa.bindparam("b_host"), _M.dest_compute == sa.bindparam("b_host")),
        _M.status.not_in(FINISHED),
    )
    .limit(1)
)
_EVACUATED = (
    sa.select(_M.id)
    .where(
        _M.source_compute == sa.bindparam("b_host"), _M.migration_type == "evacuation", _M.status == "done"
    )
    .limit(1)
)


class OnHost(NamedTuple):
    """A server on a host, as lists of hypervisors name it."""

    host: str
    id: int
    uuid: str
    display_name: str


def servers_on(connection: Connection, hosts: Sequence[str]) -> dict[str, list[OnHost]]:
    """The servers on these hosts, by host."""
    found: dict[str, list[OnHost]] = {}
    for row in connection.execute(_ON, {"b_hosts": list(hosts)}):
        found.setdefault(row.host, []).append(OnHost(*row))
    return found


def busy_hosts(connection: Connection, hosts: Sequence[str]) -> set[str]:
    """Those of the hosts that have servers."""
    return set(connection.execute(_BUSY, {"b_hosts": list(hosts)}).scalars())


def is_moving(connection: Connection, host: str) -> bool:
    """Whether a migration from or to the host is under way."""
    return _any(connection.execute(_MOVING, {"b_host": host}))


def was_evacuated(connection: Connection, host: str) -> bool:
    """Whether servers were evacuated from the host and it has not cleaned up after them."""
    return _any(connection.execute(_EVACUATED, {"b_host": host}))


def _any(rows: Any) -> bool:
    return rows.first() is not None

"""Service rows: nova-compute hosts, alive through their agent's row, and our own processes with beats of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock, ids, liveness
from kilonova.core.errors import NotFound
from kilonova.db.cell_schema import agents, services
from kilonova.sql.engine import Database


class ServiceNotFound(NotFound):
    code, message = "service_not_found", "Service {service} could not be found."


@dataclass(frozen=True, slots=True)
class Service:
    """One service. last_seen_up: its agent's last beat, or its own. updated_at: the later of that and a change."""

    id: int
    uuid: str
    host: str
    binary: str
    topic: str
    agent: str | None
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    version: int
    report_count: int
    last_seen_up: datetime | None
    created_at: datetime
    updated_at: datetime | None

    def up(self, now: datetime, down_time: float) -> bool:
        """Whether it is alive: down_time in seconds (`core.liveness.down_after`)."""
        return liveness.is_up(self.last_seen_up, now, down_time, forced_down=self.forced_down)


_SEEN = sa.func.coalesce(agents.c.last_seen_up, services.c.last_seen_up)
_SELECT = (
    sa.select(
        services.c.id, services.c.uuid, services.c.host, services.c.binary, services.c.topic, services.c.agent,
        services.c.disabled, services.c.disabled_reason, services.c.forced_down, services.c.version,
        sa.func.coalesce(agents.c.report_count, services.c.report_count).label("report_count"),
        sa.type_coerce(_SEEN, services.c.last_seen_up.type).label("last_seen_up"),
        services.c.created_at, services.c.updated_at,
    )
    .select_from(services.outerjoin(agents, agents.c.id == services.c.agent))
    .where(services.c.deleted.is_(False))
    .order_by(services.c.id)
)  # fmt: skip
_HOST = services.c.host == sa.bindparam("host")
_BINARY = services.c.binary == sa.bindparam("binary")
_LISTS = {
    (False, False): _SELECT,
    (True, False): _SELECT.where(_HOST),
    (False, True): _SELECT.where(_BINARY),
    (True, True): _SELECT.where(_HOST, _BINARY),
}
_BY_UUID = _SELECT.where(services.c.uuid == sa.bindparam("key"))
_BY_ID = _SELECT.where(services.c.id == sa.bindparam("key"))
_OF_HOSTS = _SELECT.where(services.c.host.in_(sa.bindparam("hosts", expanding=True)), _BINARY)


def list_services(connection: Connection, *, host: str | None = None, binary: str | None = None) -> list[Service]:
    """Services by exact host and binary, ordered by id."""
    statement = _LISTS[(host is not None, binary is not None)]
    values = {name: value for name, value in (("host", host), ("binary", binary)) if value is not None}
    return [_service(row) for row in connection.execute(statement, values)]


def services_of(connection: Connection, hosts: Sequence[str], binary: str = "nova-compute") -> dict[str, Service]:
    """The services of one binary on these hosts, by host."""
    found = connection.execute(_OF_HOSTS, {"hosts": list(hosts), "binary": binary})
    return {row.host: _service(row) for row in found}


def get_service(connection: Connection, key: str | int) -> Service | None:
    """One service by uuid (text) or id (number), or None."""
    row = connection.execute(_BY_ID if isinstance(key, int) else _BY_UUID, {"key": key}).first()
    return None if row is None else _service(row)


def show_service(connection: Connection, key: str | int) -> Service:
    """The same; ServiceNotFound when there is none."""
    found = get_service(connection, key)
    if found is None:
        raise ServiceNotFound(service=key)
    return found


def find_service(connection: Connection, host: str, binary: str) -> Service:
    """The service of a binary on a host. ServiceNotFound."""
    row = connection.execute(_LISTS[(True, True)], {"host": host, "binary": binary}).first()
    if row is None:
        raise ServiceNotFound(service=f"{binary} on {host}")
    return _service(row)


def _service(row: Any) -> Service:
    values = dict(row._mapping)
    times = [moment for moment in (values["last_seen_up"], values["updated_at"]) if moment is not None]
    values["updated_at"] = max(times, default=None)
    return Service(**values)


# -- changes

_ENABLE = (
    services.update()
    .where(services.c.id == sa.bindparam("row"), services.c.deleted.is_(False))
    .values(disabled=sa.bindparam("off"), disabled_reason=sa.bindparam("reason"))
)
_FORCE = (
    services.update()
    .where(services.c.id == sa.bindparam("row"), services.c.deleted.is_(False))
    .values(forced_down=sa.bindparam("down"))
)
_CLEAR_DELETED = services.delete().where(_HOST, _BINARY, services.c.deleted.is_(True))
_DELETE = (
    services.update()
    .where(services.c.id == sa.bindparam("row"), services.c.deleted.is_(False))
    .values(deleted=True, agent=None)
)


def set_disabled(connection: Connection, service: int, *, disabled: bool, reason: str | None = None) -> None:
    """Disable or enable a service; the reason is kept only while disabled. ServiceNotFound."""
    values = {"row": service, "off": disabled, "reason": reason if disabled else None}
    _changed(connection.execute(_ENABLE, values).rowcount, service)


def set_forced_down(connection: Connection, service: int, *, forced_down: bool) -> None:
    """Say that a service is down whatever it beats, or stop saying so. ServiceNotFound."""
    _changed(connection.execute(_FORCE, {"row": service, "down": forced_down}).rowcount, service)


def delete_service(connection: Connection, service: Service) -> None:
    """Mark a service deleted (one such row is kept for each host and binary). ServiceNotFound."""
    connection.execute(_CLEAR_DELETED, {"host": service.host, "binary": service.binary})
    _changed(connection.execute(_DELETE, {"row": service.id}).rowcount, service.id)


def _changed(rows: int, service: int) -> None:
    if not rows:
        raise ServiceNotFound(service=service)


# -- our own processes

_OWN_BEAT = (
    services.update()
    .where(services.c.id.in_(sa.bindparam("rows", expanding=True)), services.c.deleted.is_(False))
    .values(last_seen_up=sa.bindparam("now"), report_count=services.c.report_count + 1)
)
_OWN_START = (
    services.update()
    .where(services.c.id == sa.bindparam("row"))
    .values(last_seen_up=sa.bindparam("now"), version=sa.bindparam("release"))
)


def register_own(db: Database, host: str, binaries: Mapping[str, str], version: int) -> tuple[int, ...]:
    """Make or refresh the rows of this process; `binaries` maps a binary to its topic. Answers their ids."""
    for attempt in (1, 2):
        try:
            with db.write() as connection:
                return tuple(_own(connection, host, binary, topic, version) for binary, topic in binaries.items())
        except sa.exc.IntegrityError:  # a sibling on the same host started at the same moment
            if attempt == 2:
                raise
    raise AssertionError("the second attempt returns or raises")


def _own(connection: Connection, host: str, binary: str, topic: str, version: int) -> int:
    now = clock.utcnow()
    row = connection.execute(_LISTS[(True, True)], {"host": host, "binary": binary}).first()
    if row is not None:
        connection.execute(_OWN_START, {"row": row.id, "now": now, "release": version})
        return int(row.id)
    values = {"uuid": ids.new_uuid(), "host": host, "binary": binary, "topic": topic, "version": version,
              "last_seen_up": now}  # fmt: skip
    key = connection.execute(services.insert(), values).inserted_primary_key
    return int(key[0]) if key is not None else find_service(connection, host, binary).id


def beat_own(db: Database, rows: Iterable[int]) -> int:
    """These services are alive; how many of the rows still exist."""
    with db.write() as connection:
        return connection.execute(_OWN_BEAT, {"rows": list(rows), "now": clock.utcnow()}).rowcount

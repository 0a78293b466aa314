"""Servers before they have a cell: mapping, build request and request spec in the API database.

The build request is the cancellation token: whoever deletes it first, the user or the conductor, has won.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.request_spec import RequestSpec
from kilonova.core.server import BlockDevice, Server, ServerExtra
from kilonova.db.api_schema import build_requests, instance_mappings, request_specs
from kilonova.sql.engine import Database

_M, _B, _S = instance_mappings.c, build_requests.c, request_specs.c

_INSERT_MAPPING = sa.insert(instance_mappings)
_INSERT_REQUEST = sa.insert(build_requests)
_INSERT_SPEC = sa.insert(request_specs)
_MAPPING = sa.select(instance_mappings).where(_M.instance_uuid == sa.bindparam("b_uuid"))
_MAPPINGS = sa.select(instance_mappings).where(_M.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)))
_WANTED = sa.select(_M.instance_uuid).where(
    _M.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)), _M.queued_for_delete.is_(False)
)
_REQUEST = sa.select(build_requests).where(_B.instance_uuid == sa.bindparam("b_uuid"))
_REQUESTS = sa.select(build_requests).where(_B.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)))
_PENDING = sa.select(build_requests).order_by(_B.id.desc())
_PENDING_OF = _PENDING.where(_B.project_id == sa.bindparam("b_project"))
_SPECS = sa.select(_S.instance_uuid, _S.spec).where(_S.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)))
_DROP_REQUEST = sa.delete(build_requests).where(_B.instance_uuid == sa.bindparam("b_uuid"))
_SET_CELL = (
    sa.update(instance_mappings)
    .where(sa.and_(_M.instance_uuid == sa.bindparam("b_uuid"), _M.cell_uuid.is_(None)))
    .values(cell_uuid=sa.bindparam("b_cell"), updated_at=sa.bindparam("b_now"))
)
_QUEUE_DELETE = (
    sa.update(instance_mappings)
    .where(_M.instance_uuid == sa.bindparam("b_uuid"))
    .values(queued_for_delete=sa.bindparam("b_flag"), updated_at=sa.bindparam("b_now"))
)
_DROP_MAPPING = sa.delete(instance_mappings).where(_M.instance_uuid == sa.bindparam("b_uuid"))
_DROP_SPEC = sa.delete(request_specs).where(_S.instance_uuid == sa.bindparam("b_uuid"))
_SET_SPEC = (
    sa.update(request_specs)
    .where(_S.instance_uuid == sa.bindparam("b_uuid"))
    .values(spec=sa.bindparam("b_spec"), updated_at=sa.bindparam("b_now"))
)


class Mapping(NamedTuple):
    """Where a server is: cell_uuid None until the scheduler has chosen."""

    uuid: str
    cell_uuid: str | None
    project_id: str
    user_id: str
    queued_for_delete: bool


class BuildRequest(msgspec.Struct, frozen=True):
    """A server that waits for its cell, with all that its rows there will hold."""

    server: Server
    extra: ServerExtra
    devices: list[BlockDevice]
    tags: list[str]


class _Stored(msgspec.Struct, frozen=True):
    server: Server
    extra: ServerExtra


def insert(connection: Connection, requests: Sequence[BuildRequest], spec: RequestSpec) -> None:
    """The three rows of every server of one request; part of the transaction that also counts the quota."""
    now = clock.utcnow()
    encoded = msgspec.json.encode(spec).decode()
    servers = [request.server for request in requests]
    connection.execute(_INSERT_MAPPING, [
        {"instance_uuid": server.uuid, "cell_uuid": None, "project_id": server.project_id, "user_id": server.user_id,
         "queued_for_delete": False, "vcpus": server.vcpus, "memory_mb": server.memory_mb, "created_at": now}
        for server in servers
    ])  # fmt: skip
    connection.execute(_INSERT_SPEC, [
        {"instance_uuid": server.uuid, "spec": encoded, "created_at": now} for server in servers
    ])  # fmt: skip
    connection.execute(_INSERT_REQUEST, [
        {"instance_uuid": request.server.uuid, "project_id": request.server.project_id,
         "instance": msgspec.json.encode(_Stored(request.server, request.extra)).decode(),
         "block_device_mappings": msgspec.json.encode(request.devices).decode(),
         "tags": msgspec.json.encode(request.tags).decode(), "created_at": now}
        for request in requests
    ])  # fmt: skip


def mapping(database: Database, uuid: str) -> Mapping | None:
    """Where a server is, or None for a uuid that never was one."""
    with database.read() as connection:
        row = connection.execute(_MAPPING, {"b_uuid": uuid}).first()
    return None if row is None else _mapping(row)


def mappings(connection: Connection, uuids: Sequence[str]) -> dict[str, Mapping]:
    """The same for several, by uuid."""
    return {row.instance_uuid: _mapping(row) for row in connection.execute(_MAPPINGS, {"b_uuids": list(uuids)})}


def unwanted(database: Database, uuids: Sequence[str]) -> list[str]:
    """Those of some servers that are gone, or on their way out."""
    with database.read() as connection:
        wanted = {uuid for (uuid,) in connection.execute(_WANTED, {"b_uuids": list(uuids)})}
    return [uuid for uuid in uuids if uuid not in wanted]


def _mapping(row: Any) -> Mapping:
    return Mapping(row.instance_uuid, row.cell_uuid, row.project_id, row.user_id, bool(row.queued_for_delete))


def get(database: Database, uuid: str) -> BuildRequest | None:
    """A server that has no cell yet, or None."""
    with database.read() as connection:
        row = connection.execute(_REQUEST, {"b_uuid": uuid}).first()
    return None if row is None else _request(row)


def several(database: Database, uuids: Sequence[str]) -> dict[str, BuildRequest]:
    """Those of some servers that have no cell yet, by uuid."""
    with database.read() as connection:
        return {row.instance_uuid: _request(row) for row in connection.execute(_REQUESTS, {"b_uuids": list(uuids)})}


def pending(database: Database, project_id: str | None) -> list[BuildRequest]:
    """All servers without a cell, of a project or of everybody, newest first."""
    with database.read() as connection:
        if project_id is None:
            return [_request(row) for row in connection.execute(_PENDING)]
        return [_request(row) for row in connection.execute(_PENDING_OF, {"b_project": project_id})]


def _request(row: Any) -> BuildRequest:
    stored = msgspec.json.decode(row.instance, type=_Stored)
    devices = msgspec.json.decode(row.block_device_mappings, type=list[BlockDevice])
    return BuildRequest(stored.server, stored.extra, devices, msgspec.json.decode(row.tags, type=list[str]))


def drop_request(connection: Connection, uuid: str) -> bool:
    """Take the token. False: somebody else has it."""
    return connection.execute(_DROP_REQUEST, {"b_uuid": uuid}).rowcount == 1


def set_cell(connection: Connection, uuid: str, cell: str) -> bool:
    """Say where a server is from now on; False when that was said before, or the mapping is gone."""
    return connection.execute(_SET_CELL, {"b_uuid": uuid, "b_cell": cell, "b_now": clock.utcnow()}).rowcount == 1


def queue_delete(connection: Connection, uuid: str, *, queued: bool = True) -> None:
    """Whether a server is on its way out: it then counts against no quota."""
    connection.execute(_QUEUE_DELETE, {"b_uuid": uuid, "b_flag": queued, "b_now": clock.utcnow()})


def forget(connection: Connection, uuid: str) -> None:
    """Remove mapping and spec of a server that never got a cell."""
    connection.execute(_DROP_MAPPING, {"b_uuid": uuid})
    connection.execute(_DROP_SPEC, {"b_uuid": uuid})


def specs(database: Database, uuids: Sequence[str]) -> dict[str, RequestSpec]:
    """The request specs by server."""
    with database.read() as connection:
        return {uuid: msgspec.json.decode(text, type=RequestSpec)
                for uuid, text in connection.execute(_SPECS, {"b_uuids": list(uuids)})}  # fmt: skip


def set_spec(connection: Connection, uuid: str, spec: RequestSpec) -> None:
    """Replace a server's request spec."""
    values = {"b_uuid": uuid, "b_spec": msgspec.json.encode(spec).decode(), "b_now": clock.utcnow()}
    connection.execute(_SET_SPEC, values)


_REPLACE = (
    sa.update(build_requests)
    .where(_B.instance_uuid == sa.bindparam("b_uuid"))
    .values(instance=sa.bindparam("b_instance"), tags=sa.bindparam("b_tags"), updated_at=sa.bindparam("b_now"))
)


def replace(connection: Connection, request: BuildRequest) -> bool:
    """Store a changed build request; False when it is gone."""
    values = {
        "b_uuid": request.server.uuid,
        "b_instance": msgspec.json.encode(_Stored(request.server, request.extra)).decode(),
        "b_tags": msgspec.json.encode(request.tags).decode(),
        "b_now": clock.utcnow(),
    }
    return connection.execute(_REPLACE, values).rowcount == 1

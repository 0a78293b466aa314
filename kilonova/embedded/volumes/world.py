"""What every part of the volume service needs: who asks, which rows they may see, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, Forbidden, Invalid, KilonovaError, NotFound
from kilonova.embedded.store import Row, Rows, page
from kilonova.embedded.volumes.tables import VOLUMES, volumes
from kilonova.http.fields import Map, Str
from kilonova.http.op import Request
from kilonova.sql.engine import Database

ZONE = "nova"
TEXT = Str(0, 255, pattern=r"^[^\x00]*$", null=True)
NAME = Str(1, 255, pattern=r"^[^\x00]*$")
ENTRIES = Map(r"^[^\x00]{1,255}$", Str(0, 255, pattern=r"^[^\x00]*$"))
"""Metadata and extra specs: text by text."""
HOST = "kilonova@simulated#simulated"
_WRITERS = frozenset(("member", "manager", "admin", "service"))
_LOCKED = sa.select(VOLUMES).where(VOLUMES.c.id == sa.bindparam("id", type_=sa.String)).with_for_update()
_MAX_PAGE = 1000

Images = Callable[[Context, str], Mapping[str, Any]]
"""Looks an image up as the caller: the Image API's document; raises NotFound."""


class VolumeNotFound(NotFound):
    code, message = "volume_not_found", "Volume {id} could not be found."


class SnapshotNotFound(NotFound):
    code, message = "snapshot_not_found", "Snapshot {id} could not be found."


class AttachmentNotFound(NotFound):
    code, message = "attachment_not_found", "Volume attachment could not be found with filter: attachment_id = {id}."


class TypeNotFound(NotFound):
    code, message = "volume_type_not_found", "Volume type {id} could not be found."


class KeyNotFound(NotFound):
    code, message = "key_not_found", "There is no key {id} on {what}."


class TypeExists(Conflict):
    code, message = "volume_type_exists", "Volume type {name} already exists."


class InUseByCompute(Conflict):
    code, message = "in_use_by_compute", "Attachment {id} belongs to a server: detach the volume from the server."


class InvalidInput(Invalid):
    code = "invalid_input"


class InvalidStatus(Invalid):
    code, message = "invalid_status", "Invalid volume: {what} {id} must be {wanted}, but it is {now}."


class NotAllowed(Forbidden):
    code, message = "not_allowed", "Policy doesn't allow {action} to be performed."


class OverLimit(KilonovaError):
    status, code = 413, "over_limit"
    message = "VolumeLimitExceeded: Maximum of {limit} exceeded for quota '{name}': {used} used, {asked} asked."


@dataclass(frozen=True)
class World:
    """What the service works on."""

    database: Database
    images: Images


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. privileged: an administrator or a service."""

    ctx: Context
    project_id: str
    user_id: str
    privileged: bool
    service: bool
    writer: bool

    def must_write(self, action: str) -> None:
        """Raises NotAllowed for accounts that may only read."""
        if not self.writer:
            raise NotAllowed(action=action)

    def must_rule(self, action: str) -> None:
        """Raises NotAllowed for everybody but administrators and services."""
        if not self.privileged:
            raise NotAllowed(action=action)


def caller_of(req: Request) -> Caller:
    """The caller with the rights that the roles give."""
    roles = {str(role).lower() for role in req.ctx.roles or ()}
    service = "service" in roles or "service" in (req.ctx.service_roles or ())
    return Caller(req.ctx, req.ctx.project_id or "", req.ctx.user_id or "", service or "admin" in roles, service,
                  service or not roles.isdisjoint(_WRITERS))  # fmt: skip


def writer_of(req: Request, action: str) -> Caller:
    """The caller, who must be allowed to change things of its project."""
    caller = caller_of(req)
    caller.must_write(action)
    return caller


def ruler_of(req: Request, action: str) -> Caller:
    """The caller, who must be an administrator or a service."""
    caller = caller_of(req)
    caller.must_rule(action)
    return caller


def seen(caller: Caller, row: Row | None, missing: type[NotFound], key: str) -> Row:
    """The row, when it is there and the caller's to see."""
    if row is None or not (caller.privileged or row["project_id"] == caller.project_id):
        raise missing(id=key)
    return row


def locked(c: Connection, caller: Caller, key: str) -> Row:
    """The volume, which no other transaction changes until the end of this one. Raises VolumeNotFound."""
    found = c.execute(_LOCKED, {"id": key}).mappings().first()
    return seen(caller, dict(found) if found else None, VolumeNotFound, key)


def move(c: Connection, volume: Row, statuses: Sequence[str], **values: Any) -> None:
    """Change a volume that is in one of the statuses. Raises InvalidStatus."""
    if volume["status"] not in statuses:
        raise InvalidStatus(what="volume", id=volume["id"], wanted=" or ".join(statuses), now=volume["status"])
    volumes.update(c, volume["id"], values | {"updated_at": clock.utcnow()})


def fresh(**values: Any) -> Row:
    """A new row with its id and time."""
    return {"id": ids.new_uuid(), "created_at": clock.utcnow(), "updated_at": None} | values


def count_with(row: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether the row's metadata has all these entries."""
    return all(row["metadata"].get(key) == value for key, value in wanted.items())


# -- lists -------------------------------------------------------------------------------------------------------

_NOT_FILTERS = frozenset(("metadata", "limit", "marker", "offset", "sort", "sort_key", "sort_dir", "all_tenants"))


def listed(req: Request, caller: Caller, rows: Rows, defaults: Mapping[str, Any] | None = None) -> list[Row]:
    """The caller's rows (every project's with all_tenants) for which the query's columns have the values asked for."""
    query = {name: values for name, values in req.query.items() if name not in _NOT_FILTERS}
    if "display_name" in query:
        query["name"] = query.pop("display_name")
    everywhere = caller.privileged and last(req, "all_tenants", "0").lower() in ("1", "true", "yes", "on")
    where = rows.conditions({name: value for name, value in query.items() if everywhere or name != "project_id"})
    where |= dict(defaults or {})
    if not everywhere:
        where["project_id"] = caller.project_id
    with req.world.database.read() as c:
        found = rows.find(c, where)
    return [row for row in found if count_with(row, _metadata(req))] if "metadata" in req.query else found


def _metadata(req: Request) -> dict[str, str]:
    import ast

    try:
        value = ast.literal_eval(last(req, "metadata"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput("The filter metadata must be a map, such as {'key': 'value'}.")
    return {str(key): str(entry) for key, entry in value.items()}


def last(req: Request, name: str, default: str = "") -> str:
    """The last value of a query argument."""
    values = req.query.get(name)
    return values[-1] if values else default


def paged(req: Request, rows: list[Row], plural: str, view: Callable[[Row], Row]) -> Row:
    """The list document: one page of views, the link to the next, and the count when it is asked for."""
    limit, offset = (_number(req, name) for name in ("limit", "offset"))
    size = min(limit or _MAX_PAGE, _MAX_PAGE) if limit != 0 else 0
    ordered, more = page(rows, sort=_order(req, rows), limit=(offset or 0) + size, marker=last(req, "marker") or None)
    shown = ordered[offset or 0 :]
    document: Row = {plural: [view(row) for row in shown]}
    if more and shown:
        query = [pair for pair in parse_qsl(req.environ.get("QUERY_STRING", "")) if pair[0] not in ("marker", "offset")]
        link = urlencode([*query, ("marker", shown[-1]["id"])])
        document[f"{plural}_links"] = [{"rel": "next", "href": f"{req.base_url}{req.path_info}?{link}"}]
    if last(req, "with_count").lower() == "true" and (req.version or (3, 0)) >= (3, 45):
        document["count"] = len(rows)
    return document


def _number(req: Request, name: str) -> int | None:
    text = last(req, name)
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInput(f"{name} must be a whole number of at most nine digits.")
    return int(text) if text else None


def _order(req: Request, rows: list[Row]) -> list[tuple[str, str]]:
    words = [part.partition(":") for part in last(req, "sort").split(",") if part]
    order = [(key.strip(), direction.strip() or "desc") for key, _, direction in words]
    if not order and last(req, "sort_key"):
        order = [(last(req, "sort_key"), last(req, "sort_dir", "desc"))]
    known = {"id", "name", "size", "status", "created_at", "updated_at", "availability_zone", "bootable"}
    renamed = [("name" if key == "display_name" else key, direction) for key, direction in order]
    for key, direction in renamed:
        if key not in known or (rows and key not in rows[0]) or direction not in ("asc", "desc"):
            raise InvalidInput(f"Lists cannot be sorted by {key}:{direction}.")
    return [*renamed, ("created_at", "desc"), ("id", "desc")]

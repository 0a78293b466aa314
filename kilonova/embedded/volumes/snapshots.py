"""Snapshots of volumes, ready as soon as they are stored."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.embedded.store import Row, transact
from kilonova.embedded.volumes import quotas, views
from kilonova.embedded.volumes.tables import snapshots
from kilonova.embedded.volumes.volumes import CHANGE, metadata_ops
from kilonova.embedded.volumes.world import (
    ENTRIES,
    NAME,
    TEXT,
    Caller,
    InvalidStatus,
    SnapshotNotFound,
    caller_of,
    fresh,
    listed,
    locked,
    paged,
    ruler_of,
    seen,
    writer_of,
)
from kilonova.http.fields import Bool, Enum, Field, Obj, Query, wrap
from kilonova.http.op import Answer, Op, Request

STATUSES = ("available", "error", "creating", "deleting", "error_deleting")


def _create(req: Request) -> Row:
    caller, given = writer_of(req, "volume:create_snapshot"), req.body["snapshot"]

    def work(c: Connection) -> Row:
        volume = locked(c, caller, given["volume_id"])
        wanted = ("available", "in-use") if given.get("force") else ("available",)
        if volume["status"] not in wanted:
            raise InvalidStatus(what="volume", id=volume["id"], wanted=" or ".join(wanted), now=volume["status"])
        row = fresh(
            volume_id=volume["id"], project_id=volume["project_id"], user_id=caller.user_id, status="available",
            size=volume["size"], metadata=given.get("metadata") or {},
            name=given.get("name", given.get("display_name")),
            description=given.get("description", given.get("display_description")),
        )  # fmt: skip
        quotas.check(c, row["project_id"], 0, snapshots=1, gigabytes=row["size"])
        snapshots.insert(c, row)
        return row

    row = transact(req.world.database, work)
    return {"snapshot": views.snapshot(req, row | {"status": "creating"}, made=True)}


def _list(req: Request, *, detail: bool) -> Row:
    return paged(req, listed(req, caller_of(req), snapshots), "snapshots",
                 lambda row: views.snapshot(req, row, made=not detail))  # fmt: skip


def _show(req: Request) -> Row:
    caller, key = caller_of(req), req.path["id"]
    with req.world.database.read() as c:
        return {"snapshot": views.snapshot(req, seen(caller, snapshots.get(c, key), SnapshotNotFound, key))}


def _update(req: Request) -> Row:
    caller, key = writer_of(req, "volume:update_snapshot"), req.path["id"]
    given = {name.removeprefix("display_"): value for name, value in req.body["snapshot"].items()}
    given["updated_at"] = clock.utcnow()
    with req.world.database.write() as c:
        row = seen(caller, snapshots.get(c, key), SnapshotNotFound, key)
        snapshots.update(c, key, given)
    return {"snapshot": views.snapshot(req, row | given)}


def _delete(req: Request) -> Answer:
    _remove(req, writer_of(req, "volume:delete_snapshot"), ("available", "error"))
    return Answer()


def _remove(req: Request, caller: Caller, statuses: tuple[str, ...]) -> None:
    key = req.path["id"]
    with req.world.database.write() as c:
        row = seen(caller, snapshots.get(c, key), SnapshotNotFound, key)
        if row["status"] not in statuses:
            raise InvalidStatus(what="snapshot", id=key, wanted=" or ".join(statuses), now=row["status"])
        snapshots.delete(c, key)


def _reset(req: Request) -> Answer:
    caller, key = ruler_of(req, "volume_extension:snapshot_admin_actions:reset_status"), req.path["id"]
    with req.world.database.write() as c:
        seen(caller, snapshots.get(c, key), SnapshotNotFound, key)
        snapshots.update(c, key, {"status": req.body["status"], "updated_at": clock.utcnow()})
    return Answer()


def _force_delete(req: Request) -> Answer:
    _remove(req, ruler_of(req, "volume_extension:snapshot_admin_actions:force_delete"), STATUSES)
    return Answer()


_NEW = Obj(
    Field("volume_id", NAME, required=True), Field("force", Bool(null=True)),
    *(Field(name, TEXT) for name in ("name", "display_name", "description", "display_description")),
    Field("metadata", replace(ENTRIES, null=True)),
)  # fmt: skip
_QUERY = Query(open=True)
OPS: tuple[Op, ...] = (
    Op("GET", "/snapshots", lambda req: _list(req, detail=False), query=_QUERY),
    Op("GET", "/snapshots/detail", lambda req: _list(req, detail=True), query=_QUERY),
    Op("POST", "/snapshots", _create, body=wrap("snapshot", _NEW), ok=202),
    Op("GET", "/snapshots/{id}", _show),
    Op("PUT", "/snapshots/{id}", _update, body=wrap("snapshot", CHANGE)),
    Op("DELETE", "/snapshots/{id}", _delete, ok=202),
    Op("POST", "/snapshots/{id}/action", _reset, action="os-reset_status", ok=202,
       body=Obj(Field("status", Enum(*STATUSES), required=True))),
    Op("POST", "/snapshots/{id}/action", _force_delete, action="os-force_delete", ok=202),
    *metadata_ops("snapshots", snapshots, SnapshotNotFound),
)  # fmt: skip

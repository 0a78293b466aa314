"""Quotas and limits of a project."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.embedded.store import Row, transact
from kilonova.embedded.volumes.tables import QUOTAS, SNAPSHOTS, VOLUMES, quotas
from kilonova.embedded.volumes.world import NotAllowed, OverLimit, caller_of, ruler_of
from kilonova.http.fields import Bool, Field, Int, Obj, Query, Str, wrap
from kilonova.http.op import Answer, Op, Request

UNLIMITED = -1
# Cinder's names and defaults; nothing here counts against the backups and groups.
DEFAULTS: dict[str, int] = {
    "volumes": 10, "snapshots": 10, "gigabytes": 1000, "backups": 10, "backup_gigabytes": 1000,
    "per_volume_gigabytes": UNLIMITED, "groups": 10,
}  # fmt: skip
_PROJECT = sa.bindparam("project", type_=sa.String)
_USED = {
    table.name: sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(table.c.size), 0))
    .where(table.c.project_id == _PROJECT) for table in (VOLUMES, SNAPSHOTS)
}  # fmt: skip
_LOCKED = sa.select(QUOTAS.c.limits).where(QUOTAS.c.project_id == _PROJECT).with_for_update()


def limits_of(c: Connection, project: str) -> dict[str, int]:
    """The limits of a project."""
    row = quotas.get(c, project)
    return DEFAULTS | (row["limits"] if row else {})


def _claim(c: Connection, project: str) -> dict[str, int]:
    """The limits, with the project's quota kept from every other transaction until this one ends."""
    limits = c.execute(_LOCKED, {"project": project}).scalar()
    if limits is None:
        quotas.insert(c, {"project_id": project, "limits": {}})
    return DEFAULTS | (limits or {})


def used_by(c: Connection, project: str) -> dict[str, int]:
    """What a project uses; sizes in GiB. Snapshots count into the gigabytes, as Cinder has it."""
    (volumes, first), (snapshots, second) = (c.execute(_USED[name], {"project": project}).one()
                                             for name in ("volumes", "snapshots"))  # fmt: skip
    return dict.fromkeys(DEFAULTS, 0) | {"volumes": volumes, "snapshots": snapshots, "gigabytes": int(first + second)}


def check(c: Connection, project: str, size: int, **asked: int) -> None:
    """Raises OverLimit unless there is room for so many of each; `size` is that of the largest volume.

    Raises Duplicate when another request was the first of the project.
    """
    limits, used = _claim(c, project), used_by(c, project)
    for name, more in {"per_volume_gigabytes": size, **asked}.items():
        if limits[name] != UNLIMITED and more > 0 and used[name] + more > limits[name]:
            raise OverLimit(limit=limits[name], name=name, used=used[name], asked=more)


def _shown(req: Request, *, defaults: bool = False) -> Row:
    caller, project = caller_of(req), req.path["project"]
    if not caller.privileged and project != caller.project_id:
        raise NotAllowed(action="volume_extension:quotas:show")
    with req.world.database.read() as c:
        limits = DEFAULTS if defaults else limits_of(c, project)
        usage = req.query.get("usage", [""])[-1].lower() == "true" and not defaults
        used = used_by(c, project) if usage else {}
    if usage:
        return {"quota_set": {"id": project} | {
            name: {"limit": limit, "in_use": used[name], "reserved": 0} for name, limit in limits.items()}}  # fmt: skip
    return {"quota_set": {"id": project, **limits}}


def _change(req: Request) -> Row:
    ruler_of(req, "volume_extension:quotas:update")
    project = req.path["project"]
    given = {name: value for name, value in req.body["quota_set"].items() if name in DEFAULTS}

    def work(c: Connection) -> dict[str, int]:
        row = quotas.get(c, project)
        limits = (row["limits"] if row else {}) | given
        if row is None:
            quotas.insert(c, {"project_id": project, "limits": limits})
        else:
            quotas.update(c, project, {"limits": limits})
        return DEFAULTS | limits

    return {"quota_set": transact(req.world.database, work)}


def _reset(req: Request) -> Answer:
    ruler_of(req, "volume_extension:quotas:delete")
    with req.world.database.write() as c:
        quotas.delete(c, req.path["project"])
    return Answer()


def _limits(req: Request) -> Row:
    project: Any = caller_of(req).project_id
    with req.world.database.read() as c:
        limits, used = limits_of(c, project), used_by(c, project)
    return {"limits": {"rate": [], "absolute": {
        "maxTotalVolumes": limits["volumes"], "totalVolumesUsed": used["volumes"],
        "maxTotalSnapshots": limits["snapshots"], "totalSnapshotsUsed": used["snapshots"],
        "maxTotalVolumeGigabytes": limits["gigabytes"], "totalGigabytesUsed": used["gigabytes"],
        "maxTotalBackups": limits["backups"], "totalBackupsUsed": 0,
        "maxTotalBackupGigabytes": limits["backup_gigabytes"], "totalBackupGigabytesUsed": 0,
    }}}  # fmt: skip


_LIMIT = Int(UNLIMITED, 2**31 - 1)
_SET = Obj(*(Field(name, _LIMIT) for name in DEFAULTS), Field("tenant_id", Str()), Field("force", Bool()))
OPS: tuple[Op, ...] = (
    Op("GET", "/limits", _limits),
    Op("GET", "/os-quota-sets/{project}", _shown, query=Query(open=True)),
    Op("GET", "/os-quota-sets/{project}/defaults", lambda req: _shown(req, defaults=True)),
    Op("PUT", "/os-quota-sets/{project}", _change, body=wrap("quota_set", _SET)),
    Op("DELETE", "/os-quota-sets/{project}", _reset),
)

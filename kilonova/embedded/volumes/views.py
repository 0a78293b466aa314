"""What the service shows: exactly Cinder's keys, for suites refuse any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kilonova.core import clock
from kilonova.embedded.store import Row
from kilonova.embedded.volumes.world import HOST, Caller
from kilonova.http.op import Request


def _links(req: Request, kind: str, row: Row) -> list[dict[str, str]]:
    path = f"{row['project_id']}/{kind}/{row['id']}"
    return [{"rel": "self", "href": f"{req.base_url}/v3/{path}"}, {"rel": "bookmark", "href": f"{req.base_url}/{path}"}]


def brief(req: Request, row: Row, kind: str = "volumes") -> Row:
    """A volume in the list without details."""
    return {"id": row["id"], "name": row["name"], "links": _links(req, kind, row)}


def attached(row: Row) -> Row:
    """An attachment as the volume shows it."""
    return {"server_id": row["instance_uuid"], "attachment_id": row["id"], "attached_at": clock.raw(row["attached_at"]),
            "host_name": row["attached_host"], "volume_id": row["volume_id"], "device": row["mountpoint"],
            "id": row["volume_id"]}  # fmt: skip


def volume(req: Request, caller: Caller, row: Row, kind: str, held: Sequence[Row], *, made: bool = False) -> Row:
    """A volume. kind: its type's name. held: its attachments. made: the answer to a create, which shows less."""
    metadata = dict(row["metadata"])
    if row["readonly"] is not None:
        metadata["readonly"] = str(row["readonly"])
    view: Row = {name: row[name] for name in (
        "id", "name", "description", "size", "status", "availability_zone", "snapshot_id", "source_volid", "user_id",
        "multiattach")}  # fmt: skip
    view |= {
        "attachments": [attached(one) for one in held if one["status"] == "attached"],
        "links": _links(req, "volumes", row), "encrypted": False, "replication_status": None,
        "consistencygroup_id": None,
        "bootable": str(row["bootable"]).lower(), "volume_type": kind, "metadata": metadata,
        "created_at": clock.raw(row["created_at"]), "updated_at": clock.raw(row["updated_at"]),
    }  # fmt: skip
    version = req.version or (3, 0)
    if version >= (3, 13):
        view["group_id"] = None
    if version >= (3, 21) and caller.privileged:
        view["provider_id"] = None
    if version >= (3, 48):
        view |= {"shared_targets": False, "service_uuid": None}
    return view if made else view | _extended(caller, row)


def _extended(caller: Caller, row: Row) -> Row:
    view: Row = {"os-vol-tenant-attr:tenant_id": row["project_id"]}
    if caller.privileged:
        view |= {"os-vol-host-attr:host": HOST, "os-vol-mig-status-attr:migstat": None,
                 "os-vol-mig-status-attr:name_id": None}  # fmt: skip
    if row["image_metadata"]:
        view["volume_image_metadata"] = row["image_metadata"]
    return view


def snapshot(req: Request, row: Row, *, made: bool = False) -> Row:
    """A snapshot."""
    view: Row = {name: row[name] for name in ("id", "name", "description", "volume_id", "status", "size", "metadata")}
    view |= {"created_at": clock.raw(row["created_at"]), "updated_at": clock.raw(row["updated_at"])}
    version = req.version or (3, 0)
    if version >= (3, 14):
        view["group_snapshot_id"] = None
    if version >= (3, 41):
        view["user_id"] = row["user_id"]
    if not made:
        view |= {"os-extended-snapshot-attributes:progress": "100%",
                 "os-extended-snapshot-attributes:project_id": row["project_id"]}  # fmt: skip
    return view


def attachment(row: Row, *, detail: bool = True) -> Row:
    """An attachment of the attachments API."""
    view: Row = {"id": row["id"], "status": row["status"], "instance": row["instance_uuid"],
                 "volume_id": row["volume_id"]}  # fmt: skip
    if not detail:
        return view
    return view | {"attached_at": clock.raw(row["attached_at"]) or "", "detached_at": "",
                   "attach_mode": row["attach_mode"], "connection_info": _connection(row)}  # fmt: skip


def _connection(row: Row) -> dict[str, Any]:
    """How a host reaches the volume: the simulated backend needs the volume's id and nothing else."""
    if row["connector"] is None:
        return {}
    return {"driver_volume_type": "simulated", "volume_id": row["volume_id"], "attachment_id": row["id"],
            "access_mode": row["attach_mode"], "encrypted": False, "qos_specs": None, "cacheable": False,
            "data": {"volume_id": row["volume_id"]}}  # fmt: skip

"""Actions on a volume: one row each, with the statuses in which it may be asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.embedded.store import Row, transact
from kilonova.embedded.volumes import quotas
from kilonova.embedded.volumes.attachments import drop, settle
from kilonova.embedded.volumes.tables import attachments, volumes
from kilonova.embedded.volumes.volumes import remove
from kilonova.embedded.volumes.world import (
    ENTRIES,
    NAME,
    TEXT,
    AttachmentNotFound,
    Caller,
    InvalidInput,
    InvalidStatus,
    KeyNotFound,
    fresh,
    locked,
    move,
    ruler_of,
    writer_of,
)
from kilonova.http.fields import Bool, Enum, Field, Int, Obj, Raw, Str, Type
from kilonova.http.op import Answer, Op, Request

Act = Callable[[Connection, Caller, Row, Any], Row | None]

_STATUSES = ("available", "in-use", "creating", "deleting", "detaching", "attaching", "reserved", "error",
             "error_deleting", "error_extending", "error_restoring", "maintenance")  # fmt: skip


def _on_volume(act: Act, action: str, *, rule: bool = False) -> Callable[[Request], Any]:
    """A handler that does the action on the locked volume, in one transaction."""

    def handler(req: Request) -> Any:
        caller = (ruler_of if rule else writer_of)(req, f"volume_extension:volume_actions:{action}")
        return transact(
            req.world.database, lambda c: act(c, caller, locked(c, caller, req.path["id"]), req.body))  # fmt: skip

    return handler


def _set_bootable(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    move(c, volume, _STATUSES, bootable=body["bootable"])
    return None


def _set_readonly(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    move(c, volume, ("available",), readonly=body["readonly"])
    return None


def _extend(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    more = body["new_size"] - volume["size"]
    if more <= 0:
        raise InvalidInput(f"New size for extend must be greater than the current size, {volume['size']} GB.")
    quotas.check(c, volume["project_id"], body["new_size"], gigabytes=more)
    move(c, volume, ("available",), size=body["new_size"])  # nothing would tell the server of one in use
    return None


def _reserve(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    move(c, volume, ("available", "in-use") if volume["multiattach"] else ("available",), status="attaching")
    return None


def _unreserve(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    move(c, volume, ("attaching",))
    settle(c, volume)
    return None


def _begin_detaching(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    if not attachments.find(c, {"volume_id": volume["id"], "status": "attached"}):
        raise InvalidInput(f"Invalid volume: volume {volume['id']} is not attached.")
    move(c, volume, ("in-use",), status="detaching")
    return None


def _roll_detaching(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    if volume["status"] == "detaching":
        move(c, volume, ("detaching",), status="in-use")
    return None


def _attach(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    wanted = ("available", "attaching", "in-use") if volume["multiattach"] else ("available", "attaching")
    if volume["status"] not in wanted:
        raise InvalidStatus(what="volume", id=volume["id"], wanted=" or ".join(wanted), now=volume["status"])
    mode = body.get("mode") or "rw"
    if volume["readonly"] and mode == "rw":
        raise InvalidInput(f"Invalid volume: volume {volume['id']} is read-only and cannot be attached as 'rw'.")
    attachments.insert(c, fresh(
        volume_id=volume["id"], project_id=volume["project_id"], instance_uuid=body.get("instance_uuid"),
        status="attached", attach_mode=mode, mountpoint=body["mountpoint"], connector=None,
        attached_host=body.get("host_name"), attached_at=clock.utcnow()))  # fmt: skip
    settle(c, volume)
    return None


def _detach(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    held = attachments.find(c, {"volume_id": volume["id"]})
    key = (body or {}).get("attachment_id")
    chosen = [row for row in held if key in (None, row["id"])]
    if not chosen:
        raise AttachmentNotFound(id=key or f"of volume {volume['id']}")
    if len(chosen) > 1:
        raise InvalidInput("The volume has several attachments: name one as attachment_id.")
    drop(c, caller, volume, chosen[0])
    return None


def _reset_status(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    status = body.get("status")
    if body.get("attach_status") == "detached":
        attachments.delete(c, {"volume_id": volume["id"]})
    if status is not None:
        move(c, volume, (volume["status"],), status=status)
    return None


def _set_image_metadata(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    metadata = (volume["image_metadata"] or {}) | body["metadata"]
    move(c, volume, (volume["status"],), image_metadata=metadata)
    return {"metadata": metadata}


def _unset_image_metadata(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    metadata = dict(volume["image_metadata"] or {})
    if metadata.pop(body["key"], None) is None:
        raise KeyNotFound(id=body["key"], what=f"the image metadata of volume {volume['id']}")
    volumes.update(c, volume["id"], {"image_metadata": metadata or None})
    return None


def _show_image_metadata(c: Connection, caller: Caller, volume: Row, body: Any) -> Row | None:
    return {"metadata": volume["image_metadata"] or {}}


def _force_delete(req: Request) -> Answer:
    remove(req, ruler_of(req, "volume_extension:volume_admin_actions:force_delete"), req.path["id"], forced=True)
    return Answer()


_NOTHING = Raw({"type": ["object", "null", "string"]})
_ATTACH = Obj(Field("instance_uuid", Str(format="uuid", null=True)), Field("host_name", TEXT),
              Field("mountpoint", NAME, required=True), Field("mode", Enum("rw", "ro")))  # fmt: skip
_DETACH = Obj(Field("attachment_id", Str(format="uuid", null=True)), Field("connector", Raw({})), null=True)
_RESET = Obj(Field("status", Enum(*_STATUSES)), Field("attach_status", Enum("detached", "attached")),
             Field("migration_status", Raw({"type": "null"})), min=1)  # fmt: skip

# action: (what it does, body, status, for administrators only)
_ROWS: dict[str, tuple[Act, Type, int, bool]] = {
    "os-set_bootable": (_set_bootable, Obj(Field("bootable", Bool(), required=True)), 200, False),
    "os-update_readonly_flag": (_set_readonly, Obj(Field("readonly", Bool(), required=True)), 202, False),
    "os-extend": (_extend, Obj(Field("new_size", Int(1, 2**31 - 1), required=True)), 202, False),
    "os-reserve": (_reserve, _NOTHING, 202, False),
    "os-unreserve": (_unreserve, _NOTHING, 202, False),
    "os-begin_detaching": (_begin_detaching, _NOTHING, 202, False),
    "os-roll_detaching": (_roll_detaching, _NOTHING, 202, False),
    "os-attach": (_attach, _ATTACH, 202, False),
    "os-detach": (_detach, _DETACH, 202, False),
    "os-force_detach": (_detach, _DETACH, 202, True),
    "os-reset_status": (_reset_status, _RESET, 202, True),
    "os-set_image_metadata": (_set_image_metadata, Obj(Field("metadata", ENTRIES, required=True)), 200, False),
    "os-unset_image_metadata": (_unset_image_metadata, Obj(Field("key", Str(1, 255), required=True)), 200, False),
    "os-show_image_metadata": (_show_image_metadata, _NOTHING, 200, False),
}  # fmt: skip
_PATH = "/volumes/{id}/action"
OPS: tuple[Op, ...] = (
    *(Op("POST", _PATH, _on_volume(act, name, rule=rule), action=name, body=body, ok=ok, errors=(409,))
      for name, (act, body, ok, rule) in _ROWS.items()),
    Op("POST", _PATH, _force_delete, action="os-force_delete", ok=202),
)  # fmt: skip

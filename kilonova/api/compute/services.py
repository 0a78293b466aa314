"""/os-services: the processes of the cloud; compute hosts are taken out of use, fenced and removed here."""

from __future__ import annotations

from typing import Any

from kilonova.compute import services
from kilonova.compute.services import Listed
from kilonova.core import clock
from kilonova.core.errors import Invalid, NotFound
from kilonova.http.fields import BOOL, FQDN, Enum, Field, Obj, Param, Query, Str
from kilonova.http.op import Op, Request
from kilonova.http.versions import Since
from kilonova.http.views import Out, View

_RULE = "os_compute_api:os-services:"
_REASON = Str(1, 255)

LIST = Query((Param("host"), Param("binary")), strict="2.75")
BY_HOST = Obj(
    Field("host", FQDN, required=True),
    Field("binary", Str(1, 255), required=True),
    Field("disabled_reason", _REASON),
    Field("forced_down", BOOL, since="2.11"),
)
BY_UUID = Obj(
    Field("status", Enum("enabled", "disabled")),
    Field("disabled_reason", _REASON),
    Field("forced_down", BOOL),
)


def _status(found: Listed, req: Request) -> str:
    assert found.service is not None
    return "disabled" if found.service.disabled else "enabled"


def _of(name: str) -> Any:
    return lambda found, req: getattr(found.service, name)


SERVICE = View(
    "service",
    Out("id", _of("id"), until="2.52"),
    Out("id", _of("uuid"), since="2.53"),
    Out("binary", lambda found, req: found.binary),
    Out("host", lambda found, req: found.host),
    Out("zone", lambda found, req: found.zone),
    Out("status", _status),
    Out("state", lambda found, req: "up" if found.up else "down"),
    Out("updated_at", lambda found, req: clock.raw(found.service.updated_at)),
    Out("disabled_reason", _of("disabled_reason")),
    Out("forced_down", _of("forced_down"), since="2.11"),
)
UNKNOWN = View(
    "service of a cell that is down",
    Out("binary", lambda found, req: found.binary),
    Out("host", lambda found, req: found.host),
    Out("status", lambda found, req: "UNKNOWN"),
)


class NoSuchServiceAction(NotFound):
    """There never was such an action, or not yet at this version."""

    code, message = "no_such_service_action", "There is no action {action!r} of services."


class FieldMissing(Invalid):
    """An action needs a field that others do not."""

    code, message = "field_missing", "Missing {field} in the request."


def service_of(req: Request) -> Any:
    """The service in the path, with its cell."""
    find = services.by_uuid if req.flag("by_uuid") else services.by_number
    return find(req.world, req.path["id"])


def index(req: Request) -> dict[str, Any]:
    """All services."""
    found = services.every(req.world, req.query.get("host"), req.query.get("binary"))
    down = [one for one in found if one.service is None] if req.flag("down_cells") else []
    known = SERVICE.many([one for one in found if one.service is not None], req)
    return {"services": known + UNKNOWN.many(down, req)}


def update(req: Request) -> dict[str, Any]:
    """Change a compute service: until 2.52 the path names what to do, later the service."""
    if not req.flag("by_uuid"):
        return {"service": _act(req)}
    service, cell = service_of(req)
    body = req.body
    changed = services.update(
        req.world, service, cell, body.get("status"), body.get("disabled_reason"), body.get("forced_down")
    )
    return {"service": SERVICE.one(changed, req)}


def _act(req: Request) -> dict[str, Any]:
    action = _ACTIONS.get(req.path["id"])
    if action is None or (action is _force_down and not req.flag("force_down")):
        raise NoSuchServiceAction(action=req.path["id"])
    names = {"host": req.body["host"], "binary": req.body["binary"]}
    return names | action(req)


def _enable(req: Request) -> dict[str, Any]:
    service, cell = services.on_host(req.world, req.body["host"], req.body["binary"])
    services.set_status(req.world, service, cell, enabled=True)
    return {"status": "enabled"}


def _disable(req: Request) -> dict[str, Any]:
    service, cell = services.on_host(req.world, req.body["host"], req.body["binary"])
    services.set_status(req.world, service, cell, enabled=False)
    return {"status": "disabled"}


def _disable_with_reason(req: Request) -> dict[str, Any]:
    reason = req.body.get("disabled_reason")
    if reason is None:
        raise FieldMissing(field="disabled_reason")
    service, cell = services.on_host(req.world, req.body["host"], req.body["binary"])
    services.set_status(req.world, service, cell, enabled=False, reason=reason)
    return {"status": "disabled", "disabled_reason": reason}


def _force_down(req: Request) -> dict[str, Any]:
    forced_down = req.body.get("forced_down")
    if forced_down is None:
        raise FieldMissing(field="forced_down")
    service, cell = services.on_host(req.world, req.body["host"], req.body["binary"])
    services.set_forced_down(req.world, service, cell, forced_down=forced_down)
    return {"forced_down": forced_down}


_ACTIONS = {
    "enable": _enable, "disable": _disable, "disable-log-reason": _disable_with_reason, "force-down": _force_down,
}  # fmt: skip


def delete(req: Request) -> None:
    """Forget a service, with the host if it is a compute service."""
    service, cell = req.target
    services.delete(req.world, service, cell)


OPS: tuple[Op, ...] = (
    Op("GET", "/os-services", index, policy=_RULE + "list", query=LIST, flags={"down_cells": "2.69"}),
    Op(
        "PUT", "/os-services/{id}", update, policy=_RULE + "update", body=Since(BY_HOST, ("2.53", BY_UUID)),
        errors=(400, 404), flags={"by_uuid": "2.53", "force_down": "2.11"},
    ),
    Op(
        "DELETE", "/os-services/{id}", delete, policy=_RULE + "delete", policy_first=True, target=service_of, ok=204,
        errors=(400, 404, 409), flags={"by_uuid": "2.53"},
    ),
)  # fmt: skip

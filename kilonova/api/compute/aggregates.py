"""/os-aggregates: groups of hosts with metadata, some of which are availability zones."""

from __future__ import annotations

from typing import Any

from kilonova.compute import aggregates
from kilonova.compute.aggregates import ZoneConflict
from kilonova.core import clock
from kilonova.http.fields import AZ_NAME, FQDN, METADATA_NULL, NAME, Field, Obj, Query, Str, nullable, wrap
from kilonova.http.formats import az_name, printable, register
from kilonova.http.formats import name as is_name
from kilonova.http.op import Op, Request
from kilonova.http.views import Out, View

_RULE = "os_compute_api:os-aggregates:"

register(
    "name_in_spaces", lambda text: is_name(text.strip()) and printable(text),
    "It must not be blank, or hold characters that cannot be printed.",
)  # fmt: skip
register(
    "az_name_in_spaces", lambda text: az_name(text.strip()) and printable(text),
    "It must not be blank, or hold ':' or characters that cannot be printed.",
)  # fmt: skip

CREATE = wrap(
    "aggregate",
    Obj(Field("name", NAME, required=True), Field("availability_zone", nullable(AZ_NAME))),
)
UPDATE = wrap(
    "aggregate",
    Obj(
        Field("name", Str(1, 255, "name_in_spaces")),
        Field("availability_zone", Str(1, 255, "az_name_in_spaces", null=True)),
        min=1,
    ),
)
HOST = Obj(Field("host", FQDN, required=True))
METADATA = Obj(Field("metadata", METADATA_NULL, required=True))
NO_QUERY = Query(strict="2.102")

AGGREGATE = View(
    "aggregate",
    Out("id", lambda found, req: found.id),
    Out("uuid", lambda found, req: found.uuid, since="2.41"),
    Out("name", lambda found, req: found.name),
    Out("availability_zone", lambda found, req: found.zone),
    Out("hosts", lambda found, req: list(found.hosts), at={"show": "2.1"}),
    Out("metadata", lambda found, req: dict(found.metadata), at={"show": "2.1"}),
    Out("created_at", lambda found, req: clock.raw(found.created_at)),
    Out("updated_at", lambda found, req: clock.raw(found.updated_at)),
    Out("deleted_at", lambda found, req: None),
    Out("deleted", lambda found, req: False),
)


def number_of(req: Request) -> int:
    """The number in the path."""
    return aggregates.number_of(req.path["id"])


def aggregate_of(req: Request) -> Any:
    """The aggregate in the path."""
    return aggregates.find(req.world, number_of(req))


def _shown(found: Any, req: Request, shape: str = "show") -> dict[str, Any]:
    return {"aggregate": AGGREGATE.one(found, req, shape)}


def index(req: Request) -> dict[str, Any]:
    """All aggregates."""
    return {"aggregates": AGGREGATE.many(aggregates.every(req.world), req, "show")}


def create(req: Request) -> dict[str, Any]:
    """Add an aggregate."""
    body = req.body["aggregate"]
    zone = body.get("availability_zone")
    return _shown(aggregates.create(req.world, body["name"].strip(), zone and zone.strip()), req, "create")


def show(req: Request) -> dict[str, Any]:
    """One aggregate."""
    return _shown(req.target, req)


def update(req: Request) -> dict[str, Any]:
    """Rename it, or make it another zone."""
    given = {key: value and value.strip() for key, value in req.body["aggregate"].items()}
    name = given.pop("name", None)
    return _shown(aggregates.update(req.world, req.target, name, given), req)


def delete(req: Request) -> None:
    """Remove an empty aggregate."""
    aggregates.delete(req.world, req.target)


def add_host(req: Request) -> dict[str, Any]:
    """Take a host in."""
    return _shown(aggregates.add_host(req.world, req.target, req.body["host"]), req)


def remove_host(req: Request) -> dict[str, Any]:
    """Let a host go."""
    return _shown(aggregates.remove_host(req.world, req.target, req.body["host"]), req)


def set_metadata(req: Request) -> dict[str, Any]:
    """Set or, with null, remove metadata."""
    return _shown(aggregates.update(req.world, req.target, None, req.body["metadata"]), req)


_ONE = "/os-aggregates/{id}"
_ACTION = _ONE + "/action"

OPS: tuple[Op, ...] = (
    Op("GET", "/os-aggregates", index, policy=_RULE + "index", query=NO_QUERY),
    Op("POST", "/os-aggregates", create, policy=_RULE + "create", body=CREATE, errors=(400, 409)),
    Op(
        "GET", _ONE, show, policy=_RULE + "show", policy_first=True, target=aggregate_of, query=NO_QUERY,
        errors=(400, 404),
    ),
    Op(
        "PUT", _ONE, update, policy=_RULE + "update", policy_first=True, target=aggregate_of, body=UPDATE,
        errors=(400, 404, 409), faults={ZoneConflict: 400},
    ),
    Op("DELETE", _ONE, delete, policy=_RULE + "delete", policy_first=True, target=aggregate_of, errors=(400, 404)),
    Op(
        "POST", _ACTION, add_host, action="add_host", policy=_RULE + "add_host", policy_first=True, target=number_of,
        body=HOST, errors=(400, 404, 409),
    ),
    Op(
        "POST", _ACTION, remove_host, action="remove_host", policy=_RULE + "remove_host", policy_first=True,
        target=number_of, body=HOST, errors=(400, 404, 409),
    ),
    Op(
        "POST", _ACTION, set_metadata, action="set_metadata", policy=_RULE + "set_metadata", policy_first=True,
        target=aggregate_of, body=METADATA, errors=(400, 404), faults={ZoneConflict: 400},
    ),
)  # fmt: skip

"""/flavors/{id}/os-extra_specs: what a flavor asks for beyond its sizes; validated from 2.86 on."""

from __future__ import annotations

from typing import Any

from kilonova.compute import extra_spec_rules, flavors
from kilonova.compute.flavors import SpecNotFound
from kilonova.core.errors import Invalid
from kilonova.core.request_spec import FlavorSpec
from kilonova.http.fields import METADATA_KEY, Field, Map, Obj, Query, Raw
from kilonova.http.op import Op, Request

_RULE = "os_compute_api:os-flavor-extra-specs:"
_PATH = "/flavors/{flavor_id}/os-extra_specs"
_VALUE = Raw({"type": ["string", "number"], "maxLength": 255})
_MANY = Obj(Field("extra_specs", Map(METADATA_KEY, _VALUE), required=True))
_ONE = Map(METADATA_KEY, _VALUE, 1, 1)
_NO_QUERY = Query(strict="2.102")


class KeyMismatch(Invalid):
    """Body and URL name different keys."""

    code, message = "key_mismatch", "Request body and URI mismatch"


class ValueTooLong(Invalid):
    """A number of more digits than a value may have characters."""

    code, message = "value_too_long", "Value of extra spec '{key}' is longer than 255 characters."


def flavor_of(req: Request) -> FlavorSpec:
    """The flavor in the path; from 2.86 on a bad value beats an unknown flavor."""
    if req.op.method in ("POST", "PUT"):
        specs = req.body["extra_specs"] if req.op.method == "POST" else req.body
        for key, value in specs.items():
            if len(str(value)) > 255:
                raise ValueTooLong(key=key)
        if req.flag("validated"):
            extra_spec_rules.validate(specs)
    return flavors.find(req.world, req.ctx, req.path["flavor_id"])


def index(req: Request) -> dict[str, Any]:
    """All extra specs."""
    return {"extra_specs": req.target.extra_specs}


def create(req: Request) -> dict[str, Any]:
    """Add or change some; answers them as they came."""
    flavors.set_specs(req.world, req.target, req.body["extra_specs"])
    return {"extra_specs": req.body["extra_specs"]}


def show(req: Request) -> dict[str, Any]:
    """One."""
    key = req.path["id"]
    if key not in req.target.extra_specs:
        raise SpecNotFound(flavor=req.target.flavorid, key=key)
    return {key: req.target.extra_specs[key]}


def update(req: Request) -> dict[str, Any]:
    """Change one."""
    if req.path["id"] not in req.body:
        raise KeyMismatch
    flavors.set_specs(req.world, req.target, req.body)
    return dict(req.body)


def delete(req: Request) -> None:
    """Remove one."""
    flavors.drop_spec(req.world, req.target, req.path["id"])


_FLAGS = {"validated": "2.86"}

OPS: tuple[Op, ...] = (
    Op("GET", _PATH, index, policy=_RULE + "index", policy_first=True, target=flavor_of, query=_NO_QUERY,
       errors=(404,)),
    Op("POST", _PATH, create, policy=_RULE + "create", policy_first=True, target=flavor_of, body=_MANY,
       errors=(400, 404, 409), flags=_FLAGS),
    Op("GET", _PATH + "/{id}", show, policy=_RULE + "show", policy_first=True, target=flavor_of, query=_NO_QUERY,
       errors=(404,)),
    Op("PUT", _PATH + "/{id}", update, policy=_RULE + "update", policy_first=True, target=flavor_of, body=_ONE,
       errors=(400, 404, 409), flags=_FLAGS),
    Op("DELETE", _PATH + "/{id}", delete, policy=_RULE + "delete", policy_first=True, target=flavor_of,
       errors=(404,)),
)  # fmt: skip

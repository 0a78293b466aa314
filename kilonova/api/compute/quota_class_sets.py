"""/os-quota-class-sets: limits for all projects that have none of their own (class `default`)."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.quota_sets import FILES, GROUPS, LASTING, LIMIT
from kilonova.compute import quota_sets
from kilonova.compute.quota_sets import NETWORK_RESOURCES
from kilonova.http.fields import Field, Obj, Query, wrap
from kilonova.http.op import Op, Request
from kilonova.http.views import Out, View, item

_RULE = "os_compute_api:os-quota-class-sets:"

UPDATE = wrap(
    "quota_class_set",
    Obj(
        *(Field(name, LIMIT) for name in (*LASTING, *GROUPS)),
        *(Field(name, LIMIT, until="2.49") for name in NETWORK_RESOURCES),
        *(Field(name, LIMIT, until="2.56") for name in FILES),
    ),
)
NO_QUERY = Query(strict="2.102")

QUOTA_CLASS_SET = View(
    "quota_class_set",
    *(Out(name, item(name)) for name in LASTING),
    *(Out(name, item(name), since="2.50") for name in GROUPS),
    *(Out(name, item(name), until="2.49") for name in NETWORK_RESOURCES),
    *(Out(name, item(name), until="2.56") for name in FILES),
)


def show(req: Request) -> dict[str, Any]:
    """The limits of a class."""
    found = quota_sets.class_limits(req.world, req.path["id"])
    return {"quota_class_set": {"id": req.path["id"]} | QUOTA_CLASS_SET.one(found, req)}


def update(req: Request) -> dict[str, Any]:
    """Change some limits of a class."""
    found = quota_sets.set_class_limits(req.world, req.path["id"], req.body["quota_class_set"])
    return {"quota_class_set": QUOTA_CLASS_SET.one(found, req)}


OPS: tuple[Op, ...] = (
    Op("GET", "/os-quota-class-sets/{id}", show, policy=_RULE + "show", query=NO_QUERY),
    Op("PUT", "/os-quota-class-sets/{id}", update, policy=_RULE + "update", body=UPDATE, errors=(400,)),
)

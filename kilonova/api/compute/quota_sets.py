"""/os-quota-sets: what a project, or a user in it, may have."""

from __future__ import annotations

from typing import Any

from kilonova.compute import quota_sets
from kilonova.compute.quota_sets import NETWORK_RESOURCES, Usage
from kilonova.http.fields import BOOL, Field, Int, Obj, Param, Query, wrap
from kilonova.http.op import Op, Request
from kilonova.http.views import Out, View, item

_RULE = "os_compute_api:os-quota-sets:"

LIMIT = Int(-1, 2147483647)
LASTING = ("cores", "instances", "key_pairs", "metadata_items", "ram")
GROUPS = ("server_groups", "server_group_members")
FILES = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")

UPDATE = wrap(
    "quota_set",
    Obj(
        *(Field(name, LIMIT) for name in (*LASTING, *GROUPS)),
        *(Field(name, LIMIT, until="2.35") for name in NETWORK_RESOURCES),
        *(Field(name, LIMIT, until="2.56") for name in FILES),
        Field("force", BOOL),
    ),
)
QUERY = Query((Param("user_id"),), strict="2.75")

QUOTA_SET = View(
    "quota_set",
    *(Out(name, item(name)) for name in (*LASTING, *GROUPS)),
    *(Out(name, item(name), until="2.35") for name in NETWORK_RESOURCES),
    *(Out(name, item(name), until="2.56") for name in FILES),
)


def project_of(req: Request) -> dict[str, Any]:
    """The project in the path, whether it exists or not: the policy is asked first."""
    return {"project_id": req.path["id"], "user_id": None}


def _answer(found: dict[str, Any], req: Request) -> dict[str, Any]:
    return {"quota_set": {"id": req.path["id"]} | QUOTA_SET.one(found, req)}


def _detailed(usage: Usage) -> dict[str, int]:
    return {"limit": usage.limit, "in_use": usage.in_use, "reserved": 0}


def show(req: Request) -> dict[str, Any]:
    """The limits."""
    return _answer(quota_sets.limits(req.world, req.path["id"], req.query.get("user_id")), req)


def detail(req: Request) -> dict[str, Any]:
    """Limits with what is in use."""
    found = quota_sets.usage(req.world, req.path["id"], req.query.get("user_id"))
    return _answer({name: _detailed(usage) for name, usage in found.items()}, req)


def defaults(req: Request) -> dict[str, Any]:
    """The limits of a project that was given none."""
    return _answer(quota_sets.defaults(req.world, req.path["id"]), req)


def update(req: Request) -> dict[str, Any]:
    """Change some limits."""
    wanted = dict(req.body["quota_set"])
    force = wanted.pop("force", False)
    found = quota_sets.set_limits(req.world, req.path["id"], req.query.get("user_id"), wanted, force=force)
    return {"quota_set": QUOTA_SET.one(found, req)}


def delete(req: Request) -> None:
    """Let the defaults hold again."""
    quota_sets.drop(req.world, req.path["id"], req.query.get("user_id"))


_ONE = "/os-quota-sets/{id}"

OPS: tuple[Op, ...] = (
    Op("GET", _ONE, show, policy=_RULE + "show", target=project_of, query=QUERY, errors=(400,)),
    Op("PUT", _ONE, update, policy=_RULE + "update", target=project_of, query=QUERY, body=UPDATE, errors=(400,)),
    Op("DELETE", _ONE, delete, policy=_RULE + "delete", target=project_of, query=QUERY, ok=202),
    Op("GET", _ONE + "/detail", detail, policy=_RULE + "detail", target=project_of, query=QUERY, errors=(400,)),
    Op("GET", _ONE + "/defaults", defaults, policy=_RULE + "defaults", target=project_of, errors=(400,)),
)

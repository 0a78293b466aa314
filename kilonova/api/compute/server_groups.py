"""/os-server-groups: servers that are to be together, or apart."""

from __future__ import annotations

from typing import Any

from kilonova.compute import server_groups
from kilonova.compute.server_groups import Group
from kilonova.http.fields import NAME, NONNEG, POSINT, Arr, Enum, Field, Obj, Param, Query, wrap
from kilonova.http.op import Op, Request
from kilonova.http.views import Out, View

_RULE = "os_compute_api:os-server-groups:"

_POLICY = Enum("anti-affinity", "affinity", ("soft-anti-affinity", "2.15"), ("soft-affinity", "2.15"))
CREATE = wrap(
    "server_group",
    Obj(
        Field("name", NAME, required=True),
        Field("policies", Arr(_POLICY, 1, 1, unique=True), required=True, until="2.63"),
        Field("policy", _POLICY, required=True, since="2.64"),
        Field("rules", Obj(Field("max_server_per_host", POSINT)), since="2.64"),
    ),
)
LIST = Query((Param("all_projects"), Param("limit", NONNEG), Param("offset", NONNEG)), strict="2.75")
NO_QUERY = Query(strict="2.102")

GROUP = View(
    "server_group",
    Out("id", lambda group, req: group.uuid),
    Out("name", lambda group, req: group.name),
    Out("policies", lambda group, req: [group.policy], until="2.63"),
    Out("policy", lambda group, req: group.policy, since="2.64"),
    Out("rules", lambda group, req: dict(group.rules), since="2.64"),
    Out("members", lambda group, req: list(group.members)),
    Out("metadata", lambda group, req: {}, until="2.63"),
    Out("project_id", lambda group, req: group.project_id, since="2.13"),
    Out("user_id", lambda group, req: group.user_id, since="2.13"),
)


def group_of(req: Request) -> Group:
    """The group in the path."""
    return server_groups.find(req.world, req.path["id"])


def index(req: Request) -> dict[str, Any]:
    """The project's groups; everybody's for an administrator who asks."""
    everybody = "all_projects" in req.query and bool(req.ctx.is_admin)
    if everybody:
        req.authorize(_RULE + "index:all_projects")
    most = req.world.settings.max_limit
    start, size = req.query.get("offset", 0), min(req.query.get("limit") or most, most)
    found = server_groups.every(req.world, None if everybody else req.ctx.project_id, start, size)
    return {"server_groups": GROUP.many(found, req)}


def create(req: Request) -> dict[str, Any]:
    """Add a group."""
    body = req.body["server_group"]
    policy = body["policy"] if "policy" in body else body["policies"][0]
    made = server_groups.create(req.world, req.ctx, body["name"].strip(), policy, body.get("rules", {}))
    return {"server_group": GROUP.one(made, req)}


def show(req: Request) -> dict[str, Any]:
    """One group."""
    return {"server_group": GROUP.one(req.target, req)}


def delete(req: Request) -> None:
    """Remove a group; its servers stay."""
    server_groups.delete(req.world, req.target)


_ONE = "/os-server-groups/{id}"

OPS: tuple[Op, ...] = (
    Op("GET", "/os-server-groups", index, policy=_RULE + "index", also=(_RULE + "index:all_projects",), query=LIST),
    Op("POST", "/os-server-groups", create, policy=_RULE + "create", body=CREATE, errors=(400, 403, 409)),
    Op("GET", _ONE, show, policy=_RULE + "show", target=group_of, query=NO_QUERY, errors=(404,)),
    Op("DELETE", _ONE, delete, policy=_RULE + "delete", target=group_of, ok=204, errors=(404,)),
)

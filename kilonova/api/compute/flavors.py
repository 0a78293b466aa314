"""/flavors: list, show, create, describe, delete, and who may use the private ones."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.server_view import links_to
from kilonova.compute import flavors
from kilonova.compute.flavors import FlavorFilter
from kilonova.core.errors import Invalid
from kilonova.core.request_spec import FlavorSpec
from kilonova.http import paging
from kilonova.http.fields import (
    BOOL,
    INT31,
    INT31_POSITIVE,
    NAME,
    Enum,
    Field,
    Obj,
    Param,
    Query,
    Raw,
    Str,
    wrap,
)  # fmt: skip
from kilonova.http.formats import register
from kilonova.http.op import Op, Request
from kilonova.http.paging import LIMIT, MARKER
from kilonova.http.versions import span
from kilonova.http.views import Out, View

_SPECS = "os_compute_api:os-flavor-extra-specs:index"
_MANAGE = "os_compute_api:os-flavor-manage:"
_ACCESS = "os_compute_api:os-flavor-access"

_MAX_FACTOR = 3.40282e38


def _is_factor(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return 0 < number <= _MAX_FACTOR


def _is_flavor_id(text: str) -> bool:
    return text == text.strip() and all((char.isalnum() and char.isascii()) or char in ". _-" for char in text)


register("rxtx_factor", _is_factor, f"It is not a number above 0 and at most {_MAX_FACTOR:g}.")
register(
    "flavor_id", _is_flavor_id,
    "It may hold only letters, digits, spaces, '.', '_' and '-', and must not begin or end with white space.",
)  # fmt: skip

_FACTOR = Raw({
    "type": ["number", "string"], "format": "rxtx_factor", "minimum": 0, "exclusiveMinimum": True,
    "maximum": _MAX_FACTOR,
})  # fmt: skip
_ID = Raw({"type": ["string", "number", "null"], "minLength": 1, "maxLength": 255, "format": "flavor_id"})

CREATE = wrap(
    "flavor",
    Obj(
        Field("name", NAME, required=True),
        Field("ram", INT31_POSITIVE, required=True),
        Field("vcpus", INT31_POSITIVE, required=True),
        Field("disk", INT31, required=True),
        Field("id", _ID),
        Field("OS-FLV-EXT-DATA:ephemeral", INT31),
        Field("swap", INT31),
        Field("rxtx_factor", _FACTOR, until="2.101"),
        Field("os-flavor-access:is_public", BOOL),
        Field("description", Str(0, 65535, "printable", null=True), since="2.55"),
    ),
)
UPDATE = wrap("flavor", Obj(Field("description", Str(0, 65535, "printable", null=True), required=True)))

SORT_COLUMNS = {"flavorid": "flavorid", "name": "name", "memory_mb": "memory_mb", "vcpus": "vcpus", "swap": "swap",
                "root_gb": "root_gb", "ephemeral_gb": "ephemeral_gb", "id": "id", "disabled": "disabled",
                "is_public": "is_public", "created_at": "created_at", "updated_at": "updated_at",
                "description": "description", "vcpu_weight": "vcpu_weight", "rxtx_factor": "rxtx_factor"}  # fmt: skip
_SORT = Enum(*[key for key in SORT_COLUMNS if key != "rxtx_factor"], ("rxtx_factor", "-2.101"))
LIST = Query(
    (
        LIMIT, MARKER, Param("is_public"), Param("minRam"), Param("minDisk"), Param("sort_key", _SORT),
        Param("sort_dir", Enum("asc", "desc")), Param("name", Str(format="regex"), since="2.102"),
    ),
    strict="2.75",
)  # fmt: skip
NO_QUERY = Query(strict="2.102")


def _swap(flavor: FlavorSpec, req: Request) -> Any:
    return flavor.swap if flavor.swap or (req.version is not None and req.version in span("2.75")) else ""


FLAVOR = View(
    "flavor",
    Out("id", lambda flavor, req: flavor.flavorid),
    Out("name", lambda flavor, req: flavor.name),
    Out("links", lambda flavor, req: links_to(req, "flavors", flavor.flavorid)),
    Out("description", lambda flavor, req: flavor.description, since="2.55"),
    Out("ram", lambda flavor, req: flavor.memory_mb, at={"show": "2.1"}),
    Out("vcpus", lambda flavor, req: flavor.vcpus, at={"show": "2.1"}),
    Out("disk", lambda flavor, req: flavor.root_gb, at={"show": "2.1"}),
    Out("OS-FLV-EXT-DATA:ephemeral", lambda flavor, req: flavor.ephemeral_gb, at={"show": "2.1"}),
    Out("swap", _swap, at={"show": "2.1"}),
    Out("rxtx_factor", lambda flavor, req: flavor.rxtx_factor or "", at={"show": "-2.101"}),
    Out("OS-FLV-DISABLED:disabled", lambda flavor, req: flavor.disabled, at={"show": "-2.101"}),
    Out("os-flavor-access:is_public", lambda flavor, req: flavor.is_public, at={"show": "2.1"}),
    Out("extra_specs", lambda flavor, req: flavor.extra_specs, at={"show": "2.61"}, gate=_SPECS),
)


class FlavorQueryInvalid(Invalid):
    """A filter of the list that cannot be read."""

    code, message = "flavor_query_invalid", "Invalid {name} filter {value!r}."


def flavor_of(req: Request) -> FlavorSpec:
    """The flavor in the path."""
    return flavors.find(req.world, req.ctx, req.path["id"])


def _filter(req: Request) -> FlavorFilter:
    query = req.query
    public: bool | None = True
    if req.ctx.is_admin and "is_public" in query:
        word = query["is_public"].strip().lower()
        if word not in ("none", "true", "false", "1", "0", "t", "f", "yes", "no", "y", "n", "on", "off"):
            raise FlavorQueryInvalid(name="is_public", value=query["is_public"])
        public = None if word == "none" else word in ("true", "1", "t", "yes", "y", "on")
    return FlavorFilter(
        public=public,
        project=None if req.ctx.is_admin else req.ctx.project_id,
        disabled=None if req.ctx.is_admin else False,
        min_ram=_number(query, "minRam"),
        min_disk=_number(query, "minDisk"),
        name=query.get("name"),
        sort=SORT_COLUMNS[query.get("sort_key", "flavorid")],
        descending=query.get("sort_dir") == "desc",
    )


def _number(query: dict[str, Any], name: str) -> int | None:
    if name not in query:
        return None
    try:
        number = int(query[name])
    except ValueError:
        raise FlavorQueryInvalid(name=name, value=query[name]) from None
    return max(0, min(number, 2**31))  # no flavor has less or more, and a database may refuse to compare larger ones


def _list(req: Request, path: str, shape: str) -> dict[str, Any]:
    size = paging.page_size(req, req.world.settings.max_limit)
    found = flavors.page(req.world, req.ctx, _filter(req), size, req.query.get("marker"))
    document = {"flavors": FLAVOR.many(found, req, shape)}
    link = paging.next_link(req, path, len(found), size, found[-1].flavorid if found else "")
    return paging.with_links(document, "flavors_links", link)


def index(req: Request) -> dict[str, Any]:
    """Ids and names."""
    return _list(req, "flavors", "basic")


def detail(req: Request) -> dict[str, Any]:
    """Flavors in full."""
    return _list(req, "flavors/detail", "show")


def show(req: Request) -> dict[str, Any]:
    """One flavor in full."""
    return {"flavor": FLAVOR.one(req.target, req, "show")}


def create(req: Request) -> dict[str, Any]:
    """Add a flavor."""
    body = req.body["flavor"]
    made = flavors.create(req.world, req.ctx, {
        "name": body["name"].strip(), "flavorid": None if body.get("id") is None else str(body["id"]),
        "memory_mb": body["ram"], "vcpus": body["vcpus"], "root_gb": body["disk"],
        "ephemeral_gb": body.get("OS-FLV-EXT-DATA:ephemeral", 0), "swap": body.get("swap", 0),
        "rxtx_factor": float(body.get("rxtx_factor", 1.0)), "is_public": body.get("os-flavor-access:is_public", True),
        "description": body.get("description"),
    })  # fmt: skip
    return {"flavor": FLAVOR.one(made, req, "show")}


def update(req: Request) -> dict[str, Any]:
    """Change the description."""
    changed = flavors.describe(req.world, req.ctx, req.target, req.body["flavor"]["description"])
    return {"flavor": FLAVOR.one(changed, req, "show")}


def delete(req: Request) -> None:
    """Remove a flavor."""
    flavors.delete(req.world, req.target)


def _grants(flavor: FlavorSpec, projects: list[str]) -> dict[str, Any]:
    return {"flavor_access": [{"flavor_id": flavor.flavorid, "tenant_id": project} for project in projects]}


def list_access(req: Request) -> dict[str, Any]:
    """Who may use a private flavor."""
    return _grants(req.target, flavors.access(req.world, req.target))


def add_access(req: Request) -> dict[str, Any]:
    """Let a project use a flavor."""
    granted = flavors.grant(req.world, req.target, req.body["tenant"], refuse_public=req.flag("refuse_public"))
    return _grants(req.target, granted)


def remove_access(req: Request) -> dict[str, Any]:
    """Take the right back."""
    return _grants(req.target, flavors.revoke(req.world, req.target, req.body["tenant"]))


_TENANT = Obj(Field("tenant", Str(1, 255), required=True))

OPS: tuple[Op, ...] = (
    Op("GET", "/flavors", index, query=LIST, errors=(400,)),
    Op("POST", "/flavors", create, policy=_MANAGE + "create", also=(_SPECS,), body=CREATE, errors=(400, 409)),
    Op("GET", "/flavors/detail", detail, also=(_SPECS,), query=LIST, errors=(400,)),
    Op("GET", "/flavors/{id}", show, also=(_SPECS,), target=flavor_of, query=NO_QUERY, errors=(404,)),
    Op(
        "PUT", "/flavors/{id}", update, policy=_MANAGE + "update", policy_first=True, also=(_SPECS,),
        target=flavor_of, body=UPDATE, errors=(400, 404), since="2.55",
    ),
    Op(
        "DELETE", "/flavors/{id}", delete, policy=_MANAGE + "delete", policy_first=True, target=flavor_of, ok=202,
        errors=(404,),
    ),
    Op(
        "POST", "/flavors/{id}/action", add_access, action="addTenantAccess",
        policy=_ACCESS + ":add_tenant_access", policy_first=True, target=flavor_of, body=_TENANT,
        errors=(400, 403, 404, 409), flags={"refuse_public": "2.7"},
    ),
    Op(
        "POST", "/flavors/{id}/action", remove_access, action="removeTenantAccess",
        policy=_ACCESS + ":remove_tenant_access", policy_first=True, target=flavor_of, body=_TENANT,
        errors=(400, 403, 404),
    ),
    Op(
        "GET", "/flavors/{id}/os-flavor-access", list_access, policy=_ACCESS, policy_first=True, target=flavor_of,
        query=NO_QUERY, errors=(404,),
    ),
)  # fmt: skip

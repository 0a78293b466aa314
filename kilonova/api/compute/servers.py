"""/servers: create, list, show, update, delete."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute import server_fields as fields
from kilonova.api.compute.server_view import INDEX, SERVER, links_to
from kilonova.compute import create, delete, listing, lookup, show, update
from kilonova.compute.create import NewServers
from kilonova.compute.lookup import Found
from kilonova.compute.show import Wants
from kilonova.core.errors import Invalid
from kilonova.http import paging
from kilonova.http.op import Answer, Op, Request
from kilonova.http.versions import Since, span

_PREFIX = "os_compute_api:servers:"
_ATTRIBUTES = "os_compute_api:os-extended-server-attributes"
_SHOWN = (
    _ATTRIBUTES,
    _PREFIX + "show:flavor-extra-specs",
    _PREFIX + "show:host_status",
    _PREFIX + "show:host_status:unknown-only",
)
_EXTERNAL = "network:attach_external_network"
_DESTINATION = "compute:servers:create:requested_destination"


class ListInvalid(Invalid):
    """A filter that nobody may use."""

    code, message = "list_invalid", "Invalid filters {names} are specified."


def server_of(req: Request) -> Found:
    """The server in the path."""
    return lookup.find(req.world, req.ctx, req.path["id"])


def _in(req: Request, text: str) -> bool:
    return req.version is None or req.version in span(text)


def wants(req: Request, shape: str) -> Wants:
    """What a representation at this version needs to be read."""
    full = shape in ("show", "detail") or _in(req, "2.75")
    return Wants(
        tags=_in(req, "2.26"),
        extra=_in(req, "2.3") if shape in ("show", "detail") else _in(req, "2.57"),
        host_status=full and _in(req, "2.16"),
        groups=shape != "detail" and _in(req, "2.71"),
        spec=_in(req, "2.96"),
        security_groups=full,
    )


# -- create ----------------------------------------------------------------------------------------------------------


def post(req: Request) -> Answer:
    """Create one or more servers."""
    server = req.body["server"]
    hints = req.body.get("os:scheduler_hints") or req.body.get("OS-SCH-HNT:scheduler_hints") or {}
    _authorize(req, server)
    made = create.create(req.world, req.ctx, _new_servers(req, server, hints))
    if server.get("return_reservation_id"):
        return Answer({"reservation_id": made.reservation_id})
    first = made.servers[0]
    links = links_to(req, "servers", first.uuid)
    document = {
        "id": first.uuid,
        "links": links,
        "OS-DCF:diskConfig": "AUTO" if first.auto_disk_config else "MANUAL",
        "security_groups": server.get("security_groups") or [{"name": "default"}],
    }
    if req.world.settings.enable_instance_password:
        document["adminPass"] = made.admin_password
    return Answer({"server": document}, headers=(("Location", links[0]["href"]),))


def _authorize(req: Request, server: dict[str, Any]) -> None:
    if server.get("trusted_image_certificates"):
        req.authorize(_PREFIX + "create:trusted_certs")
    if server.get("host") or server.get("hypervisor_hostname"):
        req.authorize(_DESTINATION)
    if server.get("block_device_mapping") or server.get("block_device_mapping_v2"):
        req.authorize(_PREFIX + "create:attach_volume")
    if server.get("networks") and server["networks"] != "none":
        req.authorize(_PREFIX + "create:attach_network")


def hints_as_lists(hints: dict[str, Any]) -> dict[str, list[str]]:
    """Scheduler hints with every value a list of strings; keys that begin with `_nova` are dropped."""
    return {
        key: [str(item) for item in (value if isinstance(value, list) else [value])]
        for key, value in hints.items()
        if not key.startswith("_nova") and value is not None
    }


def _new_servers(req: Request, server: dict[str, Any], hints: dict[str, Any]) -> NewServers:
    least = server.get("min_count") or 1
    return NewServers(
        name=server["name"].strip(),
        flavor_ref=str(server["flavorRef"]),
        image_ref=server.get("imageRef") or "",
        min_count=least,
        max_count=server.get("max_count") or least,
        networks=server.get("networks"),
        security_groups=[group["name"] for group in server.get("security_groups") or [] if "name" in group],
        availability_zone=server.get("availability_zone"),
        metadata=server.get("metadata") or {},
        description=server.get("description") if _in(req, "2.19") else server["name"],
        hostname=server.get("hostname"),
        key_name=server.get("key_name"),
        user_data=server.get("user_data"),
        config_drive=bool(server.get("config_drive")),
        admin_password=server.get("adminPass"),
        disk_config=server.get("OS-DCF:diskConfig"),
        access_ip_v4=server.get("accessIPv4"),
        access_ip_v6=server.get("accessIPv6"),
        personality=server.get("personality") or [],
        tags=server.get("tags") or [],
        trusted_certs=server.get("trusted_image_certificates"),
        legacy_devices=server.get("block_device_mapping"),
        devices=server.get("block_device_mapping_v2"),
        hints=hints_as_lists(hints),
        host=server.get("host"),
        node=server.get("hypervisor_hostname"),
        multiattach_allowed=_in(req, "2.60"),
        may_force_host=req.allowed(_PREFIX + "create:forced_host"),
        may_attach_external=req.allowed(_EXTERNAL),
        may_zero_disk=req.allowed(_PREFIX + "create:zero_disk_flavor"),
    )


# -- lists -----------------------------------------------------------------------------------------------------------


def index(req: Request) -> dict[str, Any]:
    """Ids and names."""
    found, asked = _list(req, "index")
    shown = [show.Shown(item.server, item.cell is not None) for item in found]
    return _with_next(req, "servers", {"servers": INDEX.many(shown, req, "show")}, found, asked)


def detail(req: Request) -> dict[str, Any]:
    """Servers in full."""
    found, asked = _list(req, "detail")
    shown = show.several(req.world, req.ctx, found, wants(req, "detail"))
    return _with_next(req, "servers/detail", {"servers": SERVER.many(shown, req, "detail")}, found, asked)


def _with_next(
    req: Request, path: str, document: dict[str, Any], found: list[Found], asked: listing.Asked
) -> dict[str, Any]:
    marker = found[-1].server.uuid if found else ""
    return paging.with_links(document, "servers_links", paging.next_link(req, path, len(found), asked.limit, marker))


def _list(req: Request, name: str) -> tuple[list[Found], listing.Asked]:
    query = req.query
    every = query.get("all_tenants")
    all_tenants = every is not None and listing.boolean("all_tenants", every)
    if all_tenants:
        req.authorize(f"{_PREFIX}{name}:get_all_tenants")
    keys, dirs = _sort(req)
    asked = listing.Asked(
        filters=_filters(req), all_tenants=all_tenants, sort_keys=keys, sort_dirs=dirs,
        limit=paging.page_size(req, req.world.settings.max_limit), marker=query.get("marker"),
        status_strict=_in(req, "2.38"),
    )  # fmt: skip
    return listing.page(req.world, req.ctx, asked), asked


def _sort(req: Request) -> tuple[list[str], list[str]]:
    keys, dirs = req.query.get("sort_key", []), req.query.get("sort_dir", [])
    if len(dirs) > len(keys) > 0:
        return keys, dirs
    ignored = set(fields.IGNORED_SORT_KEYS) | (set() if _in(req, "2.73") else {"locked"})
    kept = [index for index, key in enumerate(keys) if key not in ignored]
    return [keys[index] for index in kept], [dirs[index] for index in kept if index < len(dirs)] if keys else dirs


def _filters(req: Request) -> dict[str, list[str]]:
    may_all = req.allowed(_PREFIX + "allow_all_filters")
    special = {"limit", "marker", "sort_key", "sort_dir", "all_tenants"}
    given = {name: values for name, values in req.query.items() if name not in special}
    if may_all:
        refused = [name for name in given if name.startswith("_") or name in fields.REFUSED_TO_ADMIN]
        if refused:
            raise ListInvalid(names=", ".join(refused))
        known = {*fields.EVERYBODY, *fields.ADMIN_ONLY}
    else:
        known = {name for name, since in fields.EVERYBODY.items() if _in(req, since)}
    late = {name for name, since in fields.ADMIN_FROM.items() if not _in(req, since)}
    return {name: values for name, values in given.items() if name in known - late}


# -- one server ------------------------------------------------------------------------------------------------------


def get(req: Request) -> dict[str, Any]:
    """One server in full."""
    return {"server": shown(req, req.target, "show")}


def shown(req: Request, found: Found, shape: str) -> dict[str, Any]:
    """A server's representation in a shape."""
    one = show.one(req.world, req.ctx, found, wants(req, shape))
    return SERVER.one(one, req, shape, one)


def put(req: Request) -> dict[str, Any]:
    """Change name, addresses, description, host name or the pinned zone."""
    server = req.body["server"]
    changed = update.update(req.world, req.ctx, req.target, server)
    return {"server": shown(req, changed, "update")}


def remove(req: Request) -> None:
    """Delete a server."""
    delete.delete(req.world, req.ctx, req.target)


OPS: tuple[Op, ...] = (
    Op(
        "GET", "/servers", index, policy=_PREFIX + "index", query=fields.LIST, errors=(400, 403),
        also=(_PREFIX + "index:get_all_tenants", _PREFIX + "allow_all_filters"),
    ),
    Op(
        "POST", "/servers", post, policy=_PREFIX + "create", body=fields.CREATE, ok=202, errors=(400, 403, 409),
        also=(
            _PREFIX + "create:forced_host", _DESTINATION, _PREFIX + "create:attach_volume",
            _PREFIX + "create:attach_network", _PREFIX + "create:trusted_certs",
            _PREFIX + "create:zero_disk_flavor", _EXTERNAL,
        ),
    ),
    Op(
        "GET", "/servers/detail", detail, policy=_PREFIX + "detail", query=fields.LIST, errors=(400, 403),
        also=(*_SHOWN, _PREFIX + "detail:get_all_tenants", _PREFIX + "allow_all_filters"),
    ),
    Op(
        "GET", "/servers/{id}", get, policy=_PREFIX + "show", target=server_of, query=fields.NO_QUERY, errors=(404,),
        also=_SHOWN,
    ),
    Op(
        "PUT", "/servers/{id}", put, policy=_PREFIX + "update", target=server_of, body=fields.UPDATE,
        errors=Since((404,), ("2.104", (404, 409))), also=_SHOWN,
    ),
    Op("DELETE", "/servers/{id}", remove, policy=_PREFIX + "delete", target=server_of, ok=204, errors=(404, 409)),
)  # fmt: skip


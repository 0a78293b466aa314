"""/os-hypervisors: the hosts that servers run on, for administrators."""

from __future__ import annotations

from typing import Any

from kilonova.compute import hypervisors
from kilonova.compute.hypervisors import Hypervisor, HypervisorMarkerNotFound, PatternWithPages
from kilonova.core import json
from kilonova.http import paging
from kilonova.http.fields import BOOL, FQDN, Param, Query
from kilonova.http.op import Op, Request
from kilonova.http.paging import LIMIT, MARKER
from kilonova.http.versions import Since
from kilonova.http.views import ABSENT, Getter, Out, View

_RULE = "os_compute_api:os-hypervisors:"

_WITH_SERVERS = Param("with_servers", BOOL, once=True, since="2.53")
LIST = Query(
    (
        Param("limit", LIMIT.type, since="2.33", until="2.52"), Param("limit", LIMIT.type, once=True, since="2.53"),
        Param("marker", MARKER.type, since="2.33", until="2.52"), Param("marker", MARKER.type, once=True, since="2.53"),
        Param("hypervisor_hostname_pattern", FQDN, once=True, since="2.53"), _WITH_SERVERS,
    ),
    strict="2.53",
)  # fmt: skip
ONE = Query((_WITH_SERVERS,), strict="2.53")


def of(name: str) -> Getter:
    """A field of the node itself."""
    return lambda found, req: getattr(found.node, name)


def _service(id_of: str) -> Getter:
    def get(found: Hypervisor, req: Request) -> dict[str, Any]:
        node = found.node
        return {"id": getattr(node, id_of), "host": node.host, "disabled_reason": node.disabled_reason}

    return get


def _servers(found: Hypervisor, req: Request) -> Any:
    if found.servers is None:
        return ABSENT
    return [{"name": server.name, "uuid": server.uuid} for server in found.servers]


def _servers_if_any(found: Hypervisor, req: Request) -> Any:
    return _servers(found, req) or ABSENT


_OLD_FULL = {"full": "-2.87"}

HYPERVISOR = View(
    "hypervisor",
    Out("id", of("id"), until="2.52"),
    Out("id", of("uuid"), since="2.53"),
    Out("hypervisor_hostname", of("hypervisor_hostname")),
    Out("state", lambda found, req: "up" if found.up else "down"),
    Out("status", lambda found, req: "disabled" if found.node.disabled else "enabled"),
    Out("hypervisor_type", of("hypervisor_type"), at={"full": "2.1"}),
    Out("hypervisor_version", of("hypervisor_version"), at={"full": "2.1"}),
    Out("host_ip", of("host_ip"), at={"full": "2.1"}),
    Out("service", _service("service_id"), at={"full": "-2.52"}),
    Out("service", _service("service_uuid"), at={"full": "2.53"}),
    *(
        Out(name, of(name), at=_OLD_FULL)
        for name in (
            "vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "free_ram_mb",
            "free_disk_gb", "current_workload", "running_vms", "disk_available_least",
        )
    ),
    Out("cpu_info", lambda found, req: json.dump_str(found.node.cpu_info), at={"full": "-2.27"}),
    Out("cpu_info", of("cpu_info"), at={"full": "2.28-2.87"}),
    Out("uptime", lambda found, req: None, at={"full": "2.88"}),  # no driver of ours has one
    Out("servers", _servers_if_any, at={"servers": "2.1", "basic": "2.53-2.74", "full": "2.53-2.74"}),
    Out("servers", _servers, at={"basic": "2.75", "full": "2.75"}),
)  # fmt: skip


def _marker(req: Request) -> str | int | None:
    given = req.query.get("marker")
    if given is None or req.flag("by_uuid"):
        return None if given is None else str(given)
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise HypervisorMarkerNotFound(marker=given)
    return int(given)


def _list(req: Request, path: str, shape: str) -> dict[str, Any]:
    query = req.query
    with_servers = query.get("with_servers", False)
    if "hypervisor_hostname_pattern" in query:
        if "limit" in query or "marker" in query:
            raise PatternWithPages
        found = hypervisors.matching(req.world, query["hypervisor_hostname_pattern"], with_servers=with_servers)
        return {"hypervisors": HYPERVISOR.many(found, req, shape)}
    size = paging.page_size(req, req.world.settings.max_limit) if req.flag("paged") else None
    found = hypervisors.page(req.world, size, _marker(req), with_servers=with_servers)
    document = {"hypervisors": HYPERVISOR.many(found, req, shape)}
    if size is None:
        return document
    link = paging.next_link(req, path, len(found), size, _identifier(found[-1], req) if found else "")
    return paging.with_links(document, "hypervisors_links", link)


def _identifier(found: Hypervisor, req: Request) -> str:
    return found.node.uuid if req.flag("by_uuid") else str(found.node.id)


def hypervisor_of(req: Request) -> Hypervisor:
    """The hypervisor in the path."""
    if not req.flag("by_uuid"):
        return hypervisors.by_number(req.world, req.path["id"])
    with_servers = req.query.get("with_servers", False)
    return hypervisors.by_uuid(req.world, req.path["id"], with_servers=with_servers)


def index(req: Request) -> dict[str, Any]:
    """Names and states."""
    return _list(req, "os-hypervisors", "basic")


def detail(req: Request) -> dict[str, Any]:
    """Hypervisors in full."""
    return _list(req, "os-hypervisors/detail", "full")


def show(req: Request) -> dict[str, Any]:
    """One hypervisor in full."""
    return {"hypervisor": HYPERVISOR.one(req.target, req, "full")}


def statistics(req: Request) -> dict[str, Any]:
    """Sums over those that are in use."""
    return {"hypervisor_statistics": hypervisors.statistics(req.world)}


def search(req: Request) -> dict[str, Any]:
    """Those whose host name contains the text in the path."""
    return {"hypervisors": HYPERVISOR.many(hypervisors.matching(req.world, req.path["id"]), req, "basic")}


def servers(req: Request) -> dict[str, Any]:
    """The same with their servers."""
    found = hypervisors.matching(req.world, req.path["id"], with_servers=True)
    return {"hypervisors": HYPERVISOR.many(found, req, "servers")}


def uptime(req: Request) -> dict[str, Any]:
    """How long a hypervisor has been running."""
    told = hypervisors.uptime(req.target)
    return {"hypervisor": HYPERVISOR.one(req.target, req, "basic") | {"uptime": told}}


_LIST_ERRORS = Since[tuple[int, ...]]((), ("2.33", (400,)), ("2.53", (400, 404)))
_LIST_FLAGS = {"paged": "2.33", "by_uuid": "2.53"}
_ONE = "/os-hypervisors/{id}"

OPS: tuple[Op, ...] = (
    Op("GET", "/os-hypervisors", index, policy=_RULE + "list", query=LIST, errors=_LIST_ERRORS, flags=_LIST_FLAGS),
    Op(
        "GET", "/os-hypervisors/detail", detail, policy=_RULE + "list-detail", query=LIST, errors=_LIST_ERRORS,
        flags=_LIST_FLAGS,
    ),
    Op("GET", "/os-hypervisors/statistics", statistics, policy=_RULE + "statistics", until="2.87"),
    Op(
        "GET", _ONE, show, policy=_RULE + "show", policy_first=True, target=hypervisor_of, query=ONE,
        errors=Since((404,), ("2.53", (400, 404))), flags={"by_uuid": "2.53"},
    ),
    Op("GET", _ONE + "/search", search, policy=_RULE + "search", errors=(404,), until="2.52"),
    Op("GET", _ONE + "/servers", servers, policy=_RULE + "servers", errors=(404,), until="2.52"),
    Op(
        "GET", _ONE + "/uptime", uptime, policy=_RULE + "uptime", policy_first=True, target=hypervisor_of,
        errors=(400, 404, 501), until="2.87", flags={"by_uuid": "2.53"},
    ),
)  # fmt: skip

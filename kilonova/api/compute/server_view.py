"""The representation of a server (server-view.md 1): one row per key, with the versions in which each shape has it.

Shapes: show, detail, update (PUT), rebuild. Nothing here reads a database: a getter takes a `Shown`.
"""

from __future__ import annotations

import hashlib
from typing import Any

from kilonova.compute.show import Shown
from kilonova.core import clock, states
from kilonova.core.image_properties import KNOWN_PROPERTIES
from kilonova.core.server import Server
from kilonova.http.op import Request
from kilonova.http.versions import span
from kilonova.http.views import ABSENT, Getter, Out, View, attr

_WITH_PROGRESS = frozenset(("ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"))
_ATTRIBUTES = "os_compute_api:os-extended-server-attributes"

_READ = {"show": "2.1", "detail": "2.1"}
_READ_AND_FULL = {**_READ, "update": "2.75", "rebuild": "2.75"}
_ADMIN = {"show": "2.3", "detail": "2.3", "update": "2.75", "rebuild": "2.75"}


def of(name: str) -> Getter:
    """A field of the server itself."""
    return attr(f"server.{name}")


def links_to(req: Request, collection: str, identifier: str) -> list[dict[str, str]]:
    """Self and bookmark link of a resource."""
    root = req.base_url.rpartition("/")[0]
    project = f"/{req.project_in_url}" if req.project_in_url else ""
    return [
        {"rel": "self", "href": f"{req.collection_url}/{collection}/{identifier}"},
        {"rel": "bookmark", "href": f"{root}{project}/{collection}/{identifier}"},
    ]


def host_id(server: Server) -> str:
    """The host in a form that says only whether two servers of a project share it."""
    if not server.host:
        return ""
    return hashlib.sha224((server.project_id + server.host).encode()).hexdigest()


def _image(shown: Shown, req: Request) -> Any:
    server = shown.server
    if not server.image_ref:
        return ""
    document: dict[str, Any] = {"id": server.image_ref, "links": links_to(req, "images", server.image_ref)[1:]}
    if req.version is not None and req.version in span("2.98"):
        document["properties"] = image_properties(server)
    return document


def image_properties(server: Server) -> dict[str, Any]:
    """The stored image properties of names that are known."""
    stored = server.image_properties
    return {key: value for key, value in stored.items() if key in KNOWN_PROPERTIES and value is not None}


def _flavor(shown: Shown, req: Request) -> dict[str, Any]:
    flavorid = shown.server.flavor["flavorid"]
    return {"id": flavorid, "links": links_to(req, "flavors", flavorid)[1:]}


def _flavor_copy(shown: Shown, req: Request) -> dict[str, Any]:
    flavor = shown.server.flavor
    document = {
        "vcpus": flavor["vcpus"], "ram": flavor["memory_mb"], "disk": flavor["root_gb"],
        "ephemeral": flavor.get("ephemeral_gb", 0), "swap": flavor.get("swap", 0), "original_name": flavor["name"],
    }  # fmt: skip
    if req.allowed("os_compute_api:servers:show:flavor-extra-specs", shown):
        document["extra_specs"] = flavor.get("extra_specs", {})
    return document


def addresses_of(server: Server, *, lean: bool) -> dict[str, list[dict[str, Any]]]:
    """Addresses by network label: per network first the fixed, then the floating ones."""
    fixed: dict[str, list[dict[str, Any]]] = {}
    floating: dict[str, list[dict[str, Any]]] = {}
    for vif in server.network_info:
        label = vif["network"]["label"]
        for kind, known, found in (("fixed", fixed, vif["fixed_ips"]), ("floating", floating, vif["floating_ips"])):
            for entry in found:
                address: dict[str, Any] = {"version": entry["version"], "addr": entry["address"]}
                if not lean:
                    address |= {"OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": vif["mac"]}
                known.setdefault(label, []).append(address)
    return {label: fixed.get(label, []) + floating.get(label, []) for label in [*fixed, *(set(floating) - set(fixed))]}


def _addresses(shown: Shown, req: Request) -> dict[str, Any]:
    server = shown.server
    if server.vm_state == states.BUILDING:
        return {}
    shape_is_lean = req.op.method in ("PUT", "POST") and req.version is not None and req.version not in span("2.75")
    return addresses_of(server, lean=shape_is_lean)


def _updated(shown: Shown, req: Request) -> str | None:
    return clock.iso_z(shown.server.updated_at or clock.utcnow())


def _fault(shown: Shown, req: Request) -> Any:
    fault = shown.fault
    if fault is None or shown.server.status not in ("ERROR", "DELETED"):
        return ABSENT
    document = {"code": fault.code, "created": clock.iso_z(fault.created_at), "message": fault.message}
    if fault.details and (req.ctx.is_admin or fault.code != 500):
        document["details"] = fault.details
    return document


def _progress(shown: Shown, req: Request) -> Any:
    return shown.server.progress if shown.server.status in _WITH_PROGRESS else ABSENT


def _attachments(shown: Shown, req: Request) -> list[dict[str, Any]]:
    if req.version is not None and req.version not in span("2.3"):
        return [{"id": entry["id"]} for entry in shown.server.attachments]
    return [dict(entry) for entry in shown.server.attachments]


def _groups(shown: Shown, req: Request) -> Any:
    names = shown.security_groups
    return ABSENT if not names else [{"name": name} for name in names]


def _instance_name(shown: Shown, req: Request) -> str:
    template: str = req.world.settings.instance_name_template
    return "" if not shown.scheduled else template % shown.server.id


def _host_status(shown: Shown, req: Request) -> Any:
    if req.allowed("os_compute_api:servers:show:host_status", shown):
        return shown.host_status
    unknown_only = shown.host_status == "UNKNOWN" and req.allowed(
        "os_compute_api:servers:show:host_status:unknown-only", shown
    )
    return shown.host_status if unknown_only else ABSENT


def _hints(shown: Shown, req: Request) -> Any:
    return None if shown.spec is None else shown.spec.scheduler_hints


def _pinned(shown: Shown, req: Request) -> Any:
    return None if shown.spec is None else shown.spec.availability_zone


SERVER = View(
    "server",
    Out("id", of("uuid")),
    Out("name", of("display_name")),
    Out("status", of("status")),
    Out("tenant_id", of("project_id")),
    Out("user_id", of("user_id")),
    Out("hostId", lambda shown, req: host_id(shown.server)),
    Out("created", lambda shown, req: clock.iso_z(shown.server.created_at)),
    Out("updated", _updated),
    Out("image", _image),
    Out("flavor", _flavor, until="2.46"),
    Out("flavor", _flavor_copy, since="2.47"),
    Out("addresses", _addresses),
    Out("accessIPv4", lambda shown, req: shown.server.access_ip_v4 or ""),
    Out("accessIPv6", lambda shown, req: shown.server.access_ip_v6 or ""),
    Out("metadata", of("metadata")),
    Out("links", lambda shown, req: links_to(req, "servers", shown.server.uuid)),
    Out("OS-DCF:diskConfig", lambda shown, req: "AUTO" if shown.server.auto_disk_config else "MANUAL"),
    Out("progress", _progress),
    Out("fault", _fault),
    Out("OS-EXT-AZ:availability_zone", lambda shown, req: shown.server.availability_zone or "", at=_READ_AND_FULL),
    Out("config_drive", lambda shown, req: "True" if shown.server.config_drive else "", at=_READ_AND_FULL),
    Out("key_name", of("key_name"), at={**_READ_AND_FULL, "rebuild": "2.54"}),
    Out("OS-SRV-USG:launched_at", lambda shown, req: clock.raw(shown.server.launched_at), at=_READ_AND_FULL),
    Out("OS-SRV-USG:terminated_at", lambda shown, req: clock.raw(shown.server.terminated_at), at=_READ_AND_FULL),
    Out("security_groups", _groups, at=_READ_AND_FULL),
    Out("OS-EXT-STS:task_state", of("task_state"), at=_READ_AND_FULL),
    Out("OS-EXT-STS:vm_state", of("vm_state"), at=_READ_AND_FULL),
    Out("OS-EXT-STS:power_state", of("power_state"), at=_READ_AND_FULL),
    Out("os-extended-volumes:volumes_attached", _attachments, at=_READ_AND_FULL),
    Out("OS-EXT-SRV-ATTR:host", of("host"), at=_READ_AND_FULL, gate=_ATTRIBUTES),
    Out("OS-EXT-SRV-ATTR:hypervisor_hostname", of("node"), at=_READ_AND_FULL, gate=_ATTRIBUTES),
    Out("OS-EXT-SRV-ATTR:instance_name", _instance_name, at=_READ_AND_FULL, gate=_ATTRIBUTES),
    Out(
        "OS-EXT-SRV-ATTR:hostname", of("hostname"), gate=_ATTRIBUTES,
        at={"show": "2.3-2.89", "detail": "2.3-2.89", "update": "2.75-2.89", "rebuild": "2.75-2.89"},
    ),
    Out("OS-EXT-SRV-ATTR:hostname", of("hostname"), since="2.90"),
    Out("OS-EXT-SRV-ATTR:kernel_id", of("kernel_id"), at=_ADMIN, gate=_ATTRIBUTES),
    Out("OS-EXT-SRV-ATTR:ramdisk_id", of("ramdisk_id"), at=_ADMIN, gate=_ATTRIBUTES),
    Out("OS-EXT-SRV-ATTR:launch_index", of("launch_index"), at=_ADMIN, gate=_ATTRIBUTES),
    Out("OS-EXT-SRV-ATTR:reservation_id", of("reservation_id"), at=_ADMIN, gate=_ATTRIBUTES),
    Out("OS-EXT-SRV-ATTR:root_device_name", of("root_device_name"), at=_ADMIN, gate=_ATTRIBUTES),
    Out(
        "OS-EXT-SRV-ATTR:user_data", lambda shown, req: shown.extra.user_data, gate=_ATTRIBUTES,
        at={"show": "2.3", "detail": "2.3", "update": "2.75"},
    ),
    Out("user_data", lambda shown, req: shown.extra.user_data, at={"rebuild": "2.57"}),
    Out("locked", lambda shown, req: bool(shown.server.locked_by), since="2.9"),
    Out("locked_reason", of("locked_reason"), since="2.73"),
    Out("host_status", _host_status, at={"show": "2.16", "detail": "2.16", "update": "2.75", "rebuild": "2.75"}),
    Out("description", of("display_description"), since="2.19"),
    Out("tags", lambda shown, req: list(shown.tags), since="2.26"),
    Out("trusted_image_certificates", lambda shown, req: shown.extra.trusted_certs, since="2.63"),
    Out("server_groups", lambda shown, req: list(shown.groups),
        at={"show": "2.71", "update": "2.71", "rebuild": "2.71"}),
    Out("pinned_availability_zone", _pinned, since="2.96"),
    Out("scheduler_hints", _hints, since="2.100"),
)  # fmt: skip

INDEX = View(
    "server_index",
    Out("id", of("uuid")),
    Out("name", of("display_name")),
    Out("links", lambda shown, req: links_to(req, "servers", shown.server.uuid)),
)

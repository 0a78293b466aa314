"""Creating servers: everything is checked, then one transaction makes the requests and counts the quota.

What is done here is done when the user gets the 202; the rest is the workflow `boot` (workflows.boot).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from kilonova.cells.cells import API
from kilonova.compute import accelerators, boot_devices, boot_networks, guest_rules, images, quotas, zones
from kilonova.compute.boot_devices import Devices
from kilonova.compute.flavors import for_boot as flavor_for_boot
from kilonova.compute.groups import group_of_hint, join
from kilonova.compute.keypairs import for_boot as key_for_boot
from kilonova.compute.names import hostname_of, numbered
from kilonova.compute.waking import wake
from kilonova.compute.world import World
from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.core.errors import Forbidden, Invalid, OverQuota
from kilonova.core.pci.requests import to_text
from kilonova.core.request_spec import FlavorSpec, ImageSpec, RequestSpec
from kilonova.core.server import BlockDevice, Server, ServerExtra
from kilonova.db.queries import journal, requests


class CountsInvalid(Invalid):
    """min_count above max_count."""

    code, message = "counts_invalid", "min_count must be <= max_count"


class MultiCreateInvalid(Invalid):
    """Something only one server can have was asked for several."""

    code, message = "multi_create_invalid", "{what} cannot be used when more than one server is requested."


class ZeroDiskFlavor(Forbidden):
    """A flavor without a root disk needs a volume, or a right of its own."""

    code = "zero_disk_flavor"
    message = "Only volume-backed servers are allowed for flavors with zero disk."


class MetadataOverQuota(OverQuota):
    """Too many metadata items."""

    code, message = "metadata_over_quota", "Maximum number of metadata items exceeds {limit}"


class FilesOverQuota(OverQuota):
    """Too many or too large injected files."""

    code, message = "files_over_quota", "The quota for injected {what} ({limit}) is exceeded."


class CertificatesNeedImage(Invalid):
    """Trusted certificates verify an image, so there must be one."""

    code = "certificates_need_image"
    message = "Image certificate validation is not supported when booting from volume"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewServers:
    """A request for one or more equal servers, as plain values. The may_* are answers of the policy."""

    name: str
    flavor_ref: str
    image_ref: str = ""
    min_count: int = 1
    max_count: int = 1
    networks: list[dict[str, Any]] | str | None = None
    security_groups: list[str] = field(default_factory=list)
    availability_zone: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    description: str | None = None
    hostname: str | None = None
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    admin_password: str | None = None
    disk_config: str | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    personality: list[dict[str, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    trusted_certs: list[str] | None = None
    legacy_devices: list[dict[str, Any]] | None = None
    devices: list[dict[str, Any]] | None = None
    hints: dict[str, list[str]] = field(default_factory=dict)
    host: str | None = None
    node: str | None = None
    multiattach_allowed: bool = True
    may_force_host: bool = False
    may_attach_external: bool = False
    may_zero_disk: bool = False


@dataclass(frozen=True, slots=True)
class Created:
    """What the caller is told: the servers in order, one reservation, and the password of all of them."""

    servers: list[Server]
    reservation_id: str
    admin_password: str


def create(world: World, ctx: Context, new: NewServers) -> Created:
    """Check a request and accept it: rows in the API database, then the workflow `boot` is woken.

    Raises the domain errors of the nouns involved; nothing is left behind when it does.
    """
    if new.min_count > new.max_count:
        raise CountsInvalid
    flavor = flavor_for_boot(world, ctx, new.flavor_ref)
    placed = zones.resolve(world, new.availability_zone, new.host, new.node, may_force=new.may_force_host, ctx=ctx)
    image = images.for_boot(world, ctx, new.image_ref) if new.image_ref else None
    devices = boot_devices.from_request(
        world, ctx, legacy=new.legacy_devices, modern=new.devices, image=image, flavor=flavor,
        multiattach_allowed=new.multiattach_allowed, count=new.max_count,
    )  # fmt: skip
    _check_root(new, flavor, devices)
    _check_limits(world, new)
    boot_image = devices.image or ImageSpec()
    pci_requests = guest_rules.check(flavor, boot_image, world.settings.pci_aliases)
    profile_groups = accelerators.groups_of(world, ctx, flavor)
    wanted = boot_networks.interfaces(world, ctx, new.networks, may_attach_external=new.may_attach_external)
    _check_multi(new, wanted)
    groups = boot_networks.security_groups(world, ctx, new.security_groups)
    most = boot_networks.check_quota(world, ctx, wanted, new.min_count, new.max_count)
    key = key_for_boot(world, ctx, new.key_name)
    group = group_of_hint(world, ctx, new.hints.get("group"))
    spec = RequestSpec(
        project_id=ctx.project_id, user_id=ctx.user_id, flavor=flavor, image=boot_image, is_bfv=devices.is_bfv,
        availability_zone=placed.zone, force_hosts=placed.force_hosts, force_nodes=placed.force_nodes,
        requested_destination=placed.destination, scheduler_hints=new.hints, group=group,
        security_groups=tuple(groups), requested_networks=tuple(wanted), pci_requests=pci_requests,
        requested_resources=profile_groups,
    )  # fmt: skip
    template = _template(world, ctx, new, flavor, boot_image, devices, key, placed.zone)
    password = new.admin_password or ids.new_password(world.settings.password_length)
    return _store(world, ctx, new, spec, template, devices, most, password)


def _check_root(new: NewServers, flavor: FlavorSpec, devices: Devices) -> None:
    if flavor.root_gb == 0 and not devices.is_bfv and not new.may_zero_disk:
        raise ZeroDiskFlavor
    if new.trusted_certs and devices.is_bfv:
        raise CertificatesNeedImage


def _check_limits(world: World, new: NewServers) -> None:
    limits = world.settings.quotas
    if 0 <= limits["metadata_items"] < len(new.metadata):
        raise MetadataOverQuota(limit=limits["metadata_items"])
    if 0 <= limits["injected_files"] < len(new.personality):
        raise FilesOverQuota(what="files", limit=limits["injected_files"])
    for file in new.personality:
        if 0 <= limits["injected_file_path_length"] < len(file["path"]):
            raise FilesOverQuota(what="file path length", limit=limits["injected_file_path_length"])
        if 0 <= limits["injected_file_content_bytes"] < len(file["contents"]) * 3 // 4:
            raise FilesOverQuota(what="file content bytes", limit=limits["injected_file_content_bytes"])


def _check_multi(new: NewServers, wanted: list[boot_networks.Interface]) -> None:
    if new.max_count == 1:
        return
    if any(interface["port"] for interface in wanted):
        raise MultiCreateInvalid(what="A port")
    if any(interface["fixed_ip"] for interface in wanted):
        raise MultiCreateInvalid(what="A fixed IP")
    if new.hostname:
        raise MultiCreateInvalid(what="A hostname")


def _template(
    world: World, ctx: Context, new: NewServers, flavor: FlavorSpec, image: ImageSpec, devices: Devices,
    key: Any, zone: str | None,
) -> tuple[Server, ServerExtra]:  # fmt: skip
    root = next(device for device in devices.devices if device.boot_index == 0)
    properties = image.properties
    server = Server(
        uuid="", project_id=ctx.project_id, user_id=ctx.user_id, display_name=new.name,
        display_description=new.description, hostname=new.hostname or "", availability_zone=zone,
        image_ref=new.image_ref, kernel_id=str(properties.get("kernel_id", "")),
        ramdisk_id=str(properties.get("ramdisk_id", "")), instance_type_id=flavor.id, memory_mb=flavor.memory_mb,
        vcpus=flavor.vcpus, root_gb=flavor.root_gb, ephemeral_gb=flavor.ephemeral_gb,
        reservation_id=ids.new_reservation_id(), key_name=new.key_name, key_data=key.public_key if key else None,
        os_type=properties.get("os_type"), architecture=properties.get("hw_architecture"),
        root_device_name=root.device_name, access_ip_v4=new.access_ip_v4, access_ip_v6=new.access_ip_v6,
        config_drive=new.config_drive or properties.get("img_config_drive") == "mandatory",
        auto_disk_config=_auto_disk_config(new, properties), metadata=new.metadata,
        system_metadata=images.system_metadata(image), flavor=msgspec.to_builtins(flavor),
        security_groups=list(new.security_groups), created_at=clock.utcnow(),
    )  # fmt: skip
    keypairs = [{"name": key.name, "type": key.type, "public_key": key.public_key}] if key else []
    extra = ServerExtra(
        user_data=new.user_data, personality=new.personality, trusted_certs=new.trusted_certs, keypairs=keypairs
    )
    return server, extra


def _auto_disk_config(new: NewServers, properties: dict[str, Any]) -> bool:
    if new.disk_config is not None:
        return new.disk_config == "AUTO"
    return str(properties.get("auto_disk_config", "true")).lower() in ("true", "1", "auto", "yes")


def _store(
    world: World, ctx: Context, new: NewServers, spec: RequestSpec, template: tuple[Server, ServerExtra],
    devices: Devices, most: int, password: str,
) -> Created:  # fmt: skip
    server, extra = template
    if spec.pci_requests:
        extra = msgspec.structs.replace(extra, pci_requests=to_text(spec.pci_requests))
    database, tables = world.database(API)
    workflow = ids.new_uuid()
    with database.write() as connection:
        count = quotas.fit_servers(
            connection, world.settings, ctx, new.min_count, most, server.vcpus, server.memory_mb
        )
        servers = [_numbered(server, index, new) for index in range(count)]
        if spec.group is not None:
            join(connection, world.settings, spec.group.uuid, [made.uuid for made in servers], ctx)
        made = [requests.BuildRequest(one, extra, _own(devices.devices), list(new.tags)) for one in servers]
        requests.insert(connection, made, msgspec.structs.replace(spec, num_instances=count))
        params = {"servers": [one.uuid for one in servers], "password": password}
        row = journal.NewWorkflow(
            id=workflow, name="boot", subject=servers[0].uuid, params=params, context=ctx.to_message()
        )
        journal.insert(connection, tables, row)
    wake(world, API, workflow, ctx)
    return Created(servers, server.reservation_id, password)


def _numbered(server: Server, index: int, new: NewServers) -> Server:
    uuid = ids.new_uuid()
    name = numbered(server.display_name, index) if new.max_count > 1 else server.display_name
    return msgspec.structs.replace(
        server, uuid=uuid, display_name=name, hostname=new.hostname or hostname_of(name, uuid), launch_index=index
    )


def _own(devices: list[BlockDevice]) -> list[BlockDevice]:
    return [msgspec.structs.replace(device, uuid=ids.new_uuid()) for device in devices]



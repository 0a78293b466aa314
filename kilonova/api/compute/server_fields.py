"""Bodies and queries of the servers' operations (microversions.md 2, 3)."""

from __future__ import annotations

from typing import Final

from kilonova.http.fields import (
    BASE64,
    BOOL,
    DESCRIPTION,
    FLAVOR_REF,
    FQDN,
    HOSTNAME,
    IPV4,
    IPV6,
    METADATA,
    NAME,
    POSINT,
    TAG,
    TAGS,
    TRUSTED_CERTS,
    UUID,
    Any_,
    AnyOf,
    Arr,
    Enum,
    Field,
    Int,
    Obj,
    Param,
    Query,
    Raw,
    Str,
    wrap,
)  # fmt: skip
from kilonova.http.paging import LIMIT, MARKER
from kilonova.http.versions import Since

_DEVICE_NAME = Str(1, 255, pattern=r"^[a-zA-Z0-9._/-]*$")
_BDM_UUID = Str(1, 255, pattern=r"^[a-zA-Z0-9._-]*$")

_LEGACY_DEVICE: Final = (
    Field("virtual_name", Str(max=255)),
    Field("volume_id", UUID),
    Field("snapshot_id", UUID),
    Field("volume_size", Int(1, 2147483647)),
    Field("device_name", _DEVICE_NAME),
    Field("delete_on_termination", BOOL),
    Field("no_device", Any_),
    Field("connection_info", Str(max=16777215)),
)

_DEVICE: Final = (
    *_LEGACY_DEVICE,
    Field("source_type", Enum("volume", "image", "snapshot", "blank")),
    Field("uuid", _BDM_UUID),
    Field("image_id", UUID),
    Field("destination_type", Enum("local", "volume")),
    Field("guest_format", Str(max=255)),
    Field("device_type", Str(max=255)),
    Field("disk_bus", Str(max=255)),
    Field("boot_index", Raw({"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$"})),
    Field("tag", TAG, when="2.32-2.32, 2.42-"),
    Field("volume_type", Str(0, 255, null=True), since="2.67"),
)

_NETWORK: Final = Obj(
    Field("fixed_ip", Str(format="ip")),
    Field("port", Str(format="uuid", null=True)),
    Field("uuid", Since(Str(), ("2.37", UUID))),
    Field("tag", TAG, when="2.32-2.36, 2.42-"),
)

_FILE: Final = Obj(Field("path", Str(), required=True), Field("contents", BASE64, required=True))
_USER_DATA: Final = Str(max=65535, format="base64")

_GROUP_HINT: Final = AnyOf(UUID, Arr(UUID))
HINTS: Final = Obj(
    Field("group", _GROUP_HINT),
    Field("different_host", _GROUP_HINT),
    Field("same_host", AnyOf(Str(), Arr(UUID))),
    Field("query", AnyOf(Str(), Raw({"type": "object"}))),
    Field("target_cell", NAME),
    Field("different_cell", AnyOf(Str(), Arr(Str()))),
    Field("build_near_host_ip", Str(format="ip")),
    Field("cidr", Str(pattern=r"^/[0-9a-f.:]+$")),
    open=True,
)

_NEW: Final = Obj(
    Field("name", NAME, required=True),
    Field("flavorRef", FLAVOR_REF, required=True),
    Field("imageRef", AnyOf(UUID, Enum(""))),
    Field("adminPass", Str()),
    Field("metadata", METADATA),
    Field(
        "networks",
        Since(Arr(_NETWORK), ("2.37", AnyOf(Arr(_NETWORK), Enum("auto", "none")))),
        required=Since(False, ("2.37", True)),
    ),
    Field("OS-DCF:diskConfig", Enum("AUTO", "MANUAL")),
    Field("accessIPv4", IPV4),
    Field("accessIPv6", IPV6),
    Field("personality", Arr(_FILE), until="2.56"),
    Field("availability_zone", NAME),
    Field("block_device_mapping", Arr(Obj(*_LEGACY_DEVICE))),
    Field("block_device_mapping_v2", Arr(Obj(*_DEVICE))),
    Field("config_drive", BOOL),
    Field("key_name", NAME),
    Field("min_count", POSINT),
    Field("max_count", POSINT),
    Field("return_reservation_id", BOOL),
    Field("security_groups", Arr(Obj(Field("name", NAME)))),
    Field("user_data", _USER_DATA),
    Field("description", DESCRIPTION, since="2.19"),
    Field("tags", TAGS, since="2.52"),
    Field("trusted_image_certificates", TRUSTED_CERTS, since="2.63"),
    Field("host", FQDN, since="2.74"),
    Field("hypervisor_hostname", FQDN, since="2.74"),
    Field("hostname", Since(HOSTNAME, ("2.94", FQDN)), since="2.90"),
)

CREATE: Final = Obj(
    Field("server", _NEW, required=True),
    Field("os:scheduler_hints", HINTS),
    Field("OS-SCH-HNT:scheduler_hints", HINTS),
)

UPDATE: Final = wrap(
    "server",
    Obj(
        Field("name", NAME),
        Field("OS-DCF:diskConfig", Enum("AUTO", "MANUAL")),
        Field("accessIPv4", IPV4),
        Field("accessIPv6", IPV6),
        Field("description", DESCRIPTION, since="2.19"),
        Field("hostname", Since(HOSTNAME, ("2.94", FQDN)), since="2.90"),
        Field("pinned_availability_zone", Str(1, 255, null=True), since="2.104"),
    ),
)

_SORT_KEYS = (
    "access_ip_v4", "access_ip_v6", "auto_disk_config", "availability_zone", "config_drive", "created_at",
    "display_description", "display_name", "host", "hostname", "image_ref", "instance_type_id", "kernel_id",
    "key_name", "launch_index", "launched_at", "locked_by", "node", "power_state", "progress", "project_id",
    "ramdisk_id", "root_device_name", "task_state", "terminated_at", "updated_at", "user_id", "uuid", "vm_state",
)  # fmt: skip
IGNORED_SORT_KEYS: Final = (
    "architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device", "deleted", "deleted_at",
    "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id", "key_data", "launched_on", "os_type",
    "reservation_id", "root_gb", "memory_mb", "shutdown_terminate", "user_data", "vcpus", "vm_mode",
)  # fmt: skip

SORT_KEY: Final = Enum(
    *_SORT_KEYS,
    ("locked", "2.73"),
    ("locked", "-2.72"),
    *[(key, "-2.74") for key in IGNORED_SORT_KEYS],
)

EVERYBODY: Final = {  # filter → from which version everybody may use it
    "name": "2.1", "status": "2.1", "image": "2.1", "flavor": "2.1", "ip": "2.1", "reservation_id": "2.1",
    "changes-since": "2.1", "ip6": "2.5", "tags": "2.26", "tags-any": "2.26", "not-tags": "2.26",
    "not-tags-any": "2.26", "changes-before": "2.66", "locked": "2.73", "availability_zone": "2.83",
    "config_drive": "2.83", "key_name": "2.83", "created_at": "2.83", "launched_at": "2.83",
    "terminated_at": "2.83", "power_state": "2.83", "task_state": "2.83", "vm_state": "2.83", "progress": "2.83",
    "user_id": "2.83", "hostname": "2.90",
}  # fmt: skip
ADMIN_FROM: Final = dict.fromkeys(("tags", "tags-any", "not-tags", "not-tags-any"), "2.26") | {
    "changes-before": "2.66", "locked": "2.73",
}  # fmt: skip
ADMIN_ONLY: Final = (
    "host", "node", "uuid", "project_id", "tenant_id", "deleted", "soft_deleted", "image_ref", "kernel_id",
    "ramdisk_id", "launch_index", "locked_by", "root_device_name", "access_ip_v4", "access_ip_v6",
    "auto_disk_config", "description", "display_description", "display_name",
)  # fmt: skip
REFUSED_TO_ADMIN: Final = (
    "block_device_mapping", "services", "metadata", "system_metadata", "info_cache", "security_groups", "pci_devices",
)  # fmt: skip

_REGEX = Str(format="regex")
_REGEX_FILTERS = frozenset((
    "name", "flavor", "node", "reservation_id", "availability_zone", "key_name", "hostname", "kernel_id", "ramdisk_id",
    "launch_index", "locked_by", "root_device_name", "access_ip_v4", "access_ip_v6", "description",
    "display_description", "display_name", "ip", "ip6", "created_at", "launched_at", "terminated_at", "power_state",
    "progress", "auto_disk_config", "config_drive",
))  # fmt: skip
_TIMES = frozenset(("changes-since", "changes-before"))


def _filter(name: str) -> Param:
    kind = _REGEX if name in _REGEX_FILTERS else Str(format="date-time") if name in _TIMES else Str()
    return Param(name, kind, many=True, since=ADMIN_FROM.get(name))


LIST: Final = Query(
    (
        LIMIT, MARKER, Param("sort_key", SORT_KEY, many=True), Param("sort_dir", Enum("asc", "desc"), many=True),
        Param("all_tenants", Str()), *[_filter(name) for name in (*EVERYBODY, *ADMIN_ONLY)],
    ),
    strict="2.75",
    open=True,
    passed=lambda name: name.startswith("_") or name in REFUSED_TO_ADMIN,
)  # fmt: skip

NO_QUERY: Final = Query(strict="2.102")

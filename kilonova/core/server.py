"""The server: one row of `instances` as a frozen value, the same in databases, build requests and views."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from kilonova.core import states


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server as the tables keep it; fields are the columns of `instances`, in their order.

    memory_mb in MiB, disks in GiB. network_info: a list of vifs (`compute.networks`). flavor: a FlavorSpec as a map.
    """

    id: int = 0
    uuid: str
    version: int = 1
    project_id: str
    user_id: str
    display_name: str
    display_description: str | None = None
    hostname: str
    vm_state: str = states.BUILDING
    task_state: str | None = "scheduling"
    power_state: int = states.NOSTATE
    progress: int = 0
    host: str | None = None
    node: str | None = None
    launched_on: str | None = None
    compute_id: str | None = None
    availability_zone: str | None = None
    image_ref: str = ""
    kernel_id: str = ""
    ramdisk_id: str = ""
    instance_type_id: int
    memory_mb: int
    vcpus: int
    root_gb: int
    ephemeral_gb: int = 0
    reservation_id: str
    launch_index: int = 0
    key_name: str | None = None
    key_data: str | None = None
    locked_by: str | None = None
    locked_reason: str | None = None
    os_type: str | None = None
    architecture: str | None = None
    root_device_name: str | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    config_drive: bool = False
    auto_disk_config: bool = False
    disable_terminate: bool = False
    hidden: bool = False
    launched_at: datetime | None = None
    terminated_at: datetime | None = None
    deleted: bool = False
    deleted_at: datetime | None = None
    metadata: dict[str, str] = {}
    system_metadata: dict[str, Any] = {}
    flavor: dict[str, Any]
    network_info: list[dict[str, Any]] = []
    security_groups: list[str] = []
    attachments: list[dict[str, Any]] = []
    created_at: datetime
    updated_at: datetime | None = None

    @property
    def status(self) -> str:
        """What the API calls the state."""
        return states.status_of(self.vm_state, self.task_state, deleted=self.deleted)

    @property
    def image_properties(self) -> dict[str, Any]:
        """The image's properties as copied when the server was made."""
        return {key[6:]: value for key, value in self.system_metadata.items() if key.startswith("image_")}


class ServerExtra(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What only few operations need of a server: one row of `instance_extra`.

    numa_topology: what its host has given it, once it is built; pci_requests: what its flavor asked for when it was
    made. Texts of `core.numa.wire` and `core.pci.requests`.
    """

    user_data: str | None = None
    personality: list[dict[str, str]] = []
    trusted_certs: list[str] | None = None
    keypairs: list[dict[str, str]] = []
    numa_topology: str | None = None
    pci_requests: str | None = None


class BlockDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of `block_device_mapping`: where a disk comes from and where it goes. volume_size in GiB."""

    uuid: str
    source_type: str
    destination_type: str
    device_name: str | None = None
    boot_index: int | None = None
    volume_id: str | None = None
    snapshot_id: str | None = None
    image_id: str | None = None
    volume_size: int | None = None
    volume_type: str | None = None
    guest_format: str | None = None
    device_type: str | None = None
    disk_bus: str | None = None
    delete_on_termination: bool = False
    no_device: bool = False
    tag: str | None = None
    attachment_id: str | None = None
    connection_info: str | None = None


class Fault(msgspec.Struct, frozen=True):
    """The last thing that went wrong with a server."""

    code: int
    message: str
    details: str | None
    host: str | None
    created_at: datetime

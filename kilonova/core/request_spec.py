"""What a server asks of the scheduler, and what it answers: plain frozen structs, the same in database, bus and code.

Fields are only ever added, and optional: a stored spec or a message of the release before stays readable.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kilonova.core.pci.requests import PciRequest


class FlavorSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A flavor as the server keeps it. memory and swap in MiB, disks in GiB."""

    id: int
    flavorid: str
    name: str
    memory_mb: int
    vcpus: int
    root_gb: int
    ephemeral_gb: int = 0
    swap: int = 0
    rxtx_factor: float | None = 1.0
    disabled: bool = False
    is_public: bool = True
    description: str | None = None
    extra_specs: dict[str, str] = {}


class ImageSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What of an image matters after it was read once. size in bytes, min_ram in MiB, min_disk in GiB."""

    id: str | None = None
    name: str | None = None
    status: str = "active"
    size: int = 0
    min_ram: int = 0
    min_disk: int = 0
    disk_format: str | None = None
    container_format: str | None = None
    checksum: str | None = None
    owner: str | None = None
    properties: dict[str, Any] = {}


class Destination(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a server must go: all of host, node and cell are optional. aggregates: AND of OR-lists of uuids."""

    host: str | None = None
    node: str | None = None
    cell: str | None = None
    aggregates: tuple[tuple[str, ...], ...] = ()
    forbidden_aggregates: tuple[str, ...] = ()
    allow_cross_cell_move: bool = False


class GroupSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The server group of a request, with the hosts its members are on when the request is made."""

    uuid: str
    policy: str
    rules: dict[str, int] = {}
    hosts: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


class ResourceGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Resources that one provider must have together, and its traits. requester: who asks, and the group's suffix: a
    port or a group of its, a device of a PCI request, a group of a device profile.
    """

    requester: str
    resources: dict[str, int] = {}
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class RequestSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request for `num_instances` equal servers. scheduler_hints: every value is a list of strings."""

    project_id: str
    user_id: str
    flavor: FlavorSpec
    image: ImageSpec = ImageSpec()
    num_instances: int = 1
    is_bfv: bool = False
    availability_zone: str | None = None
    force_hosts: tuple[str, ...] = ()
    force_nodes: tuple[str, ...] = ()
    ignore_hosts: tuple[str, ...] = ()
    requested_destination: Destination | None = None
    scheduler_hints: dict[str, list[str]] = {}
    group: GroupSpec | None = None
    security_groups: tuple[str, ...] = ()
    requested_networks: tuple[dict[str, Any], ...] = ()
    requested_resources: tuple[ResourceGroup, ...] = ()
    pci_requests: tuple[PciRequest, ...] = ()


class Selection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A host for a server. allocation_request is the candidate's JSON as placement gave it, to be PUT as it is."""

    host: str
    node: str
    provider_uuid: str
    cell_uuid: str
    allocation_request: str
    allocation_request_version: str = "1.36"
    availability_zone: str | None = None
    limits: dict[str, float] = {}

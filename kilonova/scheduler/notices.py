"""What others are told of a decision: that hosts are being looked for, and that they were found.

`scheduler.select_destinations.start` and `.end`, with the request as their payload; of a decision that failed there is
no end. Names and version numbers are those of Nova 34.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from kilonova.bus.calls import SelectDestinations
from kilonova.bus.notifications import Notifications, versioned
from kilonova.core.context import Context
from kilonova.core.errors import KilonovaError
from kilonova.core.numa import cpus
from kilonova.core.numa.topology import GuestTopology
from kilonova.core.pci.requests import PciRequest
from kilonova.core.request_spec import Destination, FlavorSpec, ImageSpec, RequestSpec
from kilonova.scheduler.topology import wanted_by

_EVENT: Final = "scheduler.select_destinations"
_UNKNOWN_OF_IMAGES: Final = ("visibility", "protected", "created_at", "updated_at", "direct_url", "virtual_size")
_OF_IMAGES: Final = (
    "id", "name", "status", "size", "min_ram", "min_disk", "disk_format", "container_format", "checksum", "owner",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Notices:
    """Tells of the decisions of the scheduler on `host`."""

    notifications: Notifications
    host: str

    def tell(self, phase: Literal["start", "end"], ctx: Context, asked: SelectDestinations) -> None:
        """Tell of one; costs next to nothing, and never fails."""
        spec, server, event = asked.spec, asked.servers[0], f"{_EVENT}.{phase}"
        send = self.notifications.send
        send(event, lambda: unversioned_payload(spec, server), f"scheduler.{self.host}", versioned=False, ctx=ctx)
        send(event, lambda: payload(spec, server), f"nova-scheduler:{self.host}", versioned=True, ctx=ctx)


def payload(spec: RequestSpec, server: str) -> dict[str, Any]:
    """A request in the versioned format. server: the first that asks."""
    group = spec.group
    return versioned("RequestSpecPayload", "1.1", {
        "instance_uuid": server,
        "project_id": spec.project_id,
        "user_id": spec.user_id,
        "num_instances": spec.num_instances,
        "availability_zone": spec.availability_zone,
        "flavor": versioned("FlavorPayload", "1.4", _flavor(spec.flavor)),
        "image": versioned("ImageMetaPayload", "1.0", _image(spec.image) | {
            "properties": versioned("ImageMetaPropsPayload", "1.20", spec.image.properties),
        }),
        "numa_topology": _numa(_topology(spec), server),
        "pci_requests": versioned("InstancePCIRequestsPayload", "1.0", {
            "instance_uuid": server,
            "requests": [
                versioned("InstancePCIRequestPayload", "1.1", _devices(row)) for row in spec.pci_requests
            ],
        }),
        "requested_destination": _destination(spec.requested_destination),
        "force_hosts": next(iter(spec.force_hosts), None),
        "force_nodes": next(iter(spec.force_nodes), None),
        "ignore_hosts": list(spec.ignore_hosts) or None,
        "instance_group": None if group is None else versioned("ServerGroupPayload", "1.1", {
            "uuid": group.uuid, "name": None, "project_id": spec.project_id, "user_id": spec.user_id,
            "policies": None, "policy": group.policy, "hosts": list(group.hosts), "members": list(group.members),
            "rules": {name: str(value) for name, value in group.rules.items()},
        }),
        "retry": None,
        "scheduler_hints": spec.scheduler_hints,
        "security_groups": list(spec.security_groups),
    })  # fmt: skip


def unversioned_payload(spec: RequestSpec, server: str) -> dict[str, Any]:
    """The same in the older format."""
    flavor = spec.flavor
    return {"request_spec": {
        "num_instances": spec.num_instances,
        "image": _image(spec.image) | {"properties": spec.image.properties},
        "instance_type": {"id": flavor.id} | _flavor(flavor),
        "instance_properties": {
            "uuid": server, "project_id": spec.project_id, "user_id": spec.user_id,
            "availability_zone": spec.availability_zone, "root_gb": flavor.root_gb,
            "ephemeral_gb": flavor.ephemeral_gb, "memory_mb": flavor.memory_mb, "vcpus": flavor.vcpus,
            "numa_topology": _cells(_topology(spec)),
            "pci_requests": {"instance_uuid": server, "requests": [_devices(row) for row in spec.pci_requests]},
        },
    }}  # fmt: skip


def _flavor(flavor: FlavorSpec) -> dict[str, Any]:
    """Projects and the weight of CPUs are nothing that a server keeps."""
    kept = msgspec.structs.asdict(flavor)
    del kept["id"]
    return kept | {"vcpu_weight": 0, "projects": []}


def _image(image: ImageSpec) -> dict[str, Any]:
    """A server keeps of an image what it needs; the rest is empty."""
    return {name: getattr(image, name) for name in _OF_IMAGES} | dict.fromkeys(_UNKNOWN_OF_IMAGES) | {"tags": []}


def _devices(request: PciRequest) -> dict[str, Any]:
    return {
        "request_id": request.id, "alias_name": request.alias, "count": request.count, "spec": list(request.specs),
        "numa_policy": request.numa_policy,
    }  # fmt: skip


def _destination(found: Destination | None) -> Mapping[str, Any] | None:
    if found is None:
        return None
    cell = None
    if found.cell is not None:
        cell = versioned("CellMappingPayload", "2.0", {"uuid": found.cell, "name": None, "disabled": False})
    return versioned("DestinationPayload", "1.0", {
        "host": found.host, "node": found.node, "cell": cell,
        "aggregates": [",".join(some) for some in found.aggregates] or None,
    })  # fmt: skip


def _topology(spec: RequestSpec) -> GuestTopology | None:
    """None as well for a flavor that contradicts itself, for which the decision fails."""
    try:
        return wanted_by(spec).topology
    except KilonovaError:
        return None


def _cells(topology: GuestTopology | None) -> list[dict[str, Any]] | None:
    if topology is None:
        return None
    return [
        {
            "id": cell.id, "cpuset": cpus.members(cell.cpuset), "pcpuset": cpus.members(cell.pcpuset),
            "memory": cell.memory_mb, "pagesize": cell.page_size, "cpu_policy": topology.cpu_policy,
            "cpu_thread_policy": topology.thread_policy, "cpuset_reserved": None, "cpu_topology": None,
            "cpu_pinning_raw": None,
        }
        for cell in topology.cells
    ]  # fmt: skip


def _numa(topology: GuestTopology | None, server: str) -> Mapping[str, Any] | None:
    if topology is None:
        return None
    return versioned("InstanceNUMATopologyPayload", "1.0", {
        "instance_uuid": server, "emulator_threads_policy": topology.emulator_threads,
        "cells": [versioned("InstanceNUMACellPayload", "1.2", cell) for cell in _cells(topology) or ()],
    })  # fmt: skip

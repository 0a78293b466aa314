"""Every operation of the Compute API that exists, in the order of the reference pages."""

from __future__ import annotations

from typing import Final

from kilonova.api.compute import (
    aggregates,
    availability_zone,
    extensions,
    flavor_extra_specs,
    flavors,
    hypervisors,
    keypairs,
    limits,
    quota_class_sets,
    quota_sets,
    server_external_events,
    server_groups,
    server_instance_actions,
    server_ips,
    server_metadata,
    server_tags,
    server_topology,
    server_volume_attachments,
    servers,
    services,
    versions,
)
from kilonova.api.compute.server_actions import console, power
from kilonova.http.op import Op

_MODULES = (
    versions,
    flavors,
    flavor_extra_specs,
    keypairs,
    servers,
    server_instance_actions,
    server_external_events,
    server_metadata,
    server_tags,
    server_topology,
    server_ips,
    server_volume_attachments,
    limits,
    extensions,
    aggregates,
    availability_zone,
    hypervisors,
    quota_class_sets,
    quota_sets,
    server_groups,
    services,
    console,
    power,
)

OPS: Final[tuple[Op, ...]] = tuple(op for module in _MODULES for op in module.OPS)

"""Every operation of the Compute API that exists, in the order of the reference pages."""

from __future__ import annotations

from typing import Final

from kilonova.api.compute import (
    flavor_extra_specs,
    flavors,
    keypairs,
    server_external_events,
    server_instance_actions,
    server_ips,
    server_metadata,
    server_tags,
    server_volume_attachments,
    servers,
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
    server_ips,
    server_volume_attachments,
    console,
    power,
)

OPS: Final[tuple[Op, ...]] = tuple(op for module in _MODULES for op in module.OPS)

"""A server's NUMA topology: what its host has given it, and before that what its flavor and image want."""

from __future__ import annotations

from kilonova.compute.lookup import Found, extra_of
from kilonova.compute.world import World
from kilonova.core.numa.topology import GuestTopology
from kilonova.core.numa.wanted import TopologyInvalid, wanted
from kilonova.core.numa.wire import read_guest


def of_server(world: World, found: Found) -> GuestTopology | None:
    """The topology; None for a server without."""
    text = extra_of(world, found).numa_topology
    if text is not None:
        return read_guest(text)
    server = found.server
    try:
        extra_specs = server.flavor.get("extra_specs") or {}
        return wanted(server.vcpus, server.memory_mb, extra_specs, server.image_properties)
    except TopologyInvalid:  # a server older than the check of it
        return None

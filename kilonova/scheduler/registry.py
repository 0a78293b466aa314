"""Which plug-ins exist, by the class names Nova's operators configure, and which of them the settings ask for.

Others come from installed packages by entry point (`kilonova.scheduler.filters`, `kilonova.scheduler.weighers`): the
entry point's name is what the operator writes, its object a `plugins.Filter` or `plugins.Weigher` row.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TypeVar

from kilonova.core.scheduling import UnknownPlugin
from kilonova.scheduler.filters import (
    affinity_filter,
    anti_affinity_filter,
    capabilities_filter,
    compute_filter,
    image_properties_filter,
)
from kilonova.scheduler.plugins import Filter, RequestFilter, Weigher
from kilonova.scheduler.request_filters import (
    compute_status_filter,
    isolate_aggregates,
    map_az_to_placement_aggregate,
    require_image_type_support,
    require_tenant_aggregate,
    transform_image_metadata,
)
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.weighers import (
    build_failure,
    cpu,
    disk,
    hypervisor_version,
    io_ops,
    num_instances,
    ram,
    server_group,
)

REQUEST_FILTERS: tuple[RequestFilter, ...] = (
    require_tenant_aggregate.REQUEST_FILTER,
    map_az_to_placement_aggregate.REQUEST_FILTER,
    require_image_type_support.REQUEST_FILTER,
    compute_status_filter.REQUEST_FILTER,
    isolate_aggregates.REQUEST_FILTER,
    transform_image_metadata.REQUEST_FILTER,
)

FILTERS: Mapping[str, Filter] = {
    "ComputeFilter": compute_filter.FILTER,
    "ComputeCapabilitiesFilter": capabilities_filter.FILTER,
    "ImagePropertiesFilter": image_properties_filter.FILTER,
    "ServerGroupAntiAffinityFilter": anti_affinity_filter.FILTER,
    "ServerGroupAffinityFilter": affinity_filter.FILTER,
}

WEIGHERS: Mapping[str, Weigher] = {
    "RAMWeigher": ram.WEIGHER,
    "CPUWeigher": cpu.WEIGHER,
    "DiskWeigher": disk.WEIGHER,
    "IoOpsWeigher": io_ops.WEIGHER,
    "NumInstancesWeigher": num_instances.WEIGHER,
    "HypervisorVersionWeigher": hypervisor_version.WEIGHER,
    "BuildFailureWeigher": build_failure.WEIGHER,
    "ServerGroupSoftAffinityWeigher": server_group.SOFT_AFFINITY,
    "ServerGroupSoftAntiAffinityWeigher": server_group.SOFT_ANTI_AFFINITY,
}

_ALL_WEIGHERS = ("all_weighers", "nova.scheduler.weights.all_weighers")

Row = TypeVar("Row", Filter, Weigher)


def enabled_filters(settings: SchedulerSettings) -> tuple[Filter, ...]:
    """The filters of `enabled_filters`, in that order. UnknownPlugin for a name that does not exist."""
    return tuple(
        _lookup(name, FILTERS, "kilonova.scheduler.filters", "enabled_filters", Filter)
        for name in settings.enabled_filters
    )


def enabled_weighers(settings: SchedulerSettings) -> tuple[Weigher, ...]:
    """The weighers of `weight_classes`: all of ours, or those named. UnknownPlugin for a name that does not exist."""
    found: dict[str, Weigher] = {}
    for name in settings.weight_classes:
        rows = (
            WEIGHERS.values()
            if name in _ALL_WEIGHERS
            else (_lookup(name, WEIGHERS, "kilonova.scheduler.weighers", "weight_classes", Weigher),)
        )
        found.update({row.name: row for row in rows})
    return tuple(found.values())


def _lookup(name: str, ours: Mapping[str, Row], entry_group: str, option: str, kind: type[Row]) -> Row:
    short = name.rpartition(".")[2]  # Nova's option also takes a dotted path to the class
    if short in ours:
        return ours[short]
    for entry in entry_points(group=entry_group, name=name):
        row = entry.load()
        if isinstance(row, kind):
            return row
    raise UnknownPlugin(option=option, name=name, known=", ".join(sorted(ours)))

"""Which plug-ins exist, by the class names Nova's operators configure, and which of them the settings ask for.

Others come from installed packages by entry point (`kilonova.scheduler.filters`, `….weighers`, `….request_filters`):
the entry point's name is what the operator writes, its object a row of `plugins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TypeVar

from kilonova.core.scheduling import PluginBroken, UnknownPlugin
from kilonova.scheduler.filters import (
    affinity_filter,
    aggregate_extra_specs_filter,
    aggregate_image_properties_filter,
    aggregate_tenancy_filter,
    aggregate_type_filter,
    all_hosts_filter,
    anti_affinity_filter,
    capabilities_filter,
    cidr_affinity_filter,
    compute_filter,
    image_properties_filter,
    isolated_hosts_filter,
    json_filter,
    load_filters,
    metrics_filter,
    numa_topology_filter,
    other_servers_filter,
    pci_passthrough_filter,
    project_tags_filter,
    restricted_zone_filter,
)
from kilonova.scheduler.plugins import Filter, RequestFilter, Weigher
from kilonova.scheduler.request_filters import (
    accelerators_filter,
    compute_status_filter,
    ephemeral_encryption_filter,
    isolate_aggregates,
    map_az_to_placement_aggregate,
    owner_nova_filter,
    packed_virtqueue_filter,
    remote_managed_ports_filter,
    require_image_type_support,
    require_tenant_aggregate,
    routed_networks_filter,
    tpm_secret_security_filter,
    transform_image_metadata,
    virtio_sound_filter,
)
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.weighers import (
    build_failure,
    cpu,
    cross_cell,
    disk,
    hypervisor_version,
    image_properties,
    io_ops,
    metrics,
    num_instances,
    pci,
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
    accelerators_filter.REQUEST_FILTER,
    packed_virtqueue_filter.REQUEST_FILTER,
    routed_networks_filter.REQUEST_FILTER,
    remote_managed_ports_filter.REQUEST_FILTER,
    ephemeral_encryption_filter.REQUEST_FILTER,
    virtio_sound_filter.REQUEST_FILTER,
    tpm_secret_security_filter.REQUEST_FILTER,
    owner_nova_filter.REQUEST_FILTER,
)

FILTERS: Mapping[str, Filter] = {
    "AggregateImagePropertiesIsolation": aggregate_image_properties_filter.FILTER,
    "AggregateInstanceExtraSpecsFilter": aggregate_extra_specs_filter.FILTER,
    "AggregateIoOpsFilter": load_filters.AGGREGATE_IO_OPS,
    "AggregateMultiTenancyIsolation": aggregate_tenancy_filter.FILTER,
    "AggregateNumInstancesFilter": load_filters.AGGREGATE_NUM_INSTANCES,
    "AggregateTypeAffinityFilter": aggregate_type_filter.FILTER,
    "AllHostsFilter": all_hosts_filter.FILTER,
    "ComputeCapabilitiesFilter": capabilities_filter.FILTER,
    "ComputeFilter": compute_filter.FILTER,
    "DifferentHostFilter": other_servers_filter.DIFFERENT_HOST,
    "ImagePropertiesFilter": image_properties_filter.FILTER,
    "IoOpsFilter": load_filters.IO_OPS,
    "IsolatedHostsFilter": isolated_hosts_filter.FILTER,
    "JsonFilter": json_filter.FILTER,
    "MetricsFilter": metrics_filter.FILTER,
    "NectarAggregateMultiTenancyIsolation": aggregate_tenancy_filter.NECTAR,
    "NUMATopologyFilter": numa_topology_filter.FILTER,
    "NumInstancesFilter": load_filters.NUM_INSTANCES,
    "PciPassthroughFilter": pci_passthrough_filter.FILTER,
    "ProjectTagsFilter": project_tags_filter.FILTER,
    "RestrictedZoneFilter": restricted_zone_filter.FILTER,
    "SameHostFilter": other_servers_filter.SAME_HOST,
    "ServerGroupAffinityFilter": affinity_filter.FILTER,
    "ServerGroupAntiAffinityFilter": anti_affinity_filter.FILTER,
    "SimpleCIDRAffinityFilter": cidr_affinity_filter.FILTER,
}

WEIGHERS: Mapping[str, Weigher] = {
    "RAMWeigher": ram.WEIGHER,
    "CPUWeigher": cpu.WEIGHER,
    "DiskWeigher": disk.WEIGHER,
    "IoOpsWeigher": io_ops.WEIGHER,
    "NumInstancesWeigher": num_instances.WEIGHER,
    "HypervisorVersionWeigher": hypervisor_version.WEIGHER,
    "BuildFailureWeigher": build_failure.WEIGHER,
    "PCIWeigher": pci.WEIGHER,
    "ServerGroupSoftAffinityWeigher": server_group.SOFT_AFFINITY,
    "ServerGroupSoftAntiAffinityWeigher": server_group.SOFT_ANTI_AFFINITY,
    "CrossCellWeigher": cross_cell.WEIGHER,
    "MetricsWeigher": metrics.WEIGHER,
    "ImagePropertiesWeigher": image_properties.WEIGHER,
}

_ALL_FILTERS = frozenset({"all_filters", "nova.scheduler.filters.all_filters"})
_ALL_WEIGHERS = ("all_weighers", "nova.scheduler.weights.all_weighers")

Row = TypeVar("Row", Filter, Weigher, RequestFilter)


def enabled_filters(settings: SchedulerSettings) -> tuple[Filter, ...]:
    """The filters of `enabled_filters`, in that order. UnknownPlugin for a name that does not exist, or that
    `available_filters` does not offer.
    """
    offered = {name.rpartition(".")[2] for name in settings.available_filters}
    if not _ALL_FILTERS & {*settings.available_filters}:
        for name in settings.enabled_filters:
            if name not in offered:
                raise UnknownPlugin(option="enabled_filters", name=name, known=", ".join(sorted(offered)))
    return tuple(
        _lookup(name, FILTERS, "kilonova.scheduler.filters", "enabled_filters", Filter)
        for name in settings.enabled_filters
    )


def enabled_request_filters(settings: SchedulerSettings) -> tuple[RequestFilter, ...]:
    """Ours in their order, then those of other packages that `request_filters` names. UnknownPlugin."""
    group = "kilonova.scheduler.request_filters"
    others = (_lookup(name, {}, group, "request_filters", RequestFilter) for name in settings.request_filters)
    return (*REQUEST_FILTERS, *others)


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
        try:
            row = entry.load()
        except Exception as error:
            raise PluginBroken(option=option, name=name, reason=f"{type(error).__name__}: {error}") from error
        if not isinstance(row, kind):
            raise PluginBroken(option=option, name=name, reason=f"it is a {type(row).__name__}, not a {kind.__name__}")
        return row
    known = sorted({*ours, *entry_points(group=entry_group).names})
    raise UnknownPlugin(option=option, name=name, known=", ".join(known) or "none installed")

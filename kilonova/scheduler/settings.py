"""What an operator can set, as one frozen value. Names and defaults are Nova's, so that a nova.conf means the same.

The pipeline reads this and never the configuration itself: a decision depends on its arguments alone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

LOG = logging.getLogger(__name__)

DEFAULT_FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)
ALL_FILTERS = "nova.scheduler.filters.all_filters"
ALL_WEIGHERS = "nova.scheduler.weights.all_weighers"


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """One field per option; the field's name is the option's. Groups are in `_GROUPS`."""

    # [DEFAULT]
    default_availability_zone: str = "nova"
    service_down_time: int = 60  # seconds without a beat after which a service counts as down
    report_interval: int = 10  # seconds between beats; raises the former when beats come more rarely
    restrict_zones: bool = False
    # [scheduler]
    max_attempts: int = 3
    max_placement_results: int = 1000
    log_hosts: int = 20  # hosts that a filter's log line names
    limit_tenants_to_placement_aggregate: bool = False
    placement_aggregate_required_for_tenants: bool = False
    query_placement_for_image_type_support: bool = False
    enable_isolated_aggregate_filtering: bool = False
    image_metadata_prefilter: bool = False
    query_placement_for_routed_network_aggregates: bool = False
    request_filters: tuple[str, ...] = ()
    # [workarounds]
    disable_fallback_pcpu_query: bool = False
    # [filter_scheduler]
    host_subset_size: int = 1
    shuffle_best_same_weighed_hosts: bool = False
    available_filters: tuple[str, ...] = (ALL_FILTERS,)
    enabled_filters: tuple[str, ...] = DEFAULT_FILTERS
    weight_classes: tuple[str, ...] = (ALL_WEIGHERS,)
    image_properties_default_architecture: str | None = None
    max_io_ops_per_host: int = 8
    max_instances_per_host: int = 50
    isolated_images: tuple[str, ...] = ()
    isolated_hosts: tuple[str, ...] = ()
    restrict_isolated_hosts_to_isolated_images: bool = True
    aggregate_image_properties_isolation_namespace: str | None = None
    aggregate_image_properties_isolation_separator: str = "."
    ram_weight_multiplier: float = 1.0
    cpu_weight_multiplier: float = 1.0
    disk_weight_multiplier: float = 1.0
    io_ops_weight_multiplier: float = -1.0
    hypervisor_version_weight_multiplier: float = 1.0
    num_instances_weight_multiplier: float = 0.0
    build_failure_weight_multiplier: float = 1000000.0
    soft_affinity_weight_multiplier: float = 1.0
    soft_anti_affinity_weight_multiplier: float = 1.0
    cross_cell_move_weight_multiplier: float = 1000000.0
    image_props_weight_multiplier: float = 0.0
    image_props_weight_setting: tuple[tuple[str, float], ...] = ()
    project_tags_allowed: tuple[str, ...] = ("preemptible",)  # tags that ProjectTagsFilter looks at a project for
    pci_weight_multiplier: float = 1.0
    pci_in_placement: bool = False
    # [compute]
    packing_host_numa_cells_allocation_strategy: bool = False
    # [metrics]
    metrics_weight_multiplier: float = 1.0
    metrics_weight_setting: tuple[tuple[str, float], ...] = ()
    metrics_required: bool = True
    metrics_weight_of_unavailable: float = -10000.0


_GROUPS = {
    "default_availability_zone": "DEFAULT",
    "service_down_time": "DEFAULT",
    "report_interval": "DEFAULT",
    "restrict_zones": "DEFAULT",
    "max_attempts": "scheduler",
    "max_placement_results": "scheduler",
    "limit_tenants_to_placement_aggregate": "scheduler",
    "placement_aggregate_required_for_tenants": "scheduler",
    "query_placement_for_image_type_support": "scheduler",
    "enable_isolated_aggregate_filtering": "scheduler",
    "image_metadata_prefilter": "scheduler",
    "query_placement_for_routed_network_aggregates": "scheduler",
    "log_hosts": "scheduler",
    "request_filters": "scheduler",
    "disable_fallback_pcpu_query": "workarounds",
    "packing_host_numa_cells_allocation_strategy": "compute",
}
"""Option to group; an option that is neither here nor in `_METRICS` is in [filter_scheduler]."""
_METRICS = {
    "metrics_weight_multiplier": "weight_multiplier",
    "metrics_weight_setting": "weight_setting",
    "metrics_required": "required",
    "metrics_weight_of_unavailable": "weight_of_unavailable",
}

_RATIOS = ("image_props_weight_setting", "metrics_weight_setting")


def from_conf(conf: Any) -> SchedulerSettings:
    """The settings an oslo.config object holds; lists become tuples."""
    values: dict[str, Any] = {}
    for field in fields(SchedulerSettings):
        group, name = _GROUPS.get(field.name, "filter_scheduler"), field.name
        if name in _METRICS:
            group, name = "metrics", _METRICS[name]
        value = getattr(conf if group == "DEFAULT" else getattr(conf, group), name)
        if field.name in _RATIOS:
            value = ratios(f"[{group}] {name}", value)
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return SchedulerSettings(**values)


def ratios(option: str, parts: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """`name=number` of a list; what is not so written is logged and left out."""
    found: list[tuple[str, float]] = []
    for part in parts:
        name, _, number = part.partition("=")
        try:
            found.append((name.strip(), float(number)))
        except ValueError:
            LOG.error("Ignoring %r in %s: it is to be name=number", part, option)
    return tuple(found)

"""`[compute]`: the agents."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.IntOpt(
        "consecutive_build_service_disable_threshold", default=10,
        help="Build failures counted against a host; 0 counts none.",
    ),
    cfg.IntOpt(
        "resource_provider_association_refresh", default=300, min=0,
        help="Seconds provider traits and aggregates are believed; 0 for ever.",
    ),
    cfg.StrOpt("cpu_shared_set", help="CPUs for shared virtual CPUs."),
    cfg.StrOpt("cpu_dedicated_set", help="CPUs for pinned virtual CPUs."),
    cfg.IntOpt("max_disk_devices_to_attach", default=-1, min=-1, help="Disks a server may have; -1 is no limit."),
    cfg.ListOpt("image_type_exclude_list", default=[], help="Disk formats this host does not offer."),
)

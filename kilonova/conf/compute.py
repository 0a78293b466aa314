"""`[compute]`: the agents."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.ListOpt("image_type_exclude_list", default=[], help="Disk formats this host does not offer."),
    cfg.StrOpt("cpu_shared_set", help="CPUs that floating guest CPUs share, such as 0-3,^1; unset is all of them."),
    cfg.StrOpt("cpu_dedicated_set", help="CPUs that pinned guest CPUs get, one each."),
    cfg.BoolOpt(
        "packing_host_numa_cells_allocation_strategy", default=False,
        help="Fill NUMA cells that are in use before free ones.",
    ),
)

"""`[filter_scheduler]`: filters and weighers."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.IntOpt("host_subset_size", default=1, min=1, help="Best hosts among which one is drawn."),
    cfg.IntOpt(
        "max_io_ops_per_host", default=8, min=0,
        help="Building, resizing or snapshotting servers a host may have (IoOpsFilter).",
    ),
    cfg.IntOpt("max_instances_per_host", default=50, min=1, help="Servers a host may have (NumInstancesFilter)."),
    cfg.MultiStrOpt(
        "available_filters", default=["nova.scheduler.filters.all_filters"], help="Filters that may be enabled.",
    ),
    cfg.ListOpt(
        "enabled_filters",
        default=["ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter",
            "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter"],
        help="Filters, in the order they run.",
    ),
    cfg.ListOpt("weight_classes", default=["nova.scheduler.weights.all_weighers"], help="Weighers."),
    cfg.FloatOpt("ram_weight_multiplier", default=1.0, help="Free memory; negative stacks."),
    cfg.FloatOpt("cpu_weight_multiplier", default=1.0, help="Free CPUs; negative stacks."),
    cfg.FloatOpt("disk_weight_multiplier", default=1.0, help="Free disk; negative stacks."),
    cfg.FloatOpt("hypervisor_version_weight_multiplier", default=1.0, help="Newer hypervisors."),
    cfg.FloatOpt("num_instances_weight_multiplier", default=0.0, help="Many servers."),
    cfg.FloatOpt("io_ops_weight_multiplier", default=-1.0, help="Hosts that are busy; negative avoids them."),
    cfg.FloatOpt("soft_affinity_weight_multiplier", default=1.0, min=0.0, help="Members of the same group."),
    cfg.FloatOpt("soft_anti_affinity_weight_multiplier", default=1.0, min=0.0, help="Few members of the same group."),
    cfg.FloatOpt("build_failure_weight_multiplier", default=1000000.0, help="Recent build failures, avoided."),
    cfg.FloatOpt("cross_cell_move_weight_multiplier", default=1000000.0, help="Staying in the cell."),
    cfg.FloatOpt("pci_weight_multiplier", default=1.0, min=0.0, help="Hosts with few free PCI devices."),
    cfg.BoolOpt("pci_in_placement", default=False, help="Ask placement for PCI devices, too."),
    cfg.FloatOpt("image_props_weight_multiplier", default=0.0, help="Servers with the same image properties."),
    cfg.ListOpt(
        "image_props_weight_setting", default=[],
        help="Image properties that count, as name=ratio; all of them, alike, when empty.",
    ),
    cfg.ListOpt(
        "project_tags_allowed", default=["preemptible"],
        help="Project tags that tie servers to hosts (ProjectTagsFilter).",
    ),
    cfg.BoolOpt("shuffle_best_same_weighed_hosts", default=False, help="Shuffle hosts with the best weight."),
    cfg.StrOpt(
        "image_properties_default_architecture",
        choices=["alpha", "armv6", "armv7l", "armv7b", "aarch64", "cris", "i686", "ia64", "lm32", "m68k",
            "microblaze", "microblazeel", "mips", "mipsel", "mips64", "mips64el", "openrisc", "parisc", "parisc64",
            "ppc", "ppcle", "ppc64", "ppc64le", "ppcemb", "s390", "s390x", "sh4", "sh4eb", "sparc", "sparc64",
            "unicore32", "x86_64", "xtensa", "xtensaeb"],
        help="Architecture of images that name none.",
    ),
    cfg.ListOpt("isolated_images", default=[], help="Images for isolated hosts."),
    cfg.ListOpt("isolated_hosts", default=[], help="Isolated hosts."),
    cfg.BoolOpt(
        "restrict_isolated_hosts_to_isolated_images", default=True,
        help="Whether isolated hosts take other images too.",
    ),
    cfg.StrOpt(
        "aggregate_image_properties_isolation_namespace",
        help="Prefix of the properties AggregateImagePropertiesIsolation looks at.",
    ),
    cfg.StrOpt("aggregate_image_properties_isolation_separator", default=".", help="What stands after that prefix."),
)

METRICS = (
    cfg.FloatOpt("weight_multiplier", default=1.0, help="Metrics of hosts."),
    cfg.ListOpt("weight_setting", default=[], help="Metrics that count, as name=ratio."),
    cfg.BoolOpt("required", default=True, help="Whether a host without one of them ends the scheduling."),
    cfg.FloatOpt(
        "weight_of_unavailable", default=-10000.0, help="The weight of a host without one, where it is not required.",
    ),
)
WORKAROUNDS = (
    cfg.BoolOpt(
        "disable_fallback_pcpu_query", default=False,
        help="Do not look for hosts that report their CPUs as VCPU only when pinned CPUs are asked for.",
    ),
)

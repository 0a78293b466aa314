"""`[scheduler]`: how the scheduler works with placement."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.IntOpt("max_attempts", default=3, min=1, help="Hosts tried for one server."),
    cfg.IntOpt("max_placement_results", default=1000, min=1, help="Most candidates asked of placement."),
    cfg.IntOpt(
        "discover_hosts_in_cells_interval", default=-1, min=-1,
        help="Seconds between looks for new hosts; -1 never.",
    ),
    cfg.BoolOpt(
        "limit_tenants_to_placement_aggregate", default=False,
        help="Projects with aggregates of their own stay in them.",
    ),
    cfg.BoolOpt(
        "placement_aggregate_required_for_tenants", default=False,
        help="Projects without an aggregate of their own get no host.",
    ),
    cfg.BoolOpt(
        "query_placement_for_image_type_support", default=False,
        help="Ask for hosts that support the disk format of the image.",
    ),
    cfg.BoolOpt(
        "enable_isolated_aggregate_filtering", default=False,
        help="Keep out of aggregates that require traits nobody asked for.",
    ),
    cfg.BoolOpt(
        "query_placement_for_routed_network_aggregates", default=False,
        help="Ask for hosts that have the segments of the requested networks.",
    ),
    cfg.ListOpt(
        "request_filters", default=[],
        help="Request filters of installed packages, in the order they run after those that are always there.",
    ),
    cfg.IntOpt("log_hosts", default=20, min=0, help="Hosts that a filter's log line names; the others are counted."),
    cfg.BoolOpt("image_metadata_prefilter", default=False, help="Ask for traits that image properties need."),
    cfg.IntOpt(
        "decisions_kept", default=10000, min=0,
        help="Scheduling decisions that are kept for `kilonova explain`; 0 keeps none.",
    ),
    cfg.IntOpt(
        "decisions_kept_seconds", default=604800, min=0,
        help="Seconds for which a scheduling decision is kept; 0 for as long as its number allows.",
    ),
)

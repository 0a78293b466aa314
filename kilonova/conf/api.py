"""`[api]`: what the compute and metadata APIs answer."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.IntOpt("max_limit", default=1000, min=0, help="Most items in one answer of a list."),
    cfg.StrOpt("compute_link_prefix", help="Address that replaces scheme, host and prefix in links to compute."),
    cfg.StrOpt("glance_link_prefix", help="The same for links to images."),
    cfg.BoolOpt(
        "enable_instance_password", default=True, help="Whether create, rebuild and evacuate answer with adminPass.",
    ),
    cfg.BoolOpt(
        "list_records_by_skipping_down_cells", default=True,
        help="Leave servers of unreachable cells out of lists; otherwise 500.",
    ),
    cfg.BoolOpt("instance_list_per_project_cells", default=False, help="Ask only cells where the project has servers."),
    cfg.StrOpt("dhcp_domain", default="novalocal", help="Domain of the host names that metadata gives."),
    cfg.StrOpt(
        "config_drive_skip_versions",
        default="1.0 2007-01-19 2007-03-01 2007-08-29 2007-10-10 2007-12-15 2008-02-01 2008-09-01",
        help="Metadata versions left out of config drives.",
    ),
    cfg.ListOpt("vendordata_providers", default=["StaticJSON"], help="Sources of vendor data."),
    cfg.StrOpt("vendordata_jsonfile_path", help="File with static vendor data."),
    cfg.IntOpt(
        "metadata_cache_expiration", default=15, min=0, help="Seconds metadata of a server is kept; 0 not at all.",
    ),
    cfg.BoolOpt("use_neutron_default_nets", default=False, help="Default networks of tenant networks proxy."),
)

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
    cfg.StrOpt("dhcp_domain", default="novalocal", help="What is put behind the host names that guests are told."),
    cfg.IntOpt("metadata_cache_expiration", default=15, min=0, help="Seconds to keep what guests are told; 0: not."),
    cfg.ListOpt(
        "vendordata_providers", default=["StaticJSON"], help="Where vendor data come from; only StaticJSON is served.",
    ),
    cfg.StrOpt("vendordata_jsonfile_path", help="A JSON file whose object guests are told as vendor data."),
)

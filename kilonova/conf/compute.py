"""`[compute]`: the agents."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.ListOpt("image_type_exclude_list", default=[], help="Disk formats this host does not offer."),
)

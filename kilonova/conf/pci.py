"""`[pci]`: devices given to guests whole."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.MultiStrOpt("alias", default=[], help="Names that flavors ask for devices by, each a JSON map."),
    cfg.BoolOpt("report_in_placement", default=False, help="Make a provider for each card that guests may get."),
    cfg.MultiStrOpt("device_spec", default=[], help="Devices of the host that guests may get, each a JSON map."),
)

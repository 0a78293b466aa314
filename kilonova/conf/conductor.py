"""`[conductor]`: the conductor."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.IntOpt("workers", help="Conductor processes; unset is the number of CPUs."),
)

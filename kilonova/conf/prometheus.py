"""`[prometheus]`: what a process tells of its work. (`[metrics]` is Nova's, for weights of hosts.)"""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.BoolOpt(
        "enabled", default=True, help="Whether /metrics answers, without a token, where a process serves it.",
    ),
)

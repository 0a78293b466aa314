"""`[database]` (the cell's), `[api_database]` and `[placement_database]`: where the tables are.

Names are oslo.db's.
"""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.StrOpt("connection", secret=True, help="SQLAlchemy URL; unset is an SQLite file under state_path."),
    cfg.IntOpt("max_pool_size", default=5, min=1, help="Connections a process keeps open for each database."),
    cfg.IntOpt("max_overflow", default=50, min=0, help="Further connections it opens under load, and closes again."),
    cfg.IntOpt(
        "pool_timeout", help="Seconds that a request waits for one of them before it is answered 503; unset is 30.",
    ),
)

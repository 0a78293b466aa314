"""What was done to a server, step by step, and what went wrong."""

import sqlalchemy as sa

from kilonova.db.cell_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import BigId, LongText, Timestamp, Uuid

instance_actions = sa.Table(
    "instance_actions",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("instance_uuid", Uuid, nullable=False),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("request_id", sa.String(64), nullable=False),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    sa.Column("start_time", Timestamp, nullable=False),
    sa.Column("finish_time", Timestamp),
    sa.Column("message", sa.String(255)),
    *stamps(),
    sa.Index("instance_actions_instance", "instance_uuid", "created_at"),
    sa.Index("instance_actions_request", "instance_uuid", "request_id"),
)

instance_actions_events = sa.Table(
    "instance_actions_events",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("action_id", sa.ForeignKey("instance_actions.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("event", sa.String(255), nullable=False),
    sa.Column("start_time", Timestamp, nullable=False),
    sa.Column("finish_time", Timestamp),
    sa.Column("result", sa.String(16)),  # Success, Error
    sa.Column("traceback", LongText),
    sa.Column("host", sa.String(255)),
    sa.Column("details", sa.String(255)),
    *stamps(),
)

instance_faults = sa.Table(
    "instance_faults",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    sa.Column("code", sa.Integer, nullable=False),
    sa.Column("message", sa.String(255), nullable=False),
    sa.Column("details", LongText),
    sa.Column("host", sa.String(255)),
    *stamps(),
)

"""Scheduling decisions, kept by number and age, and the servers each was about."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.sql.types import BigId, Timestamp, Uuid

scheduler_decisions = sa.Table(
    "scheduler_decisions",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("created_at", Timestamp, nullable=False, index=True),
    sa.Column("request_id", sa.String(64), index=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("scheduler", sa.String(255), nullable=False),  # which one decided, by name
    sa.Column("outcome", sa.String(20), nullable=False),
    sa.Column("flavor", sa.String(255), nullable=False),
    sa.Column("server_count", sa.Integer, nullable=False),
    sa.Column("host", sa.String(255), nullable=False),  # the first server's; empty when it got none
    sa.Column("milliseconds", sa.Float, nullable=False),
    sa.Column("decision", sa.LargeBinary, nullable=False),  # core.decision.Decision, packed: at most 32 KiB
)

scheduler_decision_servers = sa.Table(
    "scheduler_decision_servers",
    metadata,
    sa.Column("decision_id", BigId, primary_key=True, autoincrement=False),
    sa.Column("server_uuid", Uuid, primary_key=True, index=True),
)

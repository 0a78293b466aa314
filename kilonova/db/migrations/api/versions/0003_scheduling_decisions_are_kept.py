"""scheduling decisions are kept"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kilonova.sql import types

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "scheduler_decision_servers",
        sa.Column("decision_id", types.BigId, autoincrement=False, nullable=False),
        sa.Column("server_uuid", types.Uuid, nullable=False),
        sa.PrimaryKeyConstraint("decision_id", "server_uuid", name=op.f("pk_scheduler_decision_servers")),
    )
    with op.batch_alter_table("scheduler_decision_servers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_scheduler_decision_servers_server_uuid"), ["server_uuid"], unique=False)

    op.create_table(
        "scheduler_decisions",
        sa.Column("id", types.BigId, autoincrement=True, nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("scheduler", sa.String(length=255), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("flavor", sa.String(length=255), nullable=False),
        sa.Column("server_count", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("milliseconds", sa.Float(), nullable=False),
        sa.Column("decision", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scheduler_decisions")),
    )
    with op.batch_alter_table("scheduler_decisions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_scheduler_decisions_created_at"), ["created_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_scheduler_decisions_request_id"), ["request_id"], unique=False)

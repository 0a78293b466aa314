"""The journal of workflows, one and the same in the API database and in every cell database (architecture.md).

One row per workflow: its steps are a JSON log in the row. Every write names owner and epoch; a row count other than
one means that another conductor has adopted the workflow.
"""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.sql.types import BigId, LongText, Timestamp, Uuid


def journal_tables(metadata: sa.MetaData) -> tuple[sa.Table, sa.Table, sa.Table]:
    """(workflows, workflow_events, conductors), added to `metadata`."""
    workflows = sa.Table(
        "workflows",
        metadata,
        sa.Column("id", Uuid, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("subject", Uuid, nullable=False, index=True),
        sa.Column("params", LongText, nullable=False),
        sa.Column("context", LongText, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),  # running, undoing, parked, done, undone, failed
        sa.Column("step", sa.Integer, nullable=False, default=0),
        sa.Column("log", LongText, nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("epoch", sa.Integer, nullable=False, default=0),
        sa.Column("wake_at", sa.BigInteger),  # milliseconds since 1970 by the database's clock
        sa.Column("error", LongText),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Index("workflows_state_owner", "state", "owner"),
    )
    events = sa.Table(
        "workflow_events",
        metadata,
        sa.Column("id", BigId, primary_key=True, autoincrement=True),
        sa.Column("subject", Uuid, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("payload", LongText, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Index("workflow_events_subject", "subject", "name", "key"),
    )
    conductors = sa.Table(
        "conductors",
        metadata,
        sa.Column("id", sa.String(255), primary_key=True),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("started", sa.BigInteger, nullable=False),
        sa.Column("lease_until", sa.BigInteger, nullable=False),  # milliseconds since 1970 by the database's clock
    )
    return workflows, events, conductors

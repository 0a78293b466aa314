"""Host aggregates; an availability zone is an aggregate's metadata key `availability_zone`."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import Uuid

aggregates = sa.Table(
    "aggregates",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    *stamps(),
)

aggregate_hosts = sa.Table(
    "aggregate_hosts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("aggregate_id", sa.ForeignKey("aggregates.id", ondelete="CASCADE"), nullable=False),
    sa.Column("host", sa.String(255), nullable=False, index=True),
    *stamps(),
    sa.UniqueConstraint("aggregate_id", "host", name="aggregate_hosts_host"),
)

aggregate_metadata = sa.Table(
    "aggregate_metadata",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("aggregate_id", sa.ForeignKey("aggregates.id", ondelete="CASCADE"), nullable=False),
    sa.Column("key", sa.String(255), nullable=False),
    sa.Column("value", sa.String(255), nullable=False),
    *stamps(),
    sa.UniqueConstraint("aggregate_id", "key", name="aggregate_metadata_key"),
    sa.Index("aggregate_metadata_value", "key", "value"),
)

"""Which cell holds what: cells, hosts, servers."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import Uuid

cell_mappings = sa.Table(
    "cell_mappings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", sa.String(255)),
    sa.Column("transport_url", sa.Text, nullable=False),
    sa.Column("database_connection", sa.Text, nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    *stamps(),
)

host_mappings = sa.Table(
    "host_mappings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("host", sa.String(255), nullable=False, unique=True),
    sa.Column("cell_uuid", Uuid, sa.ForeignKey("cell_mappings.uuid"), nullable=False, index=True),
    *stamps(),
)

instance_mappings = sa.Table(
    "instance_mappings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("instance_uuid", Uuid, nullable=False, unique=True),
    sa.Column("cell_uuid", Uuid),  # null until the scheduler has chosen a host
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("queued_for_delete", sa.Boolean, nullable=False, default=False),
    # what the server counts against quotas: kept here so that counting and creating are one transaction
    sa.Column("vcpus", sa.Integer, nullable=False, default=0),
    sa.Column("memory_mb", sa.Integer, nullable=False, default=0),
    *stamps(),
    sa.Index("instance_mappings_project", "project_id", "queued_for_delete"),
)

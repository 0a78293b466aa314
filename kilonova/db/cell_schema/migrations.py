"""Moves of servers between hosts; the uuid is a consumer in placement while a move is under way."""

import sqlalchemy as sa

from kilonova.db.cell_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import Uuid

migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    sa.Column("migration_type", sa.String(16), nullable=False),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("source_compute", sa.String(255)),
    sa.Column("source_node", sa.String(255)),
    sa.Column("dest_compute", sa.String(255)),
    sa.Column("dest_node", sa.String(255)),
    sa.Column("dest_host", sa.String(255)),
    sa.Column("old_instance_type_id", sa.Integer),
    sa.Column("new_instance_type_id", sa.Integer),
    sa.Column("memory_total", sa.BigInteger),
    sa.Column("memory_processed", sa.BigInteger),
    sa.Column("memory_remaining", sa.BigInteger),
    sa.Column("disk_total", sa.BigInteger),
    sa.Column("disk_processed", sa.BigInteger),
    sa.Column("disk_remaining", sa.BigInteger),
    sa.Column("cross_cell_move", sa.Boolean, nullable=False, default=False),
    sa.Column("hidden", sa.Boolean, nullable=False, default=False),
    sa.Column("user_id", sa.String(255)),
    sa.Column("project_id", sa.String(255)),
    *stamps(),
)

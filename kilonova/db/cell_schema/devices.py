"""Block devices and console tokens of servers."""

import sqlalchemy as sa

from kilonova.db.cell_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import LongText, Uuid

block_device_mapping = sa.Table(
    "block_device_mapping",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    sa.Column("source_type", sa.String(16), nullable=False),
    sa.Column("destination_type", sa.String(16), nullable=False),
    sa.Column("device_name", sa.String(255)),
    sa.Column("boot_index", sa.Integer),
    sa.Column("volume_id", Uuid, index=True),
    sa.Column("snapshot_id", Uuid),
    sa.Column("image_id", Uuid),
    sa.Column("volume_size", sa.Integer),
    sa.Column("volume_type", sa.String(255)),
    sa.Column("guest_format", sa.String(255)),
    sa.Column("device_type", sa.String(255)),
    sa.Column("disk_bus", sa.String(255)),
    sa.Column("delete_on_termination", sa.Boolean, nullable=False, default=False),
    sa.Column("no_device", sa.Boolean, nullable=False, default=False),
    sa.Column("tag", sa.String(60)),
    sa.Column("attachment_id", Uuid),
    sa.Column("connection_info", LongText),
    *stamps(),
)

console_auth_tokens = sa.Table(
    "console_auth_tokens",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("console_type", sa.String(255), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("port", sa.Integer, nullable=False),
    sa.Column("internal_access_path", sa.String(255)),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    sa.Column("access_url_base", sa.String(255)),
    sa.Column("expires", sa.BigInteger, nullable=False),
    *stamps(),
)

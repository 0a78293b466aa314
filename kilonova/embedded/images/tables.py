"""What the image service keeps in its database; the bytes are files (see `files`)."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.embedded.store import Rows
from kilonova.sql.types import Json, Timestamp

metadata = sa.MetaData()

IMAGES = Rows(
    sa.Table(
        "images",
        metadata,
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.String(255), index=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("visibility", sa.String(16), nullable=False),
        sa.Column("owner", sa.String(255), index=True),
        sa.Column("container_format", sa.String(32)),
        sa.Column("disk_format", sa.String(32)),
        sa.Column("size", sa.BigInteger),
        sa.Column("virtual_size", sa.BigInteger),
        sa.Column("checksum", sa.String(32)),
        sa.Column("os_hash_algo", sa.String(16)),
        sa.Column("os_hash_value", sa.String(128)),
        sa.Column("min_disk", sa.Integer, nullable=False),
        sa.Column("min_ram", sa.Integer, nullable=False),
        sa.Column("protected", sa.Boolean, nullable=False),
        sa.Column("os_hidden", sa.Boolean, nullable=False),
        sa.Column("tags", Json, nullable=False),
        sa.Column("properties", Json, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
    )
)

MEMBERS = Rows(
    sa.Table(
        "image_members",
        metadata,
        sa.Column("image_id", sa.String(36), primary_key=True),
        sa.Column("member_id", sa.String(255), primary_key=True, index=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
    ),
    key="image_id",
)

"""The tables of the embedded volume service. Sizes are in GiB. Knows nothing of requests or wire formats."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.embedded.store import Rows
from kilonova.sql.types import Json, Timestamp, Uuid

METADATA = sa.MetaData()


def _table(name: str, *columns: Any) -> sa.Table:
    return sa.Table(
        name, METADATA,
        sa.Column("id", Uuid, primary_key=True),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp),
        *columns,
    )  # fmt: skip


def _owned(name: str, *columns: Any) -> sa.Table:
    return _table(
        name,
        sa.Column("project_id", sa.String(255), nullable=False, index=True),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("description", sa.String(255)),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        *columns,
    )


TYPES = _table(
    "volume_types",
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("description", sa.String(255)),
    sa.Column("is_public", sa.Boolean, nullable=False),
    sa.Column("extra_specs", Json, nullable=False),
)
VOLUMES = _owned(
    "volumes",
    sa.Column("type_id", Uuid, sa.ForeignKey("volume_types.id", ondelete="RESTRICT"), nullable=False, index=True),
    sa.Column("availability_zone", sa.String(255), nullable=False),
    sa.Column("bootable", sa.Boolean, nullable=False),
    sa.Column("multiattach", sa.Boolean, nullable=False),
    sa.Column("readonly", sa.Boolean),
    sa.Column("snapshot_id", Uuid),
    sa.Column("source_volid", Uuid),
    sa.Column("image_metadata", Json),
)
SNAPSHOTS = _owned(
    "snapshots",
    sa.Column("volume_id", Uuid, sa.ForeignKey("volumes.id", ondelete="RESTRICT"), nullable=False, index=True),
)
ATTACHMENTS = _table(
    "attachments",
    sa.Column("volume_id", Uuid, sa.ForeignKey("volumes.id", ondelete="RESTRICT"), nullable=False, index=True),
    sa.Column("project_id", sa.String(255), nullable=False, index=True),
    sa.Column("instance_uuid", Uuid, index=True),
    sa.Column("status", sa.String(32), nullable=False),
    sa.Column("attach_mode", sa.String(8), nullable=False),
    sa.Column("mountpoint", sa.String(255)),
    sa.Column("attached_host", sa.String(255)),
    sa.Column("connector", Json),
    sa.Column("attached_at", Timestamp),
)
QUOTAS = sa.Table(
    "quotas", METADATA,
    sa.Column("project_id", sa.String(255), primary_key=True),
    sa.Column("limits", Json, nullable=False),
)  # fmt: skip

types = Rows(TYPES)
volumes = Rows(VOLUMES)
snapshots = Rows(SNAPSHOTS)
attachments = Rows(ATTACHMENTS)
quotas = Rows(QUOTAS, key="project_id")

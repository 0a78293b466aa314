"""Server groups: policy and members."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import LongText, Uuid

instance_groups = sa.Table(
    "instance_groups",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False, index=True),
    *stamps(),
)

instance_group_policy = sa.Table(
    "instance_group_policy",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("group_id", sa.ForeignKey("instance_groups.id", ondelete="CASCADE"), nullable=False, unique=True),
    sa.Column("policy", sa.String(255), nullable=False),
    sa.Column("rules", LongText, nullable=False),
)

instance_group_member = sa.Table(
    "instance_group_member",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("group_id", sa.ForeignKey("instance_groups.id", ondelete="CASCADE"), nullable=False),
    sa.Column("instance_uuid", Uuid, nullable=False, index=True),
    *stamps(),
    sa.UniqueConstraint("group_id", "instance_uuid", name="instance_group_member_instance"),
)

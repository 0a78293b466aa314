"""What was asked for: the request spec for good, the build request until the server has a cell."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps
from kilonova.sql.types import LongText, Uuid

request_specs = sa.Table(
    "request_specs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("instance_uuid", Uuid, nullable=False, unique=True),
    sa.Column("spec", LongText, nullable=False),  # core.request_spec.RequestSpec as JSON
    *stamps(),
)

build_requests = sa.Table(
    "build_requests",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("instance_uuid", Uuid, nullable=False, unique=True),
    sa.Column("project_id", sa.String(255), nullable=False, index=True),
    sa.Column("instance", LongText, nullable=False),  # the future row of `instances` as JSON
    sa.Column("block_device_mappings", LongText, nullable=False),
    sa.Column("tags", LongText, nullable=False),
    *stamps(),
)

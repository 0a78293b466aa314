"""Limits that differ from the configured defaults."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps

quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("resource", sa.String(255), nullable=False),
    sa.Column("hard_limit", sa.Integer, nullable=False),
    *stamps(),
    sa.UniqueConstraint("project_id", "resource", name="quotas_resource"),
)

project_user_quotas = sa.Table(
    "project_user_quotas",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("resource", sa.String(255), nullable=False),
    sa.Column("hard_limit", sa.Integer, nullable=False),
    *stamps(),
    sa.UniqueConstraint("project_id", "user_id", "resource", name="project_user_quotas_resource"),
)

quota_classes = sa.Table(
    "quota_classes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("class_name", sa.String(255), nullable=False),
    sa.Column("resource", sa.String(255), nullable=False),
    sa.Column("hard_limit", sa.Integer, nullable=False),
    *stamps(),
    sa.UniqueConstraint("class_name", "resource", name="quota_classes_resource"),
)

quota_locks = sa.Table(
    "quota_locks",
    metadata,
    sa.Column("project_id", sa.String(255), primary_key=True),  # locked while a request of the project is counted
    sa.Column("taken", sa.Integer, nullable=False, default=0),
)

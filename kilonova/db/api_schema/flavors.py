"""Flavors, their extra specs and who may see the private ones."""

import sqlalchemy as sa

from kilonova.db.api_schema.metadata import metadata
from kilonova.db.columns import stamps

flavors = sa.Table(
    "flavors",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("flavorid", sa.String(255), nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("root_gb", sa.Integer, nullable=False),
    sa.Column("ephemeral_gb", sa.Integer, nullable=False, default=0),
    sa.Column("swap", sa.Integer, nullable=False, default=0),
    sa.Column("vcpu_weight", sa.Integer),
    sa.Column("rxtx_factor", sa.Double, default=1.0),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("is_public", sa.Boolean, nullable=False, default=True),
    sa.Column("description", sa.Text),
    *stamps(),
)

flavor_extra_specs = sa.Table(
    "flavor_extra_specs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("flavor_id", sa.ForeignKey("flavors.id", ondelete="CASCADE"), nullable=False),
    sa.Column("key", sa.String(255), nullable=False),
    sa.Column("value", sa.String(255)),
    *stamps(),
    sa.UniqueConstraint("flavor_id", "key", name="flavor_extra_specs_key"),
)

flavor_projects = sa.Table(
    "flavor_projects",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("flavor_id", sa.ForeignKey("flavors.id", ondelete="CASCADE"), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    *stamps(),
    sa.UniqueConstraint("flavor_id", "project_id", name="flavor_projects_project"),
)

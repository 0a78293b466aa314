"""initial"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from kilonova.sql import types

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "change_heads",
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("slot", name=op.f("pk_change_heads")),
    )
    op.create_table(
        "changes",
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("what", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("slot", "revision", "position", name=op.f("pk_changes")),
    )
    op.create_table(
        "consumer_types",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consumer_types")),
        sa.UniqueConstraint("name", name=op.f("uq_consumer_types_name")),
    )
    op.create_table(
        "resource_classes",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_classes")),
        sa.UniqueConstraint("name", name=op.f("uq_resource_classes_name")),
    )
    op.create_table(
        "resource_providers",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("root_id", sa.Integer(), nullable=True),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.ForeignKeyConstraint(["parent_id"], ["resource_providers.id"], name=op.f("fk_resource_providers_parent_id")),
        sa.ForeignKeyConstraint(["root_id"], ["resource_providers.id"], name=op.f("fk_resource_providers_root_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_providers")),
        sa.UniqueConstraint("name", name=op.f("uq_resource_providers_name")),
        sa.UniqueConstraint("uuid", name=op.f("uq_resource_providers_uuid")),
    )
    with op.batch_alter_table("resource_providers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_resource_providers_parent_id"), ["parent_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_resource_providers_root_id"), ["root_id"], unique=False)

    op.create_table(
        "traits",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_traits")),
        sa.UniqueConstraint("name", name=op.f("uq_traits_name")),
    )
    op.create_table(
        "consumers",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("uuid", types.Uuid, nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("consumer_type_id", sa.Integer(), nullable=True),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.ForeignKeyConstraint(
            ["consumer_type_id"], ["consumer_types.id"], name=op.f("fk_consumers_consumer_type_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consumers")),
        sa.UniqueConstraint("uuid", name=op.f("uq_consumers_uuid")),
    )
    with op.batch_alter_table("consumers", schema=None) as batch_op:
        batch_op.create_index("consumers_project_user", ["project_id", "user_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_consumers_consumer_type_id"), ["consumer_type_id"], unique=False)

    op.create_table(
        "inventories",
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.Column("min_unit", sa.Integer(), nullable=False),
        sa.Column("max_unit", sa.Integer(), nullable=False),
        sa.Column("step_size", sa.Integer(), nullable=False),
        sa.Column(
            "allocation_ratio",
            sa.Float(precision=53)
            .with_variant(mysql.DOUBLE(asdecimal=False), "mariadb")
            .with_variant(mysql.DOUBLE(asdecimal=False), "mysql"),
            nullable=False,
        ),
        sa.Column("capacity", sa.BigInteger(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.ForeignKeyConstraint(["class_id"], ["resource_classes.id"], name=op.f("fk_inventories_class_id")),
        sa.ForeignKeyConstraint(["provider_id"], ["resource_providers.id"], name=op.f("fk_inventories_provider_id")),
        sa.PrimaryKeyConstraint("provider_id", "class_id", name=op.f("pk_inventories")),
    )
    with op.batch_alter_table("inventories", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_inventories_class_id"), ["class_id"], unique=False)

    op.create_table(
        "provider_aggregates",
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("aggregate", types.Uuid, nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name=op.f("fk_provider_aggregates_provider_id")
        ),
        sa.PrimaryKeyConstraint("provider_id", "aggregate", name=op.f("pk_provider_aggregates")),
    )
    with op.batch_alter_table("provider_aggregates", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_provider_aggregates_aggregate"), ["aggregate"], unique=False)

    op.create_table(
        "provider_traits",
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("trait_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["resource_providers.id"], name=op.f("fk_provider_traits_provider_id")
        ),
        sa.ForeignKeyConstraint(["trait_id"], ["traits.id"], name=op.f("fk_provider_traits_trait_id")),
        sa.PrimaryKeyConstraint("provider_id", "trait_id", name=op.f("pk_provider_traits")),
    )
    with op.batch_alter_table("provider_traits", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_provider_traits_trait_id"), ["trait_id"], unique=False)

    op.create_table(
        "allocations",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("consumer_id", sa.Integer(), nullable=False),
        sa.Column("provider_id", sa.Integer(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("created_at", types.Timestamp, nullable=False),
        sa.Column("updated_at", types.Timestamp, nullable=False),
        sa.ForeignKeyConstraint(["class_id"], ["resource_classes.id"], name=op.f("fk_allocations_class_id")),
        sa.ForeignKeyConstraint(["consumer_id"], ["consumers.id"], name=op.f("fk_allocations_consumer_id")),
        sa.ForeignKeyConstraint(["provider_id"], ["resource_providers.id"], name=op.f("fk_allocations_provider_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
        sa.UniqueConstraint("consumer_id", "provider_id", "class_id", name="allocations_consumer_provider_class"),
    )
    with op.batch_alter_table("allocations", schema=None) as batch_op:
        batch_op.create_index("allocations_provider_class", ["provider_id", "class_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_allocations_class_id"), ["class_id"], unique=False)

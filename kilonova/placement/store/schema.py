"""The tables of Placement's database.

`inventories.used` is the sum of the allocations of its provider and class, kept in the same transaction, so that a
claim is a conditional update. `inventories.capacity` is the floor of (total - reserved) * ratio, stored, so that every
reader uses the same integer. `changes` and `change_heads` are the log by which snapshots stay current (see
`store.changes`).
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from kilonova.core import clock
from kilonova.sql.types import Timestamp, Uuid, new_metadata

metadata = new_metadata()

Ratio = sa.Float(53).with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")
"""Double precision everywhere: the capacity computed from it must not differ between databases."""


def _stamps() -> tuple[sa.Column[Any], sa.Column[Any]]:
    return (
        sa.Column("created_at", Timestamp, nullable=False, default=clock.utcnow),
        sa.Column("updated_at", Timestamp, nullable=False, default=clock.utcnow, onupdate=clock.utcnow),
    )


def _named(table: str) -> sa.Table:
    return sa.Table(
        table,
        metadata,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        *_stamps(),
    )


traits = _named("traits")
resource_classes = _named("resource_classes")
consumer_types = _named("consumer_types")

resource_providers = sa.Table(
    "resource_providers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("generation", sa.Integer, nullable=False, default=0),
    # A root names itself; null only between the two statements that create a root.
    sa.Column("root_id", sa.ForeignKey("resource_providers.id"), index=True),
    sa.Column("parent_id", sa.ForeignKey("resource_providers.id"), index=True),
    *_stamps(),
)

inventories = sa.Table(
    "inventories",
    metadata,
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("class_id", sa.ForeignKey("resource_classes.id"), primary_key=True, index=True),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False),
    sa.Column("min_unit", sa.Integer, nullable=False),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False),
    sa.Column("allocation_ratio", Ratio, nullable=False),
    sa.Column("capacity", sa.BigInteger, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False, default=0),
    *_stamps(),
)

provider_traits = sa.Table(
    "provider_traits",
    metadata,
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("trait_id", sa.ForeignKey("traits.id"), primary_key=True, index=True),
)

provider_aggregates = sa.Table(
    "provider_aggregates",
    metadata,
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("aggregate", Uuid, primary_key=True, index=True),
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("uuid", Uuid, nullable=False, unique=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("consumer_type_id", sa.ForeignKey("consumer_types.id"), index=True),
    *_stamps(),
    sa.Index("consumers_project_user", "project_id", "user_id"),
)

allocations = sa.Table(
    "allocations",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("consumer_id", sa.ForeignKey("consumers.id"), nullable=False),
    sa.Column("provider_id", sa.ForeignKey("resource_providers.id"), nullable=False),
    sa.Column("class_id", sa.ForeignKey("resource_classes.id"), nullable=False, index=True),
    sa.Column("used", sa.Integer, nullable=False),
    *_stamps(),
    sa.UniqueConstraint("consumer_id", "provider_id", "class_id", name="allocations_consumer_provider_class"),
    sa.Index("allocations_provider_class", "provider_id", "class_id"),
)

change_heads = sa.Table(
    "change_heads",
    metadata,
    sa.Column("slot", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
)

changes = sa.Table(
    "changes",
    metadata,
    sa.Column("slot", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    # No foreign key: the log outlives the provider. 0 stands for the catalogue of names.
    sa.Column("provider_id", sa.Integer, nullable=False),
    # See `changes.What`.
    sa.Column("what", sa.SmallInteger, nullable=False),
)

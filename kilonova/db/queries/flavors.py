"""Flavors with their extra specs, as the value a server keeps."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.request_spec import FlavorSpec
from kilonova.db.api_schema import flavor_extra_specs, flavor_projects, flavors
from kilonova.sql.engine import Database

_BY_FLAVORID = sa.select(flavors).where(flavors.c.flavorid == sa.bindparam("b_id"))
_SPECS = sa.select(flavor_extra_specs.c.key, flavor_extra_specs.c.value).where(
    flavor_extra_specs.c.flavor_id == sa.bindparam("b_id")
)


def spec_of(row: Any, extra_specs: dict[str, str]) -> FlavorSpec:
    """The value of a row of `flavors`."""
    return FlavorSpec(
        id=row.id, flavorid=row.flavorid, name=row.name, memory_mb=row.memory_mb, vcpus=row.vcpus,
        root_gb=row.root_gb, ephemeral_gb=row.ephemeral_gb, swap=row.swap, rxtx_factor=row.rxtx_factor,
        disabled=bool(row.disabled), is_public=bool(row.is_public), description=row.description,
        extra_specs=extra_specs,
    )  # fmt: skip


def read(connection: Connection, flavorid: str) -> FlavorSpec | None:
    """A flavor by the id users know, or None."""
    row = connection.execute(_BY_FLAVORID, {"b_id": flavorid}).first()
    if row is None:
        return None
    return spec_of(row, {pair[0]: pair[1] for pair in connection.execute(_SPECS, {"b_id": row.id})})


def get(database: Database, flavorid: str) -> FlavorSpec | None:
    """The same on a connection of its own."""
    with database.read() as connection:
        return read(connection, flavorid)


_PROJECTS = sa.select(flavor_projects.c.project_id).where(flavor_projects.c.flavor_id == sa.bindparam("b_id"))


def projects_of(database: Database, flavor_id: int) -> set[str]:
    """The projects that a private flavor is granted to."""
    with database.read() as connection:
        return set(connection.execute(_PROJECTS, {"b_id": flavor_id}).scalars())


_ANY = sa.select(flavors.c.id).limit(1)
_INSERT = sa.insert(flavors)


def any_ever(database: Database) -> bool:
    """Whether there is any flavor."""
    with database.read() as connection:
        return connection.execute(_ANY).first() is not None


def insert(connection: Connection, values: dict[str, Any]) -> int:
    """Add a flavor; answers its number. IntegrityError when name or flavorid are taken."""
    row = {"created_at": clock.utcnow(), **values}
    key = connection.execute(_INSERT, row).inserted_primary_key
    assert key is not None
    return int(key[0])

"""Flavors with their extra specs and grants, as the value a server keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.core.request_spec import FlavorSpec
from kilonova.db.api_schema import flavor_extra_specs, flavor_projects, flavors
from kilonova.sql.engine import Connection, Database

_F, _S, _P = flavors.c, flavor_extra_specs.c, flavor_projects.c

_BY_FLAVORID = sa.select(flavors).where(_F.flavorid == sa.bindparam("b_id"))
_SPECS = sa.select(_S.flavor_id, _S.key, _S.value).where(_S.flavor_id.in_(sa.bindparam("b_ids", expanding=True)))
_PROJECTS = sa.select(_P.project_id).where(_P.flavor_id == sa.bindparam("b_id")).order_by(_P.id)
_ANY = sa.select(_F.id).limit(1)
_INSERT = sa.insert(flavors)
_DESCRIBE = (
    sa.update(flavors)
    .where(_F.id == sa.bindparam("b_id"))
    .values(description=sa.bindparam("b_text"), updated_at=sa.bindparam("b_now"))
)
_KEEP = sa.select(_F.id).where(_F.id == sa.bindparam("b_id")).with_for_update()  # SQLite leaves the clause out
_DELETE = sa.delete(flavors).where(_F.id == sa.bindparam("b_id"))
_SET_SPEC = (
    sa.update(flavor_extra_specs)
    .where(sa.and_(_S.flavor_id == sa.bindparam("b_id"), _S.key == sa.bindparam("b_key")))
    .values(value=sa.bindparam("b_value"), updated_at=sa.bindparam("b_now"))
)
_ADD_SPEC = sa.insert(flavor_extra_specs)
_DROP_SPEC = sa.delete(flavor_extra_specs).where(
    sa.and_(_S.flavor_id == sa.bindparam("b_id"), _S.key == sa.bindparam("b_key"))
)
_GRANT = sa.insert(flavor_projects)
_REVOKE = sa.delete(flavor_projects).where(
    sa.and_(_P.flavor_id == sa.bindparam("b_id"), _P.project_id == sa.bindparam("b_project"))
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
    return None if row is None else spec_of(row, _specs(connection, [row.id]).get(row.id, {}))


def get(database: Database, flavorid: str) -> FlavorSpec | None:
    """The same on a connection of its own."""
    with database.read() as connection:
        return read(connection, flavorid)


def _specs(connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    for flavor, key, value in connection.execute(_SPECS, {"b_ids": list(ids)}):
        found.setdefault(flavor, {})[key] = value
    return found


@dataclass(frozen=True, slots=True)
class FlavorFilter:
    """Which flavors. public: only public (True), only private (False), all (None); with `project`, also those granted
    to it. min_ram in MiB, min_disk in GiB. name: a regular expression. sort: a column."""

    public: bool | None = True
    project: str | None = None
    disabled: bool | None = None
    min_ram: int | None = None
    min_disk: int | None = None
    name: str | None = None
    sort: str = "flavorid"
    descending: bool = False


def page(database: Database, wanted: FlavorFilter, limit: int, marker: FlavorSpec | None) -> list[FlavorSpec]:
    """At most `limit` flavors after the marker, in order; ties are decided by the number."""
    conditions: list[Any] = []
    if wanted.public is not None:
        public: Any = _F.is_public == (sa.true() if wanted.public else sa.false())
        if wanted.project is not None:
            granted = sa.exists().where(sa.and_(_P.flavor_id == _F.id, _P.project_id == wanted.project))
            public = sa.or_(public, granted)
        conditions.append(public)
    if wanted.disabled is not None:
        conditions.append(_F.disabled == (sa.true() if wanted.disabled else sa.false()))
    if wanted.min_ram is not None:
        conditions.append(_F.memory_mb >= wanted.min_ram)
    if wanted.min_disk is not None:
        conditions.append(_F.root_gb >= wanted.min_disk)
    if wanted.name is not None:
        conditions.append(_F.name.regexp_match(wanted.name))
    column = flavors.c[wanted.sort]
    statement = sa.select(flavors).where(*conditions)
    statement = statement.order_by(column.desc() if wanted.descending else column.asc(), _F.id)
    with database.read() as connection:
        rows = connection.execute(statement).all()
        if marker is not None:
            at = next((index for index, row in enumerate(rows) if row.id == marker.id), len(rows))
            rows = rows[at + 1 :]
        rows = rows[:limit]
        specs = _specs(connection, [row.id for row in rows])
        return [spec_of(row, specs.get(row.id, {})) for row in rows]


def projects_of(database: Database, flavor_id: int) -> list[str]:
    """The projects that a private flavor is granted to, in the order of the grants."""
    with database.read() as connection:
        return list(connection.execute(_PROJECTS, {"b_id": flavor_id}).scalars())


def any_ever(database: Database) -> bool:
    """Whether there is any flavor."""
    with database.read() as connection:
        return connection.execute(_ANY).first() is not None


def insert(connection: Connection, values: Mapping[str, Any]) -> int:
    """Add a flavor; answers its number. IntegrityError when name or flavorid are taken."""
    key = connection.execute(_INSERT, {"created_at": clock.utcnow(), **values}).inserted_primary_key
    assert key is not None
    return int(key[0])


def taken(error: Exception) -> bool:
    """Whether a unique value is there already."""
    return isinstance(error, sa.exc.IntegrityError)


def keep(connection: Connection, flavor_id: int) -> bool:
    """Keep a flavor from change and deletion until the transaction ends; False when it is gone."""
    return connection.execute(_KEEP, {"b_id": flavor_id}).first() is not None


def describe(connection: Connection, flavor_id: int, text: str | None) -> None:
    """Set the description."""
    connection.execute(_DESCRIBE, {"b_id": flavor_id, "b_text": text, "b_now": clock.utcnow()})


def delete(connection: Connection, flavor_id: int) -> None:
    """Remove a flavor with its specs and grants."""
    connection.execute(_DELETE, {"b_id": flavor_id})


def set_specs(connection: Connection, flavor_id: int, specs: Mapping[str, str]) -> None:
    """Set some extra specs, new or not."""
    now = clock.utcnow()
    for key, value in sorted(specs.items()):
        values = {"b_id": flavor_id, "b_key": key, "b_value": value, "b_now": now}
        if connection.execute(_SET_SPEC, values).rowcount == 0:
            connection.execute(_ADD_SPEC, {"flavor_id": flavor_id, "key": key, "value": value, "created_at": now})


def drop_spec(connection: Connection, flavor_id: int, key: str) -> bool:
    """Remove an extra spec; False when there was none."""
    return connection.execute(_DROP_SPEC, {"b_id": flavor_id, "b_key": key}).rowcount == 1


def grant(connection: Connection, flavor_id: int, project: str) -> None:
    """Let a project use a private flavor. IntegrityError when it may already."""
    connection.execute(_GRANT, {"flavor_id": flavor_id, "project_id": project, "created_at": clock.utcnow()})


def revoke(connection: Connection, flavor_id: int, project: str) -> bool:
    """Take a grant back; False when there was none."""
    return connection.execute(_REVOKE, {"b_id": flavor_id, "b_project": project}).rowcount == 1

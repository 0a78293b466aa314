"""Resource providers and their trees.

A tree's shape changes only under the lock of its root's row, so that a child cannot be added to a tree that is being
moved. Names and parents do not move the generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.placement.errors import (
    BadRequest,
    DuplicateName,
    DuplicateUuid,
    GenerationConflict,
    ProviderHasChildren,
    ProviderInUse,
    ProviderNotFound,
)
from kilonova.placement.store.changes import What
from kilonova.placement.store.schema import (
    allocations,
    inventories,
    provider_aggregates,
    provider_traits,
    resource_providers,
)
from kilonova.placement.store.transactions import Race, Transaction, inserted, matched


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider as the API shows it; a root's parent is None and its root is itself."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str
    updated_at: datetime


class Own(NamedTuple):
    """A provider's own row."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int


_parent = resource_providers.alias("parent")
_root = resource_providers.alias("root")
_SHOWN = (
    sa.select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        resource_providers.c.name,
        resource_providers.c.generation,
        _parent.c.uuid,
        _root.c.uuid,
        resource_providers.c.updated_at,
    )
    .select_from(resource_providers)
    .join(_root, _root.c.id == resource_providers.c.root_id)
    .outerjoin(_parent, _parent.c.id == resource_providers.c.parent_id)
    .order_by(resource_providers.c.id)
)
_BY_UUID = _SHOWN.where(resource_providers.c.uuid == sa.bindparam("u"))
_BY_NAME = _SHOWN.where(resource_providers.c.name == sa.bindparam("n"))
_member = resource_providers.alias("member")
_TREE = _SHOWN.join(_member, _member.c.root_id == resource_providers.c.root_id).where(
    _member.c.uuid == sa.bindparam("u")
)
_ROW = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    resource_providers.c.name,
    resource_providers.c.generation,
    resource_providers.c.parent_id,
    resource_providers.c.root_id,
).where(resource_providers.c.uuid == sa.bindparam("u"))
_ROW_LOCKED = _ROW.with_for_update()
_LOCK = sa.select(resource_providers.c.id).where(resource_providers.c.id == sa.bindparam("i")).with_for_update()
_CLASH = sa.select(resource_providers.c.uuid, resource_providers.c.name).where(
    sa.or_(resource_providers.c.uuid == sa.bindparam("u"), resource_providers.c.name == sa.bindparam("n"))
)
_INSERT = sa.insert(resource_providers)
_SET_ROOT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("i"))
    .values(root_id=sa.bindparam("r"))
)
_SET_PARENT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("i"))
    .values(parent_id=sa.bindparam("parent", type_=sa.Integer))
)
_SET_NAME = (
    sa.update(resource_providers).where(resource_providers.c.id == sa.bindparam("i")).values(name=sa.bindparam("n"))
)
_MEMBERS = sa.select(resource_providers.c.id, resource_providers.c.parent_id).where(
    resource_providers.c.root_id == sa.bindparam("r")
)
_BUMP = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("i"))
    .values(generation=resource_providers.c.generation + 1)
)
_BUMP_FROM = _BUMP.where(resource_providers.c.generation == sa.bindparam("g"))
_CHILD = sa.select(resource_providers.c.id).where(resource_providers.c.parent_id == sa.bindparam("i")).limit(1)
_HELD = sa.select(allocations.c.id).where(allocations.c.provider_id == sa.bindparam("i")).limit(1)
_DELETES = tuple(
    sa.delete(table).where(table.c.provider_id == sa.bindparam("i"))
    for table in (inventories, provider_traits, provider_aggregates)
)
_DELETE = sa.delete(resource_providers).where(resource_providers.c.id == sa.bindparam("i"))


def show(connection: Connection, uuid: str) -> Provider:
    """ProviderNotFound when there is none."""
    row = connection.execute(_BY_UUID, {"u": uuid}).first()
    if row is None:
        raise ProviderNotFound(uuid=uuid)
    return Provider(*row)


def named(connection: Connection, name: str) -> list[Provider]:
    """The provider of that name, or none."""
    return [Provider(*row) for row in connection.execute(_BY_NAME, {"n": name})]


def with_uuid(connection: Connection, uuid: str) -> list[Provider]:
    """The provider of that UUID, or none."""
    return [Provider(*row) for row in connection.execute(_BY_UUID, {"u": uuid})]


def tree_of(connection: Connection, uuid: str) -> list[Provider]:
    """The whole tree that the provider belongs to; empty when there is no such provider."""
    return [Provider(*row) for row in connection.execute(_TREE, {"u": uuid})]


def locked(transaction: Transaction, uuid: str) -> Own:
    """The provider's own row, locked; ProviderNotFound."""
    row = transaction.connection.execute(_ROW_LOCKED, {"u": uuid}).first()
    if row is None:
        raise ProviderNotFound(uuid=uuid)
    return Own(*row)


def compare(transaction: Transaction, uuid: str, generation: int | None) -> Own:
    """Lock a provider and compare its generation with the caller's (None: do not). GenerationConflict."""
    row = locked(transaction, uuid)
    if generation is not None and row.generation != generation:
        raise GenerationConflict(uuid=uuid, actual=row.generation, given=generation)
    return row


def advance(transaction: Transaction, uuid: str, generation: int | None, *, what: What = What.WHOLE) -> Own:
    """Lock a provider that is about to change, compare its generation with the caller's (None: do not) and raise it.

    Answers the row as it was before. GenerationConflict, ProviderNotFound.
    """
    row = compare(transaction, uuid, generation)
    if matched(_BUMP_FROM, transaction.connection, {"i": row.id, "g": row.generation}) != 1:
        raise Race
    transaction.touch(row.id, what)
    return row


def create(transaction: Transaction, uuid: str, name: str, parent_uuid: str | None) -> Provider:
    """A new provider of generation 0. DuplicateName, DuplicateUuid; BadRequest for a parent that does not exist."""
    connection = transaction.connection
    if parent_uuid == uuid:
        start = f'Unable to create resource provider "{name}", {uuid}'
        raise BadRequest(f"{start}: parent provider UUID cannot be same as UUID.")
    for row in connection.execute(_CLASH, {"u": uuid, "n": name}):
        raise DuplicateUuid(uuid=uuid) if row.uuid == uuid else DuplicateName(name=name)
    parent = None if parent_uuid is None else _parent_row(transaction, parent_uuid)
    now = clock.utcnow()
    stamps = {"created_at": now, "updated_at": now}
    id_ = inserted(_INSERT, connection, {
        "uuid": uuid, "name": name, "generation": 0, **stamps,
        "parent_id": None if parent is None else parent.id,
        "root_id": None if parent is None else parent.root_id,
    })  # fmt: skip
    transaction.touch(id_)
    if parent is None:
        connection.execute(_SET_ROOT, {"i": id_, "r": id_})
        return Provider(id_, uuid, name, 0, None, uuid, now)
    return show(connection, uuid)


def update(
    transaction: Transaction, uuid: str, name: str, *, parent: tuple[str | None] | None, reparenting: bool
) -> Provider:
    """Rename, and set the parent when `parent` holds one (or None for: become a root).

    Before microversion 1.37 (`reparenting` False) a parent can only be set where there was none.
    """
    row = locked(transaction, uuid)
    connection = transaction.connection
    if name != row.name:
        if any(other.uuid != uuid for other in connection.execute(_CLASH, {"u": uuid, "n": name})):
            raise DuplicateName(name=name)
        connection.execute(_SET_NAME, {"i": row.id, "n": name})
        transaction.touch(row.id)
    if parent is not None:
        _set_parent(transaction, row, parent[0], reparenting)
    return show(connection, uuid)


def delete(transaction: Transaction, uuid: str) -> None:
    """The provider with its inventories, traits and aggregate links. ProviderHasChildren, ProviderInUse."""
    try:
        row = locked(transaction, uuid)
    except ProviderNotFound:
        raise ProviderNotFound(f"No resource provider with uuid {uuid} found for delete") from None
    connection = transaction.connection
    if connection.execute(_CHILD, {"i": row.id}).first() is not None:
        raise ProviderHasChildren(uuid=uuid)
    if connection.execute(_HELD, {"i": row.id}).first() is not None:
        raise ProviderInUse(uuid=uuid)
    for statement in _DELETES:
        connection.execute(statement, {"i": row.id})
    connection.execute(_SET_ROOT, {"i": row.id, "r": None})  # a row that names itself cannot go on every database
    connection.execute(_DELETE, {"i": row.id})
    transaction.touch(row.id)


def _parent_row(transaction: Transaction, uuid: str) -> Own:
    """The parent-to-be, with its whole tree's shape locked."""
    row = transaction.connection.execute(_ROW, {"u": uuid}).first()
    if row is None:
        raise BadRequest(f"parent provider UUID does not exist: {uuid}")
    transaction.connection.execute(_LOCK, {"i": row.root_id})
    again = transaction.connection.execute(_ROW, {"u": uuid}).first()
    if again is None or again.root_id != row.root_id:
        raise Race
    return Own(*again)


def _set_parent(transaction: Transaction, row: Own, parent_uuid: str | None, reparenting: bool) -> None:
    connection = transaction.connection
    if parent_uuid is None:
        if row.parent_id is None:
            return
        if not reparenting:
            raise BadRequest("un-parenting a provider is not currently allowed.")
        new_parent: int | None = None
        new_root = row.id
    else:
        parent = _parent_row(transaction, parent_uuid)
        if parent.id == row.parent_id:
            return
        if row.parent_id is not None and not reparenting:
            raise BadRequest("re-parenting a provider is not currently allowed.")
        new_parent, new_root = parent.id, parent.root_id
    connection.execute(_LOCK, {"i": row.root_id})
    subtree = _subtree(connection, row.id, row.root_id)
    if new_parent in subtree:
        raise BadRequest(
            f"creating loop in the provider tree is not allowed. {parent_uuid} is {row.uuid} or one of its descendants."
        )
    connection.execute(_SET_PARENT, {"i": row.id, "parent": new_parent})
    connection.execute(_SET_ROOT, [{"i": id_, "r": new_root} for id_ in sorted(subtree)])
    for id_ in subtree:
        transaction.touch(id_)
    transaction.touch(new_root)
    transaction.touch(row.root_id)


def _subtree(connection: Connection, top: int, root: int) -> set[int]:
    """The ids at and below `top` in the tree of `root`."""
    children: dict[int | None, list[int]] = {}
    for id_, parent_id in connection.execute(_MEMBERS, {"r": root}):
        children.setdefault(parent_id, []).append(id_)
    found, todo = set(), [top]
    while todo:
        id_ = todo.pop()
        found.add(id_)
        todo.extend(children.get(id_, ()))
    return found

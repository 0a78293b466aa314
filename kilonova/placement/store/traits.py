"""Traits: the catalogue's custom part, and which provider has which."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.placement.errors import BadRequest, NoSuch, Refused
from kilonova.placement.store import providers
from kilonova.placement.store.names import Names, is_custom
from kilonova.placement.store.schema import provider_traits, traits
from kilonova.placement.store.transactions import Transaction

_OF = (
    sa.select(traits.c.name)
    .join(provider_traits, provider_traits.c.trait_id == traits.c.id)
    .where(provider_traits.c.provider_id == sa.bindparam("p"))
    .order_by(traits.c.id)
)
_IDS_OF = sa.select(provider_traits.c.trait_id).where(provider_traits.c.provider_id == sa.bindparam("p"))
_ADD = sa.insert(provider_traits)
_TAKE = sa.delete(provider_traits).where(
    provider_traits.c.provider_id == sa.bindparam("p"), provider_traits.c.trait_id == sa.bindparam("t")
)
_BY_NAME = sa.select(traits.c.id).where(traits.c.name == sa.bindparam("n")).with_for_update()
_ASSOCIATED = sa.select(traits.c.name).where(
    sa.exists().where(provider_traits.c.trait_id == traits.c.id)
)
_HOLDER = sa.select(provider_traits.c.provider_id).where(provider_traits.c.trait_id == sa.bindparam("t")).limit(1)
_CREATE = sa.insert(traits)
_DELETE = sa.delete(traits).where(traits.c.id == sa.bindparam("t"))


def of(connection: Connection, provider_id: int) -> list[str]:
    """The provider's traits in the order they were created: standard ones before custom ones."""
    return list(connection.execute(_OF, {"p": provider_id}).scalars())


def associated(connection: Connection) -> set[str]:
    """The traits that some provider has."""
    return set(connection.execute(_ASSOCIATED).scalars())


def replace(transaction: Transaction, uuid: str, generation: int | None, wanted: Sequence[str], names: Names) -> int:
    """Make the provider have exactly these traits; the new generation. BadRequest for unknown names."""
    unknown = sorted(name for name in wanted if name not in names.trait_ids)
    if unknown:
        raise BadRequest(f"No such trait {', '.join(unknown)}.")
    row = providers.advance(transaction, uuid, generation)
    have = set(transaction.connection.execute(_IDS_OF, {"p": row.id}).scalars())
    want = {names.trait_ids[name] for name in wanted}
    if have - want:
        transaction.connection.execute(_TAKE, [{"p": row.id, "t": id_} for id_ in sorted(have - want)])
    if want - have:
        rows = [{"provider_id": row.id, "trait_id": id_} for id_ in sorted(want - have)]
        transaction.connection.execute(_ADD, rows)
    return int(row.generation) + 1


def create(transaction: Transaction, name: str) -> bool:
    """Make a custom trait when it is missing; whether it was."""
    if transaction.connection.execute(_BY_NAME, {"n": name}).first() is not None:
        return False
    transaction.connection.execute(_CREATE, {"name": name})
    transaction.touch_names()
    return True


def delete(transaction: Transaction, name: str) -> None:
    """Remove a custom trait. BadRequest for a standard one, NoSuch, Refused when a provider has it."""
    row = transaction.connection.execute(_BY_NAME, {"n": name}).first()
    if row is None:
        raise NoSuch(f"No such trait: {name}.")
    if not is_custom(name):
        raise BadRequest(f"Cannot delete standard trait {name}.")
    if transaction.connection.execute(_HOLDER, {"t": row.id}).first() is not None:
        raise Refused(f"The trait {name} is in use by a resource provider.")
    transaction.connection.execute(_DELETE, {"t": row.id})
    transaction.touch_names()


def stamp(names: Names, name: str) -> datetime:
    """When the trait was last changed; NoSuch."""
    try:
        return names.trait_stamps[name]
    except KeyError:
        raise NoSuch(f"No such trait: {name}.") from None

"""Resource classes: the custom part can be made, renamed and deleted."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.placement.errors import BadRequest, NoSuch, Refused
from kilonova.placement.store.names import is_custom
from kilonova.placement.store.schema import inventories, resource_classes
from kilonova.placement.store.transactions import Transaction

_BY_NAME = sa.select(resource_classes.c.id).where(resource_classes.c.name == sa.bindparam("n")).with_for_update()
_CREATE = sa.insert(resource_classes)
_RENAME = (
    sa.update(resource_classes).where(resource_classes.c.id == sa.bindparam("i")).values(name=sa.bindparam("new"))
)
_USER = sa.select(inventories.c.provider_id).where(inventories.c.class_id == sa.bindparam("i"))
_DELETE = sa.delete(resource_classes).where(resource_classes.c.id == sa.bindparam("i"))


def ensure(transaction: Transaction, name: str) -> bool:
    """Make a custom class when it is missing; whether it was."""
    if transaction.connection.execute(_BY_NAME, {"n": name}).first() is not None:
        return False
    transaction.connection.execute(_CREATE, {"name": name})
    transaction.touch_names()
    return True


def create(transaction: Transaction, name: str) -> None:
    """Make a custom class; Refused when it exists."""
    if not ensure(transaction, name):
        raise Refused(f"Conflicting resource class already exists: {name}.")


def rename(transaction: Transaction, name: str, new: str) -> None:
    """Give a custom class another name (microversions 1.2 to 1.6). NoSuch, BadRequest, Refused."""
    class_id = _custom_id(transaction, name, "update")
    if new != name and transaction.connection.execute(_BY_NAME, {"n": new}).first() is not None:
        raise Refused(f"Resource class already exists: {new}.")
    transaction.connection.execute(_RENAME, {"i": class_id, "new": new})
    _touch_users(transaction, class_id)
    transaction.touch_names()


def delete(transaction: Transaction, name: str) -> None:
    """Remove a custom class. NoSuch; BadRequest for a standard one; Refused when an inventory is of it."""
    class_id = _custom_id(transaction, name, "delete")
    if transaction.connection.execute(_USER, {"i": class_id}).first() is not None:
        raise Refused(f"Error in delete resource class: {name}. Class is in use in inventory.")
    transaction.connection.execute(_DELETE, {"i": class_id})
    transaction.touch_names()


def _custom_id(transaction: Transaction, name: str, verb: str) -> int:
    found = transaction.connection.execute(_BY_NAME, {"n": name}).scalar()
    if found is None:
        raise NoSuch(f"No such resource class: {name}.")
    if not is_custom(name):
        raise BadRequest(f"Error in {verb} resource class: Cannot {verb} standard resource class {name}.")
    return int(found)


def _touch_users(transaction: Transaction, class_id: int) -> None:
    """What is encoded for the providers of this class shows its name."""
    for provider_id in transaction.connection.execute(_USER, {"i": class_id}).scalars():
        transaction.touch(provider_id)

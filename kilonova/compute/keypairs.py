"""Key pairs of users."""

from __future__ import annotations

from typing import Any

from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Invalid
from kilonova.db.queries import keypairs


class KeypairUnusable(Invalid):
    """A server names a key pair its user does not have."""

    code, message = "keypair_unusable", "Invalid key_name provided: there is no key pair {name!r}."


def for_boot(world: World, ctx: Context, name: str | None) -> Any | None:
    """The key pair (a row) that a new server gets; None when none is named."""
    if not name:
        return None
    found = keypairs.get(world.cells.api, ctx.user_id, name)
    if found is None:
        raise KeypairUnusable(name=name)
    return found

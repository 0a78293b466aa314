"""Metadata and tags of servers."""

from __future__ import annotations

from kilonova.compute import actions, quotas
from kilonova.compute.create import MetadataOverQuota
from kilonova.compute.lookup import Found, in_cell
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Invalid, NotFound
from kilonova.core.server import Server
from kilonova.db.queries import servers

MOST_TAGS = 50
_TRIES = 5


class MetadataItemNotFound(NotFound):
    """No such key."""

    code, message = "metadata_item_not_found", "Metadata item was not found"


class TagNotFound(NotFound):
    """The server has no such tag."""

    code, message = "tag_not_found", "Server {server} has no tag '{tag}'"


class TagInvalid(Invalid):
    """A tag in the path that no tag can be."""

    code, message = "tag_invalid", "Tag '{tag}' is invalid: 1 to 60 characters, without ',' and '/'."


class TooManyTags(Invalid):
    """The server has all the tags it can have."""

    code, message = "too_many_tags", "The number of tags exceeded the per-server limit {limit}"


def change_metadata(
    world: World, ctx: Context, found: Found, *, replace: bool = False, add: dict[str, str] | None = None,
    remove: str | None = None,
) -> dict[str, str]:  # fmt: skip
    """Replace or merge metadata, or remove a key; answers all of it. MetadataOverQuota, MetadataItemNotFound."""
    for _ in range(_TRIES):
        server, cell = in_cell(found)
        actions.check(actions.ROWS["metadata"], server, ctx)
        if remove is not None and remove not in server.metadata:
            raise MetadataItemNotFound
        changed = {} if replace else {key: value for key, value in server.metadata.items() if key != remove}
        changed |= add or {}
        _check_quota(world, server, changed)
        with world.cells.database(cell).write() as connection:
            if servers.change(connection, server.uuid, {"metadata": changed}, version=server.version):
                return changed
        again = servers.get(world.cells.database(cell), server.uuid)
        if again is None:
            break
        found = Found(again, cell)
    raise actions.WrongState(action="metadata", server=found.server.uuid, what="task_state", value="changing")


def _check_quota(world: World, server: Server, metadata: dict[str, str]) -> None:
    with world.cells.api.read() as connection:
        limit = quotas.limits_of(connection, world.settings, server.project_id)["metadata_items"]
    if 0 <= limit < len(metadata):
        raise MetadataOverQuota(limit=limit)


def tags_of(world: World, found: Found) -> list[str]:
    """The tags, sorted."""
    if found.request is not None:
        return sorted(found.request.tags)
    assert found.cell is not None
    return servers.tags_of(world.cells.database(found.cell), [found.server.uuid]).get(found.server.uuid, [])


def set_tags(world: World, ctx: Context, found: Found, tags: list[str]) -> list[str]:
    """Replace the tags; answers them sorted."""
    server, cell = in_cell(found)
    actions.check(actions.ROWS["tags"], server, ctx)
    with world.cells.database(cell).write() as connection:
        servers.replace_tags(connection, server.uuid, tags)
    return sorted(set(tags))


def add_tag(world: World, ctx: Context, found: Found, tag: str) -> bool:
    """Add a tag; whether it is new. State, form and number are checked in that order (errors.md 12)."""
    server, cell = in_cell(found)
    actions.check(actions.ROWS["tags"], server, ctx)
    if not 1 <= len(tag) <= 60 or "," in tag or "/" in tag:
        raise TagInvalid(tag=tag)
    known = tags_of(world, found)
    if len(known) >= MOST_TAGS:
        raise TooManyTags(limit=MOST_TAGS)
    if tag in known:
        return False
    with world.cells.database(cell).write() as connection:
        servers.replace_tags(connection, server.uuid, [*known, tag])
    return True


def remove_tag(world: World, ctx: Context, found: Found, tag: str) -> None:
    """Remove a tag. TagNotFound."""
    server, cell = in_cell(found)
    actions.check(actions.ROWS["tags"], server, ctx)
    known = tags_of(world, found)
    if tag not in known:
        raise TagNotFound(server=server.uuid, tag=tag)
    with world.cells.database(cell).write() as connection:
        servers.replace_tags(connection, server.uuid, [other for other in known if other != tag])



"""Server groups: made, listed, shown, removed. How a server joins one is in `groups`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.compute import quotas
from kilonova.compute.world import World
from kilonova.core import ids, json
from kilonova.core.context import Context
from kilonova.core.errors import Invalid, NotFound, OverQuota
from kilonova.db.queries import quotas as quota_rows
from kilonova.db.queries import requests, server_groups, servers


class GroupNotFound(NotFound):
    """There is no such group."""

    code, message = "group_not_found", "Instance group {group} could not be found."


class RulesInvalid(Invalid):
    """Rules go with anti-affinity only."""

    code, message = "rules_invalid", "Only the policy anti-affinity takes rules, {policy} does not."


class GroupsOverQuota(OverQuota):
    """The project has as many groups as it may."""

    code = "groups_over_quota"
    message = (
        "Quota exceeded, too many server groups: the limit of server_groups is {limit}. "
        "An administrator raises it with: openstack quota set --server-groups <number> {project}"
    )


@dataclass(frozen=True, slots=True)
class Group:
    """A group; members are its servers that are not deleted, in the order they joined."""

    uuid: str
    name: str
    policy: str
    rules: Mapping[str, int]
    project_id: str
    user_id: str
    members: tuple[str, ...]


def every(world: World, project_id: str | None, start: int, size: int) -> list[Group]:
    """`size` groups of a project, or of everybody, oldest first, the first `start` left out."""
    return _groups(world, server_groups.every(world.cells.api, project_id)[start : start + size])


def find(world: World, uuid: str) -> Group:
    """One group, whoever has it. GroupNotFound."""
    row = server_groups.get(world.cells.api, ids.canonical_uuid(uuid)) if ids.is_uuid_like(uuid) else None
    if row is None:
        raise GroupNotFound(group=uuid)
    return _groups(world, [row])[0]


def _groups(world: World, rows: Sequence[Any]) -> list[Group]:
    members = server_groups.members_of(world.cells.api, [row.id for row in rows]) if rows else {}
    alive = _alive(world, [server for found in members.values() for server in found])
    return [
        Group(
            row.uuid, row.name, row.policy, json.loads(row.rules), row.project_id, row.user_id,
            tuple(server for server in members.get(row.id, ()) if server in alive),
        )
        for row in rows
    ]  # fmt: skip


def _alive(world: World, uuids: Sequence[str]) -> set[str]:
    """Those of the servers that are not deleted."""
    if not uuids:
        return set()
    with world.cells.api.read() as connection:
        mapped = requests.mappings(connection, uuids)
    in_cell: dict[str, list[str]] = {}
    for mapping in mapped.values():
        if mapping.cell_uuid is not None:
            in_cell.setdefault(mapping.cell_uuid, []).append(mapping.uuid)
    found = {uuid for uuid, mapping in mapped.items() if mapping.cell_uuid is None}
    for cell, names in in_cell.items():
        found |= set(servers.hosts_of(world.cells.database(cell), names))
    return found


def create(world: World, ctx: Context, name: str, policy: str, rules: Mapping[str, int]) -> Group:
    """Add a group. GroupsOverQuota, which is looked at first; RulesInvalid."""
    uuid, project = ids.new_uuid(), ctx.project_id
    with world.cells.api.write() as connection:
        quota_rows.lock(connection, project)
        limit = quotas.limits_of(connection, world.settings, project)["server_groups"]
        if 0 <= limit <= server_groups.count_of(connection, project):
            raise GroupsOverQuota(limit=limit, project=project)
        if rules and policy != "anti-affinity":
            raise RulesInvalid(policy=policy)
        text = json.dump_str(dict(rules))
        server_groups.insert(connection, uuid, name, policy, text, project, ctx.user_id)
    return find(world, uuid)


def delete(world: World, group: Group) -> None:
    """Remove a group; its servers stay. GroupNotFound."""
    with world.cells.api.write() as connection:
        if not server_groups.delete(connection, group.uuid):
            raise GroupNotFound(group=group.uuid)

"""Server groups as a new server meets them: the hint names one, membership is part of creating."""

from __future__ import annotations

import msgspec

from kilonova.compute import quotas
from kilonova.compute.settings import ComputeSettings
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Invalid, OverQuota
from kilonova.core.request_spec import GroupSpec
from kilonova.db.queries import server_groups
from kilonova.sql.engine import Connection


class GroupUnusable(Invalid):
    """The hint names no group of the caller's."""

    code, message = "group_unusable", "Instance group {group} could not be found."


class GroupOverQuota(OverQuota):
    """The group has no room for so many members."""

    code = "group_over_quota"
    message = "Quota exceeded, too many servers in group: the limit of server_group_members is {limit}."


def group_of_hint(world: World, ctx: Context, hint: list[str] | None) -> GroupSpec | None:
    """The group that the scheduler hint `group` names (its first entry), with its members' hosts."""
    if not hint:
        return None
    row = server_groups.get(world.cells.api, hint[0])
    if row is None or not (ctx.is_admin or row.project_id == ctx.project_id):
        raise GroupUnusable(group=hint[0])
    members = server_groups.members(world.cells.api, row.id)
    return GroupSpec(uuid=row.uuid, policy=row.policy, rules=msgspec.json.decode(row.rules), members=tuple(members))


def join(connection: Connection, settings: ComputeSettings, group: str, servers: list[str], ctx: Context) -> None:
    """Make servers members, within the quota; part of the transaction that creates them."""
    limit = quotas.limits_of(connection, settings, ctx.project_id)["server_group_members"]
    if limit >= 0 and server_groups.count(connection, group) + len(servers) > limit:
        raise GroupOverQuota(limit=limit)
    server_groups.add(connection, group, servers)

"""Quotas of servers: limits, and the count that is part of the transaction that creates them.

Because counting and creating are one transaction under a lock per project, a hundred parallel requests never get
past a limit together, and no recheck afterwards is needed (the reference counts, creates and counts again).
"""

from __future__ import annotations

from kilonova.compute.settings import ComputeSettings
from kilonova.core.context import Context
from kilonova.core.errors import OverQuota
from kilonova.db.queries import quotas
from kilonova.sql.engine import Connection


class ServersOverQuota(OverQuota):
    """instances, cores or ram would be exceeded."""

    code = "over_quota"
    message = (
        "Quota exceeded for {resource}: Requested {requested}, but already used {used} of {limit} {resource}. "
        "An administrator raises it with: openstack quota set --{resource} <number> {project}"
    )


def limits_of(connection: Connection, settings: ComputeSettings, project_id: str) -> dict[str, int]:
    """The limits of a project: its own, else the default class's, else the configured ones; -1 is none."""
    found = dict(settings.quotas)
    found |= quotas.class_limits(connection, "default")
    found |= quotas.limits(connection, project_id)
    return found


def fit_servers(
    connection: Connection, settings: ComputeSettings, ctx: Context, least: int, most: int, vcpus: int, memory_mb: int
) -> int:
    """How many of `least` to `most` equal servers fit the project's and the user's limits.

    ServersOverQuota when not even `least` do; it names the first limit in the way. memory_mb in MiB.
    """
    project, user = ctx.project_id, ctx.user_id
    quotas.lock(connection, project)
    limits = limits_of(connection, settings, project)
    fitting = _fit(limits, quotas.used(connection, project), project, least, most, vcpus, memory_mb)
    personal = quotas.user_limits(connection, project, user)
    if personal:
        bounded = {name: personal.get(name, -1) for name in ("instances", "cores", "ram")}
        used = quotas.used(connection, project, user)
        fitting = _fit(bounded, used, project, least, fitting, vcpus, memory_mb)
    return fitting


def _fit(
    limits: dict[str, int], used: quotas.Used, project: str, least: int, most: int, vcpus: int, memory_mb: int
) -> int:
    fitting = most
    for resource, each, taken in (
        ("instances", 1, used.instances), ("cores", vcpus, used.cores), ("ram", memory_mb, used.ram)
    ):  # fmt: skip
        limit = limits[resource]
        if limit < 0 or each == 0:
            continue
        room = max(0, (limit - taken) // each)
        if room < least:
            raise ServersOverQuota(
                resource=resource, requested=each * least, used=taken, limit=limit, project=project
            )
        fitting = min(fitting, room)
    return fitting

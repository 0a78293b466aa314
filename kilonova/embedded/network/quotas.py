"""How many of each noun a project may have."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.embedded.network import errors
from kilonova.embedded.network.attributes import integer
from kilonova.embedded.network.nouns import Caller, Noun
from kilonova.embedded.network.tables import (
    FLOATING_IPS,
    GROUPS,
    NETWORKS,
    PORTS,
    QUOTAS,
    ROUTERS,
    RULES,
    SUBNETS,
    quotas,
)
from kilonova.embedded.store import Row, transact

UNLIMITED = -1
# noun: (limit of a project that has none of its own, table); Neutron's defaults.
LIMITS: dict[str, tuple[int, sa.Table]] = {
    "network": (100, NETWORKS),
    "subnet": (100, SUBNETS),
    "port": (500, PORTS),
    "router": (10, ROUTERS),
    "floatingip": (50, FLOATING_IPS),
    "security_group": (10, GROUPS),
    "security_group_rule": (100, RULES),
}
_COUNT = {
    name: sa.select(sa.func.count()).select_from(table).where(
        table.c.project_id == sa.bindparam("project", type_=sa.String))
    for name, (_, table) in LIMITS.items()
}  # fmt: skip
_USED = sa.select(*(statement.scalar_subquery().label(name) for name, statement in _COUNT.items()))
_NOT_LIMITS = frozenset(("project_id", "tenant_id", "force", "check_limit"))
_LOCKED = sa.select(QUOTAS.c.limits).where(
    QUOTAS.c.project_id == sa.bindparam("project", type_=sa.String)).with_for_update()  # fmt: skip
_LIMIT = integer(UNLIMITED, 2**31 - 1)
DEFAULTS: dict[str, int] = {name: limit for name, (limit, _) in LIMITS.items()}


def check(c: Connection, project: str, noun: Noun) -> None:
    """Raises OverQuota when the project may not have one more; until the transaction ends nobody else is told it may.

    Raises Duplicate when another request was the first of the project.
    """
    limits = c.execute(_LOCKED, {"project": project}).scalar()
    if limits is None:
        limits = {}
        quotas.insert(c, {"project_id": project, "limits": limits})
    limit = limits.get(noun.name, DEFAULTS[noun.name])
    if limit != UNLIMITED and c.execute(_COUNT[noun.name], {"project": project}).scalar_one() >= limit:
        raise errors.OverQuota(resource=noun.name, limit=limit)


def _may_see(caller: Caller, project: str) -> None:
    if not caller.privileged and project != caller.project_id:
        raise errors.PolicyNotAuthorized(action="seeing the quota of another project")


def _may_change(caller: Caller) -> None:
    if not caller.privileged:
        raise errors.PolicyNotAuthorized(action="changing quotas")


def shown(caller: Caller, project: str) -> dict[str, int]:
    """The limits of a project. Raises PolicyNotAuthorized."""
    _may_see(caller, project)
    with caller.world.database.read() as c:
        row = quotas.get(c, project)
    return DEFAULTS | (row["limits"] if row else {})


def details(caller: Caller, project: str) -> dict[str, dict[str, int]]:
    """Limit and use of each noun. Raises PolicyNotAuthorized."""
    limits = shown(caller, project)
    with caller.world.database.read() as c:
        used = c.execute(_USED, {"project": project}).mappings().one()
    return {name: {"limit": limits[name], "used": used[name], "reserved": 0} for name in LIMITS}


def listed(caller: Caller) -> list[Row]:
    """The limits of every project that has its own. Raises PolicyNotAuthorized."""
    _may_change(caller)
    with caller.world.database.read() as c:
        rows = quotas.find(c)
    return [DEFAULTS | row["limits"] | {"project_id": row["project_id"], "tenant_id": row["project_id"]}
            for row in rows if row["limits"]]  # fmt: skip


def change(caller: Caller, project: str, body: Any) -> dict[str, int]:
    """Set limits (-1 is unlimited); answers all of the project's. Raises HTTPBadRequest, PolicyNotAuthorized."""
    _may_change(caller)
    given = {name: value for name, value in body.items() if name not in _NOT_LIMITS}
    for name, value in given.items():
        if name not in LIMITS:
            raise errors.HTTPBadRequest(f"Unrecognized attribute(s) '{name}'.")
        try:
            given[name] = _LIMIT(value)
        except ValueError as error:
            raise errors.InvalidInput(reason=f"'{name}': {error}") from error

    def work(c: Connection) -> dict[str, int]:
        row = quotas.get(c, project)
        if row is None:
            quotas.insert(c, {"project_id": project, "limits": given})
            return given
        quotas.update(c, project, {"limits": row["limits"] | given})
        return dict(row["limits"] | given)

    return DEFAULTS | transact(caller.world.database, work)


def reset(caller: Caller, project: str) -> None:
    """Back to the defaults. Raises PolicyNotAuthorized."""
    _may_change(caller)
    transact(caller.world.database, lambda c: quotas.delete(c, project))

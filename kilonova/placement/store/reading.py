"""What allocations there are, and their sums: reads for the API, nothing that decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.placement.store.schema import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    resource_classes,
    resource_providers,
)

UNKNOWN_TYPE = "unknown"
"""How a consumer without a type reads."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What one consumer has of one provider."""

    uuid: str
    generation: int
    resources: dict[str, int]


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer with all it holds."""

    uuid: str
    project_id: str
    user_id: str
    generation: int
    consumer_type: str
    updated_at: datetime
    holdings: list[Holding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProviderHold:
    """What one consumer has of the provider asked about, written all at once."""

    consumer: str
    generation: int
    updated_at: datetime
    resources: dict[str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums over a set of consumers; `consumers` counts the distinct ones."""

    consumers: int
    resources: dict[str, int]


_OF_CONSUMER = (
    sa.select(
        consumers.c.project_id,
        consumers.c.user_id,
        consumers.c.generation,
        consumer_types.c.name,
        allocations.c.updated_at,
        resource_providers.c.uuid,
        resource_providers.c.generation,
        resource_classes.c.name,
        allocations.c.used,
    )
    .select_from(consumers)
    .join(allocations, allocations.c.consumer_id == consumers.c.id)
    .join(resource_providers, resource_providers.c.id == allocations.c.provider_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.class_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .where(consumers.c.uuid == sa.bindparam("u"))
    .order_by(allocations.c.id)
)
_OF_PROVIDER = (
    sa.select(
        consumers.c.uuid, consumers.c.generation, allocations.c.updated_at, resource_classes.c.name, allocations.c.used
    )
    .select_from(allocations)
    .join(resource_classes, resource_classes.c.id == allocations.c.class_id)
    .join(consumers, consumers.c.id == allocations.c.consumer_id)
    .where(allocations.c.provider_id == sa.bindparam("p"))
    .order_by(allocations.c.id)
)
_USED = (
    sa.select(resource_classes.c.name, inventories.c.used)
    .join(resource_classes, resource_classes.c.id == inventories.c.class_id)
    .where(inventories.c.provider_id == sa.bindparam("p"))
    .order_by(inventories.c.class_id)
)
_MINE = sa.and_(
    consumers.c.project_id == sa.bindparam("project"),
    sa.or_(sa.bindparam("user", type_=sa.String).is_(None), consumers.c.user_id == sa.bindparam("user")),
)
_SUMS = (
    sa.select(consumer_types.c.name, resource_classes.c.name, sa.func.sum(allocations.c.used))
    .select_from(consumers)
    .join(allocations, allocations.c.consumer_id == consumers.c.id)
    .join(resource_classes, resource_classes.c.id == allocations.c.class_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .where(_MINE)
    .group_by(consumer_types.c.name, resource_classes.c.id, resource_classes.c.name)
    .order_by(resource_classes.c.id)
)
_COUNTS = (
    sa.select(consumer_types.c.name, sa.func.count())
    .select_from(consumers)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .where(_MINE)
    .group_by(consumer_types.c.name)
)


def consumer(connection: Connection, uuid: str) -> Consumer | None:
    """A consumer and its allocations; None when it has none."""
    found: Consumer | None = None
    holdings: dict[str, Holding] = {}
    for project, user, generation, type_, at, provider, provider_generation, class_name, used in connection.execute(
        _OF_CONSUMER, {"u": uuid}
    ):
        if found is None:
            found = Consumer(uuid, project, user, generation, type_ or UNKNOWN_TYPE, at)
        holding = holdings.setdefault(provider, Holding(provider, provider_generation, {}))
        holding.resources[class_name] = used
    if found is not None:
        found.holdings.extend(holdings.values())
    return found


def holders(connection: Connection, provider_id: int) -> list[ProviderHold]:
    """Everybody who has something of a provider."""
    found: dict[str, ProviderHold] = {}
    for uuid, generation, at, class_name, used in connection.execute(_OF_PROVIDER, {"p": provider_id}):
        hold = found.setdefault(uuid, ProviderHold(uuid, generation, at, {}))
        hold.resources[class_name] = used
    return list(found.values())


def provider_usage(connection: Connection, provider_id: int) -> dict[str, int]:
    """Use by class, for every class the provider has an inventory of."""
    return {row.name: row.used for row in connection.execute(_USED, {"p": provider_id})}


def project_usages(connection: Connection, project: str, user: str | None) -> dict[str, Usage]:
    """Sums by consumer type for a project, or for one user in it."""
    parameters = {"project": project, "user": user}
    found = {type_ or UNKNOWN_TYPE: Usage(count, {}) for type_, count in connection.execute(_COUNTS, parameters)}
    for type_, class_name, used in connection.execute(_SUMS, parameters):
        found.setdefault(type_ or UNKNOWN_TYPE, Usage(0, {})).resources[class_name] = int(used)
    return found


def merged(usages: Sequence[Usage]) -> Usage:
    """Several types as one."""
    resources: dict[str, int] = {}
    for usage in usages:
        for name, used in usage.resources.items():
            resources[name] = resources.get(name, 0) + used
    return Usage(sum(usage.consumers for usage in usages), resources)

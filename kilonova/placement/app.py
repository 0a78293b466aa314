"""The Placement service as a WSGI application."""

from __future__ import annotations

from kilonova.conf.load import load
from kilonova.core.metrics import OFF, Meters
from kilonova.http.app import App, Service
from kilonova.http.op import Op
from kilonova.http.policy import Policy
from kilonova.placement.api import (
    aggregates,
    allocation_candidates,
    allocations,
    inventories,
    reshaper,
    resource_classes,
    resource_providers,
    root,
    traits,
    usages,
)
from kilonova.placement.api.answers import finished
from kilonova.placement.description import description
from kilonova.placement.dialect import PlacementDialect
from kilonova.placement.policy import make_policy
from kilonova.placement.versions import VERSIONS
from kilonova.placement.world import Settings, make_world
from kilonova.sql.engine import Database

_MODULES = (
    root,
    resource_providers,
    inventories,
    usages,
    traits,
    resource_classes,
    aggregates,
    allocations,
    allocation_candidates,
    reshaper,
)

OPS: tuple[Op, ...] = tuple(finished(op) for module in _MODULES for op in module.OPS)


def make_app(
    database: Database, settings: Settings | None = None, *, policy: Policy | None = None, auth_uri: str = "",
    meters: Meters = OFF,
) -> App:  # fmt: skip
    """The application on a database that `store.prepare.prepare` has seen. It finds who asks in
    `environ["kilonova.context"]`, put there by the middleware. policy: `make_policy` of OPS; the defaults without."""
    return App(
        Service(
            name="placement",
            ops=(*OPS, description(OPS)),
            world=make_world(database, settings or Settings(), meters),
            dialect=PlacementDialect(),
            versions=VERSIONS,
            policy=policy or make_policy(OPS, load(application="placement", warn=False)),
            body_last=True,
            auth_uri=auth_uri,
        )
    )

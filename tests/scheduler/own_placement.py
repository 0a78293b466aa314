"""Placement itself, in this process, as tests of the scheduler ask it: no socket, every call an administrator's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import FixedToken, RestClient
from kilonova.core.context import Context
from kilonova.http.transport import WsgiTransport
from kilonova.placement.app import make_app
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database
from tests.scheduler.world import Cloud


@contextmanager
def own_placement(directory: Path) -> Iterator[HttpPlacement]:
    """A client of a fresh Placement on SQLite."""
    database = Database(f"sqlite:///{directory}/placement.db")
    prepare(database)
    app = make_app(database)

    def as_admin(environ: dict[str, Any], start_response: Any) -> Any:
        environ["kilonova.context"] = Context(overwrite=False, roles=["admin"], project_id="p", user_id="u")
        return app(environ, start_response)

    rest = RestClient("placement", "http://here", WsgiTransport(as_admin), FixedToken("t"), microversion="placement")
    try:
        yield HttpPlacement(rest)
    finally:
        database.dispose()


def add_host(cloud: Cloud, client: HttpPlacement, name: str, **sizes: int) -> str:
    """A host as its agent makes it: rows, and a provider with inventory and traits; the provider's uuid."""
    cloud.add_hosts(name, **sizes)
    provider = cloud.provider(name)
    generation = client.ensure_provider(provider.uuid, f"{name}.example")
    inventory = {key: {"total": total} for key, total in provider.capacity.items()}
    generation = client.set_inventory(provider.uuid, inventory, generation)
    client.set_traits(provider.uuid, provider.traits, generation)
    return provider.uuid

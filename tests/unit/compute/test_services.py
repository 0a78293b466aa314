"""What stands against fencing a host no more, and against removing it."""

from __future__ import annotations

import pytest

from kilonova.compute import services
from kilonova.compute.services import EvacuationsPending, ServiceInUse
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.db.cell_schema import migrations
from kilonova.db.queries.hosts import COMPUTE


def migrate(world: World, kind: str, status: str) -> None:
    """A migration from the host `here`."""
    _, cell = services.on_host(world, "here", COMPUTE)
    with cell.database.write() as connection:
        connection.execute(migrations.insert(), {
            "uuid": ids.new_uuid(), "instance_uuid": ids.new_uuid(), "migration_type": kind, "status": status,
            "source_compute": "here",
        })  # fmt: skip


def test_a_host_comes_back_only_after_it_cleaned_up_its_evacuations(world: World) -> None:
    service, cell = services.on_host(world, "here", COMPUTE)
    services.set_forced_down(world, service, cell, forced_down=True)
    migrate(world, "evacuation", "done")
    fenced, _ = services.on_host(world, "here", COMPUTE)
    with pytest.raises(EvacuationsPending):
        services.update(world, fenced, cell, "disabled", None, False)
    kept, _ = services.on_host(world, "here", COMPUTE)
    assert (kept.forced_down, kept.disabled) == (True, False)  # nothing is half done
    services.set_forced_down(world, fenced, cell, forced_down=True)


def test_a_cleaned_up_evacuation_stands_against_nothing(world: World) -> None:
    service, cell = services.on_host(world, "here", COMPUTE)
    services.set_forced_down(world, service, cell, forced_down=True)
    migrate(world, "evacuation", "completed")
    fenced, _ = services.on_host(world, "here", COMPUTE)
    services.set_forced_down(world, fenced, cell, forced_down=False)
    assert not services.on_host(world, "here", COMPUTE)[0].forced_down


def test_a_host_is_not_removed_while_a_server_moves_from_it(world: World) -> None:
    migrate(world, "migration", "migrating")
    service, cell = services.on_host(world, "here", COMPUTE)
    with pytest.raises(ServiceInUse, match="migrations"):
        services.delete(world, service, cell)
    assert services.on_host(world, "here", COMPUTE)[0].uuid == service.uuid

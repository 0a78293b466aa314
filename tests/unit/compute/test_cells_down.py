"""A cell that cannot be reached is left out of lists, and its hosts are told as unknown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.cells.cells import Cells
from kilonova.compute import availability, hypervisors, services
from kilonova.compute.bootstrap import bootstrap_cells
from kilonova.compute.hypervisors import HypervisorNotFound
from kilonova.compute.settings import ComputeSettings
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import cell_mappings, hosts
from kilonova.db.queries.services import ServiceNotFound, register_own
from kilonova.sql.engine import Database, unreachable

NODE = {
    "hypervisor_hostname": "here", "hypervisor_type": "fake", "hypervisor_version": 1, "host_ip": None, "vcpus": 4,
    "memory_mb": 4096, "local_gb": 40, "vcpus_used": 0, "memory_mb_used": 0, "local_gb_used": 0, "free_ram_mb": 4096,
    "free_disk_gb": 40, "disk_available_least": None, "running_vms": 0, "cpu_info": "{}", "supported_instances": "[]",
    "stats": "{}", "cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0,
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """cell1 with the host `here`; cell2 with the host `there`, whose database is gone."""
    api = Database(f"sqlite:///{tmp_path}/api.db")
    with api.write() as connection:
        api_schema.metadata.create_all(connection)
    cell1 = bootstrap_cells(api, f"sqlite:///{tmp_path}/cell0.db", f"sqlite:///{tmp_path}/cell1.db", "local:///")
    cell2 = ids.new_uuid()
    cell_mappings.ensure(api, cell2, "cell2", "local:///", f"sqlite:///{tmp_path}/gone/cell2.db")
    cells = Cells(api)
    database = cells.database(cell1)
    with database.write() as connection:
        cell_schema.metadata.create_all(connection)
    hosts.register(database, "agent", 1, 74, [NODE | {"host": "here", "uuid": ids.new_uuid()}])
    register_own(database, "controller", {"nova-osapi_compute": "api", "nova-conductor": "conductor"}, 74)
    hosts.map_hosts(api, cell1, ["here"])
    hosts.map_hosts(api, cell2, ["there"])
    nothing: Any = None
    yield World(cells, nothing, ComputeSettings(), nothing, nothing, nothing, nothing, nothing, lambda host: None)
    cells.close()


def test_services_of_a_cell_that_is_down_are_bare_records(world: World) -> None:
    assert [(one.binary, one.host, one.service is None) for one in services.every(world)] == [
        ("nova-compute", "here", False), ("nova-conductor", "controller", False), ("nova-compute", "there", True),
    ]  # fmt: skip


def test_filters_hold_for_bare_records_too(world: World) -> None:
    assert [one.host for one in services.every(world, host="there")] == ["there"]
    assert [one.host for one in services.every(world, host="there", binary="nova-compute")] == ["there"]
    assert services.every(world, binary="nova-scheduler") == []


def test_the_api_s_own_service_is_never_listed(world: World) -> None:
    assert "nova-osapi_compute" not in [one.binary for one in services.every(world)]
    (internal,) = [zone for zone in availability.every_zone(world) if zone.name == "internal"]
    assert [service.binary for service in internal.hosts["controller"]] == ["nova-conductor"]


def test_zones_and_hypervisors_are_those_of_the_other_cells(world: World) -> None:
    assert [zone.name for zone in availability.every_zone(world)] == ["internal", "nova"]
    assert [one.node.host for one in hypervisors.page(world, None, None)] == ["here"]
    assert [one.node.host for one in hypervisors.matching(world, "er")] == ["here"]
    assert hypervisors.statistics(world)["count"] == 1


def test_what_is_not_in_the_other_cells_is_not_found(world: World) -> None:
    with pytest.raises(ServiceNotFound):
        services.by_number(world, "99")
    with pytest.raises(HypervisorNotFound):
        hypervisors.by_number(world, "99")


def test_only_a_database_that_does_not_answer_counts_as_down(world: World) -> None:
    with world.cells.api.read() as connection, pytest.raises(sa.exc.SQLAlchemyError) as refused:
        connection.execute(sa.text("INSERT INTO aggregates (id) VALUES (1)"))
    assert not unreachable(refused.value)
    assert not unreachable(TypeError())

"""A cell that cannot be reached is left out of lists, and its hosts are told as unknown."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from kilonova.compute import availability, hypervisors, services
from kilonova.compute.hypervisors import HypervisorNotFound
from kilonova.compute.world import World
from kilonova.db.queries.services import ServiceNotFound
from kilonova.sql.engine import unreachable


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


@pytest.mark.parametrize("wrong", ["INSERT INTO aggregates (id) VALUES (1)", "SELECT none FROM aggregates"])
def test_only_a_database_that_does_not_answer_counts_as_down(world: World, wrong: str) -> None:
    with world.cells.api.read() as connection, pytest.raises(sa.exc.SQLAlchemyError) as refused:
        connection.execute(sa.text(wrong))
    assert not unreachable(refused.value)
    assert not unreachable(TypeError())

from __future__ import annotations

import pytest

from kilonova.core import clock
from kilonova.db.queries import compute_nodes, hosts, services
from kilonova.sql.engine import Database
from tests.unit.db.rows import node, nodes


@pytest.fixture
def full(cell: Database) -> Database:
    hosts.register(cell, "a1", 1, 74, nodes("h1", "h2", "h3", "x_1", "x%2"))
    return cell


def names(found: list[compute_nodes.ComputeNode]) -> list[str]:
    return [row.host for row in found]


def delete(cell: Database, host: str) -> None:
    with cell.write() as connection:
        services.delete_service(connection, services.find_service(connection, host, "nova-compute"))


def test_pages_follow_each_other_by_id(full: Database) -> None:
    with full.read() as connection:
        first = compute_nodes.list_nodes(connection, limit=2)
        assert names(first) == ["h1", "h2"]
        assert names(compute_nodes.list_nodes(connection, limit=2, after=first[-1].id)) == ["h3", "x_1"]
        assert compute_nodes.list_nodes(connection, limit=0) == []
        assert len(compute_nodes.list_nodes(connection)) == 5


def test_a_pattern_is_a_plain_substring(full: Database) -> None:
    with full.read() as connection:
        assert names(compute_nodes.search_nodes(connection, "h")) == ["h1", "h2", "h3"]
        assert names(compute_nodes.search_nodes(connection, "2.Exam")) == ["h2", "x%2"]
        assert names(compute_nodes.search_nodes(connection, "_")) == ["x_1"]
        assert names(compute_nodes.search_nodes(connection, "%")) == ["x%2"]
        assert compute_nodes.search_nodes(connection, "/") == []


def test_a_node_tells_its_documents_and_its_service(full: Database) -> None:
    with full.read() as connection:
        found = compute_nodes.nodes_of(connection, ["h2"])[0]
        assert compute_nodes.get_node(connection, found.id) == found == compute_nodes.get_node(connection, found.uuid)
        service = services.find_service(connection, "h2", "nova-compute")
        assert compute_nodes.get_node(connection, 99) is None
    assert found.cpu_info == {"arch": "x86_64"}
    assert found.supported_instances == [["x86_64", "fake", "hvm"]]
    assert (found.service_id, found.service_uuid) == (service.id, service.uuid)
    assert found.up(clock.utcnow(), 60)


def test_a_node_without_a_service_is_skipped_everywhere(full: Database) -> None:
    delete(full, "h2")
    with full.read() as connection:
        assert names(compute_nodes.list_nodes(connection)) == ["h1", "h3", "x_1", "x%2"]
        assert compute_nodes.nodes_of(connection, ["h2"]) == []
        assert compute_nodes.statistics(connection)["count"] == 4


def test_statistics_sum_the_enabled_nodes(full: Database) -> None:
    with full.write() as connection:
        disabled = services.find_service(connection, "h1", "nova-compute")
        services.set_disabled(connection, disabled.id, disabled=True)
    with full.read() as connection:
        sums = compute_nodes.statistics(connection)
    assert (sums["count"], sums["vcpus"], sums["memory_mb_used"], sums["free_disk_gb"]) == (4, 32, 2048, 400)


def test_statistics_of_nothing_are_zero(cell: Database) -> None:
    with cell.read() as connection:
        assert set(compute_nodes.statistics(connection).values()) == {0}


def test_usage_is_set_for_several_hosts_and_what_is_free_follows(full: Database) -> None:
    rows = [
        {"host": host, "vcpus_used": 3, "memory_mb_used": 1000, "local_gb_used": 7, "running_vms": 2}
        for host in ("h1", "h3")
    ]
    with full.write() as connection:
        compute_nodes.set_usage(connection, rows)
        compute_nodes.set_usage(connection, [])
    with full.read() as connection:
        found = {row.host: row for row in compute_nodes.list_nodes(connection)}
    assert (found["h1"].vcpus_used, found["h1"].free_ram_mb, found["h1"].free_disk_gb) == (3, 3096, 93)
    assert (found["h3"].running_vms, found["h2"].running_vms) == (2, 0)


def test_failed_builds_are_counted_until_one_succeeds(full: Database) -> None:
    def failed() -> int:
        with full.read() as connection:
            return compute_nodes.nodes_of(connection, ["h1"])[0].failed_builds

    with full.write() as connection:
        compute_nodes.count_build(connection, "h1", failed=True)
        compute_nodes.count_build(connection, "h1", failed=True)
    assert failed() == 2
    hosts.register(full, "a1", 1, 74, [node("h1")])  # a report does not touch the count
    assert failed() == 2
    with full.write() as connection:
        compute_nodes.count_build(connection, "h1", failed=False)
    assert failed() == 0


def test_a_deleted_node_is_gone(full: Database) -> None:
    with full.write() as connection:
        assert compute_nodes.delete_node(connection, "h1")
        assert not compute_nodes.delete_node(connection, "h1")
    with full.read() as connection:
        assert len(compute_nodes.list_nodes(connection)) == 4

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from kilonova.core import clock, ids
from kilonova.db.cell_schema import agents, compute_nodes, services
from kilonova.db.queries import hosts
from kilonova.db.queries.services import list_services, set_disabled
from kilonova.sql.engine import Database
from tests.unit.conftest import CELL
from tests.unit.db.rows import node, nodes


class Later(clock.SystemClock):
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.moment, self.seconds = datetime(2030, 1, 1), 0.0

    def utcnow(self) -> datetime:
        return self.moment + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Iterator[Later]:
    made = Later()
    before = clock.install(made)
    yield made
    clock.install(before)


def count(cell: Database, table: sa.Table) -> int:
    with cell.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_registering_makes_the_agent_a_service_and_a_node_for_each_host(cell: Database) -> None:
    done = hosts.register(cell, "a1", 7, 74, nodes("h1", "h2"))
    assert done == hosts.Registered(("h1", "h2"), (), ())
    assert (count(cell, agents), count(cell, services), count(cell, compute_nodes)) == (1, 2, 2)
    with cell.read() as connection:
        service = list_services(connection)[0]
    assert (service.host, service.binary, service.topic, service.agent, service.version) == (
        "h1", "nova-compute", "compute", "a1", 74,
    )  # fmt: skip


def test_registering_again_changes_rows_and_adds_none(cell: Database) -> None:
    hosts.register(cell, "a1", 7, 74, nodes("h1", "h2"))
    done = hosts.register(cell, "a1", 7, 74, [node("h1", vcpus_used=5), *nodes("h3")])
    assert done.new == ("h3",)
    with cell.read() as connection:
        query = sa.select(compute_nodes.c.host, compute_nodes.c.vcpus_used).order_by(compute_nodes.c.host)
        rows = connection.execute(query).all()
    assert [tuple(row) for row in rows] == [("h1", 5), ("h2", 0), ("h3", 0)]


def test_a_host_that_comes_with_another_agent_belongs_to_it(cell: Database) -> None:
    hosts.register(cell, "a1", 1, 73, nodes("h1"))
    assert hosts.register(cell, "a2", 1, 74, nodes("h1")).new == ()
    with cell.read() as connection:
        found = hosts.agent_of(connection, "h1", 60)
        assert list_services(connection)[0].version == 74
    assert found is not None
    assert found.agent == "a2"


def test_a_host_of_an_agent_that_is_alive_is_not_anothers_until_it_is_silent(cell: Database, time: Later) -> None:
    hosts.register(cell, "a1", 1, 74, nodes("h1"))
    time.seconds = 60
    hosts.agent_beat(cell, "a1", 1)
    time.seconds = 119
    done = hosts.register(cell, "a2", 1, 74, nodes("h1", "h2"), down_time=60)
    assert (done.new, done.refused, done.others) == (("h2",), ("h1",), (("h1", "a1"),))
    with cell.read() as connection:
        assert hosts.agent_of(connection, "h1", 60) == hosts.ServedBy("a1", 1, True)
    time.seconds = 121
    done = hosts.register(cell, "a2", 1, 74, nodes("h1", "h2"), down_time=60)
    assert (done.new, done.refused, done.others) == ((), (), ())
    with cell.read() as connection:
        assert hosts.agent_of(connection, "h1", 60) == hosts.ServedBy("a2", 1, True)


def test_a_node_keeps_its_uuid_and_its_host_for_life(cell: Database) -> None:
    hosts.register(cell, "a1", 1, 74, nodes("h1", "h2"))
    stranger, renamed = node("h1", uuid=ids.new_uuid(), vcpus=99), node("h9", uuid=node("h2")["uuid"])
    done = hosts.register(cell, "a1", 1, 74, [stranger, renamed, node("h3")])
    assert done == hosts.Registered(("h3",), (), ("h1", "h9"))
    assert (count(cell, services), count(cell, compute_nodes)) == (3, 3)
    with cell.read() as connection:
        assert connection.execute(sa.select(sa.func.max(compute_nodes.c.vcpus))).scalar() == 8


def test_registering_says_which_hosts_are_disabled(cell: Database) -> None:
    hosts.register(cell, "a1", 1, 74, nodes("h1", "h2", "h3"))
    with cell.write() as connection:
        for service in list_services(connection)[1:]:
            set_disabled(connection, service.id, disabled=True, reason="maintenance")
    assert hosts.register(cell, "a1", 1, 74, nodes("h1", "h2")).disabled == ("h2",)
    with cell.read() as connection:
        assert hosts.disabled_hosts(connection, "a1") == ("h2", "h3")
        assert hosts.disabled_hosts(connection, "a2") == ()


def test_a_beat_is_one_statement_whatever_the_number_of_hosts(cell: Database) -> None:
    hosts.register(cell, "a1", 1, 74, nodes(*(f"h{number}" for number in range(50))))
    statements: list[str] = []
    sa.event.listen(cell._writer, "before_cursor_execute", lambda *args: statements.append(args[2]))
    assert hosts.agent_beat(cell, "a1", 1) == hosts.Beat(True)
    assert [text.split()[0] for text in statements if text != "BEGIN IMMEDIATE"] == ["UPDATE"]


def test_a_beat_of_a_new_epoch_is_a_restart_and_one_of_an_old_epoch_is_refused(cell: Database) -> None:
    assert hosts.agent_beat(cell, "a1", 5) == hosts.Beat(False)
    hosts.register(cell, "a1", 5, 74, nodes("h1", "h2"))
    assert hosts.agent_beat(cell, "a1", 6) == hosts.Beat(True, True)
    assert hosts.agent_beat(cell, "a1", 6) == hosts.Beat(True)
    with pytest.raises(hosts.AgentSuperseded):
        hosts.agent_beat(cell, "a1", 5)
    with pytest.raises(hosts.AgentSuperseded):
        hosts.register(cell, "a1", 5, 74, nodes("h3"))
    assert count(cell, services) == 2


def test_hosts_that_an_agent_no_longer_has_are_taken_from_it_and_go_down(cell: Database, time: Later) -> None:
    hosts.register(cell, "a1", 1, 74, nodes("h1", "h2"))
    assert hosts.release_unless(cell, "a1", 2)
    time.seconds = 30
    assert not hosts.release_unless(cell, "a1", 1)
    assert hosts.register(cell, "a1", 1, 74, nodes("h1")).new == ()
    assert hosts.release_unless(cell, "a1", 1)
    time.seconds = 95
    hosts.agent_beat(cell, "a1", 1)
    with cell.read() as connection:
        up = {row.host: row.up(clock.utcnow(), 60) for row in list_services(connection)}
    assert up == {"h1": True, "h2": False}


def test_the_agent_of_a_host_is_up_while_it_beats(cell: Database, time: Later) -> None:
    hosts.register(cell, "a1", 5, 74, nodes("h1"))
    with cell.read() as connection:
        assert hosts.agent_of(connection, "h1", 60) == hosts.ServedBy("a1", 5, True)
        time.seconds = 61
        assert hosts.agent_of(connection, "h1", 60) == hosts.ServedBy("a1", 5, False)
        assert hosts.agent_of(connection, "elsewhere", 60) is None


def test_the_directory_answers_from_its_cache_for_some_seconds(cell: Database, time: Later) -> None:
    directory = hosts.AgentDirectory(lambda: (cell,), 60)
    assert directory.agent_of("h1") is None
    hosts.register(cell, "a1", 1, 74, nodes("h1"))
    assert directory.agent_of("h1") == hosts.ServedBy("a1", 1, True)
    hosts.register(cell, "a2", 1, 74, nodes("h1"))
    assert directory.agent_of("h1") == hosts.ServedBy("a1", 1, True)
    time.seconds = 11
    assert directory.agent_of("h1") == hosts.ServedBy("a2", 1, True)
    hosts.register(cell, "a3", 1, 74, nodes("h1"))
    directory.forget()
    assert directory.agent_of("h1") == hosts.ServedBy("a3", 1, True)


def test_hosts_are_mapped_once(api: Database) -> None:
    assert hosts.map_hosts(api, CELL, ["h1", "h2"]) == ("h1", "h2")
    assert hosts.map_hosts(api, CELL, ["h2", "h3"]) == ("h3",)
    with api.write() as connection:
        assert hosts.unmap_host(connection, "h1")
        assert not hosts.unmap_host(connection, "h1")
    with api.read() as connection:
        assert hosts.list_mappings(connection) == [("h2", CELL), ("h3", CELL)]
        assert hosts.cells_of(connection, ["h1", "h2"]) == {"h2": CELL}


def test_what_discovery_compares_are_the_nodes_of_the_cell(cell: Database) -> None:
    hosts.register(cell, "a1", 1, 74, nodes("h2", "h1"))
    with cell.read() as connection:
        assert hosts.hosts_of_cell(connection) == ["h2", "h1"]

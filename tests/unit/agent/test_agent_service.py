"""The whole agent against the conductor's real handlers, over the local bus."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.agent.service import Agent
from kilonova.agent.settings import AgentSettings
from kilonova.bus import calls
from kilonova.bus.bus import NobodyServes
from kilonova.bus.calls import ConsoleOutput, Destroy, HostReports, Refresh
from kilonova.bus.local import LocalBus
from kilonova.conductor.reports import AgentReports
from kilonova.core import clock
from kilonova.core.errors import NotFound
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import compute_nodes, hosts, services
from kilonova.sql.engine import Database
from kilonova.virt.simulated import SimulatedDriver
from tests.unit.agent.fakes import Placement, spawn, ticket
from tests.unit.conftest import CELL

RARELY = AgentSettings(report_interval=3600)  # beats are made by hand


class Cloud:
    """A cell, its conductor's handlers, placement, and agents that come and go in one state directory."""

    def __init__(self, directory: Path, bus: LocalBus, placement: Placement) -> None:
        directory.mkdir()
        self.directory, self.bus, self.placement = directory, bus, placement
        self.reported: list[str] = []
        self.verbs = 0
        self.build()

    def build(self) -> None:
        """Fresh databases."""
        number = len(list(self.directory.glob("cell*.db")))
        self.cell, self.api = (Database(f"sqlite:///{self.directory}/{name}{number}.db") for name in ("cell", "api"))
        with self.cell.write() as connection:
            cell_schema.metadata.create_all(connection)
        with self.api.write() as connection:
            api_schema.metadata.create_all(connection)
            row = {"uuid": CELL, "name": "cell1", "transport_url": "", "database_connection": ""}
            connection.execute(api_schema.cell_mappings.insert(), row)

    def conduct(self) -> None:
        """A conductor begins to serve."""
        handlers = AgentReports(self.cell, self.api, CELL, self.bus).handlers()
        take = handlers["host_reports"]

        def reports(ctx: Any, told: HostReports) -> Any:
            self.reported.extend(report.host for report in told.reports)
            return take(ctx, told)

        own = {**handlers, "host_reports": reports, "verb_report": lambda *_: None}
        self.end_conductor = self.bus.serve("conductor", own)

    def agent(self, count: int = 3, settings: AgentSettings = RARELY) -> Agent:
        driver = SimulatedDriver(str(self.directory / "guests.db"), hosts=count)
        return Agent("a1", self.bus, driver, self.placement, settings, self.directory)

    def node(self, host: str = "sim-0001") -> compute_nodes.ComputeNode:
        with self.cell.read() as connection:
            return compute_nodes.nodes_of(connection, [host])[0]

    def disable(self, host: str, *, disabled: bool = True) -> None:
        with self.cell.write() as connection:
            known = services.find_service(connection, host, "nova-compute")
            services.set_disabled(connection, known.id, disabled=disabled)


@pytest.fixture
def cloud(directory: Path, bus: LocalBus, placement: Placement) -> Cloud:
    made = Cloud(directory, bus, placement)
    made.conduct()
    return made


@pytest.fixture
def agent(cloud: Cloud) -> Iterator[Agent]:
    made = cloud.agent()
    made.start()
    assert made.wait_ready(5)
    yield made
    made.stop()


def until(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        clock.sleep(0.01)
    raise AssertionError("it did not come true")


def traits(cloud: Cloud, host: str) -> list[str]:
    return list(cloud.placement.named(host)["traits"])


def test_ready_means_that_conductor_and_placement_know_the_hosts(cloud: Cloud, agent: Agent) -> None:
    with cloud.cell.read() as connection:
        assert [row.host for row in services.list_services(connection)] == ["sim-0001", "sim-0002", "sim-0003"]
    with cloud.api.read() as connection:
        assert len(hosts.list_mappings(connection)) == 3
    assert {row["uuid"] for row in cloud.placement.providers.values()} == {
        cloud.node(host).uuid for host in ("sim-0001", "sim-0002", "sim-0003")
    }


def test_a_restart_tells_nothing_anew_and_has_a_higher_epoch(cloud: Cloud, agent: Agent) -> None:
    agent.stop()
    cloud.reported.clear()
    cloud.placement.writes.clear()
    again = cloud.agent()
    again.start()
    assert again.wait_ready(5)
    again.stop()
    assert again.epoch > agent.epoch
    assert (cloud.reported, cloud.placement.writes) == ([], [])


def test_more_hosts_after_a_restart_are_told_and_the_old_ones_not(cloud: Cloud, agent: Agent) -> None:
    agent.stop()
    cloud.reported.clear()
    again = cloud.agent(4)
    again.start()
    assert again.wait_ready(5)
    again.stop()
    assert "sim-0004" in cloud.reported
    assert cloud.node("sim-0004").vcpus == 32


def test_a_process_whose_agent_was_started_again_elsewhere_takes_no_more_verbs(cloud: Cloud, agent: Agent) -> None:
    hosts.agent_beat(cloud.cell, "a1", agent.epoch + 1)
    agent._beat()
    with pytest.raises(NobodyServes):
        cloud.bus.cast(calls.guest_spawn, spawn("s1"), to="a1")


def test_hosts_that_are_gone_after_a_restart_are_no_longer_the_agents(cloud: Cloud, agent: Agent) -> None:
    agent.stop()
    again = cloud.agent(2)
    again.start()
    assert again.wait_ready(5)
    again.stop()
    with cloud.cell.read() as connection:
        found = services.list_services(connection)
    assert [(row.host, row.agent) for row in found] == [("sim-0001", "a1"), ("sim-0002", "a1"), ("sim-0003", None)]


def test_a_conductor_with_an_empty_database_is_told_everything(cloud: Cloud, agent: Agent) -> None:
    cloud.end_conductor()
    cloud.build()
    cloud.conduct()
    agent._beat()
    assert cloud.node("sim-0003").vcpus == 32


def test_an_agent_waits_for_its_conductor(directory: Path, bus: LocalBus, placement: Placement) -> None:
    cloud = Cloud(directory, bus, placement)
    agent = cloud.agent()
    agent.start()
    assert not agent.wait_ready(0.15)
    cloud.conduct()
    assert agent.wait_ready(5)
    agent.stop()


def test_usage_is_reported_with_the_next_beat_not_with_each_build(cloud: Cloud, agent: Agent) -> None:
    cloud.reported.clear()
    for number in range(5):
        cloud.bus.cast(calls.guest_spawn, spawn(f"s{number}", workflow=f"w{number}"), to="a1")
    assert cloud.reported == []
    assert cloud.node().running_vms == 0
    agent._beat()
    assert cloud.reported == ["sim-0001"]
    node = cloud.node()
    assert (node.running_vms, node.vcpus_used, node.memory_mb_used, node.local_gb_used) == (5, 5, 5 * 512 + 512, 5)
    cloud.bus.cast(calls.guest_destroy, Destroy(ticket("s0", workflow="w0", step="destroy")), to="a1")
    agent._beat()
    agent._beat()
    assert cloud.reported == ["sim-0001"] * 2
    assert cloud.node().running_vms == 4


def test_usage_that_was_not_reported_before_a_kill_is_reported_after_it(cloud: Cloud, agent: Agent) -> None:
    cloud.bus.cast(calls.guest_spawn, spawn("s1"), to="a1")
    agent._reporter._changed.clear()  # killed before the beat
    agent.stop()
    again = cloud.agent()
    again.start()
    assert again.wait_ready(5)
    again.stop()
    assert cloud.node().running_vms == 1


def test_reports_that_fail_are_sent_with_a_later_beat(cloud: Cloud, agent: Agent) -> None:
    cloud.bus.cast(calls.guest_spawn, spawn("s1"), to="a1")
    cloud.end_conductor()
    agent._beat()
    cloud.conduct()
    agent._beat()
    assert cloud.node().running_vms == 1


def test_a_refresh_brings_the_disabled_trait_at_once(cloud: Cloud, agent: Agent) -> None:
    for disabled in (True, False):
        cloud.disable("sim-0002", disabled=disabled)
        cloud.bus.cast(calls.refresh_hosts, Refresh(("sim-0002",)), to="a1")
        until(lambda wanted=disabled: ("COMPUTE_STATUS_DISABLED" in traits(cloud, "sim-0002")) is wanted)
    assert "COMPUTE_STATUS_DISABLED" not in traits(cloud, "sim-0001")


def test_a_lost_refresh_is_made_good_by_a_beat_that_asks(cloud: Cloud, agent: Agent) -> None:
    cloud.disable("sim-0002")
    agent._ask_at = 0.0
    agent._beat()
    until(lambda: "COMPUTE_STATUS_DISABLED" in traits(cloud, "sim-0002"))


def test_a_host_disabled_while_the_agent_was_away_gets_the_trait(cloud: Cloud, agent: Agent) -> None:
    agent.stop()
    cloud.disable("sim-0003")
    again = cloud.agent()
    again.start()
    assert again.wait_ready(5)
    until(lambda: again.settled)
    again.stop()
    assert "COMPUTE_STATUS_DISABLED" in traits(cloud, "sim-0003")


def test_the_console_is_answered_and_unknown_guests_are_not_found(cloud: Cloud, agent: Agent) -> None:
    cloud.bus.cast(calls.guest_spawn, spawn("s1"), to="a1")
    answer = cloud.bus.call(calls.console_output, ConsoleOutput("sim-0001", "s1", 3), to="a1")
    assert "web login:" in answer.output
    with pytest.raises(NotFound):
        cloud.bus.call(calls.console_output, ConsoleOutput("sim-0001", "none"), to="a1")


def test_threads_do_not_grow_with_the_hosts(cloud: Cloud) -> None:
    before = threading.active_count()
    agent = cloud.agent(300)
    agent.start()
    assert agent.wait_ready(10)
    assert threading.active_count() - before <= 3
    until(lambda: agent.settled)
    agent.stop()


def test_beats_come_by_the_clock(cloud: Cloud) -> None:
    agent = cloud.agent(settings=AgentSettings(report_interval=0.02))
    agent.start()

    def beats() -> int:
        with cloud.cell.read() as connection:
            found = services.list_services(connection, host="sim-0001")
        return found[0].report_count if found else 0

    until(lambda: beats() >= 3)
    agent.stop()

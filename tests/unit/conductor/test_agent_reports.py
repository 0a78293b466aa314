from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from kilonova.bus import calls
from kilonova.bus.calls import AgentBeat, BeatReply, HostReport, HostReports
from kilonova.bus.local import LocalBus
from kilonova.conductor.heartbeat import CONDUCTOR, SCHEDULER, Heartbeat
from kilonova.conductor.reports import AgentReports, NewHosts
from kilonova.core import clock, ids
from kilonova.core.errors import Conflict
from kilonova.db.queries import compute_nodes, hosts, services
from kilonova.sql.engine import Database
from tests.unit.agent.fakes import Inline
from tests.unit.conftest import CELL


class Rig:
    def __init__(self, cell: Database, api: Database, **options: Any) -> None:
        self.cell, self.api = cell, api
        self.bus = LocalBus(Inline())
        self.seen: list[tuple[str, int, tuple[str, ...]]] = []
        self.changed: list[str] = []
        desk = AgentReports(cell, api, CELL, self.bus, agent_seen=self._seen, **options)
        self.bus.serve("conductor", desk.handlers())

    def _seen(self, agent: str, epoch: int, in_hand: Any) -> None:
        self.seen.append((agent, epoch, tuple(in_hand)))

    def with_scheduler(self) -> None:
        self.bus.serve("scheduler", {"hosts_changed": lambda _ctx, told: self.changed.extend(told.hosts)})

    def report(self, *names: str, agent: str = "a1", epoch: int = 1, **changes: Any) -> BeatReply:
        told = tuple(report(name, **changes) for name in names)
        return self.bus.call(calls.host_reports, HostReports(agent, epoch, 74, told))

    def beat(self, epoch: int = 1, count: int = 1, **more: Any) -> BeatReply:
        return self.bus.call(calls.agent_beat, AgentBeat("a1", epoch, count, **more))

    def mapped(self) -> list[str]:
        with self.api.read() as connection:
            return [host for host, _ in hosts.list_mappings(connection)]


def report(host: str, **changes: Any) -> HostReport:
    values: dict[str, Any] = {
        "host": host, "node": host, "uuid": ids.derived_uuid(CELL, host), "hypervisor_type": "fake",
        "hypervisor_version": 1000, "vcpus": 8, "memory_mb": 4096, "local_gb": 100, "memory_mb_used": 512,
        "cpu_info": {"arch": "x86_64"}, "supported_instances": (("x86_64", "fake", "hvm"),),
    }  # fmt: skip
    return HostReport(**(values | changes))


@pytest.fixture
def rig(cell: Database, api: Database) -> Iterator[Rig]:
    made = Rig(cell, api)
    yield made
    made.bus.close()


def test_a_new_host_is_a_node_is_mapped_and_the_scheduler_hears_of_it(rig: Rig) -> None:
    rig.with_scheduler()
    assert rig.report("h1", "h2") == BeatReply(disabled=())
    with rig.cell.read() as connection:
        node = compute_nodes.nodes_of(connection, ["h1"])[0]
    assert (node.free_ram_mb, node.free_disk_gb) == (3584, 100)
    assert node.cpu_info == {"arch": "x86_64"}
    assert node.supported_instances == [["x86_64", "fake", "hvm"]]
    assert rig.mapped() == ["h1", "h2"]
    assert rig.changed == ["h1", "h2"]


def test_reports_are_taken_while_no_scheduler_runs(rig: Rig) -> None:
    assert rig.report("h1") == BeatReply(disabled=())


def test_hosts_wait_for_discovery_when_it_is_not_automatic(cell: Database, api: Database) -> None:
    rig = Rig(cell, api, new_hosts=NewHosts(discover=False))
    rig.report("h1")
    assert rig.mapped() == []


@pytest.mark.parametrize(
    ("interval", "all_in_one", "automatic"), [(-1, False, False), (5, False, True), (-1, True, True)]
)
def test_discovery_is_automatic_with_an_interval_or_in_one_process(
    interval: int, all_in_one: bool, automatic: bool
) -> None:
    class Conf:
        enable_new_services = False
        report_interval, service_down_time = 10, 45

        class scheduler:
            discover_hosts_in_cells_interval = interval

    assert NewHosts.from_conf(Conf, all_in_one=all_in_one) == NewHosts(automatic, False, 45)


def test_a_new_service_may_start_disabled(cell: Database, api: Database) -> None:
    rig = Rig(cell, api)
    rig.report("h1")
    rig = Rig(cell, api, new_hosts=NewHosts(enable=False))
    assert rig.report("h1", "h2").disabled == ("h2",)
    with cell.read() as connection:
        found = services.services_of(connection, ["h1", "h2"])
    assert not found["h1"].disabled
    assert found["h2"].disabled
    assert "enable_new_services" in (found["h2"].disabled_reason or "")


def test_a_host_on_record_that_was_never_mapped_is_mapped_with_its_next_report(cell: Database, api: Database) -> None:
    Rig(cell, api, new_hosts=NewHosts(discover=False)).report("h1")  # as when we died between the two databases
    rig = Rig(cell, api)
    rig.report("h1")
    assert rig.mapped() == ["h1"]


def test_a_host_removed_and_reporting_again_is_mapped_again(rig: Rig) -> None:
    rig.report("h1")
    with rig.api.write() as connection:
        hosts.unmap_host(connection, "h1")
    with rig.cell.write() as connection:
        services.delete_service(connection, services.find_service(connection, "h1", "nova-compute"))
        compute_nodes.delete_node(connection, "h1")
    rig.report("h1")
    assert rig.mapped() == ["h1"]


def test_a_node_with_another_uuid_is_refused_and_named(rig: Rig) -> None:
    rig.with_scheduler()
    rig.report("h1")
    answer = rig.report("h1", "h2", uuid=ids.new_uuid())
    assert answer.refused == ("h1", )
    assert rig.changed == ["h1", "h2"]


def untimed(reply: BeatReply) -> BeatReply:
    """The reply to a beat, which has the time; without it."""
    assert reply.time is not None
    assert abs(reply.time - clock.utcnow()) < timedelta(seconds=5)
    return msgspec.structs.replace(reply, time=None)


def test_a_beat_of_an_unknown_agent_asks_for_reports(rig: Rig) -> None:
    assert untimed(rig.beat()) == BeatReply(unknown=True)
    assert rig.seen == []


def test_a_beat_reaches_the_open_verbs(rig: Rig) -> None:
    rig.report("h1")
    assert untimed(rig.beat(in_hand=("w/s/1",))) == BeatReply()
    assert rig.seen == [("a1", 1, ("w/s/1",))]


def test_a_restarted_agent_with_other_hosts_than_on_record_is_asked_for_reports(rig: Rig) -> None:
    rig.report("h1")
    assert not rig.beat(epoch=2, count=1, first=True).unknown
    assert not rig.beat(epoch=2, count=2).unknown
    assert rig.beat(epoch=3, count=2, first=True).unknown
    assert rig.beat(epoch=3, count=1, first=True).unknown  # until it has reported
    rig.report("h1", epoch=3)
    assert not rig.beat(epoch=3, count=1, first=True).unknown


def test_a_beat_that_asks_learns_the_disabled_hosts(rig: Rig) -> None:
    rig.report("h1", "h2")
    with rig.cell.write() as connection:
        known = services.find_service(connection, "h2", "nova-compute")
        services.set_disabled(connection, known.id, disabled=True)
    assert rig.beat(ask=True).disabled == ("h2",)
    assert rig.beat().disabled is None
    assert rig.report("h1", "h2").disabled == ("h2",)


def test_an_agent_process_of_the_past_is_refused(rig: Rig) -> None:
    rig.report("h1", epoch=5)
    with pytest.raises(Conflict):
        rig.beat(epoch=4)
    with pytest.raises(Conflict):
        rig.report("h2", epoch=4)


def test_our_own_services_are_listed_and_beat(cell: Database) -> None:
    heart = Heartbeat(cell, "ctl", CONDUCTOR | SCHEDULER, report_interval=60)
    heart.start()
    heart.beat()
    heart.stop()
    with cell.read() as connection:
        found = services.list_services(connection, host="ctl")
    assert [(row.binary, row.topic, row.report_count) for row in found] == [
        ("nova-conductor", "conductor", 1), ("nova-scheduler", "scheduler", 1),
    ]  # fmt: skip

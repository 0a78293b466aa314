from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import AgentState
from kilonova.agent.tracker import FIRST, Tracker
from kilonova.core import clock
from kilonova.virt.simulated import SimulatedDriver
from tests.unit.agent.fakes import Placement


class Rig:
    def __init__(self, placement: Placement, directory: Path, hosts: int = 3) -> None:
        directory.mkdir(exist_ok=True)
        self.placement = placement
        self.driver = SimulatedDriver(str(directory / "guests.db"), hosts=hosts)
        self.tracker = Tracker(placement, self.driver, AgentState(directory), AgentSettings())
        self.hosts = list(self.driver.hosts())

    def settle(self) -> None:
        for _ in range(500):
            if self.tracker.idle:
                return
            clock.sleep(0.01)
        raise AssertionError("the tracker does not come to rest")

    def start(self) -> None:
        self.tracker.start(self.hosts)
        assert self.tracker.first_done.wait(5)
        self.tracker.update(self.hosts)
        self.settle()


@pytest.fixture
def rig(placement: Placement, directory: Path) -> Iterator[Rig]:
    made = Rig(placement, directory)
    yield made
    made.tracker.stop()


def test_new_hosts_get_a_provider_with_inventory_and_traits(rig: Rig) -> None:
    rig.start()
    row = rig.placement.named("sim-0002")
    assert row["uuid"] == rig.driver.facts("sim-0002").uuid
    assert row["inventory"]["VCPU"]["total"] == 32
    assert {"COMPUTE_NODE", "OWNER_NOVA", "COMPUTE_VOLUME_ATTACH"} <= set(row["traits"])
    assert len(rig.placement.providers) == 3
    assert rig.placement.lists == 0


def test_after_a_restart_one_list_is_read_and_nothing_is_sent(rig: Rig, placement: Placement, directory: Path) -> None:
    rig.start()
    placement.writes.clear()
    again = Rig(placement, directory)
    again.start()
    assert placement.writes == []


def test_many_hosts_are_compared_with_one_list(placement: Placement, directory: Path) -> None:
    Rig(placement, directory, 30).start()
    again = Rig(placement, directory, 30)
    again.start()
    assert placement.lists == 1


def test_after_a_restart_what_placement_lost_is_made_again(rig: Rig, placement: Placement, directory: Path) -> None:
    rig.start()
    del placement.providers[rig.driver.facts("sim-0003").uuid]
    placement.writes.clear()
    Rig(placement, directory).start()
    assert {name for _, name in placement.writes} == {"sim-0003"}
    assert placement.named("sim-0003")["inventory"]["DISK_GB"]["total"] == 4096


def test_a_disabled_host_gets_the_trait_and_loses_it_again(rig: Rig) -> None:
    rig.start()
    for disabled in (["sim-0002"], []):
        rig.placement.writes.clear()
        rig.tracker.set_disabled(rig.hosts, disabled)
        rig.settle()
        assert ("COMPUTE_STATUS_DISABLED" in rig.placement.named("sim-0002")["traits"]) is bool(disabled)
        assert rig.placement.writes == [("traits", "sim-0002")]


def test_hosts_not_asked_about_keep_their_status(rig: Rig) -> None:
    rig.start()
    rig.tracker.set_disabled(rig.hosts, ["sim-0002"])
    rig.tracker.set_disabled(["sim-0001"], [])
    rig.settle()
    assert "COMPUTE_STATUS_DISABLED" in rig.placement.named("sim-0002")["traits"]


def test_what_others_set_on_a_provider_stays(rig: Rig) -> None:
    rig.start()
    row = rig.placement.named("sim-0001")
    row["traits"].append("CUSTOM_FAST")
    row["inventory"]["CUSTOM_GPU"] = {"total": 1}
    row["inventory"]["VCPU"]["allocation_ratio"] = 9.0
    rig.tracker.set_disabled(rig.hosts, ["sim-0001"])
    rig.settle()
    assert {"CUSTOM_FAST", "COMPUTE_STATUS_DISABLED"} <= set(row["traits"])
    assert row["inventory"]["CUSTOM_GPU"] == {"total": 1}
    assert row["inventory"]["VCPU"]["allocation_ratio"] == 9.0


def test_a_provider_changed_by_somebody_else_meanwhile_is_read_again(rig: Rig) -> None:
    times = iter((True, True, False, False, False, False, False, False, False))

    def meddle(row: dict[str, Any]) -> None:
        row["generation"] += next(times)

    rig.hosts = rig.hosts[:1]
    rig.placement.meddle = meddle
    rig.start()
    assert "COMPUTE_NODE" in rig.placement.named("sim-0001")["traits"]


def test_placement_may_come_later(rig: Rig) -> None:
    rig.placement.down = True
    rig.tracker.start(rig.hosts)
    assert not rig.tracker.first_done.wait(0.05)
    rig.placement.down = False
    assert rig.tracker.first_done.wait(5)
    rig.settle()
    assert len(rig.placement.providers) == 3


def test_a_name_taken_by_another_provider_holds_up_nobody(rig: Rig) -> None:
    rig.placement.providers["x"] = {"uuid": "x", "name": "sim-0001", "generation": 0, "inventory": {}, "traits": []}
    rig.start()
    assert {row["name"] for row in rig.placement.providers.values()} == set(rig.hosts)
    del rig.placement.providers["x"]
    rig.tracker.update(rig.hosts)
    rig.settle()
    assert rig.placement.named("sim-0001")["traits"]


def test_the_first_hosts_are_done_first(placement: Placement, directory: Path) -> None:
    rig = Rig(placement, directory, FIRST + 20)
    rig.start()
    made = [name for part, name in placement.writes if part == "provider"]
    assert set(made[:FIRST]) == set(rig.hosts[:FIRST])
    assert len(made) == FIRST + 20


def test_no_thread_stays_when_there_is_nothing_to_do(rig: Rig) -> None:
    rig.start()
    for _ in range(100):
        if not rig.tracker._threads:
            break
        clock.sleep(0.01)
    assert rig.tracker._threads == set()

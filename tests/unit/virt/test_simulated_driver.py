from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.bus.calls import GuestSpec
from kilonova.core import clock, ids, states
from kilonova.virt.driver import (
    Console,
    GuestAborted,
    GuestFailed,
    GuestNotFound,
    GuestNotRunning,
    GuestState,
    HostUnknown,
    Inventory,
    Lifecycle,
    Network,
    NotInDriver,
    Storage,
    need,
)
from kilonova.virt.simulated import Delays, SimulatedDriver, SimulatedSettings, Sizes, host_names
from kilonova.virt.simulated_faults import FaultInvalid, parse

HOST = "sim-0001"
VIF = {"id": "port-1", "mac": "fa:16:3e:00:00:01", "fixed_ips": [{"address": "10.0.0.7"}]}


def guest(uuid: str | None = None, **changes: object) -> GuestSpec:
    values: dict[str, object] = {
        "uuid": uuid or ids.new_uuid(), "name": "instance-1", "hostname": "web", "project_id": "p", "user_id": "u",
        "vcpus": 2, "memory_mb": 1024, "root_gb": 10,
    }  # fmt: skip
    return GuestSpec(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[SimulatedDriver]:
    made = SimulatedDriver(str(tmp_path / "guests.db"), hosts=2)
    yield made
    made.close()


def broken(tmp_path: Path, *faults: str) -> SimulatedDriver:
    settings = SimulatedSettings(hosts=2, faults=tuple(parse(text) for text in faults))
    return SimulatedDriver(str(tmp_path / "guests.db"), settings=settings)


@pytest.mark.parametrize("protocol", [Inventory, Lifecycle, Storage, Network, Console])
def test_the_simulated_driver_implements_every_protocol(driver: SimulatedDriver, protocol: type) -> None:
    assert need(driver, protocol) is driver


def test_a_protocol_that_a_driver_leaves_out_is_unsupported() -> None:
    class Bare:
        name, quick = "bare", True

        def capabilities(self) -> frozenset[str]:
            return frozenset()

        def close(self) -> None: ...

    with pytest.raises(NotInDriver, match="bare driver does not offer console") as caught:
        need(Bare(), Console)
    assert caught.value.status == 501


def test_hosts_keep_their_names_and_uuids_when_their_number_grows(tmp_path: Path) -> None:
    few, many = (SimulatedDriver(str(tmp_path / f"{count}.db"), hosts=count) for count in (2, 12000))
    assert list(few.hosts()) == ["sim-0001", "sim-0002"] == list(many.hosts())[:2]
    assert many.hosts()[-1] == "sim-12000"
    assert few.facts(HOST) == many.facts(HOST)
    assert len({many.facts(host).uuid for host in many.hosts()}) == 12000


def test_a_default_host_holds_ten_of_the_largest_flavor(driver: SimulatedDriver) -> None:
    facts = driver.facts(HOST)
    assert facts.vcpus * 4.0 >= 10 * 8
    assert facts.memory_mb - 512 >= 10 * 16384
    assert facts.local_gb >= 10 * 160


def test_a_host_that_is_not_served_is_refused_by_every_verb(driver: SimulatedDriver) -> None:
    for verb in (
        lambda: driver.spawn("elsewhere", guest(), paused=False),
        lambda: driver.destroy("elsewhere", "x"),
        lambda: driver.power("elsewhere", "x", "running", 60),
        lambda: driver.attach_disk("elsewhere", "x", {}),
        lambda: driver.console_output("elsewhere", "x"),
        lambda: driver.facts("elsewhere"),
        lambda: driver.guests("elsewhere"),
    ):
        with pytest.raises(HostUnknown):
            verb()


def test_guests_survive_their_agent(tmp_path: Path) -> None:
    path = str(tmp_path / "guests.db")
    first = SimulatedDriver(path, hosts=2)
    spec = guest()
    first.spawn(HOST, spec, paused=False)  # and no close: the agent was killed
    second = SimulatedDriver(path, hosts=2)
    assert second.guests(HOST) == [GuestState(spec.uuid, "instance-1", states.RUNNING)]


def test_spawn_repeated_changes_nothing(driver: SimulatedDriver) -> None:
    spec = guest()
    made = driver.spawn(HOST, spec, paused=False)
    driver.power(HOST, spec.uuid, "shutdown", 60)
    assert made.power_state == states.RUNNING
    assert driver.spawn(HOST, spec, paused=False).power_state == states.SHUTDOWN
    assert driver.usage([HOST])[HOST].guests == 1


def test_spawn_paused_waits_for_power(driver: SimulatedDriver) -> None:
    spec = guest()
    assert driver.spawn(HOST, spec, paused=True).power_state == states.POWER_PAUSED
    assert driver.power(HOST, spec.uuid, "running", 60).power_state == states.RUNNING


def test_destroy_of_nothing_is_done(driver: SimulatedDriver) -> None:
    spec = guest()
    driver.spawn(HOST, spec, paused=False)
    driver.destroy(HOST, spec.uuid)
    driver.destroy(HOST, spec.uuid)
    assert driver.guests(HOST) == []


def test_one_server_may_have_a_guest_on_two_hosts(driver: SimulatedDriver) -> None:
    spec = guest()
    for host in driver.hosts():
        driver.spawn(host, spec, paused=False)
    driver.destroy("sim-0001", spec.uuid)
    assert len(driver.guests("sim-0002")) == 1


@pytest.mark.parametrize(
    ("state", "number"),
    [("paused", 3), ("suspended", 7), ("shutdown", 4), ("running", 1), ("reboot-soft", 1), ("reboot-hard", 1)],
)
def test_a_running_guest_reaches_every_power_state(driver: SimulatedDriver, state: str, number: int) -> None:
    spec = guest()
    driver.spawn(HOST, spec, paused=False)
    assert driver.power(HOST, spec.uuid, state, 60).power_state == number  # type: ignore[arg-type]
    assert driver.guest(HOST, spec.uuid).power_state == number


def test_a_guest_that_is_off_starts_but_cannot_pause_or_suspend(driver: SimulatedDriver) -> None:
    spec = guest()
    driver.spawn(HOST, spec, paused=False)
    driver.power(HOST, spec.uuid, "shutdown", 60)
    for state in ("paused", "suspended"):
        with pytest.raises(GuestNotRunning):
            driver.power(HOST, spec.uuid, state, 60)  # type: ignore[arg-type]
    assert driver.power(HOST, spec.uuid, "running", 60).power_state == states.RUNNING


def test_verbs_on_a_guest_that_is_not_there_say_so(driver: SimulatedDriver) -> None:
    for verb in (
        lambda: driver.power(HOST, "none", "running", 60),
        lambda: driver.guest(HOST, "none"),
        lambda: driver.attach_disk(HOST, "none", {}),
        lambda: driver.detach_vif(HOST, "none", {}),
        lambda: driver.console_output(HOST, "none"),
    ):
        with pytest.raises(GuestNotFound):
            verb()


def test_usage_sums_guests_with_all_their_local_disk(driver: SimulatedDriver) -> None:
    driver.spawn(HOST, guest(ephemeral_gb=5, swap_mb=1), paused=False)
    driver.spawn(HOST, guest(), paused=False)
    used = driver.usage(driver.hosts())
    assert list(used) == [HOST]
    assert (used[HOST].guests, used[HOST].vcpus, used[HOST].memory_mb, used[HOST].disk_gb) == (2, 4, 2048, 26)


def test_disks_and_interfaces_are_attached_once_and_detached(driver: SimulatedDriver) -> None:
    spec = guest()
    driver.spawn(HOST, spec, paused=False)
    for _ in range(2):
        driver.attach_disk(HOST, spec.uuid, {"volume_id": "v1", "size": 3})
        driver.attach_vif(HOST, spec.uuid, VIF)
    log = driver.console_output(HOST, spec.uuid)
    assert log.count(f"{3 * 2097152} 512-byte") == 1
    assert log.count("10.0.0.7") == 1
    for _ in range(2):
        driver.detach_disk(HOST, spec.uuid, {"volume_id": "v1"})
        driver.detach_vif(HOST, spec.uuid, {"id": "port-1"})
    log = driver.console_output(HOST, spec.uuid)
    assert f"{3 * 2097152} 512-byte" not in log
    assert "10.0.0.7" not in log


def test_the_console_tells_name_address_and_the_number_of_the_boot(driver: SimulatedDriver) -> None:
    spec = guest(vifs=(VIF,), key_data="ssh-ed25519 AAAA")
    driver.spawn(HOST, spec, paused=False)
    driver.power(HOST, spec.uuid, "reboot-hard", 60)
    log = driver.console_output(HOST, spec.uuid)
    for words in ("web login:", "10.0.0.7", VIF["mac"], spec.uuid, "boot 2 at", "1 key installed", "Allowing 2 CPUs"):
        assert words in log


def test_passwords_are_not_kept_and_the_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "guests.db"
    driver = SimulatedDriver(str(path), hosts=1)
    driver.spawn(HOST, guest(admin_password="do-not-keep-me"), paused=False)
    driver.close()
    assert b"do-not-keep-me" not in sqlite3.connect(path).execute("SELECT spec FROM guests").fetchone()[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_fault_strikes_at_the_call_it_was_ordered_for_and_leaves_nothing(tmp_path: Path) -> None:
    driver = broken(tmp_path, "spawn@2-3")
    outcomes = []
    for _ in range(4):
        try:
            driver.spawn(HOST, guest(), paused=False)
            outcomes.append("ok")
        except GuestFailed:
            outcomes.append("failed")
    assert outcomes == ["ok", "failed", "failed", "ok"]
    assert driver.usage([HOST])[HOST].guests == 2


def test_a_fault_may_be_for_one_host_and_may_be_final(tmp_path: Path) -> None:
    driver = broken(tmp_path, "spawn@1:sim-0002!")
    driver.spawn("sim-0001", guest(), paused=False)
    with pytest.raises(GuestAborted):
        driver.spawn("sim-0002", guest(), paused=False)


@pytest.mark.parametrize("text", ["", "spawn", "spawn@", "spawn@x", "fly@1", "spawn@1-", "spawn@1:"])
def test_a_fault_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(FaultInvalid):
        parse(text)


def test_a_delay_is_taken_from_the_clock_and_makes_the_driver_slow(tmp_path: Path) -> None:
    class Counting(clock.SystemClock):
        slept = 0.0

        def sleep(self, seconds: float) -> None:
            self.slept += seconds

    counting = Counting()
    before = clock.install(counting)
    try:
        settings = SimulatedSettings(delays=Delays(spawn=2.5), sizes=Sizes(1, 1, 1))
        driver = SimulatedDriver(str(tmp_path / "guests.db"), settings=settings)
        driver.spawn(HOST, guest(), paused=False)
    finally:
        clock.install(before)
    assert counting.slept == 2.5
    assert not driver.quick
    assert SimulatedDriver(str(tmp_path / "other.db"), hosts=1).quick


def test_capabilities_are_standard_traits(driver: SimulatedDriver) -> None:
    import os_traits

    assert driver.capabilities() <= set(os_traits.get_traits("COMPUTE_"))


def test_names_have_at_least_four_digits() -> None:
    assert host_names(2, "x") == ("x0001", "x0002")

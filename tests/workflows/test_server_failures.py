"""What goes wrong while servers are made or deleted: what the user sees, what is tried again, what is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.compute.settings import ComputeSettings
from kilonova.core.server import Server
from kilonova.db import cell_schema
from kilonova.db.queries import servers
from kilonova.embedded.volumes.tables import VOLUMES
from kilonova.workflows.boot import BOOT
from kilonova.workflows.build import BUILD
from kilonova.workflows.delete import DELETE
from tests.workflows.census import allocations, assert_stable, attachments, guests, living, ports, volumes
from tests.workflows.cloud import HOSTS, QUOTAS, Cloud
from tests.workflows.harness import Change, Faults, _flat, failing
from tests.workflows.stories import (
    XLARGE,
    Interruption,
    again,
    boot,
    booted,
    from_volume,
    port,
    remove,
    tell,
    tidy,
    volume,
)

EVERYWHERE = {f"sim-000{n}" for n in range(1, HOSTS + 1)}
PORTS = ("network", "POST")
NO_ADDRESS = b'{"NeutronError": {"type": "IpAddressGenerationFailure", "message": "none left", "detail": ""}}'


def fault(cloud: Cloud, uuid: str, cell: str = "cell1") -> str:
    return str(servers.faults_of(cloud.files[cell], [uuid])[uuid].message)


def only(alive: dict[str, Server]) -> Server:
    (server,) = alive.values()
    return server


def failed_builds(cloud: Cloud) -> dict[str, int]:
    c = cell_schema.compute_nodes.c
    with cloud.files["cell1"].read() as connection:
        return dict(connection.execute(sa.select(c.host, c.failed_builds)).tuples().all())


# -- hosts ---------------------------------------------------------------------------------------------------------


def test_a_host_that_fails_is_left_for_the_next_one(cloud: Cloud) -> None:
    cloud.bad_hosts = EVERYWHERE - {"sim-0003"}
    server = only(tell(cloud, lambda cloud: boot(cloud, devices=from_volume())))
    tried = [host for _, host in cloud.spawns]
    if server.vm_state == "active":
        assert server.host == "sim-0003" == tried[-1]
    assert len(set(tried)) == len(tried) <= 3
    assert {host for host, count in failed_builds(cloud).items() if count} == set(tried) - {"sim-0003"}


def test_after_as_many_hosts_as_are_to_be_tried_the_server_is_in_error(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds(max_attempts=2)
    cloud.bad_hosts = EVERYWHERE
    server = only(tell(cloud, boot))
    assert server.vm_state == "error"
    assert len(cloud.spawns) == 2
    assert "no luck" in fault(cloud, server.uuid)


def test_a_host_that_says_no_other_will_do_better_ends_the_build(cloud: Cloud) -> None:
    cloud.fatal_hosts = EVERYWHERE
    server = only(tell(cloud, boot))
    assert server.vm_state == "error"
    assert len(cloud.spawns) == 1
    assert "no hope" in fault(cloud, server.uuid)


def test_without_a_host_the_server_is_in_cell0_with_the_words_users_know(cloud: Cloud) -> None:
    alive = tell(cloud, lambda cloud: boot(cloud, availability_zone="nova:nowhere", may_force_host=True))
    server = only(alive)
    assert living(cloud)[server.uuid][0] == "cell0"
    assert fault(cloud, server.uuid, "cell0").startswith("No valid host was found.")
    with cloud.files["cell0"].read() as c:
        event = c.execute(sa.select(cell_schema.instance_actions_events)).one()
    assert (event.event, event.result) == ("conductor_schedule_and_build_instances", "Error")
    tidy(cloud)


def test_a_scheduler_that_cannot_be_asked_is_asked_again_then_the_server_is_in_cell0(cloud: Cloud) -> None:
    cloud.away = {"placement"}
    uuids: list[str] = []
    alive = tell(cloud, lambda cloud: uuids.extend(boot(cloud, 2)))
    assert {server.vm_state for server in alive.values()} == {"error"}
    assert {living(cloud)[uuid][0] for uuid in uuids} == {"cell0"}


# -- many ------------------------------------------------------------------------------------------------------------


def test_fifty_servers_at_once_are_all_active_and_wait_without_threads(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds(slow_plug=True)
    cloud.hold_events = True
    before = threading.active_count()
    boot(cloud, 50)
    cloud.work()
    assert len(guests(cloud)) == 50
    assert threading.active_count() == before
    assert not cloud.process.pool.tasks
    cloud.hold_events = False
    cloud.run()
    alive = assert_stable(cloud)
    assert {server.vm_state for server in alive.values()} == {"active"}
    assert len(alive) == 50
    tidy(cloud)


def test_more_servers_than_there_is_room_for_are_all_refused_and_hold_nothing(cloud: Cloud) -> None:
    alive = tell(cloud, lambda cloud: boot(cloud, 50, flavor_ref=XLARGE, networks="none"))
    assert len(alive) == 50
    assert {living(cloud)[uuid][0] for uuid in alive} == {"cell0"}
    assert only(tell(cloud, lambda cloud: remove_most(cloud, alive))).vm_state == "error"


def remove_most(cloud: Cloud, alive: dict[str, Server]) -> None:
    for uuid in list(alive)[1:]:
        remove(cloud, uuid)


def test_some_of_a_batch_fail_and_the_others_are_active(cloud: Cloud) -> None:
    cloud.bad_names = {"s-2", "s-4"}
    alive = tell(cloud, lambda cloud: boot(cloud, 5))
    assert {server.display_name for server in alive.values() if server.vm_state == "error"} == cloud.bad_names
    tidy(cloud)


# -- network -----------------------------------------------------------------------------------------------------------


def test_no_address_left_ends_the_build_without_another_host(cloud: Cloud) -> None:
    cloud.refuse = {PORTS: ("/ports", 409, NO_ADDRESS)}
    server = only(tell(cloud, boot))
    assert server.vm_state == "error"
    assert "No fixed IP addresses are available" in fault(cloud, server.uuid)
    assert (cloud.spawns, failed_builds(cloud)[server.launched_on or ""]) == ([], 1)


def test_a_network_service_that_is_away_for_a_moment_is_asked_again(cloud: Cloud) -> None:
    boot(cloud)
    cloud.away = {"network"}
    cloud.run(until=lambda: cloud.clock.seconds > 0.5)
    assert cloud.spawns == []
    cloud.away = set()
    cloud.run()
    assert only(assert_stable(cloud)).vm_state == "active"


def test_a_network_service_that_is_away_while_a_build_is_undone_gets_everything_back_later(cloud: Cloud) -> None:
    cloud.bad_hosts = EVERYWHERE
    boot(cloud)
    cloud.faults = Interruption(2, "effect", lambda: cloud.away.add("network"))  # its port has been made
    cloud.faults.armed = True
    cloud.run(until=lambda: cloud.clock.seconds > 20)
    assert len(cloud.spawns) == 1
    assert ports(cloud)
    cloud.away = set()
    cloud.run()
    assert only(assert_stable(cloud)).vm_state == "error"


def test_interfaces_that_are_never_plugged_end_the_build_after_the_time_set(clouds: Callable[..., Cloud]) -> None:
    settings = ComputeSettings(quotas=QUOTAS, vif_plugging_timeout=100)
    cloud = clouds(slow_plug=True, settings=settings)
    cloud.hold_events = True
    begun = cloud.clock.seconds
    server = only(tell(cloud, boot))
    assert server.vm_state == "error"
    assert 100 <= cloud.clock.seconds - begun < 200
    assert "network-vif-plugged" in fault(cloud, server.uuid)
    assert len(cloud.spawns) == 1


def test_interfaces_that_are_never_plugged_do_not_matter_when_that_is_not_fatal(clouds: Callable[..., Cloud]) -> None:
    settings = ComputeSettings(quotas=QUOTAS, vif_plugging_timeout=700, vif_plugging_is_fatal=False)
    cloud = clouds(slow_plug=True, settings=settings)
    cloud.hold_events = True
    assert only(tell(cloud, boot)).vm_state == "active"
    assert cloud.clock.seconds > 699  # a deadline is kept in milliseconds


def test_with_no_time_to_wait_for_interfaces_a_guest_runs_at_once(clouds: Callable[..., Cloud]) -> None:
    settings = ComputeSettings(quotas=QUOTAS, vif_plugging_timeout=0)
    cloud = clouds(slow_plug=True, settings=settings)
    cloud.hold_events = True
    assert only(tell(cloud, boot)).vm_state == "active"
    assert cloud.clock.seconds < 1


def test_an_interface_that_failed_ends_the_build_at_once(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds(slow_plug=True)
    cloud.hold_events = True
    boot(cloud)
    cloud.work()
    for waiting in cloud.net.outbox._waiting:
        waiting["status"] = "failed"
    cloud.network.plugged = _never()  # type: ignore[attr-defined]
    cloud.hold_events = False
    cloud.run()
    assert only(assert_stable(cloud)).vm_state == "error"
    assert cloud.clock.seconds < 30


def test_an_event_that_is_lost_is_made_up_for_by_asking(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds(slow_plug=True)
    cloud.hold_events = True
    boot(cloud)
    cloud.work()
    cloud.network.plugged = set(ports(cloud))  # type: ignore[attr-defined]
    cloud.net.outbox._waiting.clear()
    cloud.run()
    assert only(assert_stable(cloud)).vm_state == "active"
    assert cloud.clock.seconds < 60


class _never(set[str]):
    def __contains__(self, _port: object) -> bool:
        return False

    def __ior__(self, _other: Any) -> Any:
        return self


# -- volumes -----------------------------------------------------------------------------------------------------------


def test_a_volume_that_cannot_be_made_ends_the_build_without_another_host(cloud: Cloud) -> None:
    cloud.refuse = {("volume", "POST"): ("/volumes", 413, b'{"overLimit": {"code": 413, "message": "too many"}}')}
    server = only(tell(cloud, lambda cloud: boot(cloud, devices=from_volume())))
    assert (server.vm_state, cloud.spawns) == ("error", [])
    assert "quota" in fault(cloud, server.uuid)


def test_a_volume_that_becomes_an_error_ends_the_build(cloud: Cloud) -> None:
    own = volume(cloud)
    uuids = boot(cloud, devices=from_volume(False, volume_id=own, flagged=True))
    with cloud.files["volumes"].write() as c:
        c.execute(sa.update(VOLUMES).values(status="error"))
    cloud.run()
    assert fault(cloud, uuids[0]) == f"Build failed: volume {own} is error, not available."
    assert attachments(cloud) == {}
    assert list(volumes(cloud)) == [own]


def test_a_users_volume_goes_along_to_the_next_host_even_if_it_is_to_be_deleted_with_its_server(cloud: Cloud) -> None:
    own = volume(cloud)
    cloud.bad_hosts = EVERYWHERE - {"sim-0001", "sim-0004"}
    server = only(tell(cloud, lambda cloud: boot(cloud, devices=from_volume(False, volume_id=own, flagged=True))))
    assert server.vm_state == "active"
    assert list(volumes(cloud)) == [own]


# -- agents ------------------------------------------------------------------------------------------------------------


def test_a_server_on_a_dead_host_is_deleted_without_it(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    cloud.stop_agent()
    cloud.clock.seconds += 100
    remove(cloud, uuid)
    begun = cloud.clock.seconds
    cloud.run()
    assert living(cloud) == {}
    assert cloud.clock.seconds - begun < 5
    cloud.start_agent()
    assert {server for server, _ in guests(cloud)} == {uuid}


def test_a_delete_whose_agent_dies_meanwhile_ends_all_the_same(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    cloud.stop_agent()
    remove(cloud, uuid)
    cloud.run()
    assert living(cloud) == {}
    assert cloud.clock.seconds < 300


def test_a_build_whose_agent_dies_meanwhile_ends_in_error_and_not_hours_later(cloud: Cloud) -> None:
    boot(cloud)
    cloud.stop_agent()
    cloud.run()
    cloud.start_agent()
    server = only(assert_stable(cloud))
    assert server.vm_state == "error"
    assert "down" in fault(cloud, server.uuid)
    assert cloud.clock.seconds < 600


def test_an_agent_that_is_only_restarted_is_waited_for(cloud: Cloud) -> None:
    boot(cloud)
    cloud.stop_agent()
    cloud.run(until=lambda: cloud.clock.seconds > 40)
    cloud.start_agent()
    cloud.run()
    assert only(assert_stable(cloud)).vm_state == "active"


# -- services that stay away longer than anybody waits -----------------------------------------------------------------


@pytest.mark.parametrize("service", ["network", "volume"])
def test_what_could_not_be_undone_for_an_outage_goes_when_the_server_is_deleted(cloud: Cloud, service: str) -> None:
    its_port = port(cloud)
    cloud.bad_hosts = EVERYWHERE
    (uuid,) = boot(cloud, devices=from_volume(), networks=[{"port": its_port}, {"uuid": private(cloud)}])
    cloud.faults = Interruption(6, "effect", lambda: cloud.away.add(service))  # all was made, nothing yet undone
    cloud.faults.armed = True
    cloud.run()
    assert living(cloud)[uuid][1].vm_state == "error"
    assert cloud.clock.seconds < 3600
    assert ports(cloud) if service == "network" else volumes(cloud)
    cloud.away = set()
    remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud) == {}
    assert cloud.network.show_port(its_port)["device_id"] == ""


def private(cloud: Cloud) -> str:
    return next(str(net["id"]) for net in cloud.network.list_networks() if net["name"] == "private")


def test_a_delete_during_an_outage_ends_in_error_and_is_done_when_asked_again(cloud: Cloud) -> None:
    (uuid,) = booted(cloud, devices=from_volume())
    cloud.away = {"network"}
    remove(cloud, uuid)
    cloud.run()
    assert living(cloud)[uuid][1].vm_state == "error"
    assert fault(cloud, uuid)
    cloud.away = set()
    remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud) == {}


def test_room_that_could_not_be_given_back_for_an_outage_is_given_back_later(cloud: Cloud) -> None:
    cloud.bad_hosts = EVERYWHERE
    boot(cloud, networks="none")
    cloud.faults = Interruption(1, "effect", lambda: cloud.away.add("placement"))
    cloud.faults.armed = True
    cloud.run()
    cloud.away = set()
    assert len(allocations(cloud)) == 3
    cloud.rounds.run("allocations")
    cloud.clock.seconds += 301
    cloud.work()
    assert cloud.rounds.run("allocations") == 1
    assert only(assert_stable(cloud)).vm_state == "error"


# -- every step --------------------------------------------------------------------------------------------------------


def changed(clouds: Callable[..., Cloud], change: Change) -> Cloud:
    return clouds(change=change)


STEPS = [step.name for workflow in (BOOT, BUILD) for step in _flat(workflow)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_boot_that_fails_at_a_step_leaves_nothing(clouds: Callable[..., Cloud], step: str, after: bool) -> None:
    for retriable in (False, True):
        cloud = clouds(change=failing(step, after=after, retriable=retriable))
        server = only(tell(cloud, lambda cloud: boot(cloud, devices=from_volume(), networks=[{"port": port(cloud)}])))
        if (step, after) == ("hand_over", True):  # it is a build of its own by then
            assert server.vm_state == "active"
        else:
            assert server.vm_state == "error"
            assert "injected" in fault(cloud, server.uuid, living(cloud)[server.uuid][0])
        tidy(cloud)


@pytest.mark.parametrize("step", [None, *STEPS])
def test_every_do_and_undo_may_run_twice(clouds: Callable[..., Cloud], step: str | None) -> None:
    cloud = clouds(change=again if step is None else lambda one: failing(step, after=True)(again(one)))
    server = only(tell(cloud, lambda cloud: boot(cloud, devices=from_volume())))
    assert server.vm_state == ("active" if step in (None, "hand_over") else "error")
    tidy(cloud)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", [step.name for step in _flat(DELETE)])
def test_a_delete_that_fails_leaves_an_error_that_can_be_deleted_again(
    clouds: Callable[..., Cloud], step: str, after: bool
) -> None:
    cloud = clouds()
    (uuid,) = booted(cloud, devices=from_volume())
    cloud.change = failing(step, after=after)
    cloud.kill(whole=True)
    remove(cloud, uuid)
    cloud.run()
    _, server = living(cloud)[uuid]
    assert (server.vm_state, server.task_state) == ("error", None)
    assert "injected" in fault(cloud, uuid)
    cloud.change = None
    cloud.kill(whole=True)
    remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud) == {}


def test_a_build_that_was_handed_over_goes_on_when_the_hand_over_then_fails(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds()
    from kilonova.workflows import boot as module

    let_go, module._let_go = module._let_go, _refuse_once(module._let_go)
    try:
        alive = tell(cloud, lambda cloud: boot(cloud, 2))
    finally:
        module._let_go = let_go
    assert {server.vm_state for server in alive.values()} == {"active"}


def _refuse_once(function: Callable[..., None]) -> Callable[..., None]:
    told = Faults()

    def refuse(*arguments: Any) -> None:
        told.effects += 1
        if told.effects == 1:
            raise RuntimeError("not now")
        function(*arguments)

    return refuse



"""What no workflow owns is found and repaired, what is not a leftover is left alone, and twice is as good as once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.cells.cells import API
from kilonova.conductor.reconcilers import allocations as orphan_allocations
from kilonova.conductor.reconcilers import forgotten, unattended
from kilonova.conductor.reconcilers.guests import ASK_EACH_S
from kilonova.conductor.reconcilers.network_cache import refresh
from kilonova.conductor.rounds import RECONCILERS, Rounds
from kilonova.core import ids
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import journal, servers
from kilonova.virt.driver import GuestState
from tests.workflows.census import allocations, assert_stable, guests, living
from tests.workflows.cloud import Cloud
from tests.workflows.harness import live_rows
from tests.workflows.stories import Interruption, boot, booted, remove, tidy


@pytest.fixture(autouse=True)
def sound(cloud: Cloud) -> Any:
    """Whatever a test repaired: afterwards there is nothing to repair any more."""
    yield
    cloud.run()
    for row in RECONCILERS:
        assert cloud.rounds.run(row.name) == 0, row.name


def wait(cloud: Cloud, seconds: float) -> None:
    """Time passes while everybody is alive."""
    cloud.clock.seconds += seconds
    cloud.work()


def test_a_sound_cloud_is_left_alone(cloud: Cloud) -> None:
    booted(cloud, 3)
    before = assert_stable(cloud)
    for _ in range(3):
        wait(cloud, 700)
        assert [cloud.rounds.run(row.name) for row in RECONCILERS] == [0] * len(RECONCILERS)
    assert assert_stable(cloud) == before
    assert cloud.rounds.leaks == {}


def test_reconcilers_run_a_minute_apart_at_least() -> None:
    assert all(row.interval >= 60 for row in RECONCILERS)
    assert len({row.name for row in RECONCILERS}) == len(RECONCILERS)


# -- guests ------------------------------------------------------------------------------------------------------------


def test_the_guest_of_a_server_deleted_while_its_agent_was_down_is_removed_when_that_is_back(cloud: Cloud) -> None:
    gone, kept = booted(cloud, 2)
    cloud.rounds.run("guests")
    cloud.stop_agent()
    cloud.clock.seconds += 100
    remove(cloud, gone)
    cloud.run()
    assert cloud.rounds.run("guests") == 0  # nobody is there to be asked
    cloud.start_agent()
    cloud.work()
    assert cloud.rounds.run("guests") == 1
    cloud.run()
    assert set(assert_stable(cloud)) == {kept}
    assert cloud.rounds.leaks == {"guests": 1}


def test_an_agent_that_was_cut_off_and_comes_back_unchanged_is_asked_as_well(cloud: Cloud) -> None:
    (gone,) = booted(cloud)
    cloud.rounds.run("guests")
    agent, cloud.process.agent = cloud.process.agent, None
    cloud.clock.seconds += 100
    cloud.process.directory.forget()
    remove(cloud, gone)
    cloud.run()
    cloud.rounds.run("guests")
    cloud.process.agent = agent
    cloud.work()
    assert cloud.rounds.run("guests") == 1
    cloud.run()
    assert guests(cloud) == set()


def test_a_guest_on_another_host_than_its_servers_is_removed_unless_it_is_moving(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    server = living(cloud)[uuid][1]
    other = next(host for host in cloud.driver.hosts() if host != server.host)
    with cloud.files["cell1"].write() as c:
        c.execute(sa.update(cell_schema.instances).values(host=other))
        c.execute(cell_schema.migrations.insert().values(
            uuid=ids.new_uuid(), instance_uuid=uuid, migration_type="resize", status="finished"
        ))  # fmt: skip
    assert cloud.rounds.run("guests") == 0
    with cloud.files["cell1"].write() as c:
        c.execute(sa.update(cell_schema.migrations).values(status="confirmed"))
    wait(cloud, ASK_EACH_S)
    assert cloud.rounds.run("guests") == 1


def test_a_guest_that_was_never_ours_is_left_alone(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    host = str(living(cloud)[uuid][1].host)
    own = cloud.driver.guests
    stranger = GuestState(ids.new_uuid(), "by-hand", 1)
    cloud.driver.guests = lambda asked: [*own(asked), *([stranger] if asked == host else [])]  # type: ignore[method-assign]
    assert cloud.rounds.run("guests") == 0


def test_guests_of_builds_under_way_are_left_alone(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds(slow_plug=True)
    cloud.hold_events = True
    boot(cloud, 3)
    cloud.work()
    assert len(guests(cloud)) == 3
    assert [cloud.rounds.run(row.name) for row in RECONCILERS] == [0] * len(RECONCILERS)
    cloud.run()


# -- allocations -------------------------------------------------------------------------------------------------------


def test_allocations_without_a_server_are_released_after_a_while(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    provider = living(cloud)[uuid][1].compute_id
    orphan = ids.new_uuid()
    cloud.placement.claim(
        orphan, {"allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 64}}}, "mappings": {"": [provider]}},
        "p", "u", version="1.36",
    )  # fmt: skip
    assert cloud.rounds.run("allocations") == 0
    wait(cloud, orphan_allocations.GRACE_S + 1)
    assert cloud.rounds.run("allocations") == 1
    assert {consumer for consumer, *_ in allocations(cloud)} == {uuid}


def test_allocations_of_a_server_in_error_without_a_host_are_released(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    with cloud.files["cell1"].write() as c:
        c.execute(sa.update(cell_schema.instances).values(host=None, vm_state="error"))
    cloud.rounds.run("allocations")
    wait(cloud, orphan_allocations.GRACE_S + 1)
    assert cloud.rounds.run("allocations") == 1
    assert allocations(cloud) == set()
    cloud.rounds.run("guests")  # the guest is nobody's as well
    assert uuid in living(cloud)


def test_what_other_services_hold_is_left_alone(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    provider = str(living(cloud)[uuid][1].compute_id)
    other = {"allocations": {provider: {"resources": {"DISK_GB": 1}}}, "mappings": {"": [provider]}}
    cloud.placement.claim(ids.new_uuid(), other, "p", "u", version="1.36")
    move = ids.new_uuid()
    shape = {"allocations": {provider: {"resources": {"VCPU": 1}}}, "mappings": {"": [provider]}}
    cloud.placement.claim(move, shape, "p", "u", version="1.36")
    with cloud.files["cell1"].write() as c:
        c.execute(cell_schema.migrations.insert().values(
            uuid=move, instance_uuid=uuid, migration_type="resize", status="migrating"
        ))  # fmt: skip
    cloud.rounds.run("allocations")
    wait(cloud, orphan_allocations.GRACE_S + 1)
    assert cloud.rounds.run("allocations") == 0


def test_the_room_of_a_request_that_still_waits_is_left_alone(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    found: list[int] = []

    def look() -> None:
        found.append(cloud.rounds.run("allocations"))
        cloud.clock.seconds += orphan_allocations.GRACE_S + 1
        found.append(cloud.rounds.run("allocations"))

    cloud.faults = Interruption(1, "effect", look)  # claimed, and not handed over
    cloud.faults.armed = True
    cloud.run()
    assert found == [0, 0]
    assert set(assert_stable(cloud)) == {uuid}


# -- forgotten, unattended ---------------------------------------------------------------------------------------------


def insert_held(cloud: Cloud, server: str) -> str:
    database, tables = cloud.world.database(cloud.cell1)
    new = journal.NewWorkflow(ids.new_uuid(), "delete", server, {}, cloud.context.to_message())
    with database.write() as connection:
        journal.insert(connection, tables, new, held=True)
    return new.id


def test_a_held_workflow_of_a_server_that_is_there_is_let_go_in_time(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    insert_held(cloud, uuid)
    assert cloud.rounds.run("forgotten") == 0
    wait(cloud, forgotten.GRACE_S + 1)
    assert cloud.rounds.run("forgotten") == 1
    cloud.run()
    assert living(cloud) == {}


def test_a_held_workflow_of_a_server_that_was_never_handed_over_is_discarded_with_it(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    insert_held(cloud, uuid)
    with cloud.files["api"].write() as c:
        c.execute(sa.delete(api_schema.instance_mappings))
    wait(cloud, forgotten.GRACE_S + 1)
    assert cloud.rounds.run("forgotten") == 1
    assert living(cloud) == {}
    assert live_rows(cloud.world) == []
    cloud.rounds.run("guests")
    cloud.rounds.run("allocations")
    wait(cloud, orphan_allocations.GRACE_S + 1)
    assert cloud.rounds.run("allocations") == 1


def test_a_request_that_no_workflow_knows_ends_in_cell0_with_a_fault(cloud: Cloud) -> None:
    boot(cloud, 2)
    database, tables = cloud.world.database(API)
    with database.write() as connection:
        connection.execute(sa.delete(tables.workflows))
    cloud.process.pool.tasks.clear()
    wait(cloud, forgotten.GRACE_S + 1)
    assert cloud.rounds.run("forgotten") == 2
    assert cloud.rounds.run("forgotten") == 0
    cloud.run()
    assert {server.vm_state for server in assert_stable(cloud).values()} == {"error"}
    assert {name for name, _ in living(cloud).values()} == {"cell0"}
    tidy(cloud)


def test_a_server_marked_for_deletion_that_nobody_deletes_is_deleted(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    with cloud.files["cell1"].write() as c:
        servers.change(c, uuid, {"task_state": "deleting"})
    assert cloud.rounds.run("unattended") == 0
    wait(cloud, unattended.GRACE_S + 1)
    assert cloud.rounds.run("unattended") == 1
    assert cloud.rounds.run("unattended") == 0
    cloud.run()
    assert assert_stable(cloud) == {}


def test_a_server_being_built_that_nobody_builds_is_in_error(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    with cloud.files["cell1"].write() as c:
        servers.change(c, uuid, {"vm_state": "building", "task_state": "spawning"})
    wait(cloud, unattended.GRACE_S + 1)
    assert cloud.rounds.run("unattended") == 1
    server = living(cloud)[uuid][1]
    assert (server.vm_state, server.task_state) == ("error", None)
    assert "interrupted" in servers.faults_of(cloud.files["cell1"], [uuid])[uuid].message
    tidy_error(cloud, uuid)


def tidy_error(cloud: Cloud, uuid: str) -> None:
    remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud) == {}


# -- network information -----------------------------------------------------------------------------------------------


def floating_ip(cloud: Cloud, port: str) -> dict[str, Any]:
    rest = cloud.network._rest
    (public,) = (net for net in cloud.network.list_networks() if net["name"] == "public")
    body = {"floatingip": {"floating_network_id": public["id"], "port_id": port, "tenant_id": cloud.context.project_id}}
    return dict(rest.call("POST", "/v2.0/floatingips", json=body)["floatingip"])


def test_a_floating_ip_appears_at_its_server_and_goes_with_it(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    (vif,) = living(cloud)[uuid][1].network_info
    made = floating_ip(cloud, vif["id"])
    cloud.run()
    (vif,) = living(cloud)[uuid][1].network_info
    assert vif["floating_ips"] == [{
        "address": made["floating_ip_address"], "version": 4, "fixed_address": vif["fixed_ips"][0]["address"],
    }]  # fmt: skip
    assert refresh(cloud.world, cloud.cell1, uuid) is False
    cloud.network._rest.call("DELETE", f"/v2.0/floatingips/{made['id']}")
    cloud.run()
    (vif,) = living(cloud)[uuid][1].network_info
    assert vif["floating_ips"] == []
    tidy(cloud)


def test_a_port_that_its_owner_deletes_leaves_the_server(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    (vif,) = living(cloud)[uuid][1].network_info
    cloud.network.delete_port(vif["id"])  # by a service, of which the network service tells nothing
    refresh(cloud.world, cloud.cell1, uuid)
    assert living(cloud)[uuid][1].network_info == []


def test_a_refresh_of_a_server_that_is_gone_or_a_network_that_is_away_does_no_harm(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    (vif,) = living(cloud)[uuid][1].network_info
    floating_ip(cloud, vif["id"])
    cloud.away = {"network"}
    cloud.run()
    assert living(cloud)[uuid][1].network_info == [vif]
    cloud.away = set()
    assert refresh(cloud.world, cloud.cell1, ids.new_uuid()) is False


# -- the thread ---------------------------------------------------------------------------------------------------


def test_rounds_start_and_stop(cloud: Cloud) -> None:
    rounds = Rounds(cloud.world)
    rounds.start()
    rounds.stop()
    assert rounds.leaks == {}

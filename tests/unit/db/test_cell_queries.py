"""What a cell is asked about servers and their disks, and what reconcilers look for."""

from __future__ import annotations

from datetime import timedelta

from kilonova.core import clock, ids
from kilonova.core.server import BlockDevice, ServerExtra
from kilonova.db.cell_schema import migrations
from kilonova.db.queries import block_devices, host_states, host_use, hosts, journal, leftovers, servers
from kilonova.db.queries.journal import NewWorkflow
from kilonova.sql.engine import Database
from tests.unit.db.rows import nodes, server

AN_HOUR = timedelta(hours=1)


def add(cell: Database, **changes: object) -> str:
    made = server("s", **changes)
    with cell.write() as connection:
        servers.insert(connection, made, ServerExtra())
    return made.uuid


def move(cell: Database, subject: str, status: str) -> str:
    row = {"uuid": ids.new_uuid(), "instance_uuid": subject, "migration_type": "resize", "status": status}
    with cell.write() as connection:
        connection.execute(migrations.insert(), row)
    return row["uuid"]


def test_a_server_changes_only_from_the_state_that_is_expected(cell: Database) -> None:
    uuid = add(cell)
    with cell.write() as connection:
        assert not servers.change(connection, uuid, {"task_state": "x"}, tasks=(None,))
        assert servers.change(connection, uuid, {"task_state": None}, tasks=(None, "scheduling"), states=("active",))
        assert servers.change(connection, uuid, {"metadata": {"a": "b"}, "task_state": "y"}, tasks=(None,), version=2)
        assert not servers.change(connection, uuid, {"task_state": None}, not_tasks=("y",))
        assert not servers.change(connection, uuid, {"task_state": None}, version=2)
        assert servers.mark_deleted(connection, uuid, clock.utcnow())
        assert not servers.mark_deleted(connection, uuid, clock.utcnow())
        assert not servers.change(connection, uuid, {"task_state": None})
    assert servers.get(cell, uuid) is None
    found = servers.get(cell, uuid, deleted=True)
    assert found is not None
    assert (found.version, found.metadata, found.vm_state) == (4, {"a": "b"}, "deleted")


def test_servers_are_found_by_their_host(cell: Database) -> None:
    there, gone, nowhere = add(cell, host="h1"), add(cell, host="h1", deleted=True), add(cell)
    assert [row.uuid for row in servers.on_host(cell, "h1")] == [there]
    assert {row.uuid for row in servers.several(cell, [there, gone, "none"])} == {there, gone}
    assert servers.hosts_of(cell, [there, gone, nowhere]) == {there: "h1", nowhere: None}
    assert host_states.member_hosts(cell, [there, gone, nowhere]) == {there: "h1", gone: None}
    with cell.read() as connection:
        assert [row.uuid for row in host_use.servers_on(connection, ["h1", "h2"])["h1"]] == [there]
        assert host_use.busy_hosts(connection, ["h1", "h2"]) == {"h1"}


def test_disks_come_in_the_order_they_were_added_and_are_found_by_volume(cell: Database) -> None:
    made = [
        BlockDevice(uuid=ids.new_uuid(), source_type="volume", destination_type="volume", volume_id=name,
                    boot_index=number, delete_on_termination=not number)
        for number, name in enumerate("ba")
    ]  # fmt: skip
    with cell.write() as connection:
        block_devices.insert(connection, "s", made)
        block_devices.change(connection, made[1].uuid, attachment_id="at", connection_info="{}")
    first, second = block_devices.of(cell, "s")
    assert first == made[0]
    assert (second.attachment_id, second.connection_info) == ("at", "{}")
    assert block_devices.servers_with(cell, "a") == ["s"]
    with cell.write() as connection:
        block_devices.delete(connection, made[0].uuid)
        block_devices.delete_of(connection, "s")
    assert block_devices.servers_with(cell, "a") == []


def test_servers_that_no_workflow_attends_to_are_found(cell: Database) -> None:
    before = clock.utcnow() - AN_HOUR
    left, attended = (add(cell, vm_state="building", created_at=before) for _ in range(2))
    add(cell, vm_state="building")
    add(cell, vm_state="active", created_at=before)
    with cell.write() as connection:
        for held, subject in ((False, attended), (True, "held")):
            new = NewWorkflow(ids.new_uuid(), "build", subject, {}, {})
            assert journal.insert(connection, journal.CELL, new, held=held)
        assert not journal.insert(connection, journal.CELL, new)
    with cell.read() as connection:
        assert leftovers.unattended(connection, clock.utcnow() - AN_HOUR / 2) == [left]
        standing = leftovers.standing(connection, [left, attended, "none"])
        assert {uuid: one.attended for uuid, one in standing.items()} == {left: False, attended: True}
        assert {one.deleted for one in standing.values()} == {False}
        assert leftovers.held(connection, clock.utcnow() + AN_HOUR) == [(new.id, "held")]
        assert leftovers.held(connection, before) == []


def test_moves_that_are_not_over_are_told_from_those_that_are(cell: Database) -> None:
    under_way, over = move(cell, "s1", "migrating"), move(cell, "s2", "confirmed")
    with cell.read() as connection:
        assert leftovers.moves(connection, [under_way, over, "none"]) == {under_way, over}
        assert leftovers.moving(connection, ["s1", "s2"]) == {"s1"}
        assert leftovers.moves(connection, []) == set()


def test_agents_and_the_nodes_behind_an_id_are_told(cell: Database) -> None:
    hosts.register(cell, "a1", 7, 74, nodes("h2", "h1"))
    with cell.read() as connection:
        assert hosts.has_agent(connection, "a1")
        assert not hosts.has_agent(connection, "a2")
        assert [(agent.id, agent.epoch) for agent in leftovers.agents(connection)] == [("a1", 7)]
        assert leftovers.hosts_of(connection, "a1") == ["h1", "h2"]
        (first, _), second = leftovers.nodes(connection, 0)
        assert leftovers.nodes(connection, first) == [second]

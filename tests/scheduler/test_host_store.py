"""The hosts in memory: what is read when, what is noticed, what is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from kilonova.core import clock
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import host_states as queries
from kilonova.scheduler.group_claims import REMEMBERED, GroupClaims
from kilonova.scheduler.host_store import CHECK_EVERY, CONSUMED_FOR, RELOAD_EVERY, HostStore
from tests.scheduler.world import CELL, SMALL, Cloud


class Hands:
    """A clock that moves when it is told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def utcnow(self) -> datetime:
        return datetime(2026, 1, 1) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def hands() -> Iterator[Hands]:
    made = Hands()
    before = clock.install(made)
    yield made
    clock.install(before)


def reads(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """The names of these query functions, each time one is called."""
    called: list[str] = []

    def watch(name: str) -> None:
        real = getattr(queries, name)

        def watched(*arguments: object) -> object:
            called.append(name)
            return real(*arguments)

        monkeypatch.setattr(queries, name, watched)

    for name in names:
        watch(name)
    return called


LOADS = ("all_hosts", "hosts_since", "hosts_named", "load_aggregates")


def test_the_same_snapshot_is_handed_out_while_nothing_changes(
    cloud: Cloud, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("a", "b")
    store = HostStore(cloud)
    first = store.snapshot()
    called = reads(monkeypatch, *LOADS, "host_mark")
    assert store.snapshot() is first
    hands.sleep(CHECK_EVERY)
    assert store.snapshot() is first
    assert called == ["host_mark"]


def test_a_snapshot_is_never_changed_after_it_was_handed_out(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a")
    store = HostStore(cloud)
    first = store.snapshot()
    hands.sleep(CHECK_EVERY)
    cloud.add_hosts("b")
    store.snapshot()
    store.invalidate(("a",))
    store.snapshot()
    assert [row.host for row in first.hosts.values()] == ["a"]


def test_a_changed_row_is_read_alone_at_the_next_check(
    cloud: Cloud, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("a", "b")
    store = HostStore(cloud)
    store.snapshot()
    hands.sleep(30)
    called = reads(monkeypatch, *LOADS)
    table = cell_schema.compute_nodes
    with cloud.cell.write() as connection:
        connection.execute(sa.update(table).where(table.c.host == "b").values(running_vms=7))
    rows = store.snapshot().hosts
    assert rows[cloud.uuid_of("b")].running_vms == 7
    assert called == ["hosts_since"]
    assert [row.host for row in queries.hosts_since(cloud.cell, CELL, hands.utcnow())] == ["b"]


def test_a_row_stamped_in_the_future_does_not_hide_the_changes_of_others(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a", "b")
    table = cell_schema.compute_nodes
    with cloud.cell.write() as connection:
        connection.execute(sa.update(table).where(table.c.host == "a").values(updated_at=datetime(2026, 6, 1)))
    store = HostStore(cloud)
    store.snapshot()
    hands.sleep(30)
    with cloud.cell.write() as connection:
        connection.execute(sa.update(table).where(table.c.host == "b").values(running_vms=7))
        connection.execute(sa.update(table).where(table.c.host == "a").values(updated_at=datetime(2026, 6, 2)))
    assert store.snapshot().hosts[cloud.uuid_of("b")].running_vms == 7


def test_a_changed_service_is_noticed_as_well(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a")
    store = HostStore(cloud)
    store.snapshot()
    hands.sleep(30)
    cloud.change_service("a", disabled=True, disabled_reason="why")
    row = store.snapshot().hosts[cloud.uuid_of("a")]
    assert (row.service_disabled, row.service_disabled_reason) == (True, "why")


def test_a_removed_hypervisor_is_gone_at_the_next_check(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a", "b")
    store = HostStore(cloud)
    store.snapshot()
    with cloud.cell.write() as connection:
        connection.execute(sa.delete(cell_schema.compute_nodes).where(cell_schema.compute_nodes.c.host == "a"))
    hands.sleep(CHECK_EVERY)
    assert [row.host for row in store.snapshot().hosts.values()] == ["b"]


def test_a_hypervisor_without_a_compute_service_is_left_out(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a", "b")
    with cloud.cell.write() as connection:
        connection.execute(sa.delete(cell_schema.services).where(cell_schema.services.c.host == "a"))
    assert [row.host for row in HostStore(cloud).snapshot().hosts.values()] == ["b"]


def test_of_a_node_without_a_compute_service_is_warned_once(
    cloud: Cloud, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    cloud.add_hosts("a", "b")
    with cloud.cell.write() as connection:
        connection.execute(sa.delete(cell_schema.services).where(cell_schema.services.c.host == "a"))
    store = HostStore(cloud)
    for _ in range(3):
        store.snapshot()
        hands.sleep(RELOAD_EVERY)
    said = [record.getMessage() for record in caplog.records if "No compute service" in record.getMessage()]
    assert said == ["No compute service record found for host a: its node a.example gets no servers"]


def test_more_disk_space_than_the_rows_expect_is_warned_of(
    cloud: Cloud, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    cloud.add_hosts("a", local_gb=100, disk_available_least=120)
    cloud.add_hosts("b", local_gb=100, disk_available_least=100)
    HostStore(cloud).snapshot()
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["Host a has more disk space than its database expected (120 GB > 100 GB)"]


def test_what_is_reloaded_is_read_as_at_the_start(
    cloud: Cloud, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("a")
    store = HostStore(cloud)
    store.snapshot()
    called = reads(monkeypatch, *LOADS)
    store.invalidate(())
    store.snapshot()
    assert "all_hosts" in called


def test_named_hosts_are_read_before_the_next_request_and_a_missing_one_is_gone(
    cloud: Cloud, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("a", "b", "c")
    store = HostStore(cloud)
    store.snapshot()
    cloud.change_service("a", disabled=True)
    with cloud.cell.write() as connection:
        connection.execute(sa.delete(cell_schema.compute_nodes).where(cell_schema.compute_nodes.c.host == "b"))
    called = reads(monkeypatch, *LOADS)
    store.invalidate(("a", "b"))
    rows = store.snapshot().hosts.values()
    assert {row.host: row.service_disabled for row in rows} == {"a": True, "c": False}
    assert called == ["hosts_named"]


def test_all_hosts_are_read_again_when_none_is_named(
    cloud: Cloud, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("a")
    store = HostStore(cloud)
    store.snapshot()
    called = reads(monkeypatch, *LOADS)
    store.invalidate(())
    store.snapshot()
    assert called == ["all_hosts"]


def test_everything_is_read_again_now_and_then_whatever_the_marks_say(
    cloud: Cloud, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("a")
    store = HostStore(cloud)
    store.snapshot()
    table = cell_schema.compute_nodes
    with cloud.cell.write() as connection:  # a writer whose clock is wrong
        connection.execute(sa.update(table).values(running_vms=7, updated_at=datetime(2020, 1, 1)))
    hands.sleep(CHECK_EVERY)
    store.snapshot()
    called = reads(monkeypatch, *LOADS)
    hands.sleep(RELOAD_EVERY)
    assert store.snapshot().hosts[cloud.uuid_of("a")].running_vms == 7
    assert called == ["all_hosts"]


def test_beats_are_read_with_the_check(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a")
    store = HostStore(cloud)
    assert store.snapshot().seen == {"agent": hands.utcnow()}
    hands.sleep(20)
    with cloud.cell.write() as connection:
        connection.execute(sa.update(cell_schema.agents).values(last_seen_up=hands.utcnow()))
    assert store.snapshot().seen == {"agent": hands.utcnow()}


@pytest.mark.parametrize("change", ["add", "metadata", "host", "remove"])
def test_a_change_of_aggregates_is_seen_by_the_very_next_request(cloud: Cloud, hands: Hands, change: str) -> None:
    cloud.add_hosts("a", "b")
    cloud.add_aggregate("one", ("a",), availability_zone="x")
    store = HostStore(cloud)
    before = [(row.name, row.hosts, row.metadata) for row in store.snapshot().aggregates.rows]
    assert before == [("one", {"a"}, {"availability_zone": "x"})]
    hands.sleep(0.1)
    tables = api_schema
    if change == "add":
        cloud.add_aggregate("two", ("b",))
    else:
        statement = {
            "metadata": sa.update(tables.aggregate_metadata).values(value="y"),
            "host": sa.insert(tables.aggregate_hosts).values(aggregate_id=1, host="b"),
            "remove": sa.delete(tables.aggregate_hosts),
        }[change]
        with cloud.api.write() as connection:
            connection.execute(statement)
    after = [(row.name, row.hosts, row.metadata) for row in store.snapshot().aggregates.rows]
    assert after != before


def test_disabled_cells_and_cell0_have_no_hosts(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a")
    store = HostStore(cloud)
    with cloud.api.write() as connection:
        connection.execute(
            sa.insert(api_schema.cell_mappings).values(
                uuid=queries.CELL0, name="cell0", transport_url="none:", database_connection="none:", disabled=False
            )
        )
    assert queries.enabled_cells(cloud.api) == (CELL,)
    assert len(store.snapshot().hosts) == 1
    with cloud.api.write() as connection:
        connection.execute(sa.update(api_schema.cell_mappings).values(disabled=True))
    hands.sleep(CHECK_EVERY)
    assert store.snapshot().hosts == {}


def test_claims_are_remembered_until_the_row_is_newer_or_they_are_old(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a")
    uuid = cloud.uuid_of("a")
    store = HostStore(cloud)
    store.snapshot()
    store.note_claims([uuid, uuid], SMALL)
    assert store.consumed()[uuid].servers == 2
    hands.sleep(5)
    with cloud.cell.write() as connection:
        connection.execute(sa.update(cell_schema.compute_nodes).values(running_vms=2))
    store.snapshot()
    hands.sleep(5)
    store.note_claims([uuid], SMALL)
    assert store.consumed()[uuid].servers == 1
    hands.sleep(CONSUMED_FOR.total_seconds() + 1)
    store.snapshot()
    assert store.consumed() == {}


def test_members_of_a_group_are_read_with_their_hosts(cloud: Cloud, hands: Hands) -> None:
    cloud.add_hosts("a")
    columns = {
        column.name: {} if isinstance(column.type, sa.JSON) else 1 if isinstance(column.type, sa.Integer) else "x"
        for column in cell_schema.instances.columns
        if not (column.nullable or column.default or column.primary_key)
    }
    group = {"uuid": "g", "name": "g", "user_id": "u", "project_id": "p"}
    with cloud.api.write() as connection:
        connection.execute(sa.insert(api_schema.instance_groups).values(group))
        connection.execute(
            sa.insert(api_schema.instance_group_member),
            [{"group_id": 1, "instance_uuid": uuid} for uuid in ("here", "building")],
        )
    with cloud.cell.write() as connection:
        connection.execute(
            sa.insert(cell_schema.instances),
            [
                columns | {"uuid": "here", "host": "a", "deleted": False},
                columns | {"uuid": "building", "host": None, "deleted": False},
                columns | {"uuid": "gone", "host": "a", "deleted": True},
            ],
        )
    store = HostStore(cloud)
    store.snapshot()
    assert store.members("g", {"gone", "nowhere"}) == {"here": "a", "gone": None}


def test_recent_members_of_a_group_are_remembered_for_a_while(hands: Hands) -> None:
    claims = GroupClaims()
    claims.note("g", {"one": "a"})
    hands.sleep(REMEMBERED.total_seconds() / 2)
    claims.note("g", {"two": "b"})
    claims.note("other", {"three": "c"})
    assert claims.recent("g") == {"one": "a", "two": "b"}
    hands.sleep(REMEMBERED.total_seconds() / 2 + 1)
    assert claims.recent("g") == {"two": "b"}
    claims.note("other", {})
    assert claims._placed.keys() == {"g", "other"}
    hands.sleep(REMEMBERED.total_seconds())
    claims.note("new", {"x": "y"})
    assert claims._placed.keys() == {"new"}

from __future__ import annotations

from datetime import timedelta

import pytest

from kilonova.core import clock, liveness
from kilonova.db.queries import hosts, services
from kilonova.sql.engine import Database
from tests.unit.db.rows import nodes

OWN = {"nova-conductor": "conductor", "nova-scheduler": "scheduler"}


@pytest.fixture
def full(cell: Database) -> Database:
    """Two compute hosts and the services of one controller."""
    hosts.register(cell, "a1", 1, 74, nodes("h1", "h2"))
    services.register_own(cell, "ctl", OWN, 74)
    return cell


def find(cell: Database, host: str = "h1", binary: str = "nova-compute") -> services.Service:
    with cell.read() as connection:
        return services.find_service(connection, host, binary)


def test_services_are_listed_by_host_and_binary(full: Database) -> None:
    with full.read() as connection:
        everything = services.list_services(connection)
        assert [(row.host, row.binary) for row in everything] == [
            ("h1", "nova-compute"), ("h2", "nova-compute"), ("ctl", "nova-conductor"), ("ctl", "nova-scheduler"),
        ]  # fmt: skip
        assert len(services.list_services(connection, host="ctl")) == 2
        assert len(services.list_services(connection, binary="nova-compute")) == 2
        assert services.list_services(connection, host="ctl", binary="nova-compute") == []
        assert list(services.services_of(connection, ["h2", "ctl", "none"])) == ["h2"]


def test_a_compute_service_lives_by_its_agents_beat(full: Database) -> None:
    now = clock.utcnow()
    assert find(full).up(now, 60)
    assert not find(full).up(now + timedelta(seconds=61), 60)
    hosts.agent_beat(full, "a1", 1)
    found = find(full)
    assert found.report_count == 1
    assert found.updated_at == found.last_seen_up


def test_our_own_services_live_by_their_own_beats(full: Database) -> None:
    before = find(full, "ctl", "nova-conductor")
    rows = services.register_own(full, "ctl", OWN, 75)
    assert services.beat_own(full, rows) == 2
    after = find(full, "ctl", "nova-conductor")
    assert (after.id, after.uuid, after.version, after.report_count) == (before.id, before.uuid, 75, 1)
    assert after.last_seen_up is not None
    assert before.last_seen_up is not None
    assert after.last_seen_up > before.last_seen_up


def test_a_forced_down_service_is_down_however_it_beats(full: Database) -> None:
    with full.write() as connection:
        services.set_forced_down(connection, find(full).id, forced_down=True)
    assert not find(full).up(clock.utcnow(), 60)
    with full.write() as connection:
        services.set_forced_down(connection, find(full).id, forced_down=False)
    assert find(full).up(clock.utcnow(), 60)


def test_the_reason_is_kept_while_a_service_is_disabled(full: Database) -> None:
    with full.write() as connection:
        services.set_disabled(connection, find(full).id, disabled=True, reason="disk")
    assert (find(full).disabled, find(full).disabled_reason) == (True, "disk")
    with full.write() as connection:
        services.set_disabled(connection, find(full).id, disabled=False, reason="ignored")
    assert (find(full).disabled, find(full).disabled_reason) == (False, None)


def test_a_service_is_shown_by_id_and_by_uuid(full: Database) -> None:
    known = find(full)
    with full.read() as connection:
        assert services.show_service(connection, known.id) == known == services.show_service(connection, known.uuid)
        for key in (2**31 - 1, "no-such-uuid"):
            with pytest.raises(services.ServiceNotFound):
                services.show_service(connection, key)


def test_a_deleted_service_is_gone_and_may_come_and_go_again(full: Database) -> None:
    for _ in range(2):
        known = find(full)
        with full.write() as connection:
            services.delete_service(connection, known)
        with pytest.raises(services.ServiceNotFound):
            find(full)
        with full.write() as connection, pytest.raises(services.ServiceNotFound):
            services.set_disabled(connection, known.id, disabled=True)
        assert hosts.register(full, "a1", 1, 74, nodes("h1")).new == ("h1",)
    assert find(full).uuid != known.uuid


@pytest.mark.parametrize(("interval", "down", "expected"), [(10, 60, 60), (60, 60, 150), (100, 60, 250)])
def test_beats_as_rare_as_the_down_time_raise_it(interval: float, down: float, expected: float) -> None:
    assert liveness.down_after(interval, down) == expected


@pytest.mark.parametrize(("up", "disabled", "forced", "expected"), [
    (True, True, True, "DOWN"), (True, True, False, "MAINTENANCE"), (True, False, False, "UP"),
    (False, False, False, "UNKNOWN"), (False, True, False, "MAINTENANCE"),
])  # fmt: skip
def test_forced_down_outranks_disabled_outranks_silence(up: bool, disabled: bool, forced: bool, expected: str) -> None:
    assert liveness.host_status(up=up, disabled=disabled, forced_down=forced) == expected

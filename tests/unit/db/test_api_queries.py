"""What the API database is asked about aggregates, flavors, groups of servers, quotas, and servers without a cell."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from kilonova.core import clock, ids
from kilonova.core.request_spec import FlavorSpec, RequestSpec
from kilonova.core.server import ServerExtra
from kilonova.db.queries import (
    aggregates,
    flavors,
    host_states,
    journal,
    leftovers,
    quotas,
    requests,
    server_groups,
    zones,
)
from kilonova.db.queries.flavors import FlavorFilter
from kilonova.db.queries.journal import NewWorkflow
from kilonova.db.queries.requests import BuildRequest
from kilonova.sql.engine import Database
from tests.unit.db.rows import server


def test_an_aggregate_is_renamed_filled_emptied_and_removed(api: Database) -> None:
    with api.write() as connection:
        east, west = (aggregates.insert(connection, ids.new_uuid(), name) for name in ("east", "west"))
        aggregates.add_host(connection, east, "h1")
        aggregates.add_host(connection, east, "h2")
        aggregates.set_metadata(connection, east, {"availability_zone": "east", "ssd": "true"})
        aggregates.set_metadata(connection, east, {"ssd": None, "more": "x"})
        aggregates.rename(connection, west, "north")
    with pytest.raises(sa.exc.IntegrityError) as twice, api.write() as connection:
        aggregates.rename(connection, west, "east")
    assert aggregates.taken(twice.value)
    first, second = aggregates.every(api)
    assert (first.name, first.hosts, first.zone) == ("east", ("h1", "h2"), "east")
    assert dict(first.metadata) == {"availability_zone": "east", "more": "x"}
    assert (second.name, second.hosts) == ("north", ())
    assert aggregates.with_host(api, "h2") == [east]
    assert (zones.by_host(api), zones.of_host(api, "h3")) == ({"h1": "east", "h2": "east"}, None)
    with api.write() as connection:
        assert not aggregates.delete(connection, east)
        assert aggregates.drop_host(connection, east, "h1")
        assert not aggregates.drop_host(connection, east, "h1")
        assert aggregates.delete(connection, west)
        assert not aggregates.delete(connection, west)


def flavor(api: Database, name: str, **changes: object) -> int:
    row = {"name": name, "flavorid": name, "memory_mb": 64, "root_gb": 1, "vcpus": 1} | changes
    with api.write() as connection:
        return flavors.insert(connection, row)


def test_a_private_flavor_is_seen_by_those_whom_it_is_granted_to(api: Database) -> None:
    flavor(api, "public")
    private = flavor(api, "private", is_public=False)
    with api.write() as connection:
        flavors.grant(connection, private, "p")
    with pytest.raises(sa.exc.IntegrityError) as twice, api.write() as connection:
        flavors.grant(connection, private, "p")
    assert flavors.taken(twice.value)

    def seen(public: bool | None, project: str | None = None) -> list[str]:
        return [row.name for row in flavors.page(api, FlavorFilter(public=public, project=project), 9, None)]

    assert (seen(True), seen(False), seen(None)) == (["public"], ["private"], ["private", "public"])
    assert (seen(True, "p"), seen(True, "q")) == (["private", "public"], ["public"])
    assert flavors.projects_of(api, private) == ["p"]
    with api.write() as connection:
        assert flavors.revoke(connection, private, "p")
        assert not flavors.revoke(connection, private, "p")


def test_a_flavor_changes_under_its_lock_and_takes_its_specs_along(api: Database) -> None:
    number = flavor(api, "f", memory_mb=512)
    with api.write() as connection:
        assert flavors.keep(connection, number)
        flavors.set_specs(connection, number, {"a": "1", "b": "2"})
        flavors.set_specs(connection, number, {"b": "3"})
        flavors.describe(connection, number, "words")
        assert flavors.drop_spec(connection, number, "a")
        assert not flavors.drop_spec(connection, number, "a")
    found = flavors.get(api, "f")
    assert found is not None
    assert (found.extra_specs, found.description, found.disabled) == ({"b": "3"}, "words", False)
    with api.write() as connection:
        flavors.delete(connection, number)
        assert not flavors.keep(connection, number)
    assert (flavors.get(api, "f"), flavors.any_ever(api)) == (None, False)


@pytest.mark.parametrize("descending", [False, True])
def test_flavors_come_in_pages_by_any_column(api: Database, descending: bool) -> None:
    for number, ram in enumerate((64, 32, 64)):
        flavor(api, f"f{number}", memory_mb=ram)
    wanted = FlavorFilter(sort="memory_mb", descending=descending, min_ram=32)
    whole = flavors.page(api, wanted, 9, None)
    assert [row.name for row in whole] == (["f0", "f2", "f1"] if descending else ["f1", "f0", "f2"])
    assert flavors.page(api, wanted, 1, whole[0]) == whole[1:2]


def test_a_group_of_servers_counts_its_members_and_goes_with_them(api: Database) -> None:
    one, two = ids.new_uuid(), ids.new_uuid()
    with api.write() as connection:
        server_groups.insert(connection, one, "g", "anti-affinity", '{"max_server_per_host": 2}', "p", "u")
        server_groups.insert(connection, two, "g", "affinity", "{}", "q", "u")
        server_groups.add(connection, one, ["s2", "s1"])
        assert (server_groups.count(connection, one), server_groups.count_of(connection, "p")) == (2, 1)
    found = server_groups.get(api, one)
    assert found is not None
    assert (found.policy, found.rules) == ("anti-affinity", '{"max_server_per_host": 2}')
    assert server_groups.members(api, found.id) == ["s2", "s1"]
    assert server_groups.members_of(api, [found.id]) == {found.id: ["s2", "s1"]}
    assert (server_groups.group_of(api, "s1"), server_groups.group_of(api, "s3")) == (one, None)
    assert sorted(host_states.group_members(api, one)) == ["s1", "s2"]
    assert [row.uuid for row in server_groups.every(api, None)] == [one, two]
    assert [row.uuid for row in server_groups.every(api, "q")] == [two]
    with api.write() as connection:
        assert server_groups.delete(connection, one)
        assert not server_groups.delete(connection, one)
    assert server_groups.group_of(api, "s1") is None


def test_limits_of_projects_users_and_classes_are_set_changed_and_dropped(api: Database) -> None:
    with api.write() as connection:
        for number in (1, 2):
            quotas.lock(connection, "p")
            quotas.set_limits(connection, "p", {"cores": number, "ram": 10})
            quotas.set_user_limits(connection, "p", "u", {"cores": number + 2})
            quotas.set_class_limits(connection, "default", {"cores": -number})
        assert quotas.limits(connection, "p") == {"cores": 2, "ram": 10}
        assert quotas.user_limits(connection, "p", "u") == {"cores": 4}
        assert quotas.class_limits(connection, "default") == {"cores": -2}
        quotas.drop_user_limits(connection, "p", "u")
        assert quotas.user_limits(connection, "p", "u") == {}
        quotas.set_user_limits(connection, "p", "u", {"cores": 1})
        quotas.drop_limits(connection, "p")
        assert (quotas.limits(connection, "p"), quotas.user_limits(connection, "p", "u")) == ({}, {})


FLAVOR = FlavorSpec(id=1, flavorid="f", name="f", memory_mb=64, vcpus=2, root_gb=1)


def waiting(api: Database, count: int) -> list[BuildRequest]:
    """Servers of one request that have no cell yet."""
    made = [BuildRequest(server("s", vcpus=2, memory_mb=64), ServerExtra(), [], ["red"]) for _ in range(count)]
    with api.write() as connection:
        requests.insert(connection, made, RequestSpec("p", "u", FLAVOR))
    return made


def test_a_server_without_a_cell_is_counted_changed_and_cancelled(api: Database) -> None:
    made = waiting(api, 2)
    first, second = (request.server.uuid for request in made)
    with api.write() as connection:
        assert quotas.used(connection, "p") == quotas.Used(2, 4, 128)
        assert quotas.used(connection, "p", "other") == quotas.Used(0, 0, 0)
        assert requests.replace(connection, BuildRequest(made[0].server, ServerExtra(user_data="x"), [], []))
        requests.set_spec(connection, first, RequestSpec("p", "u", FLAVOR, num_instances=7))
    changed = requests.get(api, first)
    assert changed is not None
    assert (changed.extra.user_data, changed.tags) == ("x", [])
    assert requests.specs(api, [first])[first].num_instances == 7
    assert [one.server.uuid for one in requests.pending(api, "p")] == [second, first]
    with api.write() as connection:
        assert requests.drop_request(connection, first)
        assert not requests.drop_request(connection, first)
        requests.queue_delete(connection, second)
        assert quotas.used(connection, "p") == quotas.Used(1, 2, 64)
        assert requests.set_cell(connection, first, ids.new_uuid())
        assert not requests.set_cell(connection, first, ids.new_uuid())
    assert requests.unwanted(api, [first, second, "none"]) == [second, "none"]


def test_requests_that_wait_for_a_cell_and_the_boots_under_way_are_told(api: Database) -> None:
    made = [one.server.uuid for one in waiting(api, 2)]
    with api.write() as connection:
        params = {"servers": made}
        assert journal.insert(connection, journal.API, NewWorkflow(ids.new_uuid(), "boot", made[0], params, {}))
    with api.read() as connection:
        assert set(leftovers.old_requests(connection, clock.utcnow() + timedelta(hours=1))) == set(made)
        assert leftovers.old_requests(connection, clock.utcnow() - timedelta(hours=1)) == []
        assert leftovers.pending(connection, [*made, "none"]) == set(made)
        assert leftovers.booting(connection) == set(made)

"""The scheduler on OpenStack's own Placement: claims singly and together, answers cut at the limit, conflicts."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kilonova.bus.calls import SelectDestinations
from kilonova.clients.placement import ConsumerConflict, HttpPlacement
from kilonova.clients.rest import FixedToken, RestClient
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.request_spec import FlavorSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.http.transport import SocketTransport
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from tests.deploy import peers
from tests.deploy.processes import end
from tests.scheduler.own_placement import add_host
from tests.scheduler.world import SMALL, Cloud, spec_of

CONTEXT = Context(overwrite=False)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpPlacement]:
    """OpenStack's Placement 16 in a process of its own."""
    directory = tmp_path_factory.mktemp("peer")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = peers.placement_alone(directory / "placement", f"sqlite:///{directory}/placement.db", port)
    url = f"http://127.0.0.1:{port}/placement"
    rest = RestClient("placement", url, SocketTransport(), FixedToken("admin"), microversion="placement")
    try:
        yield HttpPlacement(rest)
    finally:
        end([process])


@pytest.fixture
def filled(cloud: Cloud, client: HttpPlacement) -> Iterator[dict[str, str]]:
    """Four hosts by name, two with room for three small servers; nothing is left of them afterwards."""
    uuids = {name: add_host(cloud, client, name, memory_mb=3 * SMALL.memory_mb) for name in ("a", "b")}
    uuids |= {name: add_host(cloud, client, name, memory_mb=16384) for name in ("c", "d")}
    yield uuids
    for uuid in uuids.values():
        for consumer in client.provider_allocations(uuid):
            client.delete_allocations(consumer)
    for uuid in uuids.values():
        client.delete_provider(uuid)


def ask(cloud: Cloud, client: HttpPlacement, spec: RequestSpec, *servers: str, **options: Any) -> list[list[str]]:
    made = Scheduler(cloud, client, SchedulerSettings(**options))
    asked = SelectDestinations(spec, servers or (ids.new_uuid(),))
    return [[row.host for row in rows] for rows in made.select_destinations(CONTEXT, asked).selections]


def test_one_server_and_several_at_once_hold_what_was_selected(
    cloud: Cloud, client: HttpPlacement, filled: dict[str, str]
) -> None:
    one, mine = ids.new_uuid(), [ids.new_uuid() for _ in range(8)]
    ((winner, *others),) = ask(cloud, client, spec_of(), one)
    assert list(client.allocations(one)["allocations"]) == [filled[winner]]
    assert len(others) == 2
    found = ask(cloud, client, spec_of(num_instances=8), *mine)
    for server, (host, *_) in zip(mine, found, strict=True):
        assert client.allocations(server)["allocations"][filled[host]]["resources"] == {
            "VCPU": 1, "MEMORY_MB": SMALL.memory_mb, "DISK_GB": SMALL.root_gb,
        }  # fmt: skip


def test_a_request_too_large_in_sum_leaves_nothing(cloud: Cloud, client: HttpPlacement, filled: dict[str, str]) -> None:
    with pytest.raises(NoValidHost):
        ask(cloud, client, spec_of(num_instances=23), *(ids.new_uuid() for _ in range(23)))
    assert [client.provider_allocations(uuid) for uuid in filled.values()] == [{}] * 4


def test_an_answer_that_is_cut_gives_the_hosts_that_are_in_it(
    cloud: Cloud, client: HttpPlacement, filled: dict[str, str]
) -> None:
    assert len(ask(cloud, client, spec_of(), max_placement_results=1)[0]) == 1
    found = ask(cloud, client, spec_of(num_instances=2), ids.new_uuid(), ids.new_uuid(), max_placement_results=1)
    assert len({row[0] for row in found}) == 1
    with pytest.raises(NoValidHost):  # more than the one host in the answer takes
        ask(cloud, client, spec_of(num_instances=9), *(ids.new_uuid() for _ in range(9)), max_placement_results=1)
    assert sum(len(client.provider_allocations(uuid)) for uuid in filled.values()) == 3


@pytest.mark.usefixtures("filled")
def test_a_server_that_holds_something_already_is_a_conflict_and_the_others_get_nothing(
    cloud: Cloud, client: HttpPlacement
) -> None:
    taken, other = ids.new_uuid(), ids.new_uuid()
    ask(cloud, client, spec_of(), taken)
    with pytest.raises(ConsumerConflict):
        ask(cloud, client, spec_of(num_instances=2), other, taken)
    assert client.allocations(other)["allocations"] == {}
    assert client.allocations(taken)["allocations"] != {}


@pytest.mark.usefixtures("filled")
def test_a_query_it_does_not_take_is_no_valid_host(cloud: Cloud, client: HttpPlacement) -> None:
    flavor = FlavorSpec(id=2, flavorid="2", name="f", memory_mb=512, vcpus=1, root_gb=1,
                        extra_specs={"trait:CUSTOM_NOBODY_MADE": "required"})  # fmt: skip
    with pytest.raises(NoValidHost):
        ask(cloud, client, spec_of(flavor))


def test_two_schedulers_that_race_for_the_last_room_oversell_nothing(
    cloud: Cloud, client: HttpPlacement, filled: dict[str, str]
) -> None:
    schedulers = [Scheduler(cloud, client, SchedulerSettings()) for _ in range(2)]

    def place(number: int) -> tuple[str, str] | None:
        server = ids.new_uuid()
        try:
            found = schedulers[number % 2].select_destinations(CONTEXT, SelectDestinations(spec_of(), (server,)))
        except NoValidHost:
            return None
        return server, found.selections[0][0].provider_uuid

    with ThreadPoolExecutor(4) as threads:
        promised = dict(filter(None, threads.map(place, range(24))))
    held = {consumer: uuid for uuid in filled.values() for consumer in client.provider_allocations(uuid)}
    assert held == promised
    room = {"a": 3, "b": 3, "c": 8, "d": 8}
    assert all(Counter(held.values())[uuid] <= room[name] for name, uuid in filled.items())

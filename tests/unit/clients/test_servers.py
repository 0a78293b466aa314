"""How the compute service is read: page by page, with what it says of servers that it knows little of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from kilonova.clients.rest import RemoteForbidden, RemoteInvalid
from kilonova.clients.servers import HttpServers, Migration, Size
from tests.unit.clients.scripted import Scripted, rest

FLAVOR = {
    "original_name": "m1", "vcpus": 2, "ram": 512, "disk": 10, "ephemeral": 0, "swap": 0, "extra_specs": {"a": "b"},
}  # fmt: skip
NONE: tuple[int, Any] = (200, {"servers": []})


def row(**values: Any) -> dict[str, Any]:
    return {
        "id": "s1", "tenant_id": "p", "user_id": "u", "created": "2024-05-06T07:08:09Z", "status": "ACTIVE",
        "OS-EXT-SRV-ATTR:hypervisor_hostname": "one", "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:task_state": None, "image": {"id": "i"}, "flavor": FLAVOR, **values,
    }  # fmt: skip


def test_servers_are_listed_to_the_end_whatever_a_page_holds() -> None:
    transport = Scripted((200, {"servers": [row()]}), (200, {"servers": [row(id="s2", image="")]}), NONE)
    found = HttpServers(rest(transport)).every()
    assert transport.lines == [
        "GET /servers/detail?all_tenants=1&limit=1000",
        "GET /servers/detail?all_tenants=1&limit=1000&marker=s1",
        "GET /servers/detail?all_tenants=1&limit=1000&marker=s2",
    ]
    assert transport.asked[0][2]["OpenStack-API-Version"] == "thing 2.69"
    one, two = found["s1"], found["s2"]
    assert one.size == Size("m1", 2, 512, 10, 0, 0, (("a", "b"),))
    assert (one.node, one.from_volume, one.created_at) == ("one", False, datetime(2024, 5, 6, 7, 8, 9))
    assert (one.settled, two.from_volume) == (True, True)
    assert one.size is two.size


def test_a_list_whose_marker_was_deleted_is_begun_anew() -> None:
    transport = Scripted((200, {"servers": [row()]}), (400, {}), (200, {"servers": [row(id="s2")]}), NONE)
    assert HttpServers(rest(transport)).every().keys() == {"s2"}
    with pytest.raises(RemoteInvalid):
        HttpServers(rest(Scripted((400, {}), (400, {}), (400, {})))).every()


def test_a_server_of_a_cell_that_is_away_is_there_and_not_settled() -> None:
    little = {"id": "s1", "status": "UNKNOWN", "tenant_id": "p", "created": "2024-05-06T07:08:09Z"}
    found = HttpServers(rest(Scripted((200, {"server": little})))).show("s1")
    assert found is not None
    assert not found.settled


@pytest.mark.parametrize(
    "values",
    [
        {"OS-EXT-STS:task_state": "resize_prep"}, {"OS-EXT-STS:vm_state": "building"},
        {"OS-EXT-STS:vm_state": "shelved_offloaded"}, {"OS-EXT-SRV-ATTR:hypervisor_hostname": None},
        {"flavor": {"id": "1"}},
    ],
)  # fmt: skip
def test_a_server_with_something_under_way_is_not_settled(values: dict[str, Any]) -> None:
    found = HttpServers(rest(Scripted((200, {"server": row(**values)})))).show("s1")
    assert found is not None
    assert not found.settled


def test_only_404_means_that_there_is_no_server() -> None:
    assert HttpServers(rest(Scripted((404, {})))).show("s1") is None
    with pytest.raises(RemoteForbidden):
        HttpServers(rest(Scripted((403, {})))).show("s1")


def test_migrations_are_read_page_by_page_and_none_where_the_service_has_none() -> None:
    rows = [{"uuid": "m1", "instance_uuid": "s1", "status": "running"}]
    transport = Scripted((200, {"migrations": rows}), (200, {"migrations": []}))
    assert list(HttpServers(rest(transport)).migrations("s1")) == [Migration("m1", "s1", "running")]
    assert transport.lines == [
        "GET /os-migrations?instance_uuid=s1&limit=1000",
        "GET /os-migrations?instance_uuid=s1&limit=1000&marker=m1",
    ]
    assert list(HttpServers(rest(Scripted((404, {})))).migrations()) == []
    with pytest.raises(RemoteForbidden):
        list(HttpServers(rest(Scripted((403, {})))).migrations())

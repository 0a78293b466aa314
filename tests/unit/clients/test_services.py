"""Network, images, volumes, identity and compute: addresses, bodies and the errors they become."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.clients import compute, identity, images, network, volumes
from kilonova.clients.rest import QuotaExceeded, RemoteUnavailable
from kilonova.core.context import Context
from tests.unit.clients.scripted import Scripted, rest


def neutron(kind: str) -> dict[str, Any]:
    return {"NeutronError": {"type": kind, "message": "why", "detail": ""}}


def test_a_project_may_boot_on_its_own_networks_and_on_the_shared_ones() -> None:
    transport = Scripted((200, {"networks": [{"id": "a"}]}), (200, {"networks": [{"id": "b"}]}))
    found = network.HttpNetwork(rest(transport)).list_networks("p", ids=["b", "a"])
    assert [row["id"] for row in found] == ["a", "b"]
    assert transport.lines == [
        "GET /v2.0/networks?id=a&id=b&tenant_id=p&shared=false",
        "GET /v2.0/networks?id=a&id=b&shared=true",
    ]


def test_no_ids_are_no_networks_and_no_request() -> None:
    transport = Scripted()
    assert network.HttpNetwork(rest(transport)).list_networks("p", ids=[]) == []
    assert network.HttpNetwork(rest(transport)).list_floatingips(port_ids=[]) == []


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (404, "NetworkNotFound", network.NetworkNotFound),
        (404, "SecurityGroupNotFound", network.SecurityGroupNotFound),
        (409, "IpAddressInUse", network.FixedIpInUse),
        (409, "MacAddressInUse", network.MacInUse),
        (409, "IpAddressGenerationFailure", network.NoMoreFixedIps),
        (409, "OverQuota", network.PortQuotaExceeded),
        (400, "InvalidIpForNetwork", network.InvalidFixedIp),
    ],
)
def test_a_port_that_cannot_be_made_says_why(status: int, kind: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        network.HttpNetwork(rest(Scripted((status, neutron(kind))))).create_port({"network_id": "n"})


def test_ports_are_wrapped_and_unwrapped() -> None:
    transport = Scripted((201, {"port": {"id": "p"}}), (200, {"port": {"id": "p", "name": "x"}}))
    client = network.HttpNetwork(rest(transport))
    assert client.create_port({"network_id": "n"}) == {"id": "p"}
    assert client.update_port("p", {"name": "x"})["name"] == "x"
    assert transport.bodies == [{"port": {"network_id": "n"}}, {"port": {"name": "x"}}]


def test_deleting_a_port_that_is_gone_is_no_error() -> None:
    answers = (204, b""), (404, neutron("PortNotFound")), (409, neutron("PortInUse"))
    client = network.HttpNetwork(rest(Scripted(*answers)))
    assert [client.delete_port("p"), client.delete_port("p")] == [True, False]
    with pytest.raises(network.PortInUse):
        client.delete_port("p")


def test_quota_usage_counts_reservations() -> None:
    answer = {"quota": {"port": {"limit": 10, "used": 3, "reserved": 2}}}
    assert network.HttpNetwork(rest(Scripted((200, answer)))).quota_usage("p", "port") == (10, 5)


def test_security_groups_come_from_a_path_with_a_hyphen_and_a_key_without() -> None:
    transport = Scripted((200, {"security_groups": [{"id": "g"}]}))
    assert network.HttpNetwork(rest(transport)).list_security_groups("p") == [{"id": "g"}]
    assert transport.lines == ["GET /v2.0/security-groups?tenant_id=p"]


def test_an_image_that_may_not_be_seen_is_not_there() -> None:
    client = images.HttpImages(rest(Scripted((404, {}), (403, {}))))
    for _ in range(2):
        with pytest.raises(images.ImageNotFound, match="Image i could"):
            client.show("i")


def test_all_pages_of_the_images_are_read() -> None:
    pages = (200, {"images": [{"id": 1}], "next": "/v2/images?marker=1"}), (200, {"images": [{"id": 2}]})
    transport = Scripted(*pages)
    assert [row["id"] for row in images.HttpImages(rest(transport)).list_images(status="active")] == [1, 2]
    assert transport.lines == ["GET /v2/images?status=active", "GET /v2/images?marker=1"]


def test_an_image_update_is_a_json_patch_with_escaped_names() -> None:
    transport = Scripted((200, {"id": "i"}))
    images.HttpImages(rest(transport)).update("i", {"a/b": 1}, remove=["c~d"])
    _, _, headers, document = transport.asked[0]
    assert headers["Content-Type"] == "application/openstack-images-v2.1-json-patch"
    assert document == [{"op": "add", "path": "/a~1b", "value": 1}, {"op": "remove", "path": "/c~0d"}]


def test_image_bytes_go_and_come_in_pieces() -> None:
    transport = Scripted((204, b""), (200, b"data"), (204, b""))
    client = images.HttpImages(rest(transport))
    client.upload("i", iter([b"da", b"ta"]))
    assert transport.asked[0][3] == b"data"
    assert b"".join(client.download("i")) == b"data"
    with pytest.raises(images.ImageNotActive):
        client.download("i")


def test_volumes_are_addressed_in_the_project_of_the_users_token() -> None:
    transport = Scripted(*[(200, {"volume": {"id": "v"}})] * 3)
    client = volumes.HttpVolumes(rest(transport, microversion="volume"))
    client.show(Context(project_id="p", auth_token="own"), "v")
    client.show(Context(project_id="p"), "v")
    client.show(None, "v")
    assert transport.lines == ["GET /p/volumes/v", "GET /volumes/v", "GET /volumes/v"]
    assert transport.asked[0][2]["OpenStack-API-Version"] == "volume 3.44"


def test_a_service_lists_and_makes_volumes_for_the_project_it_works_for() -> None:
    transport = Scripted((200, {"volumes": []}), (202, {"volume": {}}), (202, {"volume": {}}))
    client = volumes.HttpVolumes(rest(transport))
    client.list_volumes(Context(project_id="p"), name="n")
    client.create(Context(project_id="p"), size=1)
    client.create(Context(project_id="p", auth_token="own"), size=1)
    assert transport.lines == [
        "GET /volumes/detail?all_tenants=true&project_id=p&name=n", "POST /p/volumes", "POST /p/volumes",
    ]  # fmt: skip


def test_a_volume_that_cannot_be_attached_is_a_conflict() -> None:
    refusal = (400, {"badRequest": {"code": 400, "message": "in use"}})
    with pytest.raises(volumes.VolumeUnusable, match="in use"):
        volumes.HttpVolumes(rest(Scripted(refusal))).create_attachment(None, "v", "s")


def test_the_attachment_life_is_reserve_connect_complete_delete() -> None:
    answers = (200, {"attachment": {"id": "a"}}), (200, {"attachment": {}}), (204, b""), (200, {}), (404, {})
    transport = Scripted(*answers)
    client = volumes.HttpVolumes(rest(transport))
    client.create_attachment(None, "v", "s")
    client.update_attachment(None, "a", {"host": "h"})
    client.complete_attachment(None, "a")
    assert [client.delete_attachment(None, "a"), client.delete_attachment(None, "a")] == [True, False]
    assert transport.lines == [
        "POST /attachments", "PUT /attachments/a", "POST /attachments/a/action", "DELETE /attachments/a",
        "DELETE /attachments/a",
    ]  # fmt: skip
    assert transport.bodies[:2] == [
        {"attachment": {"volume_uuid": "v", "instance_uuid": "s"}},
        {"attachment": {"connector": {"host": "h"}}},
    ]


def test_a_volume_quota_is_a_quota() -> None:
    refusal = (413, {"overLimit": {"code": 413, "message": "VolumeLimitExceeded"}})
    with pytest.raises(QuotaExceeded, match="VolumeLimitExceeded"):
        volumes.HttpVolumes(rest(Scripted(refusal))).create(None, size=1, name=None)


def test_a_project_is_missing_only_when_identity_says_so() -> None:
    client = identity.HttpIdentity(rest(Scripted((200, {}), (404, {}), (403, {}), (500, {}))))
    assert [client.project_exists("p") for _ in range(3)] == [True, False, True]
    with pytest.raises(RemoteUnavailable):
        client.project_exists("p")


def test_events_for_servers_that_are_gone_are_no_error() -> None:
    client = compute.HttpCompute(rest(Scripted((404, {}), (207, {"events": [{"code": 422}]}))))
    assert client.external_events([{"name": "x"}]) == []
    assert client.external_events([{"name": "x"}]) == [{"code": 422}]


def test_a_project_is_asked_for_once_an_hour_and_a_missing_one_is_remembered_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(identity.clock, "monotonic", lambda: now[0])
    row = {"id": "p", "tags": ["t"], "compute_zones": "east"}
    transport = Scripted((200, {"project": row}), (404, {}), (200, {"project": row}))
    service = identity.HttpIdentity(rest(transport))
    assert [service.project("p"), service.project("p"), service.project("gone"), service.project("gone")] == [
        row, row, None, None,
    ]  # fmt: skip
    now[0] += 3600
    assert service.project("p") == row
    assert len(transport.asked) == 3


def test_a_project_that_may_not_be_looked_at_is_an_error_and_not_remembered() -> None:
    service = identity.HttpIdentity(rest(Scripted((500, {}), (200, {"project": {"id": "p"}}))))
    with pytest.raises(RemoteUnavailable):
        service.project("p")
    assert service.project("p") == {"id": "p"}


@pytest.mark.parametrize(
    ("attribute", "zones"),
    [({}, ""), ({"compute_zones": ""}, ""), ({"compute_zones": None}, ""), ({"compute_zones": "ALL"}, ""),
     ({"compute_zones": "a, b,,"}, "ab")],
)  # fmt: skip
def test_a_projects_zones_are_a_comma_list_and_all_is_no_restriction(attribute: dict[str, Any], zones: str) -> None:
    assert identity.compute_zones(attribute) == frozenset(zones)


def test_what_the_network_service_can_do_is_asked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(network.clock, "monotonic", lambda: now[0])
    transport = Scripted((200, {"extensions": [{"alias": "a"}]}), (200, {"extensions": [{"alias": "b"}]}))
    service = network.HttpNetwork(rest(transport))
    assert [service.extensions(), service.extensions()] == [frozenset("a"), frozenset("a")]
    now[0] += 600
    assert service.extensions() == frozenset("b")

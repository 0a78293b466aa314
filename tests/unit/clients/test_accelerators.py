"""Accelerators: addresses, bodies and the errors they become."""

from __future__ import annotations

import pytest

from kilonova.clients.accelerators import Binding, DeviceProfileNotFound, HttpAccelerators
from kilonova.clients.rest import NoAnswer, RemoteInvalid, RemoteUnavailable
from kilonova.core.context import Context
from tests.unit.clients.scripted import Scripted, rest


def client(transport: Scripted) -> HttpAccelerators:
    return HttpAccelerators(rest(transport, microversion="accelerator"))


def test_profiles_are_those_of_exactly_the_name() -> None:
    profiles = [{"name": "a b", "groups": []}, {"name": "a", "groups": []}]
    transport = Scripted((200, {"device_profiles": profiles}))
    assert client(transport).device_profiles("a b") == profiles[:1]
    assert transport.lines == ["GET /v2/device_profiles?name=a+b"]


def test_a_profile_is_read_with_the_users_token() -> None:
    transport = Scripted((200, {"device_profiles": []}))
    assert client(transport).as_user(Context(auth_token="own")).device_profiles("a") == []
    assert transport.asked[0][2]["X-Auth-Token"] == "own"


def test_requests_are_made_for_a_profile_and_listed_by_server() -> None:
    transport = Scripted((201, {"arqs": [{"uuid": "q"}]}), (200, {"arqs": []}), (200, {"arqs": [{"uuid": "q"}]}))
    service = client(transport)
    assert service.create_requests("a") == [{"uuid": "q"}]
    assert (service.list_requests("s"), service.list_requests()) == ([], [{"uuid": "q"}])
    assert transport.lines == [
        "POST /v2/accelerator_requests", "GET /v2/accelerator_requests?instance=s", "GET /v2/accelerator_requests",
    ]  # fmt: skip
    assert transport.bodies[0] == {"device_profile_name": "a"}


def test_requests_for_a_profile_that_is_not_there_cannot_be_made() -> None:
    with pytest.raises(DeviceProfileNotFound, match="Device profile a could"):
        client(Scripted((404, {}))).create_requests("a")


def test_all_requests_of_a_server_are_bound_by_one_call_that_names_the_project() -> None:
    transport = Scripted((202, b""))
    client(transport).bind([Binding("q1", "node", "rp1", "s", "p"), Binding("q2", "node", "rp2", "s", "p")])
    (method, path, headers, body), = transport.asked
    assert (method, path) == ("PATCH", "/v2/accelerator_requests")
    assert headers["OpenStack-API-Version"] == "accelerator 2.1"
    assert {arq: {entry["path"]: entry["value"] for entry in patch} for arq, patch in body.items()} == {
        "q1": {"/hostname": "node", "/device_rp_uuid": "rp1", "/instance_uuid": "s", "/project_id": "p"},
        "q2": {"/hostname": "node", "/device_rp_uuid": "rp2", "/instance_uuid": "s", "/project_id": "p"},
    }
    assert {entry["op"] for patch in body.values() for entry in patch} == {"add"}


def test_a_refused_binding_and_a_service_that_is_away_are_told_apart() -> None:
    service = client(Scripted((400, {"message": "why"}), NoAnswer))
    with pytest.raises(RemoteInvalid, match="why"):
        service.bind([Binding("q", "node", "rp", "s", "p")])
    with pytest.raises(RemoteUnavailable):
        service.list_requests("s")


def test_requests_are_deleted_by_server_or_singly_and_may_be_gone() -> None:
    transport = Scripted((204, b""), (204, b""), (404, {}))
    service = client(transport)
    service.delete_of("s")
    assert [service.delete_request("q"), service.delete_request("q")] == [True, False]
    assert transport.lines[:2] == [
        "DELETE /v2/accelerator_requests?instance=s", "DELETE /v2/accelerator_requests?arqs=q",
    ]  # fmt: skip

"""The thin story through every room: token, image, network, server, what is told of it, delete, nothing left."""

from __future__ import annotations

import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kilonova.http.transport import SocketTransport
from kilonova.wiring import all_in_one
from tests.databases import Places
from tests.http.compute.cloud import Client, login
from tests.scenario.stage import (
    IMAGE,
    NETWORK,
    NOTHING,
    Stage,
    becomes,
    boot,
    create,
    delete,
    image,
    network,
    serving,
    settings,
    stage,
)


def own_image(client: Client) -> str:
    """An image of a user's own, with bytes."""
    wanted = {"name": "mine", "disk_format": "raw", "container_format": "bare"}
    made = client.ok("POST", "/images", wanted, service=IMAGE, status=201)["id"]
    url = f"http://127.0.0.1:8774/image/v2/images/{made}/file"
    headers = {"X-Auth-Token": client.token, "Content-Type": "application/octet-stream"}
    assert client.transport.send("PUT", url, headers, b"x" * 512)[0] == 204
    assert client.get(f"/images/{made}", service=IMAGE)["status"] == "active"
    return str(made)


def own_network(client: Client) -> str:
    """A network of a user's own, with a subnet."""
    made = client.ok("POST", "/networks", {"network": {"name": "mine"}}, service=NETWORK, status=201)["network"]["id"]
    subnet = {"network_id": made, "cidr": "127.150.0.0/24", "ip_version": 4}
    client.ok("POST", "/subnets", {"subnet": subnet}, service=NETWORK, status=201)
    return str(made)


def test_a_server_from_its_request_to_its_end(tmp_path: Path, places: Places) -> None:
    with stage(tmp_path / "state", places) as here:
        demo = here.demo.at("2.96")
        nets, pictures = own_network(demo), own_image(demo)
        server = boot(demo, name="first", imageRef=pictures, networks=[{"uuid": nets}])
        assert server["image"]["id"] == pictures
        (address,) = server["addresses"]["mine"]
        assert address["addr"].startswith("127.150.0.")
        (port,) = demo.get(f"/ports?device_id={server['id']}", service=NETWORK)["ports"]
        assert (port["status"], port["device_owner"]) == ("ACTIVE", "compute:nova")
        assert port["fixed_ips"][0]["ip_address"] == address["addr"]
        assert_told(here, demo, server["id"])
        assert_placed(here, server["id"])
        delete(demo, server["id"])
        assert here.left() == NOTHING
        assert here.allocations(server["id"]) == {}
        demo.ok("DELETE", f"/networks/{nets}", service=NETWORK, status=204)
        demo.ok("DELETE", f"/images/{pictures}", service=IMAGE, status=204)


def assert_told(here: Stage, demo: Client, server: str) -> None:
    """The action `create` and its events, whole for an administrator."""
    (action,) = demo.get(f"/servers/{server}/os-instance-actions")["instanceActions"]
    assert (action["action"], action["message"]) == ("create", None)
    shown = here.admin.at("2.96").get(f"/servers/{server}/os-instance-actions/{action['request_id']}")["instanceAction"]
    assert {event["result"] for event in shown["events"]} == {"Success"}
    assert "compute__do_build_and_run_instance" in {event["event"] for event in shown["events"]}


def assert_placed(here: Stage, server: str) -> None:
    """One provider holds exactly what the flavor asks for: the host that the server is on."""
    shown = here.admin.at("2.96").get(f"/servers/{server}")["server"]
    expected = {"VCPU": 1, "MEMORY_MB": 192, "DISK_GB": 1}
    provider = here.provider(shown["OS-EXT-SRV-ATTR:hypervisor_hostname"])
    assert {key: row["resources"] for key, row in here.allocations(server).items()} == {provider: expected}
    assert here.used() == expected


class _NoConnections:
    """Refuses every connection that a thread other than the test's opens."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.refused: list[Any] = []
        test, real = threading.current_thread(), socket.socket.connect

        def connect(this: socket.socket, address: Any) -> None:
            if threading.current_thread() is not test and this.family != socket.AF_UNIX:
                self.refused.append(address)
                raise AssertionError(f"a connection to {address}")
            real(this, address)

        patch.setattr(socket.socket, "connect", connect)


def test_one_http_thread_is_enough_for_the_whole_story_because_nothing_calls_its_own_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    connections = _NoConnections(monkeypatch)
    cloud = all_in_one(settings(tmp_path / "state", port=port))
    server = serving(cloud, threads=1)
    server.start()
    try:
        cloud.start(listen=False)
        over = Moved(SocketTransport(timeout=5.0), port)
        demo = login(over, "demo", "demo").at("2.96")
        made = boot(demo)
        assert made["addresses"]["private"]
        delete(demo, made["id"])
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            assert answer.status == 200
        assert connections.refused == []
    finally:
        server.stop()
        cloud.stop()


class Moved:
    """A transport to the cloud at another port than the one that tests name."""

    def __init__(self, inner: SocketTransport, port: int) -> None:
        self._inner, self._port = inner, port

    def send(self, method: str, url: str, headers: Any, body: Any) -> Any:
        return self._inner.send(method, url.replace(":8774/", f":{self._port}/"), headers, body)

    def open(self, method: str, url: str, headers: Any, body: Any) -> Any:
        return self._inner.open(method, url.replace(":8774/", f":{self._port}/"), headers, body)


def test_the_request_id_of_a_create_stands_in_the_log_lines_of_every_service_that_worked_for_it(tmp_path: Path) -> None:
    with stage(tmp_path / "state") as here:
        nets = [{"uuid": network(here.demo)}]
        server = {"name": "s", "flavorRef": "42", "imageRef": image(here.demo), "networks": nets}
        answer = here.demo.at("2.96").ask("POST", "/servers", {"server": server})
        request_id = answer.headers["x-openstack-request-id"]
        assert answer.headers["x-compute-request-id"] == request_id
        becomes(here.demo.at("2.96"), answer.body["server"]["id"], "ACTIVE")
        services = {line.split()[4] for line in here.log(request_id)}
        assert services >= {"compute", "conductor", "scheduler", "placement", "agent", "network", "image"}


def test_a_request_id_that_the_client_chose_is_followed_too(tmp_path: Path) -> None:
    with stage(tmp_path / "state") as here:
        made = create(_Named(here.transport, here.demo.token, here.demo.project, here.demo.user, "2.96"), name="named")
        becomes(here.demo.at("2.96"), made, "ACTIVE")
        services = {line.split()[4] for line in here.log(CHOSEN)}
        assert services >= {"compute", "conductor", "scheduler", "agent"}


CHOSEN = "req-11111111-2222-4333-8444-555555555555"


class _Named(Client):
    """A client that names its requests."""

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        return super().ask(method, path, body, X_OpenStack_Request_ID=CHOSEN, **more)


def test_guests_have_a_console_log_with_their_name(tmp_path: Path) -> None:
    with stage(tmp_path / "state", hosts=1) as here:
        made = boot(here.demo.at("2.96"), name="talkative")
        answer = here.demo.ask("POST", f"/servers/{made['id']}/action", {"os-getConsoleOutput": {}})
        assert answer.status == 200
        assert "talkative login:" in answer.body["output"]


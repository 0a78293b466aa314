"""A whole cloud in this process and the people who use it. A story opens its own and may break what it likes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kilonova.clients.rest import Transport
from kilonova.conf.all_in_one import AllInOne, Secrets
from kilonova.http.server import HttpServer
from kilonova.http.transport import WsgiTransport
from kilonova.wiring import Cloud, all_in_one
from tests.databases import Places
from tests.http.compute.cloud import PASSWORD, Client, login, until

VOLUME, NETWORK, IMAGE, PLACEMENT = "/volume/v3", "/networking/v2.0", "/image/v2", "/placement"
SECRETS = Secrets(PASSWORD, PASSWORD, PASSWORD, "service-secret")


@dataclass(frozen=True)
class Stage:
    """A cloud that runs, its state directory, and its first users: `admin` and `demo`, a member."""

    cloud: Cloud
    directory: Path
    transport: Transport
    admin: Client
    demo: Client

    def log(self, request_id: str = "") -> list[str]:
        """Lines of the log so far, those of one request when it is named."""
        import logging

        for handler in logging.getLogger().handlers:
            handler.flush()
        lines = (self.directory / "kilonova.log").read_text().splitlines()
        return [line for line in lines if request_id in line]

    def provider(self, host: str) -> str:
        """The uuid of a host's resource provider."""
        found = self.placement(f"/resource_providers?name={host}")["resource_providers"]
        return str(found[0]["uuid"])

    def placement(self, path: str) -> Any:
        """What placement answers an administrator."""
        return self.admin.get(path, service=PLACEMENT, OpenStack_API_Version="placement 1.36")

    def allocations(self, consumer: str) -> dict[str, Any]:
        """What a server holds, by provider."""
        found: dict[str, Any] = self.placement(f"/allocations/{consumer}")["allocations"]
        return found

    def used(self) -> dict[str, int]:
        """What is used of all hosts together, by resource class."""
        sums: dict[str, int] = {}
        for provider in self.placement("/resource_providers")["resource_providers"]:
            for name, amount in self.placement(f"/resource_providers/{provider['uuid']}/usages")["usages"].items():
                sums[name] = sums.get(name, 0) + amount
        return {name: amount for name, amount in sums.items() if amount}

    def left(self) -> dict[str, list[str]]:
        """What servers may leave behind: ports of theirs, volumes, and usage in placement."""
        ports = self.admin.get("/ports", service=NETWORK)["ports"]
        volumes = self.admin.get("/volumes/detail?all_tenants=1", service=VOLUME)["volumes"]
        return {
            "ports": [port["id"] for port in ports if port["device_owner"].startswith("compute:")],
            "volumes": [volume["id"] for volume in volumes],
            "usage": sorted(self.used()),
        }


NOTHING: dict[str, list[str]] = {"ports": [], "volumes": [], "usage": []}


def settings(directory: Path, *, hosts: int = 2, port: int = 8774, config: str = "") -> AllInOne:
    """What `kilonova up` would be asked for. config: lines of a kilonova.conf."""
    directory.mkdir(exist_ok=True)
    files = ()
    if config:
        (directory / "kilonova.conf").write_text(config)
        files = (directory / "kilonova.conf",)
    return AllInOne(
        host="127.0.0.1", port=port, state_dir=directory, hosts=hosts, private_cidr="127.100.0.0/16",
        public_cidr="127.200.0.0/24", secrets=SECRETS, config_files=files,
    )  # fmt: skip


@contextmanager
def stage(
    directory: Path, places: Places | None = None, *, hosts: int = 2, port: int = 8774, config: str = ""
) -> Iterator[Stage]:
    """A cloud without a socket. places: where its databases are; without, they are in the directory.

    A directory that is not there yet is a new cloud's, whose databases are emptied.
    """
    with places.held() if places is not None else nullcontext():
        if places is not None and not directory.exists():
            places.empty()
        config = (places.config if places is not None else "") + config
        cloud = all_in_one(settings(directory, hosts=hosts, port=port, config=config))
        try:
            cloud.start(listen=False)
            transport = WsgiTransport(cloud.app)
            people = login(transport, "admin", "admin"), login(transport, "demo", "demo")
            yield Stage(cloud, directory, transport, *people)
        finally:
            cloud.stop()


def serving(cloud: Cloud, threads: int) -> HttpServer:
    """An HTTP server for it with so many threads, not started; the cloud itself need not listen then."""
    host, port = cloud.base_url.removeprefix("http://").split(":")
    return HttpServer(cloud.app, host, int(port), threads=threads)


def image(client: Client, name: str = "cirros-0.6.3-x86_64-disk") -> str:
    """The id of an image."""
    return str(client.get(f"/images?name={name}", service=IMAGE)["images"][0]["id"])


def network(client: Client, name: str = "private") -> str:
    """The id of a network."""
    return str(client.get(f"/networks?name={name}", service=NETWORK)["networks"][0]["id"])


def flavor(client: Client, name: str) -> str:
    """The id of a flavor."""
    return next(str(row["id"]) for row in client.get("/flavors")["flavors"] if row["name"] == name)


def create(client: Client, **values: Any) -> str:
    """POST a server of the smallest flavor; its id. Without `networks`, on the network private."""
    server = {"name": "s", "flavorRef": "42", "networks": [{"uuid": network(client)}]} | values
    if "imageRef" not in server and "block_device_mapping_v2" not in server:
        server["imageRef"] = image(client)
    return str(client.ok("POST", "/servers", {"server": server}, status=202)["server"]["id"])


def becomes(client: Client, server: str, status: str, seconds: float = 15.0) -> dict[str, Any]:
    """The server once it has this status and nothing is under way; AssertionError when it goes to ERROR instead."""

    def found() -> dict[str, Any] | None:
        shown: dict[str, Any] = client.get(f"/servers/{server}")["server"]
        assert status == "ERROR" or shown["status"] != "ERROR", shown.get("fault")
        quiet = shown["OS-EXT-STS:task_state"] is None
        return shown if shown["status"] == status and quiet else None

    shown: dict[str, Any] = until(found, seconds)
    return shown


def boot(client: Client, **values: Any) -> dict[str, Any]:
    """A new server that is ACTIVE."""
    return becomes(client, create(client, **values), "ACTIVE")


def act(client: Client, server: str, action: str, value: Any = None) -> None:
    """An action that is taken on."""
    client.ok("POST", f"/servers/{server}/action", {action: value}, status=202)


def delete(client: Client, *servers: str) -> None:
    """Delete servers and see them gone."""
    for server in servers:
        client.ok("DELETE", f"/servers/{server}", status=204)
    for server in servers:
        until(lambda server=server: client.status("GET", f"/servers/{server}") == 404)


def volume(client: Client, status: str = "available", **values: Any) -> str:
    """A new volume of 1 GB that has come to this status; its id."""
    made = client.ok("POST", "/volumes", {"volume": {"size": 1} | values}, service=VOLUME)["volume"]["id"]
    volume_becomes(client, made, status)
    return str(made)


def volume_becomes(client: Client, volume_id: str, status: str) -> dict[str, Any]:
    """The volume once it has this status."""

    def found() -> dict[str, Any] | None:
        shown: dict[str, Any] = client.get(f"/volumes/{volume_id}", service=VOLUME)["volume"]
        return shown if shown["status"] == status else None

    shown: dict[str, Any] = until(found)
    return shown


def volume_gone(client: Client, volume_id: str) -> None:
    """Wait until it does not exist."""
    until(lambda: client.status("GET", f"/volumes/{volume_id}", service=VOLUME) == 404)

"""A cloud of its own for the metadata service: with a proxy secret, vendor data, and a server that has everything."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kilonova.compute.world import World
from kilonova.conf.all_in_one import AllInOne, Secrets
from kilonova.core import json
from kilonova.http.transport import WsgiTransport
from kilonova.metadata.app import MetadataApp
from kilonova.metadata.finding import sign
from kilonova.metadata.settings import Settings
from kilonova.wiring import all_in_one, one_process
from tests.http.compute.cloud import BASE, PASSWORD, Answer, Client, boot, login

SECRET = "between the proxy and us"
USER_DATA = b"#!/bin/sh\necho \xff\n"
VENDOR = {"motd": "welcome"}


@dataclass(frozen=True)
class Guest:
    """A server and its way to the metadata service: through the proxy, or straight from its address."""

    transport: WsgiTransport
    server: dict[str, Any]
    project: str
    prefix: str = "/metadata"
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **other: str) -> Answer:
        """An answer; `other` replaces headers of the proxy (empty: leaves one out), `X_Name=…`."""
        server = self.server["id"]
        sent = {"X-Instance-ID": server, "X-Tenant-ID": self.project, "X-Instance-ID-Signature": sign(SECRET, server)}
        sent = (self.headers or sent) | {name.replace("_", "-"): value for name, value in other.items()}
        sent = {name: value for name, value in sent.items() if value}
        status, headers, text = self.transport.send(method, BASE + self.prefix + path, sent, body)
        return Answer(status, text, headers)

    def get(self, path: str) -> bytes:
        """The content of what is there."""
        answer = self.ask(path)
        assert answer.status == 200, (path, answer.status, answer.body)
        return bytes(answer.body)

    def lines(self, path: str) -> list[str]:
        """The names in a directory."""
        return self.get(path).decode().split("\n")

    def json(self, path: str) -> Any:
        """A document."""
        return json.loads(self.get(path))


@dataclass(frozen=True)
class Place:
    """A cloud, a user of it, and what its use cases work on."""

    transport: WsgiTransport
    demo: Client
    admin: Client
    world: World

    def guest(self, **values: Any) -> Guest:
        """A new server's guest."""
        return Guest(self.transport, boot(self.demo.at("2.42"), **values), self.demo.project)

    def straight(self, guest: Guest, address: str, cache: float = 0) -> Guest:
        """The same guest as it reaches a service without a proxy, from an address."""
        app = MetadataApp(self.world, Settings(cache=cache))

        def come(environ: dict[str, Any], start_response: Any) -> Any:
            return app(environ | {"REMOTE_ADDR": address}, start_response)

        return Guest(WsgiTransport(come), guest.server, guest.project, prefix="", headers={"X-Who": "nobody"})


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("metadata")
    vendor, config = directory / "vendor.json", directory / "kilonova.conf"
    vendor.write_bytes(json.dumps(VENDOR))
    config.write_text(
        f"[neutron]\nmetadata_proxy_shared_secret = {SECRET}\n[api]\nvendordata_jsonfile_path = {vendor}\n"
    )
    worlds: list[World] = []

    def kept(world: World, settings: Settings) -> MetadataApp:
        worlds.append(world)
        return MetadataApp(world, settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_process, "MetadataApp", kept)
        cloud = all_in_one(AllInOne(
            host="127.0.0.1", port=8774, state_dir=directory, hosts=1, private_cidr="127.101.0.0/16",
            public_cidr="127.201.0.0/24", secrets=Secrets(PASSWORD, PASSWORD, PASSWORD, "service-secret"),
            config_files=(config,),
        ))  # fmt: skip
    cloud.start(listen=False)
    transport = WsgiTransport(cloud.app)
    yield Place(transport, login(transport, "demo", "demo"), login(transport, "admin", "admin"), worlds[0])
    cloud.stop()


@pytest.fixture(scope="session")
def guest(place: Place) -> Guest:
    """A server with a key, user data, a file, metadata and an address."""
    place.demo.ok("POST", "/os-keypairs", {"keypair": {"name": "mine", "public_key": KEY}})
    network = place.demo.get("/v2.0/networks?name=private", service="/networking")["networks"][0]["id"]
    found = place.guest(
        name="Web Server", key_name="mine", user_data=base64.b64encode(USER_DATA).decode(), metadata={"role": "web"},
        personality=[{"path": "/etc/motd", "contents": base64.b64encode(b"hello").decode()}],
        networks=[{"uuid": network, "tag": "front"}],
    )  # fmt: skip
    assert found.server["status"] == "ACTIVE", found.server.get("fault")
    return found


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKl2Hrj2ZbqJuUTf+w6bJbWC6KrOxk0HHsFPV2sPOtFq somebody@somewhere"

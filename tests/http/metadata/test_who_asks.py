"""Nobody reads another's metadata: signature, project, address; and the password, which is written once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kilonova.core import clock
from kilonova.core.errors import Unavailable
from kilonova.http.transport import WsgiTransport
from kilonova.metadata.app import MetadataApp
from kilonova.metadata.finding import sign
from kilonova.metadata.settings import Settings
from tests.http.compute.cloud import remove
from tests.http.metadata.conftest import Guest, Place

PATH = "/openstack/latest/meta_data.json"
PASSWORD = "/openstack/latest/password"
NOBODY = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize("name", ["X_Instance_ID", "X_Tenant_ID", "X_Instance_ID_Signature"])
def test_a_request_without_one_of_the_proxys_headers_is_bad(guest: Guest, name: str) -> None:
    answer = guest.ask(PATH, **{name: ""})
    assert answer.status == 400
    assert name.replace("_", "-") in answer.body.decode()


@pytest.mark.parametrize("signature", [sign("another secret", "x"), "é", "0"])
def test_who_does_not_have_the_secret_is_refused(guest: Guest, signature: str) -> None:
    assert guest.ask(PATH, X_Instance_ID_Signature=signature).status == 403
    assert guest.ask(PATH, X_Instance_ID=NOBODY).status == 403  # the signature is that of another server


def test_a_server_of_another_project_is_not_found(guest: Guest, place: Place) -> None:
    assert guest.ask(PATH).status == 200
    assert guest.ask(PATH, X_Tenant_ID=place.admin.project).status == 404


def test_a_server_that_is_not_there_is_not_found(guest: Guest) -> None:
    secret = "between the proxy and us"
    for server in (NOBODY, "no uuid", f"{NOBODY}, {NOBODY}"):
        assert guest.ask(PATH, X_Instance_ID=server, X_Instance_ID_Signature=sign(secret, server)).status == 404


def test_without_a_proxy_the_address_says_who_asks(guest: Guest, place: Place) -> None:
    address = guest.server["addresses"]["private"][0]["addr"]
    assert place.straight(guest, address).json(PATH)["uuid"] == guest.server["id"]
    assert place.straight(guest, "127.101.99.99").ask(PATH).status == 404
    assert place.straight(guest, "no address").ask(PATH).status == 404


def test_an_address_that_two_servers_have_is_nobodys(guest: Guest, place: Place) -> None:
    address = guest.server["addresses"]["private"][0]["addr"]
    made = place.demo.ok("POST", "/v2.0/networks", {"network": {"name": "twin"}}, service="/networking")["network"]
    body = {"subnet": {"network_id": made["id"], "ip_version": 4, "cidr": "127.101.0.0/16"}}
    place.demo.ok("POST", "/v2.0/subnets", body, service="/networking")
    other = place.guest(networks=[{"uuid": made["id"], "fixed_ip": address}])
    try:
        assert other.server["status"] == "ACTIVE", other.server.get("fault")
        assert place.straight(guest, address).ask(PATH).status == 404
    finally:
        remove(place.demo, other.server["id"])
    assert place.straight(guest, address).ask(PATH).status == 200


class Later:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self._real, self.seconds = clock.SystemClock(), 0.0

    def utcnow(self) -> object:
        return self._real.utcnow()

    def monotonic(self) -> float:
        return self._real.monotonic() + self.seconds

    def sleep(self, seconds: float) -> None:
        self._real.sleep(seconds)


def test_what_was_read_is_kept_for_some_seconds(guest: Guest, place: Place) -> None:
    address, later = guest.server["addresses"]["private"][0]["addr"], Later()
    path = f"/servers/{guest.server['id']}/metadata/role"
    before = clock.install(later)  # type: ignore[arg-type]
    try:
        kept = place.straight(guest, address, cache=15)
        assert kept.json(PATH)["meta"] == {"role": "web"}
        place.demo.ok("PUT", path, {"meta": {"role": "db"}})
        assert kept.json(PATH)["meta"] == {"role": "web"}
        assert place.straight(guest, address, cache=0).json(PATH)["meta"] == {"role": "db"}
        later.seconds = 15.1
        assert kept.json(PATH)["meta"] == {"role": "db"}
    finally:
        clock.install(before)
        place.demo.ok("PUT", path, {"meta": {"role": "web"}})


def test_a_password_is_written_once(place: Place) -> None:
    guest = place.guest()
    assert guest.get(PASSWORD) == b""
    assert guest.ask(PASSWORD, "POST", b"x" * 1021).status == 400
    assert guest.ask(PASSWORD, "POST", b"\xff").status == 400
    long = "pässword" * 100
    assert guest.ask(PASSWORD, "POST", long.encode()).status == 200
    assert guest.get(PASSWORD).decode() == long
    assert guest.ask(PASSWORD, "POST", b"another").status == 409
    assert guest.get(PASSWORD).decode() == long


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", PATH), ("PUT", PASSWORD), ("DELETE", PASSWORD), ("POST", "/openstack/2012-08-10/password"), ("POST", "")],
)
def test_all_else_is_only_read(guest: Guest, method: str, path: str) -> None:
    assert guest.ask(path, method, b"x").status == 405


def test_a_network_service_that_is_away_is_said_to_be(place: Place) -> None:
    class Away:
        def list_ports(self, **_: object) -> None:
            raise Unavailable("The network service is away.")

    app = MetadataApp(replace(place.world, network=Away()), Settings())  # type: ignore[arg-type]
    status, _, _ = WsgiTransport(app).send("GET", "http://x/latest/meta-data/", {}, None)
    assert status == 503

"""What the network service changes about a server is seen in the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.databases import Places
from tests.http.compute.cloud import Client, until
from tests.scenario.stage import NETWORK, NOTHING, Stage, boot, delete, network, stage


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, places: Places) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("addresses") / "state", places) as made:
        yield made


@pytest.fixture
def demo(here: Stage) -> Client:
    return here.demo.at("2.96")


def addresses(client: Client, server: str) -> dict[str, str]:
    """Addresses of a server to their kind."""
    shown = client.get(f"/servers/{server}")["server"]["addresses"]
    return {row["addr"]: row["OS-EXT-IPS:type"] for rows in shown.values() for row in rows}


def floating(client: Client, **values: Any) -> dict[str, Any]:
    """A new floating IP."""
    body = {"floatingip": {"floating_network_id": network(client, "public")} | values}
    made: dict[str, Any] = client.ok("POST", "/floatingips", body, service=NETWORK, status=201)["floatingip"]
    return made


def test_a_floating_ip_shows_with_its_server_as_long_as_it_has_it(here: Stage, demo: Client) -> None:
    server = boot(demo)["id"]
    (port,) = demo.get(f"/ports?device_id={server}", service=NETWORK)["ports"]
    (fixed,) = [row["ip_address"] for row in port["fixed_ips"]]
    assert addresses(demo, server) == {fixed: "fixed"}
    made = floating(demo)
    body = {"floatingip": {"port_id": port["id"]}}
    bound = demo.ok("PUT", f"/floatingips/{made['id']}", body, service=NETWORK)["floatingip"]
    assert bound["fixed_ip_address"] == fixed
    until(lambda: addresses(demo, server) == {fixed: "fixed", made["floating_ip_address"]: "floating"})
    assert [row["id"] for row in demo.get(f"/servers?ip={fixed}")["servers"]] == [server]
    demo.ok("PUT", f"/floatingips/{made['id']}", {"floatingip": {"port_id": None}}, service=NETWORK)
    until(lambda: addresses(demo, server) == {fixed: "fixed"})
    demo.ok("DELETE", f"/floatingips/{made['id']}", service=NETWORK, status=204)
    delete(demo, server)
    assert here.left() == NOTHING


def test_a_floating_ip_made_for_a_port_is_free_when_the_server_has_gone(demo: Client) -> None:
    server = boot(demo)["id"]
    (port,) = demo.get(f"/ports?device_id={server}", service=NETWORK)["ports"]
    made = floating(demo, port_id=port["id"])
    until(lambda: made["floating_ip_address"] in addresses(demo, server))
    delete(demo, server)
    freed = demo.get(f"/floatingips/{made['id']}", service=NETWORK)["floatingip"]
    assert (freed["port_id"], freed["status"]) == (None, "DOWN")
    demo.ok("DELETE", f"/floatingips/{made['id']}", service=NETWORK, status=204)

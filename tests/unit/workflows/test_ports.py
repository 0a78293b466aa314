"""Ports with resources: which provider gives them is written into the port, and taken out when it is given back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kilonova.scheduler.resource_request import port_groups
from kilonova.workflows import ports

PORT = "p1"
GROUPS = {"request_groups": [{"id": "bw", "resources": {"X": 1}}, {"id": "pps", "resources": {"Y": 1}}]}
OLD_FORM = {"resources": {"X": 1}, "required": []}


class Network:
    """One port of a user's."""

    def __init__(self) -> None:
        self.port: dict[str, Any] = {
            "id": PORT, "network_id": "n", "mac_address": "m", "device_id": "", "binding:profile": {"capabilities": []},
        }  # fmt: skip

    def show_port(self, port: str) -> dict[str, Any]:
        return self.port

    def update_port(self, port: str, body: dict[str, Any]) -> dict[str, Any]:
        self.port |= body
        return self.port

    def list_ports(self, **filters: Any) -> list[dict[str, Any]]:
        return [self.port] if self.port["device_id"] == filters["device_id"] else []


def interface(asked: dict[str, Any] | None) -> dict[str, Any]:
    network = {"id": "n", "label": "", "mtu": 1500}
    return {"network": network, "port": PORT} | ({"resource_request": asked} if asked else {})


@pytest.mark.parametrize(
    ("asked", "mappings", "allocation"),
    [
        (None, {"": ["root"]}, None),
        (OLD_FORM, {"": ["root"], PORT: ["agent"]}, "agent"),
        (GROUPS, {"": ["root"], "bw": ["ovs"], "pps": ["switch"]}, {"bw": "ovs", "pps": "switch"}),
        (OLD_FORM, {"": ["root"]}, None),  # a host that was forced past Placement
    ],
)
def test_a_port_is_told_who_gives_its_resources_and_forgets_it_again(
    asked: dict[str, Any] | None, mappings: dict[str, list[str]], allocation: Any
) -> None:
    network = Network()
    world: Any = SimpleNamespace(network=network)
    server: Any = SimpleNamespace(uuid="s", host="h", availability_zone="nova", project_id="p")
    ports.ensure(world, server, ports.with_allocations([interface(asked)], mappings), [], look=False)
    profile = {"capabilities": []} | ({} if allocation is None else {"allocation": allocation})
    assert network.port["binding:profile"] == profile
    assert (network.port["device_id"], network.port["binding:host_id"]) == ("s", "h")
    ports.release(world, "s", [PORT])
    assert network.port["binding:profile"] == {"capabilities": []}
    assert network.port["device_id"] == ""


def test_the_suffixes_that_were_asked_for_are_those_that_are_looked_up() -> None:
    assert [group.requester for group in port_groups(interface(OLD_FORM))] == [PORT]
    assert [group.requester for group in port_groups(interface(GROUPS))] == ["bw", "pps"]

"""Ports: their addresses, MACs, binding, and what compute is told of them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

SERVER = "5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c"


@pytest.fixture
def network(demo: Any) -> str:
    made: str = demo.make("network", name="n")["id"]
    return made


def _subnet(client: Any, network: str, cidr: str, **more: Any) -> str:
    version = 6 if ":" in cidr else 4
    made: str = client.make("subnet", network_id=network, ip_version=version, cidr=cidr, **more)["id"]
    return made


def _ips(port: dict[str, Any]) -> list[str]:
    return [fixed["ip_address"] for fixed in port["fixed_ips"]]


def _kind(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1]["NeutronError"]["type"]


def test_a_port_gets_one_address_of_each_family_and_a_mac(demo: Any, network: str) -> None:
    _subnet(demo, network, "10.1.0.0/24")
    _subnet(demo, network, "10.2.0.0/24")
    _subnet(demo, network, "fd00::/64")
    _subnet(demo, network, "fd01::/64", ipv6_address_mode="slaac", ipv6_ra_mode="slaac")
    port = demo.make("port", network_id=network, mac_address="fa:16:3e:00:00:01")
    assert _ips(port) == ["10.1.0.2", "fd00::2", "fd01::f816:3eff:fe00:1"]
    assert demo.make("port", network_id=network)["mac_address"].startswith("fa:16:3e:")
    assert _kind(demo.ask("POST", "/ports", {"port": {"network_id": network, "mac_address": port["mac_address"]}})) == (
        409, "MacAddressInUse")  # fmt: skip


def test_addresses_are_chosen_by_address_by_subnet_or_none(demo: Any, network: str) -> None:
    first, second = _subnet(demo, network, "10.1.0.0/24"), _subnet(demo, network, "10.2.0.0/24")
    wish = [{"ip_address": "10.1.0.9"}, {"subnet_id": second}]
    port = demo.make("port", network_id=network, fixed_ips=wish)
    assert port["fixed_ips"] == [{"subnet_id": first, "ip_address": "10.1.0.9"},
                                 {"subnet_id": second, "ip_address": "10.2.0.2"}]  # fmt: skip
    assert demo.make("port", network_id=network, fixed_ips=[])["fixed_ips"] == []
    found = demo.get("/ports?fixed_ips=ip_address=10.1.0.9")["ports"]
    assert [row["id"] for row in found] == [port["id"]]
    assert [row["id"] for row in demo.get(f"/ports?fixed_ips=subnet_id={second}")["ports"]] == [port["id"]]


@pytest.mark.parametrize(("fixed", "status", "kind"), [
    ({"ip_address": "10.1.0.2"}, 409, "IpAddressInUse"),
    ({"ip_address": "192.0.2.1"}, 400, "InvalidIpForNetwork"),
    ({"ip_address": "10.1.0.255"}, 400, "InvalidIpForSubnet"),
    ({"ip_address": "nonsense"}, 400, "InvalidInput"),
    ({"subnet_id": SERVER}, 404, "SubnetNotFound"),
    ({}, 400, "InvalidInput"),
])  # fmt: skip
def test_addresses_that_cannot_be_had(demo: Any, network: str, fixed: dict[str, str], status: int, kind: str) -> None:
    _subnet(demo, network, "10.1.0.0/24")
    demo.make("port", network_id=network)
    assert _kind(demo.ask("POST", "/ports", {"port": {"network_id": network, "fixed_ips": [fixed]}})) == (status, kind)
    assert len(demo.get("/ports?network_id=" + network)["ports"]) == 1


def test_a_full_subnet_is_said_and_a_freed_address_is_found_again(demo: Any, network: str) -> None:
    _subnet(demo, network, "10.1.0.0/29")
    ports = [demo.make("port", network_id=network) for _ in range(5)]
    assert sorted(ip for port in ports for ip in _ips(port)) == [f"10.1.0.{last}" for last in range(2, 7)]
    assert _kind(demo.ask("POST", "/ports", {"port": {"network_id": network}})) == (409, "IpAddressGenerationFailure")
    demo.ask("DELETE", f"/ports/{ports[2]['id']}")
    assert _ips(demo.make("port", network_id=network)) == _ips(ports[2])


def test_concurrent_creates_get_different_addresses(demo: Any, network: str) -> None:
    _subnet(demo, network, "10.1.0.0/27")
    got: list[tuple[int, Any]] = []

    def work() -> None:
        got.extend(demo.ask("POST", "/ports", {"port": {"network_id": network}}) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [ip for status, document in got if status == 201 for ip in _ips(document["port"])]
    assert len(made) == len(set(made)) == 29
    assert sorted(status for status, _ in got) == [201] * 29 + [409] * 11


def test_changing_addresses_keeps_what_is_asked_for_and_frees_the_rest(demo: Any, network: str) -> None:
    subnet = _subnet(demo, network, "10.1.0.0/24")
    port = demo.make("port", network_id=network)
    wish = [{"subnet_id": subnet, "ip_address": "10.1.0.2"}, {"ip_address": "10.1.0.50"}]
    assert _ips(demo.put("port", port["id"], fixed_ips=wish)[1]["port"]) == ["10.1.0.2", "10.1.0.50"]
    assert _ips(demo.put("port", port["id"], fixed_ips=[{"ip_address": "10.1.0.50"}])[1]["port"]) == ["10.1.0.50"]
    assert _ips(demo.make("port", network_id=network, fixed_ips=[{"ip_address": "10.1.0.2"}])) == ["10.1.0.2"]
    assert _kind(demo.put("port", port["id"], fixed_ips=[{"ip_address": "10.1.0.2"}])) == (409, "IpAddressInUse")


def test_groups_and_port_security_go_together(demo: Any, network: str) -> None:
    port = demo.make("port", network_id=network)
    default = demo.get("/security-groups?name=default")["security_groups"][0]["id"]
    assert port["security_groups"] == [default]
    assert _kind(demo.put("port", port["id"], port_security_enabled=False)) == (409, "PortSecurityPortHasSecurityGroup")
    status, document = demo.put("port", port["id"], port_security_enabled=False, security_groups=[])
    assert (status, document["port"]["security_groups"]) == (200, [])
    bare = demo.make("port", network_id=network, port_security_enabled=False)
    assert bare["security_groups"] == []
    pairs = [{"ip_address": "10.9.0.0/24"}]
    assert _kind(demo.put("port", bare["id"], allowed_address_pairs=pairs)) == (
        409, "AddressPairAndPortSecurityRequired")  # fmt: skip
    assert _kind(demo.ask("POST", "/ports", {"port": {"network_id": network, "security_groups": [SERVER]}})) == (
        404, "SecurityGroupNotFound")  # fmt: skip
    assert [row["id"] for row in demo.get(f"/ports?security_groups={default}")["ports"]] == []


def test_binding_is_for_services_and_hidden_from_users(demo: Any, service: Any, network: str) -> None:
    port = demo.make("port", network_id=network, binding__vnic_type="direct")
    assert [key for key in port if key.startswith("binding:")] == ["binding:vnic_type"]
    assert demo.put("port", port["id"], binding__host_id="h")[0] == 403
    assert service.get(f"/ports/{port['id']}")["port"]["binding:vif_type"] == "unbound"
    bound = service.put("port", port["id"], binding__host_id="h", device_id=SERVER, device_owner="compute:nova",
                        binding__profile={"a": 1})[1]["port"]  # fmt: skip
    assert (bound["binding:vif_type"], bound["binding:host_id"], bound["status"]) == ("ovs", "h", "ACTIVE")
    assert bound["binding:profile"] == {"a": 1}
    found = demo.get(f"/ports?device_id={SERVER}&status=ACTIVE&device_owner=compute:nova")["ports"]
    assert [row["id"] for row in found] == [port["id"]]
    assert service.get("/ports?binding:host_id=h")["ports"][0]["id"] == port["id"]
    assert demo.put("port", port["id"], mac_address="fa:16:3e:11:11:11")[0] == 409


def test_the_life_of_a_servers_port_is_told_to_compute(
    app: Any, notifier: Any, demo: Any, service: Any, network: str
) -> None:
    _subnet(demo, network, "10.1.0.0/24")
    port = demo.make("port", network_id=network)["id"]
    service.put("port", port, binding__host_id="h", device_id=SERVER, device_owner="compute:nova")
    service.put("port", port, binding__profile={"x": 1})
    service.put("port", port, binding__host_id="h2")
    demo.put("port", port, fixed_ips=[{"ip_address": "10.1.0.77"}])
    demo.put("port", port, device_id="")
    service.put("port", port, device_id=SERVER)
    demo.ask("DELETE", f"/ports/{port}")
    assert notifier.batches == []
    app.start()
    app.stop()
    assert len(notifier.batches) == 1
    assert notifier.names == [
        "network-vif-plugged", "network-vif-plugged", "network-changed", "network-vif-unplugged", "network-vif-plugged",
        "network-vif-deleted"]  # fmt: skip
    assert notifier.batches[0][0] == {"name": "network-vif-plugged", "server_uuid": SERVER, "tag": port,
                                      "status": "completed"}  # fmt: skip


def test_what_compute_does_itself_is_not_told_to_it(app: Any, notifier: Any, service: Any, network: str) -> None:
    made = service.make("port", network_id=network, project_id="pdemo", device_id=SERVER, device_owner="compute:nova",
                        binding__host_id="h")  # fmt: skip
    service.ask("DELETE", f"/ports/{made['id']}")
    app.start()
    app.stop()
    assert notifier.names == ["network-vif-plugged"]


def test_events_that_compute_does_not_take_are_sent_again(app: Any, notifier: Any, service: Any, network: str) -> None:
    notifier.failures = 1
    app.start()
    service.make("port", network_id=network, project_id="pdemo", device_id=SERVER, device_owner="compute:nova",
                 binding__host_id="h")  # fmt: skip
    waited = threading.Event()
    for _ in range(100):
        if notifier.batches or waited.wait(0.02):
            break
    app.stop()
    assert notifier.names == ["network-vif-plugged"]


def test_after_a_restart_what_was_just_plugged_is_told_again(
    app: Any, notifier: Any, service: Any, network: str
) -> None:
    service.make("port", network_id=network, project_id="pdemo", device_id=SERVER, device_owner="compute:nova",
                 binding__host_id="h")  # fmt: skip
    app.start()
    app.stop()
    app.start()
    app.stop()
    assert notifier.names.count("network-vif-plugged") >= 2


def test_another_projects_ports_do_not_exist_but_a_networks_owner_sees_all(demo: Any, other: Any) -> None:
    private = demo.get("/networks?name=private")["networks"][0]["id"]
    mine, theirs = demo.make("port", network_id=private)["id"], other.make("port", network_id=private)["id"]
    assert other.ask("GET", f"/ports/{mine}")[0] == 404
    assert other.put("port", mine, name="x")[0] == 404
    assert demo.get(f"/ports/{theirs}")["port"]["id"] == theirs


@pytest.mark.parametrize("body", [
    {"network_id": "x"}, {"device_id": 5}, {"mac_address": "ff:ff:ff:ff:ff:ff"}, {"binding:vnic_type": "x"},
    {"allowed_address_pairs": [{"mac_address": "x"}]}, {"fixed_ips": "x"}, {"security_groups": ["x"]},
    {"qos_policy_id": 1},
])  # fmt: skip
def test_a_wrong_attribute_is_a_400(demo: Any, network: str, body: dict[str, Any]) -> None:
    assert demo.ask("POST", "/ports", {"port": {"network_id": network} | body})[0] == 400

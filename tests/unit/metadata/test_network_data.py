"""network_data.json: what a guest must be told of its addresses, and what it finds out by itself."""

from __future__ import annotations

from typing import Any

from kilonova.metadata.network_data import network_data

VIF = {
    "id": "0f7a1b2c-3d4e-5f60-7182-93a4b5c6d7e8", "mac": "fa:16:3e:00:00:01", "vif_type": "ovs",
    "network": {"id": "net", "label": "private", "mtu": 1450},
    "fixed_ips": [
        {"address": "10.0.0.5", "subnet_id": "four", "version": 4},
        {"address": "2001:db8::5", "subnet_id": "six", "version": 6},
    ],
}  # fmt: skip
FOUR: dict[str, Any] = {
    "id": "four", "ip_version": 4, "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1", "enable_dhcp": False,
    "dns_nameservers": ["10.0.0.2"], "host_routes": [{"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"}],
}  # fmt: skip
SIX: dict[str, Any] = {
    "id": "six", "ip_version": 6, "cidr": "2001:db8::/64", "gateway_ip": "2001:db8::1", "enable_dhcp": True,
    "ipv6_address_mode": "slaac", "dns_nameservers": [], "host_routes": [],
}  # fmt: skip


def of(four: dict[str, Any], six: dict[str, Any], **vif: Any) -> Any:
    return network_data([VIF | vif], {"four": four, "six": six})


def test_without_dhcp_a_guest_is_told_address_and_routes() -> None:
    network = of(FOUR, SIX)["networks"][0]
    assert network == {
        "id": "network0", "type": "ipv4", "link": "tap0f7a1b2c-3d", "network_id": "net", "ip_address": "10.0.0.5",
        "netmask": "255.255.255.0", "services": [{"type": "dns", "address": "10.0.0.2"}],
        "routes": [
            {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"},
            {"network": "10.9.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.9"},
        ],
    }  # fmt: skip


def test_ipv6_without_autoconfiguration_is_told_as_well() -> None:
    network = of(FOUR, SIX | {"ipv6_address_mode": None, "enable_dhcp": False})["networks"][1]
    assert (network["type"], network["ip_address"]) == ("ipv6", "2001:db8::5")
    assert network["netmask"] == "ffff:ffff:ffff:ffff::"
    assert network["routes"] == [{"network": "::", "netmask": "::", "gateway": "2001:db8::1"}]


def test_with_dhcp_or_autoconfiguration_only_the_way_is_told() -> None:
    four, six = of(FOUR | {"enable_dhcp": True}, SIX)["networks"]
    assert (four["type"], six["type"]) == ("ipv4_dhcp", "ipv6_slaac")
    assert "ip_address" not in four.keys() | six.keys()


def test_two_addresses_of_a_dynamic_subnet_are_one_network() -> None:
    fixed = [*VIF["fixed_ips"], {"address": "2001:db8::6", "subnet_id": "six", "version": 6}]  # type: ignore[misc]
    assert len(of(FOUR, SIX, fixed_ips=fixed)["networks"]) == 2


def test_a_link_has_the_type_of_its_port_or_is_physical() -> None:
    (link,) = of(FOUR, SIX)["links"]
    assert link == {
        "id": "tap0f7a1b2c-3d", "vif_id": VIF["id"], "type": "ovs", "mtu": 1450,
        "ethernet_mac_address": "fa:16:3e:00:00:01",
    }  # fmt: skip
    assert of(FOUR, SIX, vif_type=None)["links"][0]["type"] == "phy"


def test_name_servers_are_named_once() -> None:
    assert of(FOUR, SIX | {"dns_nameservers": ["10.0.0.2", "2001:db8::2"]})["services"] == [
        {"type": "dns", "address": "10.0.0.2"}, {"type": "dns", "address": "2001:db8::2"},
    ]  # fmt: skip


def test_a_subnet_that_is_gone_is_left_out() -> None:
    assert network_data([VIF], {})["networks"] == []

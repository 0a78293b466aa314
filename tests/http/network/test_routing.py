"""Routers, floating IPs and security groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

SERVER = "5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c"


def _kind(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1]["NeutronError"]["type"]


def _interface(client: Any, verb: str, router: str, **what: str) -> tuple[int, Any]:
    answer: tuple[int, Any] = client.ask("PUT", f"/routers/{router}/{verb}_router_interface", what)
    return answer


@pytest.fixture
def public(demo: Any) -> str:
    found: str = demo.get("/networks?name=public")["networks"][0]["id"]
    return found


@pytest.fixture
def subnet(other: Any) -> dict[str, Any]:
    network = other.make("network")["id"]
    made: dict[str, Any] = other.make("subnet", network_id=network, ip_version=4, cidr="10.5.0.0/24")
    return made


def test_a_router_joins_subnets_and_stays_while_it_does(other: Any, subnet: dict[str, Any], public: str) -> None:
    router = other.make("router", external_gateway_info={"network_id": public})
    info = router["external_gateway_info"]
    assert (info["network_id"], len(info["external_fixed_ips"])) == (public, 1)
    status, added = _interface(other, "add", router["id"], subnet_id=subnet["id"])
    assert (status, added["subnet_ids"]) == (200, [subnet["id"]])
    port = other.get(f"/ports/{added['port_id']}")["port"]
    assert (port["device_owner"], port["device_id"]) == ("network:router_interface", router["id"])
    assert port["fixed_ips"][0]["ip_address"] == "10.5.0.1"
    assert _interface(other, "add", router["id"], subnet_id=subnet["id"])[0] == 400
    assert _kind(other.ask("DELETE", f"/routers/{router['id']}")) == (409, "RouterInUse")
    assert _kind(other.ask("DELETE", f"/ports/{port['id']}")) == (409, "ServicePortInUse")
    assert _interface(other, "remove", router["id"], subnet_id=subnet["id"])[0] == 200
    assert _interface(other, "remove", router["id"], subnet_id=subnet["id"])[0] == 404
    assert other.ask("DELETE", f"/routers/{router['id']}")[0] == 204


def test_a_port_can_be_an_interface_and_bad_wishes_are_refused(other: Any, subnet: dict[str, Any]) -> None:
    router = other.make("router")["id"]
    port = other.make("port", network_id=subnet["network_id"])["id"]
    assert _interface(other, "add", router, port_id=port)[1]["port_id"] == port
    assert _kind(_interface(other, "add", router, port_id=port)) == (409, "PortInUse")
    for wish in ({}, {"subnet_id": subnet["id"], "port_id": port}, {"bogus": "x"}):
        assert _interface(other, "add", router, **wish)[0] == 400
    assert _interface(other, "add", router, subnet_id=SERVER)[0] == 404
    same = other.make("subnet", network_id=other.make("network")["id"], ip_version=4, cidr="10.5.0.128/25")["id"]
    assert _interface(other, "add", router, subnet_id=same)[0] == 400


def test_a_gateway_must_be_external_and_can_be_set_and_cleared(other: Any, subnet: dict[str, Any], public: str) -> None:
    router = other.make("router")["id"]
    body = {"network_id": subnet["network_id"]}
    assert other.put("router", router, external_gateway_info=body)[0] == 400
    changed = other.put("router", router, external_gateway_info={"network_id": public})[1]["router"]
    assert changed["external_gateway_info"]["network_id"] == public
    assert other.put("router", router, external_gateway_info=None)[1]["router"]["external_gateway_info"] is None


def test_a_floating_ip_needs_a_way_and_follows_its_port(
    demo: Any, other: Any, subnet: dict[str, Any], public: str
) -> None:
    port = other.make("port", network_id=subnet["network_id"])
    free = other.make("floatingip", floating_network_id=public)
    assert (free["status"], free["port_id"]) == ("DOWN", None)
    assert _kind(other.put("floatingip", free["id"], port_id=port["id"])) == (
        404, "ExternalGatewayForFloatingIPNotFound")  # fmt: skip
    router = other.make("router", external_gateway_info={"network_id": public})["id"]
    _interface(other, "add", router, subnet_id=subnet["id"])
    bound = other.put("floatingip", free["id"], port_id=port["id"])[1]["floatingip"]
    assert (bound["status"], bound["fixed_ip_address"], bound["router_id"]) == (
        "ACTIVE", port["fixed_ips"][0]["ip_address"], router)  # fmt: skip
    assert _kind(_interface(other, "remove", router, subnet_id=subnet["id"])) == (
        409, "RouterInterfaceInUseByFloatingIP")  # fmt: skip
    assert other.put("router", router, external_gateway_info=None)[0] == 409
    second = other.make("floatingip", floating_network_id=public)["id"]
    assert _kind(other.put("floatingip", second, port_id=port["id"])) == (409, "FloatingIPPortAlreadyAssociated")
    assert [row["id"] for row in other.get(f"/floatingips?port_id={port['id']}")["floatingips"]] == [free["id"]]
    assert demo.ask("GET", f"/floatingips/{free['id']}")[0] == 404
    assert other.put("floatingip", free["id"], port_id=None)[1]["floatingip"]["status"] == "DOWN"
    other.put("floatingip", free["id"], port_id=port["id"])
    assert other.ask("DELETE", f"/ports/{port['id']}")[0] == 204
    assert other.get(f"/floatingips/{free['id']}")["floatingip"]["port_id"] is None
    assert other.ask("DELETE", f"/floatingips/{free['id']}")[0] == 204


def test_a_floating_ip_is_told_to_the_server_it_leads_to(app: Any, notifier: Any, demo: Any, public: str) -> None:
    private = demo.get("/networks?name=private")["networks"][0]["id"]
    port = demo.make("port", network_id=private, device_id=SERVER, device_owner="compute:nova")["id"]
    made = demo.make("floatingip", floating_network_id=public, port_id=port)
    demo.ask("DELETE", f"/floatingips/{made['id']}")
    app.start()
    app.stop()
    assert notifier.names == ["network-changed", "network-changed"]


def test_floating_ips_come_from_external_networks_only(demo: Any) -> None:
    private = demo.get("/networks?name=private")["networks"][0]["id"]
    assert demo.ask("POST", "/floatingips", {"floatingip": {"floating_network_id": private}})[0] == 400
    assert demo.ask("POST", "/floatingips", {"floatingip": {"floating_network_id": SERVER}})[0] == 404
    assert demo.ask("POST", "/floatingips", {"floatingip": {}})[0] == 400


# -- security groups -----------------------------------------------------------------------------------------------


def test_the_first_use_makes_the_default_group_with_four_rules(other: Any, admin: Any) -> None:
    groups = other.get("/security-groups")["security_groups"]
    assert [(group["name"], len(group["security_group_rules"])) for group in groups] == [("default", 4)]
    assert len(other.get("/security-groups")["security_groups"]) == 1
    key = groups[0]["id"]
    assert _kind(other.ask("DELETE", f"/security-groups/{key}")) == (409, "SecurityGroupCannotRemoveDefault")
    assert other.put("security_group", key, name="x")[0] == 409
    assert other.ask("POST", "/security-groups", {"security_group": {"name": "default"}})[0] == 409
    assert admin.ask("DELETE", f"/security-groups/{key}")[0] == 204
    assert other.get("/security-groups")["security_groups"][0]["id"] != key


def test_an_administrator_who_asks_for_a_projects_groups_finds_its_default(service: Any, other: Any) -> None:
    found = service.get("/security-groups?tenant_id=pother&name=default")["security_groups"]
    assert [group["project_id"] for group in found] == ["pother"]
    assert other.get("/security-groups?project_id=pdemo")["security_groups"] == []


def test_a_new_group_lets_everything_out_and_stays_while_a_port_has_it(other: Any) -> None:
    group = other.make("security_group", name="web")
    assert [rule["direction"] for rule in group["security_group_rules"]] == ["egress", "egress"]
    port = other.make("port", network_id=other.make("network")["id"], security_groups=[group["id"]])["id"]
    assert _kind(other.ask("DELETE", f"/security-groups/{group['id']}")) == (409, "SecurityGroupInUse")
    other.ask("DELETE", f"/ports/{port}")
    assert other.ask("DELETE", f"/security-groups/{group['id']}")[0] == 204


def test_an_equal_rule_is_a_conflict(other: Any, admin: Any) -> None:
    group = other.make("security_group", name="web")["id"]
    body = {"security_group_id": group, "direction": "ingress", "protocol": "tcp", "port_range_min": 22,
            "port_range_max": 22, "remote_ip_prefix": "0.0.0.0/0"}  # fmt: skip
    rule = other.make("security_group_rule", **body)
    assert (rule["ethertype"], rule["project_id"], rule["remote_ip_prefix"]) == ("IPv4", "pother", "0.0.0.0/0")
    same = body | {"protocol": "6", "remote_ip_prefix": None}
    assert _kind(other.ask("POST", "/security-group-rules", {"security_group_rule": same})) == (
        409, "SecurityGroupRuleExists")  # fmt: skip
    found = other.get(f"/security-group-rules?security_group_id={group}&direction=ingress")
    assert found["security_group_rules"] == [rule]
    assert other.ask("DELETE", f"/security-group-rules/{rule['id']}")[0] == 204
    assert admin.make("security_group_rule", **body)["project_id"] == "pother"


@pytest.mark.parametrize("rule", [
    {"direction": "sideways"}, {"protocol": "bogus"}, {"protocol": "tcp", "port_range_min": 5},
    {"protocol": "tcp", "port_range_min": 9, "port_range_max": 5}, {"port_range_min": 1, "port_range_max": 2},
    {"protocol": "tcp", "port_range_min": 1, "port_range_max": 70000}, {"remote_ip_prefix": "fd00::/8"},
    {"protocol": "icmp", "port_range_min": 300}, {"protocol": "icmpv6", "ethertype": "IPv4"},
    {"protocol": "icmp", "port_range_max": 3},
])  # fmt: skip
def test_a_rule_that_means_nothing_is_a_400(other: Any, rule: dict[str, Any]) -> None:
    group = other.make("security_group", name="web")["id"]
    body = {"security_group_id": group, "direction": "ingress"} | rule
    assert other.ask("POST", "/security-group-rules", {"security_group_rule": body})[0] == 400


def test_rules_need_a_group_of_the_callers(other: Any, demo: Any) -> None:
    group = demo.make("security_group", name="web")["id"]
    body = {"security_group_rule": {"security_group_id": group, "direction": "ingress"}}
    assert other.ask("POST", "/security-group-rules", body)[0] == 404
    assert replace(demo, roles=("reader",)).ask("POST", "/security-group-rules", body)[0] == 403

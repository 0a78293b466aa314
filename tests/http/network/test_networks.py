"""Networks and subnets: who sees them, ranges, and what stands in the way of deleting them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest


def test_a_project_has_exactly_one_usable_network_from_the_start(demo: Any, other: Any) -> None:
    for client in (demo, other):
        usable = [row["name"] for row in client.get("/networks?router:external=False")["networks"]]
        assert usable == ["private"]
    assert [row["name"] for row in demo.get("/networks?router:external=True")["networks"]] == ["public"]


def test_another_projects_network_does_not_exist_unless_it_is_shared(demo: Any, other: Any, admin: Any) -> None:
    mine = demo.make("network", name="mine")
    assert other.ask("GET", f"/networks/{mine['id']}")[0] == 404
    assert other.ask("DELETE", f"/networks/{mine['id']}")[0] == 404
    assert other.ask("POST", "/ports", {"port": {"network_id": mine["id"]}})[0] == 404
    assert demo.put("network", mine["id"], shared=True)[0] == 403
    assert admin.put("network", mine["id"], shared=True)[0] == 200
    assert other.get(f"/networks/{mine['id']}")["network"]["shared"] is True
    assert other.ask("DELETE", f"/networks/{mine['id']}")[0] == 403
    other.make("port", network_id=mine["id"])
    status, document = admin.put("network", mine["id"], shared=False)
    assert (status, document["NeutronError"]["type"]) == (409, "NetworkInUse")


def test_only_administrators_make_things_for_other_projects_and_see_providers(demo: Any, admin: Any) -> None:
    made = admin.make("network", name="theirs", project_id="pdemo", provider__network_type="vlan",
                      provider__physical_network="phys", provider__segmentation_id=5)  # fmt: skip
    assert (made["tenant_id"], made["provider:segmentation_id"]) == ("pdemo", 5)
    assert "provider:segmentation_id" not in demo.get(f"/networks/{made['id']}")["network"]
    assert demo.ask("POST", "/networks", {"network": {"project_id": "pother"}})[0] == 400
    assert demo.ask("POST", "/networks", {"network": {"router:external": True}})[0] == 403
    assert demo.ask("POST", "/networks", {"network": {"provider:network_type": "flat"}})[0] == 403


def test_readers_only_read(demo: Any) -> None:
    reader = replace(demo, roles=("reader",))
    assert reader.get("/networks")["networks"]
    status, document = reader.ask("POST", "/networks", {"network": {}})
    assert (status, document["NeutronError"]["type"]) == (403, "PolicyNotAuthorized")


@pytest.mark.parametrize("body", [
    {"bogus": 1}, {"name": 5}, {"name": "x" * 256}, {"admin_state_up": "maybe"}, {"mtu": -1}, {"id": "x"},
    {"tenant_id": ""}, {"status": "DOWN"},
])  # fmt: skip
def test_a_wrong_attribute_is_a_400_in_neutrons_words(demo: Any, body: dict[str, Any]) -> None:
    status, document = demo.ask("POST", "/networks", {"network": body})
    assert status == 400
    assert set(document["NeutronError"]) == {"type", "message", "detail"}


def test_subnets_of_one_network_may_not_overlap(demo: Any) -> None:
    network = demo.make("network")["id"]
    made = demo.make("subnet", network_id=network, ip_version=4, cidr="10.1.0.0/24")
    assert (made["gateway_ip"], made["allocation_pools"]) == ("10.1.0.1", [{"start": "10.1.0.2", "end": "10.1.0.254"}])
    body = {"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.1.0.128/25"}}
    status, document = demo.ask("POST", "/subnets", body)
    assert status == 400
    assert "overlaps with another subnet" in document["NeutronError"]["message"]
    six = demo.make("subnet", network_id=network, ip_version=6, cidr="fd00::/64")
    assert six["gateway_ip"] == "fd00::1"
    assert demo.get(f"/networks/{network}")["network"]["subnets"] == [made["id"], six["id"]]


@pytest.mark.parametrize("body", [
    {"ip_version": 6}, {"cidr": "10.2.0.0/33"}, {"cidr": "0.0.0.0/0"}, {"gateway_ip": "10.3.0.1"},
    {"allocation_pools": [{"start": "10.2.0.9", "end": "10.2.0.5"}]}, {"allocation_pools": [{"start": "10.2.0.9"}]},
    {"ipv6_ra_mode": "slaac"}, {"dns_nameservers": ["x"]}, {"host_routes": [{"destination": "x", "nexthop": "y"}]},
    {"allocation_pools": [{"start": "10.2.0.5", "end": "10.2.0.9"}, {"start": "10.2.0.9", "end": "10.2.0.12"}]},
])  # fmt: skip
def test_a_subnet_that_cannot_be_is_a_400(demo: Any, body: dict[str, Any]) -> None:
    network = demo.make("network")["id"]
    base = {"network_id": network, "ip_version": 4, "cidr": "10.2.0.0/24"}
    assert demo.ask("POST", "/subnets", {"subnet": base | body})[0] == 400
    assert demo.get("/subnets?network_id=" + network)["subnets"] == []


def test_a_gateway_inside_a_pool_is_a_conflict(demo: Any) -> None:
    body = {"network_id": demo.make("network")["id"], "ip_version": 4, "cidr": "10.2.0.0/24", "gateway_ip": "10.2.0.9",
            "allocation_pools": [{"start": "10.2.0.2", "end": "10.2.0.20"}]}  # fmt: skip
    assert demo.ask("POST", "/subnets", {"subnet": body})[0] == 409
    body["gateway_ip"] = None
    assert demo.ask("POST", "/subnets", {"subnet": body})[1]["subnet"]["gateway_ip"] is None


def test_networks_and_subnets_with_ports_stay(demo: Any) -> None:
    network = demo.make("network")["id"]
    subnet = demo.make("subnet", network_id=network, ip_version=4, cidr="10.4.0.0/24")["id"]
    port = demo.make("port", network_id=network)["id"]
    for path, kind in ((f"/networks/{network}", "NetworkInUse"), (f"/subnets/{subnet}", "SubnetInUse")):
        status, document = demo.ask("DELETE", path)
        assert (status, document["NeutronError"]["type"]) == (409, kind)
    assert demo.ask("DELETE", f"/ports/{port}")[0] == 204
    assert demo.ask("DELETE", f"/networks/{network}")[0] == 204
    assert demo.ask("GET", f"/subnets/{subnet}")[0] == 404


def test_lists_filter_choose_fields_sort_and_page(demo: Any) -> None:
    made = {name: demo.make("network", name=name)["id"] for name in ("c", "a", "b")}
    found = demo.get("/networks?name=a&name=b&fields=id&fields=name&sort_key=name&sort_dir=desc")["networks"]
    assert found == [{"id": made["b"], "name": "b"}, {"id": made["a"], "name": "a"}]
    (known,) = demo.get("/networks?name=private")["networks"]
    assert demo.get("/networks?name=private&fields=subnets")["networks"] == [{"subnets": known["subnets"]}]
    assert known["subnets"]
    first = demo.get("/networks?limit=2&sort_key=name&project_id=pdemo")
    assert [row["name"] for row in first["networks"]] == ["a", "b"]
    rest = first["networks_links"][0]["href"].split("/v2.0")[1]
    assert [row["name"] for row in demo.get(rest)["networks"]] == ["c", "private"]
    for wrong in ("bogus=1", "shared=maybe", "limit=x", "marker=nope", "sort_key=bogus", "sort_key=name&sort_dir=up"):
        assert demo.ask("GET", f"/networks?{wrong}")[0] == 400


def test_a_quota_stops_a_project_with_409_and_can_be_raised(demo: Any, admin: Any) -> None:
    assert demo.ask("PUT", "/quotas/pdemo", {"quota": {"network": 9}})[0] == 403
    assert admin.ask("PUT", "/quotas/pdemo", {"quota": {"network": 1}})[1]["quota"]["network"] == 1
    status, document = demo.ask("POST", "/networks", {"network": {}})
    assert (status, document["NeutronError"]["type"]) == (409, "OverQuota")
    assert demo.get("/quotas/pdemo/details.json")["quota"]["network"] == {"limit": 1, "used": 1, "reserved": 0}
    assert admin.ask("PUT", "/quotas/pdemo", {"quota": {"network": "x"}})[0] == 400
    assert admin.ask("PUT", "/quotas/pdemo", {"quota": {"moon": 1}})[0] == 400
    assert admin.ask("DELETE", "/quotas/pdemo")[0] == 204
    assert demo.get("/quotas/pdemo")["quota"]["network"] == 100
    assert demo.ask("GET", "/quotas/pother")[0] == 403


def test_creates_at_once_never_pass_a_quota(demo: Any, admin: Any) -> None:
    admin.ask("PUT", "/quotas/pdemo", {"quota": {"network": 4}})
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: demo.ask("POST", "/networks", {"network": {}}), range(16)))
    assert sorted(status for status, _ in answers) == [201] * 3 + [409] * 13


def test_several_at_once_are_made_all_or_none(demo: Any) -> None:
    status, document = demo.ask("POST", "/networks", {"networks": [{"name": "one"}, {"name": "two"}]})
    assert (status, [row["name"] for row in document["networks"]]) == (201, ["one", "two"])
    network = document["networks"][0]["id"]
    ranges = [{"network_id": network, "ip_version": 4, "cidr": "10.1.0.0/24"}] * 2
    assert demo.ask("POST", "/subnets", {"subnets": ranges})[0] == 400
    assert demo.get("/subnets?network_id=" + network)["subnets"] == []


def test_documents_name_what_is_served_and_unknown_paths_are_neutrons_404(demo: Any) -> None:
    aliases = {row["alias"] for row in demo.get("/extensions")["extensions"]}
    assert aliases >= {"security-group", "router", "external-net", "quotas", "auto-allocated-topology", "port-security"}
    assert aliases.isdisjoint({"trunk", "qos", "port-resource-request", "agent", "dns-integration"})
    assert demo.get("/extensions/router")["extension"]["alias"] == "router"
    assert demo.ask("GET", "/extensions/trunk")[1]["NeutronError"]["type"] == "ExtensionNotFound"
    status, document = demo.ask("GET", "/trunks")
    assert (status, list(document)) == (404, ["NeutronError"])
    assert demo.ask("PATCH", "/networks")[0] == 405


def test_an_automatic_topology_is_made_once_and_goes_as_a_whole(other: Any, demo: Any) -> None:
    path = "/auto-allocated-topology/pother"
    assert other.get(path + "?fields=dry-run")["auto_allocated_topology"]["id"] == "dry-run=pass"
    assert other.get("/routers")["routers"] == []
    network = other.get(path)["auto_allocated_topology"]["id"]
    assert other.get(path)["auto_allocated_topology"]["id"] == network
    assert demo.ask("GET", path)[0] == 403
    port = other.make("port", network_id=network)["id"]
    assert other.ask("DELETE", path)[0] == 409
    assert len(other.get("/routers")["routers"]) == 1
    other.ask("DELETE", f"/ports/{port}")
    assert other.ask("DELETE", path)[0] == 204
    assert (other.get("/routers")["routers"], other.ask("GET", f"/networks/{network}")[0]) == ([], 404)

"""Allocations and usages through HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from kilonova.core import clock, ids
from tests.http.placement.conftest import Client, allocation


def test_a_consumer_is_born_changed_and_ended(client: Client) -> None:
    host, consumer = client.provider("host", VCPU=8, MEMORY_MB=1024), ids.new_uuid()
    path = f"/allocations/{consumer}"
    assert client("GET", path).json == {"allocations": {}}
    assert client.claim(consumer, **{host: {"VCPU": 2, "MEMORY_MB": 512}}).status == 204
    assert client("GET", path).json == {
        "allocations": {host: {"resources": {"VCPU": 2, "MEMORY_MB": 512}, "generation": 2}},
        "project_id": "p", "user_id": "u", "consumer_generation": 1, "consumer_type": "INSTANCE",
    }  # fmt: skip
    assert client.claim(consumer, 1, **{host: {"VCPU": 3}}).status == 204
    assert client("GET", f"/resource_providers/{host}/usages").json == {
        "resource_provider_generation": 3, "usages": {"VCPU": 3, "MEMORY_MB": 0},
    }  # fmt: skip
    assert client("GET", f"/resource_providers/{host}/allocations").json == {
        "resource_provider_generation": 3,
        "allocations": {consumer: {"resources": {"VCPU": 3}, "consumer_generation": 2}},
    }
    assert client("DELETE", path).status == 204
    assert client("DELETE", path).status == 404
    assert client("GET", f"/resource_providers/{host}/usages").json["usages"] == {"VCPU": 0, "MEMORY_MB": 0}


def test_a_consumer_generation_conflict_says_so_in_the_words_that_clients_read(client: Client) -> None:
    host, consumer = client.provider("host", VCPU=8), ids.new_uuid()
    client.claim(consumer, **{host: {"VCPU": 1}})
    for generation in (None, 0, 7):
        found = client.claim(consumer, generation, **{host: {"VCPU": 2}})
        assert (found.status, found.error["code"]) == (409, "placement.concurrent_update")
        assert "consumer generation conflict" in found.error["detail"]
    unknown = client.claim(ids.new_uuid(), 1, **{host: {"VCPU": 2}})
    assert "consumer generation conflict" in unknown.error["detail"]


def test_no_room_is_a_conflict_that_is_not_worth_a_retry(client: Client) -> None:
    host = client.provider("host", VCPU={"total": 8, "max_unit": 4, "min_unit": 2, "step_size": 2}, DISK_GB=5)
    for amounts in ({"VCPU": 5}, {"VCPU": 3}, {"VCPU": 1}, {"DISK_GB": 6}, {"MEMORY_MB": 1}):
        found = client.claim(ids.new_uuid(), **{host: amounts})
        assert (found.status, found.error["code"]) == (409, "placement.undefined_code"), amounts
        assert "consumer generation conflict" not in found.error["detail"]
    assert client.generation(host) == 1


def test_the_capacity_is_the_floor_of_the_binary_product(client: Client) -> None:
    host = client.provider("host", VCPU={"total": 100, "allocation_ratio": 1.15})
    assert client.claim(ids.new_uuid(), **{host: {"VCPU": 115}}).status == 409
    assert client("GET", "/allocation_candidates?resources=VCPU:115").json["allocation_requests"] == []
    assert client.claim(ids.new_uuid(), **{host: {"VCPU": 114}}).status == 204


@pytest.mark.parametrize(
    "change",
    [
        {"allocations": {"cow": {"resources": {"VCPU": 1}}}}, {"allocations": []}, {"project_id": ""},
        {"project_id": None}, {"consumer_generation": "1"}, {"cow": 1}, {"consumer_type": "cow"}, {"mappings": {}},
        {"mappings": {"": []}}, {"mappings": {"": ["cow"]}},
    ],
)  # fmt: skip
def test_a_bad_body_is_refused_and_nothing_is_held(client: Client, change: dict[str, Any]) -> None:
    host = client.provider("host", VCPU=8)
    body = allocation({host: {"VCPU": 1}}) | change
    assert client("PUT", f"/allocations/{ids.new_uuid()}", body).status == 400
    assert client("GET", f"/resource_providers/{host}/allocations").json["allocations"] == {}


@pytest.mark.parametrize("resources", [{}, {"VCPU": 0}, {"VCPU": -1}, {"VCPU": "1"}, {"VCPU": 1.5}, {"vcpu": 1},
                                       {"COW": 1}, {"VCPU": 2147483648}])  # fmt: skip
def test_bad_resources_are_refused(client: Client, resources: dict[str, Any]) -> None:
    host = client.provider("host", VCPU=8)
    found = client("PUT", f"/allocations/{ids.new_uuid()}", allocation({host: resources}))
    assert found.status == 400


def test_unknown_providers_and_consumers_that_are_no_uuid_are_refused(client: Client) -> None:
    host = client.provider("host", VCPU=8)
    unknown = client.claim(ids.new_uuid(), **{ids.new_uuid(): {"VCPU": 1}})
    assert (unknown.status, "does not exist" in unknown.error["detail"]) == (400, True)
    assert client("PUT", "/allocations/cow", allocation({host: {"VCPU": 1}})).status == 400


def test_mappings_and_generations_are_accepted_and_dropped(client: Client) -> None:
    host, consumer = client.provider("host", VCPU=8), ids.new_uuid()
    body = allocation({host: {"VCPU": 1}}) | {"mappings": {"": [host], "_a": [host]}}
    body["allocations"][host]["generation"] = 99
    assert client("PUT", f"/allocations/{consumer}", body).status == 204
    assert client.at("1.33")("PUT", f"/allocations/{consumer}", body).status == 400


def test_each_version_has_its_form(client: Client) -> None:
    host, consumer = client.provider("host", VCPU=8), ids.new_uuid()
    path = f"/allocations/{consumer}"
    listed: dict[str, Any] = {
        "allocations": [{"resource_provider": {"uuid": host}, "resources": {"VCPU": 1}}]
    }  # fmt: skip
    owned = {"project_id": "p", "user_id": "u"}
    keyed = {"allocations": {host: {"resources": {"VCPU": 2}}}} | owned
    forms = [("1.0", listed), ("1.8", listed | owned), ("1.12", keyed)]
    for version, body in forms:
        assert client.at(version)("PUT", path, body).status == 204, version
    for version, body in (("1.7", listed | owned), ("1.8", listed), ("1.11", keyed), ("1.12", listed | owned),
                          ("1.28", keyed), ("1.27", keyed | {"consumer_generation": 3}),
                          ("1.12", owned | {"allocations": {}})):  # fmt: skip
        assert client.at(version)("PUT", path, body).status == 400, version
    assert client.at("1.28")("PUT", path, keyed | {"consumer_generation": 3}).status == 204
    assert set(client.at("1.11")("GET", path).json) == {"allocations"}
    assert set(client.at("1.12")("GET", path).json) == {"allocations", "project_id", "user_id"}
    assert client.at("1.38")("GET", path).json["consumer_type"] == "unknown"
    assert client.at("1.28")("PUT", path, owned | {"allocations": {}, "consumer_generation": 4}).status == 204
    assert client("GET", path).json == {"allocations": {}}


def test_many_consumers_are_written_together_or_not_at_all(client: Client) -> None:
    one, two = client.provider("one", VCPU=4), client.provider("two", VCPU=4)
    a, b = ids.new_uuid(), ids.new_uuid()
    first = {a: allocation({one: {"VCPU": 4}}), b: allocation({two: {"VCPU": 4}})}
    assert client("POST", "/allocations", first).status == 204
    swapped = {a: allocation({two: {"VCPU": 4}}, 1), b: allocation({one: {"VCPU": 4}}, 1)}
    assert client("POST", "/allocations", swapped).status == 204
    over = {a: allocation({}, 2), b: allocation({one: {"VCPU": 5}}, 2)}
    assert client("POST", "/allocations", over).status == 409
    assert client("GET", f"/allocations/{a}").json["consumer_generation"] == 2
    assert client("POST", "/allocations", {a: allocation({}, 2)}).status == 204
    assert client("GET", f"/resource_providers/{two}/usages").json["usages"] == {"VCPU": 0}
    assert client("POST", "/allocations", {}).status == 400
    assert client.at("1.12")("POST", "/allocations", over).status == 404


def test_usages_of_a_project_by_type_and_user(client: Client) -> None:
    host = client.provider("host", VCPU=100, DISK_GB=100)
    client.claim(ids.new_uuid(), **{host: {"VCPU": 1, "DISK_GB": 5}})
    client.claim(ids.new_uuid(), **{host: {"VCPU": 2}})
    other = allocation({host: {"VCPU": 4}}) | {"user_id": "v", "consumer_type": "MIGRATION"}
    assert client("PUT", f"/allocations/{ids.new_uuid()}", other).status == 204
    old = {"allocations": {host: {"resources": {"VCPU": 8}}}, "project_id": "p", "user_id": "u"}
    assert client.at("1.12")("PUT", f"/allocations/{ids.new_uuid()}", old).status == 204
    instances = {"consumer_count": 2, "VCPU": 3, "DISK_GB": 5}
    everything = {
        "INSTANCE": instances,
        "MIGRATION": {"consumer_count": 1, "VCPU": 4},
        "unknown": {"consumer_count": 1, "VCPU": 8},
    }
    query = "/usages?project_id=p"
    assert client("GET", query).json == {"usages": everything}
    assert client("GET", query + "&consumer_type=INSTANCE").json == {"usages": {"INSTANCE": instances}}
    assert client("GET", query + "&consumer_type=unknown").json == {"usages": {"unknown": everything["unknown"]}}
    total = {"consumer_count": 4, "VCPU": 15, "DISK_GB": 5}
    assert client("GET", query + "&consumer_type=all").json == {"usages": {"all": total}}
    assert client("GET", query + "&user_id=v").json == {"usages": {"MIGRATION": everything["MIGRATION"]}}
    assert client.at("1.37")("GET", query).json == {"usages": {"VCPU": 15, "DISK_GB": 5}}
    assert client("GET", "/usages?project_id=nobody").json == {"usages": {}}
    for bad in ("/usages", "/usages?user_id=u", query + "&cow=1", query + "&consumer_type=cow"):
        assert client("GET", bad).status == 400
    assert client.at("1.37")("GET", query + "&consumer_type=all").status == 400


def test_a_reader_sees_the_usage_of_its_own_project_only(client: Client) -> None:
    reader = client.by(roles=["reader"], project_id="p")
    assert reader("GET", "/usages?project_id=p").status == 200
    assert reader("GET", "/usages?project_id=q").status == 403
    assert reader("GET", "/allocations/" + ids.new_uuid()).status == 403


def _reshaped(root: str, child: str, consumer: str, generation: int = 1) -> dict[str, Any]:
    return {
        "inventories": {
            root: {"resource_provider_generation": 2, "inventories": {"DISK_GB": {"total": 100}}},
            child: {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}},
        },
        "allocations": {consumer: allocation({root: {"DISK_GB": 10}, child: {"VCPU": 4}}, generation)},
    }


def test_reshaping_moves_stock_and_use_to_a_child(client: Client) -> None:
    root = client.provider("root", VCPU=4, DISK_GB=100)
    child, consumer = client.provider("child", root), ids.new_uuid()
    client.claim(consumer, **{root: {"VCPU": 4, "DISK_GB": 10}})
    service = client.by(roles=["service"])
    assert client("POST", "/reshaper", _reshaped(root, child, consumer)).status == 403
    assert service("POST", "/reshaper", _reshaped(root, child, consumer)).status == 204
    assert client("GET", f"/resource_providers/{root}/usages").json["usages"] == {"DISK_GB": 10}
    assert client("GET", f"/resource_providers/{child}/usages").json["usages"] == {"VCPU": 4}
    assert client("GET", f"/allocations/{consumer}").json["consumer_generation"] == 2


def test_a_reshape_that_fails_changes_nothing(client: Client) -> None:
    root = client.provider("root", VCPU=4, DISK_GB=100)
    child, consumer = client.provider("child", root), ids.new_uuid()
    client.claim(consumer, **{root: {"VCPU": 4, "DISK_GB": 10}})
    service = client.by(roles=["service"])

    def attempt(code: str, status: int, **change: Any) -> None:
        found = service("POST", "/reshaper", _reshaped(root, child, consumer) | change)
        assert (found.status, found.error["code"]) == (status, code), found.body
        assert (client.generation(root), client.generation(child)) == (2, 0)
        assert client("GET", f"/allocations/{consumer}").json["consumer_generation"] == 1

    attempt("placement.inventory.inuse", 409, allocations={})
    stale = {consumer: allocation({root: {"DISK_GB": 10}, child: {"VCPU": 4}}, 7)}
    attempt("placement.concurrent_update", 409, allocations=stale)
    attempt("placement.undefined_code", 409, allocations={consumer: allocation({child: {"VCPU": 5}}, 1)})
    nobody = {ids.new_uuid(): {"resource_provider_generation": 0, "inventories": {}}}
    attempt("placement.resource_provider.not_found", 400, inventories=nobody)
    old = {root: {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 4}, "DISK_GB": {"total": 100}}}}
    attempt("placement.concurrent_update", 409, inventories=old)


def test_the_allocations_of_a_provider_are_as_old_as_the_newest_of_them(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = client.provider("host", VCPU=4)
    monkeypatch.setattr(clock, "utcnow", lambda: datetime(2030, 5, 6, 7, 8, 9))
    assert client.claim(ids.new_uuid(), **{host: {"VCPU": 1}}).status == 204
    monkeypatch.setattr(clock, "utcnow", lambda: datetime(2031, 5, 6, 7, 8, 9))
    found = client("GET", f"/resource_providers/{host}/allocations")
    assert found.headers["last-modified"] == "Mon, 06 May 2030 07:08:09 GMT"

"""Values chosen to hurt, at every parameter, variable, header and field: each is refused with a sentence that says
which and why, and changes nothing."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from kilonova.core import ids
from tests.http.placement.conftest import Client, allocation

UUID = "0000000a-0000-4000-8000-000000000000"
CANDIDATES, PROVIDERS = "/allocation_candidates?resources=VCPU:1&", "/resource_providers?"
NO_UUIDS = (
    "", "x", "null", "%00", "%ff", "%ED%A0%80", "0" * 31, "g" * 32, UUID[:-1] + "%D9%A1", UUID + UUID,
    "٠" * 32, "x" * 9_000,
)  # fmt: skip
"""What no UUID looks like, as it stands in a query."""

NO_AMOUNTS = (
    "", "VCPU", "VCPU:", ":1", "VCPU:0", "VCPU:-1", "VCPU:1.5", "VCPU:1e3", "VCPU:0x1", "VCPU:1_0", "VCPU:true",
    "VCPU:NaN", "VCPU:%D9%A1", "VCPU:" + "9" * 40, "VCPU:1:2", "VCPU:1,", "VCPU:1;MEMORY_MB:1", "vcpu:1", "ＶＣＰＵ:1",
    "COW:1", "%00", "%ff:1", "VCPU:1%00", "[]", "x" * 9_000,
)  # fmt: skip
NO_TRAITS = ("", ",", "!", "HW_CPU_X86_VMX,", "!!HW_CPU_X86_VMX", "in:", "in:!HW_CPU_X86_VMX", "hw_cpu_x86_vmx",
             "ＨＷ", "NO_SUCH", "%00", "%ff", "x" * 9_000)  # fmt: skip
NO_AGGREGATES = (*NO_UUIDS, "in:", "in:,", "!", "!in:", "in:x", f"{UUID},{UUID}", f"in:!{UUID}", "!!" + UUID)

QUERIES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    # parameter: (what stands before its value, values, words of which one says what is wrong)
    "resources": ("/allocation_candidates?resources=", NO_AMOUNTS, ("resources", "Requested resource")),
    "resources_A": (CANDIDATES + "resources_A=", NO_AMOUNTS, ("resources_A",)),
    "resources of a list": (PROVIDERS + "resources=", NO_AMOUNTS, ("resources", "Requested resource")),
    "limit": (CANDIDATES + "limit=", ("", "0", "-1", "1.5", "x", "NaN", "%D9%A1", "9" * 40, "%00", "%ff"), ("limit",)),
    "required": (CANDIDATES + "required=", NO_TRAITS, ("required", "trait")),
    "required_A": (CANDIDATES + "resources_A=VCPU:1&required_A=", NO_TRAITS, ("required_A",)),
    "required of a list": (PROVIDERS + "required=", NO_TRAITS, ("required", "trait")),
    "root_required": (CANDIDATES + "root_required=", NO_TRAITS, ("root_required",)),
    "member_of": (CANDIDATES + "member_of=", NO_AGGREGATES, ("member_of",)),
    "member_of_A": (CANDIDATES + "resources_A=VCPU:1&member_of_A=", NO_AGGREGATES, ("member_of_A",)),
    "member_of of a list": (PROVIDERS + "member_of=", NO_AGGREGATES, ("member_of",)),
    "in_tree": (CANDIDATES + "in_tree=", NO_UUIDS, ("in_tree",)),
    "in_tree_A": (CANDIDATES + "resources_A=VCPU:1&in_tree_A=", NO_UUIDS, ("in_tree_A",)),
    "in_tree of a list": (PROVIDERS + "in_tree=", NO_UUIDS, ("in_tree",)),
    "uuid": (PROVIDERS + "uuid=", NO_UUIDS, ("uuid",)),
    "name": (PROVIDERS + "name=", ("%00", "%ff", "a%00"), ("name",)),
    "group_policy": (
        CANDIDATES + "group_policy=", ("", "x", "NONE", "none%0A", "none,isolate", "%00"), ("group_policy",)
    ),
    "same_subtree": (
        CANDIDATES + "same_subtree=", ("", ",", "_A", "_A,", "x" * 9_000, "%00", "%ff", "ａ"), ("same_subtree",)
    ),
    "name of traits": ("/traits?name=", ("", "x", "in", "IN:A", "%00", "%ff"), ("name",)),
    "associated": ("/traits?associated=", ("", "1", "yes", "%00", "%ff", "true,false"), ("associated",)),
    "project_id": ("/usages?project_id=", ("", "x" * 256, "%00", "%ff"), ("project_id",)),
    "user_id": ("/usages?project_id=p&user_id=", ("", "x" * 256, "%00", "%ff"), ("user_id",)),
    "consumer_type": (
        "/usages?project_id=p&consumer_type=", ("", "x", "Ａ", "A" * 256, "A B", "%00", "%ff"), ("consumer_type",)
    ),
}  # fmt: skip


@pytest.mark.parametrize("parameter", QUERIES)
def test_a_value_that_hurts_is_refused_by_the_name_of_its_parameter(client: Client, parameter: str) -> None:
    start, values, words = QUERIES[parameter]
    for value in values:
        answer = client("GET", start + quote(value, safe="%:,!;"))
        assert answer.status == 400, (parameter, value[:40], answer.body[:200])
        assert any(word in answer.error["detail"] for word in words), (parameter, value[:40], answer.error["detail"])
        assert len(answer.body) < 40_000


@pytest.mark.parametrize(
    "name",
    ["", "x", "resource", "Resources", "resources@", "resources_" + "A" * 64, "resources_%C3%A9", "resources_A%0A",
     "ｒesources", "limit_A", "x" * 9_000, "resources[]"],
)  # fmt: skip
def test_an_unknown_parameter_is_refused_by_its_name(client: Client, name: str) -> None:
    for start in (CANDIDATES, PROVIDERS, "/usages?project_id=p&", "/traits?"):
        answer = client("GET", f"{start}{quote(name, safe='%')}=VCPU:1")
        assert answer.status == 400, (start, answer.body[:200])
        assert "does not match any" in answer.error["detail"] or "was unexpected" in answer.error["detail"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("root_required=HW_CPU_X86_VMX&root_required=HW_CPU_X86_VMX", "root_required"),
        ("&".join(f"resources_{n}=VCPU:1" for n in range(200)), "group_policy"),
        ("&".join(f"resources_{n}=VCPU:x" for n in range(200)) + "&group_policy=none", "resources_0"),
        ("required=" + ",".join(f"CUSTOM_{n}" for n in range(10_000)), "No such trait"),
        ("required=HW_CPU_X86_VMX,!HW_CPU_X86_VMX", "required"),
    ],
    ids=["repeated", "no policy", "200 wrong groups", "10,000 unknown traits", "contradicting"],
)
def test_parameters_that_do_not_go_together_are_refused(client: Client, query: str, words: str) -> None:
    answer = client("GET", CANDIDATES + query)
    assert answer.status == 400
    assert words in answer.error["detail"]


def test_very_many_groups_traits_and_aggregates_are_answered(client: Client) -> None:
    host = client.provider("host", VCPU=1000)
    client.traits(host, "HW_CPU_X86_VMX")
    groups = "&".join(f"resources_{n}=VCPU:1" for n in range(200)) + "&group_policy=none"
    traits = "resources=VCPU:1&required=" + ",".join(["HW_CPU_X86_VMX"] * 10_000)
    aggregates = "resources=VCPU:1&member_of=!in:" + ",".join([UUID] * 1_000)
    for query in (groups, traits, aggregates):
        answer = client("GET", "/allocation_candidates?" + query)
        assert answer.status == 200, answer.body[:200]
        assert len(answer.json["allocation_requests"]) == 1


@pytest.mark.parametrize("path", [f"/resource_providers/{{}}{rest}" for rest in ("", "/usages", "/traits")])
@pytest.mark.parametrize("uuid", ["x", "\0", "a\0", "é", "٠" * 32, "x" * 9_000, UUID + "\n", "..", "%00", "{uuid}"])
def test_a_provider_that_cannot_be_is_not_found(client: Client, path: str, uuid: str) -> None:
    client("POST", "/resource_providers", {"name": "host", "uuid": UUID})
    answer = client("GET", path.format(uuid.encode().decode("latin-1")))
    assert answer.status == 404
    assert answer.error["detail"]


@pytest.mark.parametrize("consumer", ["x", "é", "٠" * 32, "x" * 9_000, UUID + "\n", "{consumer}", UUID[:-1] + "١"])
def test_a_consumer_that_cannot_be_is_refused(client: Client, consumer: str) -> None:
    host = client.provider("host", VCPU=5)
    path = f"/allocations/{consumer.encode().decode('latin-1')}"
    answer = client("PUT", path, allocation({host: {"VCPU": 1}}))
    assert (answer.status, "consumer_uuid" in answer.error["detail"]) == (400, True)
    assert client("GET", path).json == {"allocations": {}}
    assert client("DELETE", path).status == 404


def test_a_consumer_is_the_same_in_whatever_form_its_uuid_is_written(client: Client) -> None:
    host = client.provider("host", VCPU=5)
    assert client.claim(UUID.replace("-", "").upper(), **{host: {"VCPU": 1}}).status == 204
    for form in (UUID, UUID.upper(), UUID.replace("-", "")):
        assert client("GET", f"/allocations/{form}").json["allocations"].keys() == {host}
    assert client("DELETE", f"/allocations/{UUID.replace('-', '')}").status == 204


@pytest.mark.parametrize(
    "name",
    ["CUSTOM_", "CUSTOM_a", "CUSTOM_A\n", "CUSTOM_Ａ", "CUSTOM_é", "CUSTOM_" + "A" * 250, "VCPU2", "custom_A",
     "CUSTOM_A B", "CUSTOM_\x7f"],
)  # fmt: skip
def test_a_name_that_may_not_be_is_refused(client: Client, name: str) -> None:
    for path in ("/traits/", "/resource_classes/"):
        answer = client("PUT", path + name.encode().decode("latin-1"))
        assert answer.status == 400
        assert "CUSTOM_" in answer.error["detail"]
    assert client("POST", "/resource_classes", {"name": name}).status == 400


@pytest.mark.parametrize(
    ("given", "status"),
    [("placement x", 400), ("placement 1", 400), ("placement 1.1.1", 400), ("placement 1.٣", 400),
     ("placement 1.-1", 400), ("placement " + "9" * 9_000, 400), ("placement 1.99", 406), ("placement 0.1", 406),
     ("placement 1." + "9" * 9_000, 400), ("placement 1." + "9" * 90, 406), ("placement 1.3\0", 400)],
)  # fmt: skip
def test_a_version_that_is_none_is_refused(client: Client, given: str, status: int) -> None:
    header = given.encode().decode("latin-1")
    answer = client.at(None)("GET", "/resource_providers", OPENSTACK_API_VERSION=header)
    assert answer.status in (400, 406), answer.body[:200]
    assert answer.status == status
    assert "version" in answer.error["detail"].lower()


# -- bodies -------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, ...]] = {
    "amount": (0, -1, 1.5, 1.0, True, None, "1", [], {}, 2**31, 10**40),
    "count": (-1, 1.5, True, None, "0", [], {}, 2**31, 10**40),
    "ratio": (-1, True, None, "1", [], {}, 1e39, 10**300),
    "generation": (1.5, 1.0, True, "0", [], {}, 10**40),
    "uuid": ("", "x", 5, True, [], {}, UUID + "\n", UUID[:-1] + "١", "a\0"),
    "name": ("", "a\0b", 5, True, None, [], {}),
    "type": ("", "a", "A B", "A\n", "Ａ", "A\0", "A" * 256, 5, None, [], {}),
    "object": (None, True, 5, "x", []),
    "list": (None, True, 5, "x", {}),
}
SPOTS: dict[str, tuple[str, str, str]] = {
    # method, path, and where in the body a kind of value stands
    "total": ("PUT", "inventories", "amount"), "reserved": ("PUT", "inventories", "count"),
    "min_unit": ("PUT", "inventories", "amount"), "max_unit": ("PUT", "inventories", "amount"),
    "step_size": ("PUT", "inventories", "amount"), "allocation_ratio": ("PUT", "inventories", "ratio"),
}  # fmt: skip


def _refused(client: Client, method: str, path: str, body: Any, word: str) -> None:
    answer = client(method, path, json.dumps(body).encode())
    assert answer.status == 400, (body, answer.body[:200])
    assert word in answer.error["detail"], (body, answer.error["detail"])


@pytest.mark.parametrize("field", SPOTS)
def test_a_wrong_number_in_an_inventory_is_refused_by_its_name(client: Client, field: str) -> None:
    host = client.provider("host", VCPU=5)
    for value in WRONG[SPOTS[field][2]]:
        record = {"total": 5, field: value}
        path = f"/resource_providers/{host}/inventories"
        _refused(client, "PUT", path, {"resource_provider_generation": 1, "inventories": {"VCPU": record}},
                 field if value != -1 or field != "allocation_ratio" else "VCPU")  # fmt: skip
        _refused(client, "POST", path, {"resource_class": "DISK_GB", **record},
                 field if value != -1 or field != "allocation_ratio" else "DISK_GB")  # fmt: skip
    assert client("GET", path).json["inventories"]["VCPU"]["total"] == 5
    assert client.generation(host) == 1


@pytest.mark.parametrize(
    ("path", "field", "kind"),
    [
        ("inventories", "resource_provider_generation", "generation"), ("inventories", "inventories", "object"),
        ("traits", "resource_provider_generation", "generation"), ("traits", "traits", "list"),
        ("aggregates", "resource_provider_generation", "generation"), ("aggregates", "aggregates", "list"),
    ],
)  # fmt: skip
def test_a_wrong_part_of_a_provider_is_refused_by_its_name(client: Client, path: str, field: str, kind: str) -> None:
    host = client.provider("host", VCPU=5)
    plain = {"resource_provider_generation": 1, path: {} if path == "inventories" else []}
    for value in WRONG[kind]:
        _refused(client, "PUT", f"/resource_providers/{host}/{path}", plain | {field: value}, field)
    assert client.generation(host) == 1


@pytest.mark.parametrize(("field", "kind"), [("name", "name"), ("uuid", "uuid"), ("parent_provider_uuid", "uuid")])
def test_a_wrong_field_of_a_new_provider_is_refused_by_its_name(client: Client, field: str, kind: str) -> None:
    for value in (*WRONG[kind], "x" * 201):
        _refused(client, "POST", "/resource_providers", {"name": "n", field: value}, field)
    assert client("GET", "/resource_providers").json == {"resource_providers": []}


@pytest.mark.parametrize(
    ("field", "kind"),
    [("project_id", "name"), ("user_id", "name"), ("consumer_type", "type"), ("consumer_generation", "generation"),
     ("allocations", "object"), ("mappings", "object")],
)  # fmt: skip
def test_a_wrong_field_of_a_claim_is_refused_by_its_name(client: Client, field: str, kind: str) -> None:
    host = client.provider("host", VCPU=5)
    for value in WRONG[kind]:
        body = allocation({host: {"VCPU": 1}}) | {field: value}
        _refused(client, "PUT", f"/allocations/{UUID}", body, field)
        _refused(client, "POST", "/allocations", {UUID: body}, field)
        stock = {"resource_provider_generation": 1, "inventories": {}}
        reshape = {"inventories": {host: stock}, "allocations": {UUID: body}}
        by_service = client.by(roles=["service"], project_id="p", user_id="u")
        _refused(by_service, "POST", "/reshaper", reshape, field)
    for value in WRONG["amount"]:
        _refused(client, "PUT", f"/allocations/{UUID}", allocation({host: {"VCPU": value}}), "VCPU")
    assert client("GET", f"/resource_providers/{host}/usages").json["usages"] == {"VCPU": 0}


def test_a_uuid_given_twice_in_different_cases_is_refused_and_takes_nothing(client: Client) -> None:
    one, two = client.provider("one", VCPU=5), client.provider("two", VCPU=5)
    assert client.claim(UUID, **{one: {"VCPU": 4}}).status == 204
    twice = {UUID: allocation({two: {"VCPU": 1}}, 1), UUID.upper(): allocation({one: {"VCPU": 1}}, 1)}
    _refused(client, "POST", "/allocations", twice, UUID)
    both = {"resources": {"VCPU": 1}}
    _refused(client, "PUT", f"/allocations/{ids.new_uuid()}",
             allocation({}) | {"allocations": {two: both, two.upper(): both}}, two)  # fmt: skip
    stocks = {"resource_provider_generation": 1, "inventories": {}}
    _refused(client.by(roles=["service"], project_id="p", user_id="u"), "POST", "/reshaper",
             {"inventories": {two: stocks, two.upper(): stocks}, "allocations": {}}, two)  # fmt: skip
    assert client("GET", f"/resource_providers/{one}/usages").json["usages"] == {"VCPU": 4}


def test_the_largest_inventory_there_may_be_is_kept_and_used(client: Client) -> None:
    host = client.provider("host", VCPU={"total": 2**31 - 1, "allocation_ratio": 3.4e38})
    assert client.claim(UUID, **{host: {"VCPU": 2**31 - 1}}).status == 204
    found = client("GET", "/allocation_candidates?resources=VCPU:2147483647").json["provider_summaries"][host]
    assert found["resources"]["VCPU"]["capacity"] > found["resources"]["VCPU"]["used"] == 2**31 - 1


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"nul", b"\xff\xfe", b"[" * 60 + b"]" * 60, b"[" * 5_000 + b"]" * 5_000, b'{"name": NaN}', b"[]",
     b'{"name": Infinity}', b'{"name": 1e400}', b'{"name": "\\ud800"}', b'{"name": "\xff"}', b"null", b'"x"', b"5"],
)  # fmt: skip
def test_a_body_that_is_no_object_is_refused(client: Client, text: bytes) -> None:
    answer = client("POST", "/resource_providers", text, CONTENT_TYPE="application/json")
    assert answer.status == 400
    assert "JSON" in answer.error["detail"] or "nested" in answer.error["detail"]


def test_of_a_key_given_twice_the_last_counts(client: Client) -> None:
    assert client("POST", "/resource_providers", b'{"name": "one", "name": "two"}').json["name"] == "two"

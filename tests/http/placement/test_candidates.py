"""Allocation candidates through HTTP: the shapes of the answers, and what a query may be."""

from __future__ import annotations

import pytest

from kilonova.core import ids
from tests.http.placement.conftest import Client

AGG = "11111111-1111-4111-8111-111111111111"


def _hosts(client: Client, version: str, query: str) -> list[list[str]]:
    found = client.at(version)("GET", f"/allocation_candidates?{query}")
    assert found.status == 200, found.body
    return [sorted(one["allocations"]) for one in found.json["allocation_requests"]]


def test_the_newest_shape_is_complete(client: Client) -> None:
    host = client.provider("host", VCPU=8, MEMORY_MB=1024)
    client.traits(host, "HW_CPU_X86_AVX2")
    client.claim(ids.new_uuid(), **{host: {"VCPU": 3}})
    assert client("GET", "/allocation_candidates?resources=VCPU:2").json == {
        "allocation_requests": [
            {"allocations": {host: {"resources": {"VCPU": 2}}}, "mappings": {"": [host]}}
        ],
        "provider_summaries": {
            host: {
                "resources": {"VCPU": {"capacity": 8, "used": 3}, "MEMORY_MB": {"capacity": 1024, "used": 0}},
                "traits": ["HW_CPU_X86_AVX2"],
                "parent_provider_uuid": None,
                "root_provider_uuid": host,
            }
        },
    }  # fmt: skip


def test_each_version_adds_its_part(client: Client) -> None:
    host = client.provider("host", VCPU=8, MEMORY_MB=1024)
    query = "/allocation_candidates?resources=VCPU:2"
    assert client.at("1.9")("GET", query).status == 404
    first = client.at("1.10")("GET", query).json
    assert first == {
        "allocation_requests": [
            {"allocations": [{"resource_provider": {"uuid": host}, "resources": {"VCPU": 2}}]}
        ],
        "provider_summaries": {host: {"resources": {"VCPU": {"capacity": 8, "used": 0}}}},
    }  # fmt: skip
    keyed = client.at("1.12")("GET", query).json["allocation_requests"]
    assert keyed == [{"allocations": {host: {"resources": {"VCPU": 2}}}}]
    assert client.at("1.17")("GET", query).json["provider_summaries"][host]["traits"] == []
    assert len(client.at("1.26")("GET", query).json["provider_summaries"][host]["resources"]) == 1
    assert len(client.at("1.27")("GET", query).json["provider_summaries"][host]["resources"]) == 2
    assert "root_provider_uuid" not in client.at("1.28")("GET", query).json["provider_summaries"][host]
    assert client.at("1.29")("GET", query).json["provider_summaries"][host]["root_provider_uuid"] == host
    assert "mappings" not in client.at("1.33")("GET", query).json["allocation_requests"][0]
    assert client.at("1.34")("GET", query).json["allocation_requests"][0]["mappings"] == {"": [host]}


def test_nothing_that_fits_is_an_empty_answer(client: Client) -> None:
    client.provider("host", VCPU=1)
    for query in ("resources=VCPU:2", "resources=DISK_GB:1", f"resources=VCPU:1&member_of={AGG}",
                  f"resources=VCPU:1&in_tree={AGG}", "resources=VCPU:1&required=HW_CPU_X86_AVX2"):  # fmt: skip
        found = client("GET", f"/allocation_candidates?{query}")
        assert (found.status, found.json) == (200, {"allocation_requests": [], "provider_summaries": {}})


def test_conditions_choose_hosts(client: Client) -> None:
    a, b, c = (client.provider(name, VCPU=8) for name in "abc")
    client.traits(a, "HW_CPU_X86_AVX2", "CUSTOM_GOLD")
    client.traits(b, "HW_CPU_X86_AVX2")
    client.aggregates(b, AGG)

    def hosts(query: str) -> set[str]:
        return {host for hosts in _hosts(client, "1.39", "resources=VCPU:1&" + query) for host in hosts}

    assert hosts("") == {a, b, c}
    assert hosts("required=HW_CPU_X86_AVX2") == {a, b}
    assert hosts("required=HW_CPU_X86_AVX2,!CUSTOM_GOLD") == {b}
    assert hosts("required=!HW_CPU_X86_AVX2") == {c}
    assert hosts("required=in:CUSTOM_GOLD,HW_CPU_X86_SSE") == {a}
    assert hosts("root_required=CUSTOM_GOLD") == {a}
    assert hosts("root_required=!CUSTOM_GOLD") == {b, c}
    assert hosts(f"member_of={AGG}") == {b}
    assert hosts(f"member_of=!{AGG}") == {a, c}
    assert hosts(f"in_tree={c}") == {c}
    assert len(hosts("limit=2")) == 2
    assert len(hosts("limit=2&limit=1")) == 2
    assert hosts("required=HW_CPU_X86_AVX2&required=CUSTOM_GOLD") == {a}


def test_before_1_39_the_last_of_several_required_counts(client: Client) -> None:
    a, b = client.provider("a", VCPU=8), client.provider("b", VCPU=8)
    client.traits(a, "HW_CPU_X86_AVX2")
    client.traits(b, "HW_CPU_X86_SSE")
    query = "resources=VCPU:1&required=HW_CPU_X86_AVX2&required=HW_CPU_X86_SSE"
    assert _hosts(client, "1.38", query) == [[b]]
    assert _hosts(client, "1.39", query) == []


def test_a_tree_a_shared_pool_and_groups(client: Client) -> None:
    root = client.provider("root", MEMORY_MB=1024)
    numa = [client.provider(f"numa{n}", root, VCPU=4) for n in range(2)]
    pool = client.provider("pool", DISK_GB=100)
    client.traits(pool, "MISC_SHARES_VIA_AGGREGATE")
    client.aggregates(root, AGG)
    client.aggregates(pool, AGG)
    found = client("GET", "/allocation_candidates?resources=MEMORY_MB:512,VCPU:2,DISK_GB:5").json
    assert sorted(sorted(one["allocations"]) for one in found["allocation_requests"]) == sorted(
        sorted([root, one, pool]) for one in numa
    )
    assert set(found["provider_summaries"]) == {root, *numa, pool}
    query = "resources=MEMORY_MB:512&resources_A=VCPU:2&resources_B=VCPU:2&group_policy="
    isolated = client("GET", f"/allocation_candidates?{query}isolate").json["allocation_requests"]
    assert sorted((one["mappings"]["_A"][0], one["mappings"]["_B"][0]) for one in isolated) == sorted(
        [tuple(numa), tuple(reversed(numa))]
    )
    free = client("GET", f"/allocation_candidates?{query}none").json["allocation_requests"]
    assert len(free) == 4
    assert {"VCPU": 4} in [one["resources"] for answer in free for one in answer["allocations"].values()]


@pytest.mark.parametrize(
    "query",
    [
        "", "limit=1", "resources=VCPU:1&cow=1", "resources=VCPU", "resources=VCPU:0", "resources=COW:1",
        "resources=VCPU:1&limit=0", "resources=VCPU:1&limit=-1", "resources=VCPU:1&limit=x",
        "resources=VCPU:1&required=NO_SUCH", "resources=VCPU:1&required=", "resources=VCPU:1&in_tree=cow",
        "resources=VCPU:1&member_of=cow", "resources_A=VCPU:1&resources_B=VCPU:1",
        "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=cow", "required=HW_CPU_X86_AVX2",
        "resources=VCPU:1&required_A=HW_CPU_X86_AVX2", "resources@=VCPU:1", "resources" + "A" * 65 + "=VCPU:1",
        "resources=VCPU:1&root_required=HW_CPU_X86_AVX2&root_required=HW_CPU_X86_SSE",
        "resources=VCPU:1&root_required=in:HW_CPU_X86_AVX2,HW_CPU_X86_SSE",
        "resources=VCPU:1&root_required=HW_CPU_X86_AVX2,!HW_CPU_X86_AVX2",
        "resources=VCPU:1&same_subtree=_A", "resources=VCPU:1&same_subtree=",
        "resources=VCPU:1&required=in:HW_CPU_X86_AVX2&required=!HW_CPU_X86_AVX2",
    ],
)  # fmt: skip
def test_a_bad_query_is_refused(client: Client, query: str) -> None:
    found = client("GET", f"/allocation_candidates?{query}")
    assert found.status == 400, found.body
    assert found.error["detail"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resources=VCPU:1&root_required=HW_CPU_X86_AVX2&root_required=HW_CPU_X86_SSE", "duplicate_key"),
        ("resources=VCPU:1&root_required=HW_CPU_X86_AVX2,!HW_CPU_X86_AVX2", "bad_value"),
        ("resources=VCPU:1&same_subtree=_A", "bad_value"),
        ("required_A=HW_CPU_X86_AVX2&same_subtree=_A", "missing_value"),
        ("required=HW_CPU_X86_AVX2", "missing_value"),
        ("limit=1", "missing_value"),
    ],
)
def test_a_refused_query_has_its_code(client: Client, query: str, code: str) -> None:
    assert client("GET", f"/allocation_candidates?{query}").error["code"] == f"placement.query.{code}"


@pytest.mark.parametrize(
    ("query", "since"),
    [
        ("limit=1", "1.16"), ("required=HW_CPU_X86_AVX2", "1.17"), (f"member_of={AGG}", "1.21"),
        ("required=!HW_CPU_X86_AVX2", "1.22"), ("resources1=VCPU:1", "1.25"), ("group_policy=none", "1.25"),
        (f"in_tree={AGG}", "1.31"), (f"member_of=!{AGG}", "1.32"), ("resources_A=VCPU:1", "1.33"),
        ("root_required=HW_CPU_X86_AVX2", "1.35"), ("required=in:HW_CPU_X86_AVX2,HW_CPU_X86_SSE", "1.39"),
    ],
)  # fmt: skip
def test_a_parameter_that_is_newer_than_the_version_is_refused(client: Client, query: str, since: str) -> None:
    path = "/allocation_candidates?resources=VCPU:1&" + query
    assert client.at(since)("GET", path).status == 200
    assert client.at(f"1.{int(since[2:]) - 1}")("GET", path).status == 400


def test_leading_zeros_are_no_suffix_before_words_are(client: Client) -> None:
    assert client.at("1.32")("GET", "/allocation_candidates?resources01=VCPU:1").status == 400
    assert client.at("1.33")("GET", "/allocation_candidates?resources01=VCPU:1").status == 200


def test_every_claim_is_seen_by_the_next_query(client: Client) -> None:
    host = client.provider("host", VCPU=3)
    for used in range(3):
        summary = client("GET", "/allocation_candidates?resources=VCPU:1").json["provider_summaries"][host]
        assert summary["resources"]["VCPU"]["used"] == used
        assert client.claim(ids.new_uuid(), **{host: {"VCPU": 1}}).status == 204
    assert client("GET", "/allocation_candidates?resources=VCPU:1").json["allocation_requests"] == []

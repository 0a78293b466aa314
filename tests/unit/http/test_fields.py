"""Types of bodies: what fits, what it becomes, and the fields that come and go with the versions."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.api.compute import keypairs, server_fields, server_volume_attachments
from kilonova.api.compute.rows import OPS
from kilonova.api.compute.versions import LINES
from kilonova.http import fields as f
from kilonova.http.op import Op
from kilonova.http.validate import Body, BodyInvalid, QueryInvalid, QueryReader
from kilonova.http.versions import Since, at, parse

UUID = "00000000-0000-4000-8000-000000000000"


BODIES: dict[tuple[int, str], tuple[f.Type, Body]] = {}
"""Bodies that are compiled already, with their types, so that these stay what they are."""


def fits(kind: f.Type, value: Any, version: str = "2.104") -> bool:
    _, body = BODIES.setdefault((id(kind), version), (kind, Body(kind, parse(version))))
    try:
        body.read(value)
    except BodyInvalid:
        return False
    return True


def first(kind: f.Type, value: Any) -> str | None:
    """The first version at which a value fits; the ranges of versions when it stops again."""
    found, inside = [], False
    for text in LINES:
        now = fits(kind, value, text)
        if now != inside:
            found.append(text)
            inside = now
    return " ".join(found) or None


# -- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "good", "bad"), [
    (f.NAME, ["a", "ä b", "x" * 255], ["", " ", " a", "a ", "x" * 256, "a\tb", "a\0", None, 1, "\u202e"]),
    (f.NAME_OR_NONE, [None, " ", "a"], ["", "x" * 256, 1]),
    (f.AZ_NAME, ["nova"], ["a:b", "", " a"]),
    (f.DESCRIPTION, [None, "", " a "], ["x" * 256, "a\nb", 1]),
    (f.FQDN, ["a", "a.b_c-d", "x" * 255], ["", "a b", "a:b", "ä", "x" * 256]),
    (f.HOSTNAME, ["ab", "a-b", "x" * 63], ["a", "-ab", "ab-", "a.b", "a_b", "x" * 64]),
    (f.POSINT, [1, "1", 10**30], [0, "0", "", "1.5", 1.5, True, None, "-1", "x", "٣"]),
    (f.NONNEG, [0, "0", "007"], [-1, "-1", "", " 1", "1_0"]),
    (f.INT31_POSITIVE, [1, 2147483647, "2147483647"], [0, 2147483648, "2147483648"]),
    (f.Int(strict=True), [1], ["1", True, 1.5]),
    (f.UUID, [UUID, UUID.upper(), UUID.replace("-", ""), f"{{{UUID}}}", f"urn:uuid:{UUID}"], ["", "x", UUID[:-1]]),
    (f.IP, ["127.0.0.1", "::1"], ["127.0.0.300", "", "127.0.0.1/8", "localhost"]),
    (f.IPV4, ["127.0.0.1"], ["::1"]),
    (f.IPV6, ["::1"], ["127.0.0.1"]),
    (f.BASE64, ["", "YWJj", "YW\nJj"], ["YWJ", "*", "YW%Jj"]),
    (f.TAG, ["a", "ä b", "x" * 60], ["", "a,b", "a/b", "x" * 61]),
    (f.DEVICE, [None, "/dev/vdb", "/dev/sda1", "/dev/xvda"], ["vdb", "/dev/", "/dev/vdb\n", "/dev/../x", ""]),
    (f.METADATA, [{}, {"a-_:. 1": ""}, {"a": "x" * 255}], [{"": "x"}, {"a" * 256: "x"}, {"ä": "x"}, {"a": None}, []]),
    (f.METADATA_NULL, [{"a": None}], [{"a": 1}]),
    (f.TRUSTED_CERTS, [None, ["a"], ["a", "b"]], [[], ["a", "a"], [""], [str(n) for n in range(51)]]),
    (f.FLAVOR_REF, ["1", 1], ["", None, True, []]),
    (f.Null, [None], [0, ""]),
    (f.Str(pattern="^a$"), ["a"], ["b"]),
    (f.Map("^x", f.Int(), 1, 2), [{"x": 1}], [{}, {"y": 1}, {"x1": 1, "x2": 2, "x3": 3}]),
    (f.AnyOf(f.Enum("auto"), f.Arr(f.Int())), ["auto", [1]], ["none", ["x"]]),
])  # fmt: skip
def test_what_fits_a_type(kind: f.Type, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if not fits(kind, value)] == []
    assert [value for value in bad if fits(kind, value)] == []


@pytest.mark.parametrize("text", [*f.TRUE_WORDS, *f.FALSE_WORDS, True, False])
def test_words_for_truth_become_truth(text: Any) -> None:
    assert Body(f.BOOL, None).read(text) is (text in f.TRUE_WORDS or text is True)


@pytest.mark.parametrize("value", ["tRue", "y", "t", "", 1, 0, None, [True]])
def test_other_words_are_no_truth(value: Any) -> None:
    assert not fits(f.BOOL, value)


def test_digits_become_numbers_at_any_depth() -> None:
    kind = f.wrap("a", f.Obj(f.Field("n", f.Int()), f.Field("list", f.Arr(f.Obj(f.Field("b", f.BOOL))))))
    assert Body(kind, None).read({"a": {"n": "007", "list": [{"b": "off"}]}}) == {"a": {"n": 7, "list": [{"b": False}]}}


def test_a_refusal_names_the_innermost_field_its_value_and_why() -> None:
    with pytest.raises(BodyInvalid, match=r"^Invalid input for field/attribute n\. Value: x\. "):
        Body(f.wrap("a", f.Obj(f.Field("n", f.Int()))), None).read({"a": {"n": "x"}})
    with pytest.raises(BodyInvalid, match=r"^None is not of type 'object'$"):
        Body(f.wrap("a", f.Obj()), None).read(None)


def test_a_refusal_does_not_echo_all_that_was_sent() -> None:
    with pytest.raises(BodyInvalid) as caught:
        Body(f.wrap("a", f.Obj()), None).read("x" * 100_000)
    assert len(caught.value.text) < 1000


# -- fields with ranges ----------------------------------------------------------------------------------------------


def server(**values: Any) -> dict[str, Any]:
    return {"server": {"name": "s", "flavorRef": "1", "networks": []} | values}


@pytest.mark.parametrize(("values", "versions"), [
    ({"networks": [{"uuid": UUID, "tag": "t"}]}, "2.32 2.37 2.42"),
    ({"block_device_mapping_v2": [{"tag": "t"}]}, "2.32 2.33 2.42"),
    ({"block_device_mapping": [{"tag": "t"}]}, None),
    ({"block_device_mapping_v2": [{"volume_type": None}]}, "2.67"),
    ({"networks": "auto"}, "2.37"),
    ({"networks": [{"uuid": "no uuid"}]}, "2.1 2.37"),
    ({"networks": [{"port": None}]}, "2.1"),
    ({"personality": [{"path": "/a", "contents": "YQ=="}]}, "2.1 2.57"),
    ({"description": None}, "2.19"),
    ({"tags": ["a"]}, "2.52"),
    ({"tags": [str(n) for n in range(51)]}, None),
    ({"trusted_image_certificates": None}, "2.63"),
    ({"host": "h"}, "2.74"),
    ({"hypervisor_hostname": "h.example"}, "2.74"),
    ({"hostname": "host"}, "2.90"),
    ({"hostname": "host.example"}, "2.94"),
    ({"unknown": 1}, None),
    ({"imageRef": ""}, "2.1"),
    ({"min_count": "2"}, "2.1"),
    ({"user_data": None}, None),
])  # fmt: skip
def test_a_new_server_may_say_from_when_to_when(values: dict[str, Any], versions: str | None) -> None:
    assert first(server_fields.CREATE, server(**values)) == versions


def test_networks_must_be_said_from_2_37() -> None:
    assert first(server_fields.CREATE, {"server": {"name": "s", "flavorRef": "1"}}) == "2.1 2.37"


def test_hints_are_open_and_the_server_is_not() -> None:
    assert fits(server_fields.CREATE, server() | {"os:scheduler_hints": {"mine": {"a": 1}}})
    assert fits(server_fields.CREATE, server() | {"OS-SCH-HNT:scheduler_hints": {"group": UUID}})
    assert not fits(server_fields.CREATE, server() | {"os:scheduler_hints": {"group": "x"}})
    assert not fits(server_fields.CREATE, server() | {"hints": {}})


@pytest.mark.parametrize(("values", "versions"), [
    ({}, "2.1"), ({"name": "n"}, "2.1"), ({"description": "d"}, "2.19"), ({"hostname": "host"}, "2.90"),
    ({"hostname": "host.example"}, "2.94"), ({"pinned_availability_zone": None}, "2.104"), ({"accessIPv4": ""}, None),
    ({"accessIPv4": "127.0.0.1"}, "2.1"),
])  # fmt: skip
def test_a_server_may_be_changed_from_when(values: dict[str, Any], versions: str | None) -> None:
    assert first(server_fields.UPDATE, {"server": values}) == versions


@pytest.mark.parametrize(("values", "versions"), [
    ({"name": "k"}, "2.1 2.92"),
    ({"name": "k", "public_key": "x"}, "2.1"),
    ({"name": "k", "public_key": "x", "type": "ssh"}, "2.2"),
    ({"name": "k", "public_key": "x", "user_id": "u"}, "2.10"),
    ({"name": "k@a.b", "public_key": "x"}, "2.92"),
    ({"name": "kä", "public_key": "x"}, None),
])  # fmt: skip
def test_a_key_pair_may_say_from_when_to_when(values: dict[str, Any], versions: str | None) -> None:
    assert first(keypairs.CREATE, {"keypair": values}) == versions


@pytest.mark.parametrize(("values", "versions"), [
    ({"device": None}, "2.1"), ({"tag": "t"}, "2.49"), ({"delete_on_termination": True}, "2.79"),
])  # fmt: skip
def test_a_volume_attachment_may_say_from_when(values: dict[str, Any], versions: str) -> None:
    body = {"volumeAttachment": {"volumeId": UUID} | values}
    assert first(server_volume_attachments.CREATE, body) == versions


def row(method: str, path: str) -> Op:
    (found,) = [op for op in OPS if (op.method, op.path) == (method, path)]
    return found


@pytest.mark.parametrize(("method", "path", "codes"), [
    ("POST", "/os-keypairs", {"2.1": 200, "2.2": 201, "2.104": 201}),
    ("DELETE", "/os-keypairs/{id}", {"2.1": 202, "2.2": 204}),
    ("POST", "/servers/{server_id}/os-volume_attachments", {"2.1": 200, "2.100": 200, "2.101": 202}),
])  # fmt: skip
def test_success_codes_change_where_the_contract_says(method: str, path: str, codes: dict[str, int]) -> None:
    assert {version: at(row(method, path).ok, parse(version)) for version in codes} == codes


def test_what_has_no_range_is_there_at_every_version() -> None:
    kind = f.Obj(f.Field("a", Since(f.Str(), ("2.2", f.Int())), required=Since(False, ("2.3", True))))
    assert first(kind, {"a": "x"}) == "2.1 2.2"
    assert first(kind, {}) == "2.1 2.3"


# -- queries ---------------------------------------------------------------------------------------------------------

QUERY = f.Query(
    (f.Param("limit", f.Int(0)), f.Param("tag", many=True), f.Param("once", once=True), f.Param("late", since="2.5")),
    strict="2.10",
)


def read(values: dict[str, list[str]], version: str = "2.1", query: f.Query = QUERY) -> dict[str, Any]:
    return QueryReader(query, parse(version)).read(values)


def test_the_last_of_a_repeated_parameter_counts_unless_the_row_keeps_all() -> None:
    assert read({"limit": ["1", "2"], "tag": ["a", "b"]}) == {"limit": 2, "tag": ["a", "b"]}


def test_every_value_of_a_repeated_parameter_must_fit() -> None:
    with pytest.raises(QueryInvalid, match="query parameters limit"):
        read({"limit": ["x", "2"]})


def test_a_parameter_that_may_come_once_is_refused_twice() -> None:
    assert read({"once": ["1"]}) == {"once": "1"}
    with pytest.raises(QueryInvalid):
        read({"once": ["1", "1"]})


def test_unknown_parameters_are_dropped_and_then_refused() -> None:
    assert read({"x": ["1"], "late": ["1"]}) == {}
    assert read({"late": ["1"]}, "2.5") == {"late": "1"}
    with pytest.raises(QueryInvalid, match="'x' unexpected"):
        read({"x": ["1"]}, "2.10")


def test_an_open_query_hands_on_what_it_does_not_know_except_where_strict() -> None:
    open_query = f.Query((), strict="2.10", open=True, passed=lambda name: name.startswith("_"))
    assert read({"x": ["1"]}, query=open_query) == {"x": ["1"]}
    assert read({"_x": ["1"]}, "2.10", open_query) == {"_x": ["1"]}
    with pytest.raises(QueryInvalid):
        read({"x": ["1"]}, "2.10", open_query)

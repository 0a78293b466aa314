"""Microversions: numbers, ranges, values that change, and the choice of one per request (errors.md 4)."""

from __future__ import annotations

import pytest

from kilonova.http.versions import (
    ALWAYS,
    Negotiator,
    Since,
    VersionMalformed,
    Versions,
    VersionUnsupported,
    at,
    between,
    parse,
    show,
    span,
)

COMPUTE = Versions("compute", {"2.1": "a", "2.2": "b", "2.104": "c"}, legacy_header="X-OpenStack-Nova-API-Version")


@pytest.mark.parametrize(("text", "version"), [("2.1", (2, 1)), ("2.10", (2, 10)), ("2.0", (2, 0)), ("13.4", (13, 4))])
def test_a_version_is_two_numbers(text: str, version: tuple[int, int]) -> None:
    assert parse(text) == version
    assert show(version) == text


@pytest.mark.parametrize("text", [
    "", "2", "2.", ".1", "2.01", "02.1", "2.1.0", "2.1 ", " 2.1", "2.1\n", "2,1", "-2.1", "2.-1", "0.1", "two.one",
    "2.1a", "٢.١", "latest", "2.00",
])  # fmt: skip
def test_anything_else_is_malformed(text: str) -> None:
    with pytest.raises(VersionMalformed):
        parse(text)


@pytest.mark.parametrize(("text", "inside", "outside"), [
    ("2.3", [(2, 3), (2, 99)], [(2, 2)]),
    ("-2.35", [(2, 1), (2, 35)], [(2, 36)]),
    ("2.32-2.32, 2.42-", [(2, 32), (2, 42), (2, 104)], [(2, 31), (2, 33), (2, 41)]),
    ("2.32-2.36, 2.42-", [(2, 36), (2, 42)], [(2, 37), (2, 41)]),
])  # fmt: skip
def test_a_span_is_intervals_with_both_ends(
    text: str, inside: list[tuple[int, int]], outside: list[tuple[int, int]]
) -> None:
    found = span(text)
    assert all(version in found for version in inside)
    assert not any(version in found for version in outside)


def test_versions_are_numbers_not_texts() -> None:
    assert (2, 10) in span("2.9")
    assert (2, 9) not in span("2.10")


def test_a_span_shows_itself() -> None:
    assert str(span("2.32-2.32, 2.42-")) == "2.32, 2.42–"
    assert str(span("-2.35")) == "–2.35"
    assert (span("2.3").first, span("2.3").last) == ((2, 3), None)


def test_between_nothing_is_always() -> None:
    assert between(None, None) is ALWAYS
    assert (1, 0) in ALWAYS


def test_a_value_that_changes_is_the_newest_that_has_begun() -> None:
    code = Since(200, ("2.2", 201), ("2.10", 202))
    assert [code.at(version) for version in ((2, 1), (2, 2), (2, 9), (2, 10))] == [200, 201, 201, 202]
    assert code.at(None) == 200
    assert code.values() == (200, 201, 202)
    assert at(7, (2, 1)) == 7


NEW, OLD = "HTTP_OPENSTACK_API_VERSION", "HTTP_X_OPENSTACK_NOVA_API_VERSION"


@pytest.mark.parametrize(("headers", "version"), [
    ({}, (2, 1)),
    ({NEW: "compute 2.2"}, (2, 2)),
    ({NEW: "compute latest"}, (2, 104)),
    ({NEW: "compute LATEST"}, (2, 104)),
    ({NEW: "Compute 2.2"}, (2, 2)),
    ({NEW: "volume 3.1, compute 2.2, image 2.9"}, (2, 2)),
    ({NEW: "compute 2.1, compute 2.2"}, (2, 2)),
    ({NEW: "compute 2.2,"}, (2, 2)),
    ({NEW: "  compute   2.2  "}, (2, 2)),
    ({NEW: "volume 3.1"}, (2, 1)),
    ({NEW: "2.2"}, (2, 1)),
    ({NEW: "compute"}, (2, 1)),
    ({NEW: ""}, (2, 1)),
    ({OLD: "2.2"}, (2, 2)),
    ({OLD: "latest"}, (2, 104)),
    ({OLD: "2.1, 2.2"}, (2, 2)),
    ({NEW: "compute 2.2", OLD: "2.104"}, (2, 2)),
    ({NEW: "volume 3.1", OLD: "2.2"}, (2, 2)),
])  # fmt: skip
def test_the_headers_choose(headers: dict[str, str], version: tuple[int, int]) -> None:
    found = Negotiator(COMPUTE).negotiate(headers)
    assert found.error is None
    assert found.version == version
    assert dict(found.headers)["OpenStack-API-Version"] == f"compute {show(version)}"
    assert dict(found.headers)["X-OpenStack-Nova-API-Version"] == show(version)
    assert [value for name, value in found.headers if name == "Vary"] == [
        "OpenStack-API-Version", "X-OpenStack-Nova-API-Version",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["compute 2", "compute 2.01", "compute abc", "compute 2.1 2.2", "compute 2.1.1"])
def test_a_malformed_header_is_refused_without_an_echo(text: str) -> None:
    found = Negotiator(COMPUTE).negotiate({NEW: text})
    assert isinstance(found.error, VersionMalformed)
    assert found.headers == ()
    assert found.error.status == 400


@pytest.mark.parametrize("text", ["2.0", "2.105", "1.1", "3.0", "99999999999.1"])
def test_a_version_out_of_range_is_refused_and_echoed(text: str) -> None:
    found = Negotiator(COMPUTE).negotiate({NEW: f"compute {text}"})
    assert isinstance(found.error, VersionUnsupported)
    assert found.error.status == 406
    assert all(words in found.error.text for words in (text, "2.1", "2.104"))
    assert dict(found.headers)["OpenStack-API-Version"] == f"compute {text}"


def test_a_service_without_an_old_header_reads_and_echoes_only_its_own() -> None:
    found = Negotiator(Versions("placement", {"1.0": "", "1.39": ""})).negotiate({OLD: "1.39"})
    assert found.version == (1, 0)
    assert found.headers == (("OpenStack-API-Version", "placement 1.0"), ("Vary", "OpenStack-API-Version"))


def test_what_many_odd_headers_cost_has_an_end() -> None:
    negotiator = Negotiator(COMPUTE)
    for number in range(3000):
        negotiator.negotiate({NEW: f"compute 2.{number}9x"})
    assert len(negotiator._known) <= 1000

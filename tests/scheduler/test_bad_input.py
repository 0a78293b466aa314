"""Requests, settings and answers that make no sense: each is refused in words, nothing stays claimed, and the log names
the cause once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kilonova.bus.calls import SelectDestinations
from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import FixedToken, NoAnswer, RemoteUnavailable, RestClient
from kilonova.compute import zones
from kilonova.core import ids, json
from kilonova.core.context import Context
from kilonova.core.errors import KilonovaError
from kilonova.core.request_spec import Destination, FlavorSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler import registry, settings
from kilonova.scheduler.plugins import Filter, RequestFilter, Weigher
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import DEFAULT_FILTERS, SchedulerSettings
from tests.scheduler.own_placement import add_host, own_placement
from tests.scheduler.world import Cloud, spec_of

CONTEXT = Context(overwrite=False)


def ask(cloud: Cloud, spec: RequestSpec, client: Any = None, servers: int = 1, **options: Any) -> list[str]:
    made = Scheduler(cloud, client or cloud.placement, SchedulerSettings(**options))
    asked = SelectDestinations(spec, tuple(ids.new_uuid() for _ in range(servers)))
    return [row[0].host for row in made.select_destinations(CONTEXT, asked).selections]


def flavor(**extra_specs: str) -> FlavorSpec:
    named = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return FlavorSpec(id=1, flavorid="1", name="f", memory_mb=512, vcpus=2, root_gb=1, extra_specs=named)


# -- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hints",
    [
        {"query": ["{not json"]},
        {"query": ['{"=": 1}']},
        {"query": ["[3, 4]"]},
        {"query": ['["~", 1, 2]']},
        {"query": [json.dumps(["and"] * 1)[:-1]]},
        {"query": ["[" * 60 + "]" * 60]},
        {"build_near_host_ip": ["nowhere"]},
        {"build_near_host_ip": ["192.0.2.1"], "cidr": ["/ninety"]},
    ],
)
def test_a_hint_that_cannot_be_read_ends_the_request(cloud: Cloud, hints: dict[str, list[str]]) -> None:
    cloud.add_hosts("a")
    with pytest.raises(NoValidHost, match=r"[Hh]int"):
        ask(cloud, spec_of(scheduler_hints=hints), enabled_filters=("JsonFilter", "SimpleCIDRAffinityFilter"))
    assert cloud.placement.consumers == {}


@pytest.mark.parametrize("hint", ["same_host", "different_host"])
@pytest.mark.parametrize("value", [["no uuid"], [""], ["x" * 5000], ["'; DROP TABLE instances; --"]])
def test_a_hint_that_names_no_server_names_none(cloud: Cloud, hint: str, value: list[str]) -> None:
    cloud.add_hosts("a")
    asked = spec_of(scheduler_hints={hint: value})
    if hint == "different_host":
        assert ask(cloud, asked, enabled_filters=("DifferentHostFilter",)) == ["a"]
    else:
        with pytest.raises(NoValidHost):
            ask(cloud, asked, enabled_filters=("SameHostFilter",))


@pytest.mark.parametrize(
    "extra_specs",
    [
        {"resources:VCPU": "many"}, {"resources:VCPU": "-3"}, {"resources:": "1"}, {"resources:NOSUCH": "1"},
        {"trait:HW_CPU_X86_VMX": "perhaps"}, {"group_policy": "whatever"}, {"resources1": "2"},
        {"hw:mem_encryption_model": "rot13"}, {"hw:pmem": " , "}, {"hw:maxphysaddr_mode": "sideways"},
    ],
)  # fmt: skip
def test_an_extra_spec_that_makes_no_sense_is_left_out_and_warned_of(
    cloud: Cloud, extra_specs: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    cloud.add_hosts("a")
    made = FlavorSpec(id=1, flavorid="1", name="f", memory_mb=512, vcpus=2, root_gb=1, extra_specs=extra_specs)
    with caplog.at_level(logging.WARNING):
        assert ask(cloud, spec_of(made)) == ["a"]
    (key,) = extra_specs
    ignored = [line for line in caplog.records if "gnoring" in line.getMessage()]
    assert len(ignored) == (1 if key.startswith(("resources:N", "resources:V", "trait", "group_policy")) else 0)


def test_traits_that_contradict_each_other_find_no_host_and_say_why_once(
    cloud: Cloud, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with own_placement(tmp_path) as client:
        uuid = add_host(cloud, client, "a")
        asked = FlavorSpec(
            id=1, flavorid="1", name="f", memory_mb=512, vcpus=2, root_gb=1,
            extra_specs={"trait:HW_CPU_HYPERTHREADING": "required", "hw:cpu_thread_policy": "isolate"},
        )  # fmt: skip
        with pytest.raises(NoValidHost):
            ask(cloud, spec_of(asked), client)
        assert client.provider_allocations(uuid) == {}
    (line,) = [row for row in caplog.records if row.levelno >= logging.ERROR]
    assert "HW_CPU_HYPERTHREADING" in line.getMessage()


@pytest.mark.parametrize(
    "asked",
    [
        {"force_hosts": ("nowhere",)}, {"force_nodes": ("nowhere",)}, {"force_hosts": ("a",), "force_nodes": ("b",)},
        {"requested_destination": Destination(host="nowhere")},
        {"requested_destination": Destination(cell="nowhere")},
    ],
)  # fmt: skip
def test_hosts_and_cells_that_are_not_there_find_no_host(cloud: Cloud, asked: dict[str, Any]) -> None:
    cloud.add_hosts("a", "b")
    with pytest.raises(NoValidHost):
        ask(cloud, spec_of(**asked))
    assert cloud.placement.puts == 0


@pytest.mark.parametrize("zone", ["a:b:c:d", "a:::", "::::"])
def test_a_zone_with_too_many_colons_is_refused_before_anything_else(zone: str) -> None:
    with pytest.raises(zones.ZoneInvalid, match="Invalid availability_zone format"):
        zones.resolve(None, zone, None, None, may_force=True)  # type: ignore[arg-type]


def test_without_hosts_there_is_no_host(cloud: Cloud) -> None:
    with pytest.raises(NoValidHost):
        ask(cloud, spec_of(), servers=3)


def test_with_all_cells_down_there_is_no_host_and_each_is_warned_of_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cloud.add_hosts("a")
    monkeypatch.setattr(cloud, "database", lambda name: 1 / 0)
    with pytest.raises(NoValidHost):
        ask(cloud, spec_of())
    assert cloud.placement.puts == 0
    assert any("Failed to get the computes of cell" in line.getMessage() for line in caplog.records)


# -- settings --------------------------------------------------------------------------------------------------------


def test_ratios_that_are_no_ratios_are_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    found = settings.ratios("[metrics] weight_setting", ["load=-1.5", "heat", "noise=loud", " x = 2 "])
    assert found == (("load", -1.5), ("x", 2.0))
    ignored = [line.getMessage().split(" in ")[0] for line in caplog.records]
    assert ignored == ["Ignoring 'heat'", "Ignoring 'noise=loud'"]


# -- plug-ins that fail ----------------------------------------------------------------------------------------------


def _raises(*_: object) -> Any:
    raise ZeroDivisionError("by accident")


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("Filter Odd", lambda m: m.setattr(registry, "FILTERS", {**registry.FILTERS, "Odd": Filter("Odd", _raises)})),
        ("Filter Odd", lambda m: m.setattr(
            registry, "FILTERS", {**registry.FILTERS, "Odd": Filter("Odd", lambda _request: _raises)})),
        ("Weigher Odd", lambda m: m.setattr(registry, "WEIGHERS", {"Odd": Weigher("Odd", _raises, 1.0)})),
        ("Request filter Odd", lambda m: m.setattr(
            registry, "REQUEST_FILTERS", (RequestFilter("Odd", lambda _settings: True, _raises),))),
    ],
)  # fmt: skip
def test_a_plugin_that_fails_ends_its_request_and_is_named_in_the_log_once(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str,
    patch: Callable[[pytest.MonkeyPatch], None],
) -> None:  # fmt: skip
    cloud.add_hosts("a", "b")
    patch(monkeypatch)
    names = ("Odd",) if kind == "Filter Odd" else DEFAULT_FILTERS
    with pytest.raises(NoValidHost, match=f"{kind} failed"):
        ask(cloud, spec_of(), enabled_filters=names)
    assert cloud.placement.puts == 0
    (line,) = [row for row in caplog.records if row.levelno >= logging.ERROR]
    assert line.getMessage() == f"{kind} failed"
    assert line.exc_info


# -- answers of Placement --------------------------------------------------------------------------------------------

Answer = tuple[int, dict[str, str], bytes]
CONFLICT = json.dumps({"errors": [{"status": 409, "code": "placement.concurrent_update", "detail": "generation"}]})
FULL = json.dumps({"errors": [{"status": 409, "code": "placement.undefined_code", "detail": "no capacity"}]})


class Wire:
    """Placement's answers before they reach the client: some are replaced. broken: (method, path) to what comes."""

    def __init__(self, inner: Any, broken: Callable[[str, str], Answer | Exception | None]) -> None:
        self._inner, self._broken = inner, broken

    def send(self, method: str, url: str, headers: Mapping[str, str], body: Any) -> Answer:
        found = self._broken(method, url)
        if isinstance(found, Exception):
            raise found
        if found is not None:
            return found
        answer: Answer = self._inner.send(method, url, headers, body)
        return answer


@pytest.fixture
def wired(cloud: Cloud, tmp_path: Path) -> Iterator[Callable[[Callable[[str, str], Any]], HttpPlacement]]:
    """Two hosts, and a client whose answers a test may break."""
    with own_placement(tmp_path) as client:
        for name in ("a", "b"):
            add_host(cloud, client, name)

        def made(broken: Callable[[str, str], Any]) -> HttpPlacement:
            wire: Any = Wire(client._rest._transport, broken)
            return HttpPlacement(
                RestClient("placement", "http://here", wire, FixedToken("t"), microversion="placement")
            )

        yield made
        for name in ("a", "b"):
            assert client.provider_allocations(cloud.uuid_of(name)) == {}, "what failed left something claimed"


GARBAGE = (
    (200, {}, b"<html>Gateway</html>"), (200, {}, b""), (200, {}, b'{"allocation_requests": 3}'), (200, {}, b"[]"),
    (200, {}, b'{"allocation_requests": [{}], "provider_summaries": {}}'),
    (200, {}, b'{"allocation_requests": [[1]], "provider_summaries": {"x": []}}'),
    (500, {}, b"boom"), (502, {}, b"<html/>"), (503, {}, b""), (400, {}, b'{"errors": "odd"}'), (404, {}, b"{}"),
)  # fmt: skip


@pytest.mark.parametrize("answer", GARBAGE, ids=lambda answer: f"{answer[0]}-{answer[2][:20]!r}")
def test_an_answer_of_placement_that_cannot_be_used_is_no_valid_host(
    cloud: Cloud, wired: Any, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    client = wired(lambda method, url: answer if "allocation_candidates" in url else None)
    with pytest.raises(NoValidHost):
        ask(cloud, spec_of(), client)
    assert len([row for row in caplog.records if row.levelno >= logging.ERROR]) == 1


def test_a_placement_that_does_not_answer_is_unavailable_and_the_conductor_asks_again(
    cloud: Cloud, wired: Any
) -> None:
    client = wired(lambda method, url: NoAnswer("timed out") if "allocation_candidates" in url else None)
    with pytest.raises(RemoteUnavailable, match="timed out"):
        ask(cloud, spec_of(), client)


@pytest.mark.parametrize(("status", "body"), [(500, b"boom"), (409, FULL), (503, b""), (404, b"{}")])
@pytest.mark.parametrize("servers", [1, 3])
def test_a_claim_that_is_refused_everywhere_is_no_valid_host(
    cloud: Cloud, wired: Any, status: int, body: bytes, servers: int
) -> None:
    client = wired(lambda method, url: (status, {}, body) if method in ("PUT", "POST") else None)
    with pytest.raises(KilonovaError):
        ask(cloud, spec_of(num_instances=servers), client, servers)


def test_a_provider_that_changes_under_the_claim_is_tried_again_and_then_given_up(
    cloud: Cloud, wired: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kilonova.clients.placement.clock.sleep", lambda _seconds: None)
    puts: list[str] = []

    def contended(method: str, url: str) -> Answer | None:
        if method != "PUT":
            return None
        puts.append(url)
        return 409, {}, CONFLICT

    with pytest.raises(NoValidHost):
        ask(cloud, spec_of(), wired(contended))
    assert len(puts) == 8, "four times for each host"
    assert caplog.text.count("out of retries") == 2


def test_a_failure_of_giving_back_does_not_hide_the_first_one(
    cloud: Cloud, wired: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def broken(method: str, url: str) -> Answer | Exception | None:
        calls.append(method)
        if method == "POST":
            return 409, {}, FULL
        if method == "PUT" and calls.count("PUT") > 1:
            return NoAnswer("gone")
        return (500, {}, b"boom") if method == "DELETE" and calls.count("DELETE") == 2 else None

    with pytest.raises(RemoteUnavailable, match="gone"):
        ask(cloud, spec_of(num_instances=2), wired(broken), 2)
    assert calls.count("DELETE") == 2

"""The stages by name: targets, destinations, ignored and forced hosts, and the words of a failure."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kilonova.core.request_spec import Destination
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.filters import compute_filter
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Filter
from kilonova.scheduler.stages import narrow, no_valid_host, run_filters, target_nodes
from kilonova.scheduler.trace import REASONS, FilterResult, Trace
from kilonova.scheduler.verdict import PASS, fail
from tests.scheduler.states import request, row, state

STATES = [state(name) for name in ("Alpha", "beta", "gamma")]


def trace_of(states: list[HostState]) -> Trace:
    return Trace(None, ("s",), None, candidates=len(states), hosts=tuple(s.host for s in states),
                 dropped_by=bytearray(len(states)))  # fmt: skip


def narrowed(**asked: Any) -> tuple[list[str], bool]:
    kept, forced = narrow(request(**asked), STATES, [0, 1, 2], trace_of(STATES))
    return [STATES[index].host for index in kept], forced


@pytest.mark.parametrize(
    ("asked", "kept", "skips_filters"),
    [
        ({}, ["Alpha", "beta", "gamma"], False),
        ({"ignore_hosts": ("ALPHA", "nosuch")}, ["beta", "gamma"], False),  # any case
        ({"ignore_hosts": ("alpha", "beta", "gamma")}, [], False),
        ({"force_hosts": ("alpha",)}, ["Alpha"], True),
        ({"force_hosts": ("nosuch",)}, [], True),
        ({"force_nodes": ("beta.node",)}, ["beta"], True),
        ({"force_nodes": ("BETA.node",)}, [], True),  # a node's name is exact
        ({"force_hosts": ("beta",), "force_nodes": ("gamma.node",)}, [], True),
        ({"requested_destination": Destination(host="GAMMA")}, ["gamma"], False),
        ({"requested_destination": Destination(node="gamma.node")}, ["gamma"], False),
        ({"requested_destination": Destination(host="gamma", node="beta.node")}, [], False),
        ({"requested_destination": Destination(cell="cell")}, ["Alpha", "beta", "gamma"], False),
        ({"requested_destination": Destination(host="gamma"), "ignore_hosts": ("gamma",)}, [], False),
    ],
)
def test_hosts_are_narrowed_by_name(asked: dict[str, Any], kept: list[str], skips_filters: bool) -> None:
    assert narrowed(**asked) == (kept, skips_filters)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"ignore_hosts": ("alpha",)}, "ignoring hosts"),
        ({"force_hosts": ("alpha",)}, "forcing available hosts to"),
        ({"force_hosts": ("nosuch",)}, "No hosts matched"),
        ({"requested_destination": Destination(host="beta")}, "only checking host"),
        ({"requested_destination": Destination(host="nosuch")}, "not matching requested destination"),
    ],
)
def test_each_decision_by_name_is_an_info_line(
    asked: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        narrowed(**asked)
    assert [words in line.getMessage() for line in caplog.records] == [True]


HOSTS = (row("a", cell_uuid="one"), row("b", cell_uuid="two"), row("b2", node="b.node", cell_uuid="one"))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, []),
        ({"force_hosts": ("A",)}, ["a"]),
        ({"force_nodes": ("a.node",)}, ["a"]),
        ({"requested_destination": Destination(node="b.node")}, ["b", "b2"]),
        ({"requested_destination": Destination(node="b.node", cell="one")}, ["b2"]),
        ({"requested_destination": Destination(node="b.node", cell="one", allow_cross_cell_move=True)}, ["b", "b2"]),
        ({"requested_destination": Destination(host="a"), "force_hosts": ("b",)}, ["a"]),
        ({"requested_destination": Destination(cell="one")}, []),
    ],
)
def test_the_hypervisors_a_request_names_are_looked_up(asked: dict[str, Any], found: list[str]) -> None:
    made = request(hosts=HOSTS, **asked)
    assert [row.host for row in target_nodes(made.spec, made.snapshot)] == found


@pytest.mark.parametrize(
    "asked",
    [
        {"force_hosts": ("nosuch",)},
        {"force_nodes": ("A.node",)},
        {"force_hosts": ("a",), "force_nodes": ("b.node",)},
        {"requested_destination": Destination(host="a", cell="two")},
    ],
)
def test_a_host_that_is_named_and_not_there_is_said_so(asked: dict[str, Any]) -> None:
    made = request(hosts=HOSTS, **asked)
    with pytest.raises(NoValidHost, match=r"No valid host was found\. No such host - host: .* node: .*"):
        target_nodes(made.spec, made.snapshot)


def refusing(name: str, *hosts: str) -> Filter:
    return Filter(name, lambda _request: lambda s: fail("{} is out", s.host) if s.host in hosts else PASS)


def test_each_filter_sees_the_survivors_of_the_one_before_and_the_first_empty_one_ends_the_chain() -> None:
    asked: list[str] = []

    def watching(_request: object) -> Any:
        return lambda s: asked.append(s.host) or PASS

    rows = [refusing("First", "Alpha"), Filter("Watch", watching), refusing("Last", "beta", "gamma"),
            refusing("Never")]  # fmt: skip
    trace = trace_of(STATES)
    assert run_filters(rows, request(), STATES, [2, 1, 0], trace) == []
    assert asked == ["gamma", "beta"]
    assert [(row.name, row.before, row.after) for row in trace.filters] == [
        ("First", 3, 2), ("Watch", 2, 2), ("Last", 2, 0)
    ]  # fmt: skip
    assert list(trace.dropped_by) == [1, 3, 3]


def test_filters_keep_the_order_of_the_hosts() -> None:
    rows = [refusing("First", "beta")]
    assert run_filters(rows, request(), STATES, [2, 1, 0], trace_of(STATES)) == [2, 0]


def test_the_culprit_is_logged_by_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        run_filters([refusing("Picky", "Alpha", "beta", "gamma")], request(), STATES, [0, 1, 2], trace_of(STATES))
    first, second = (line.getMessage() for line in caplog.records)
    assert first == "[instance: server] Filter Picky returned 0 hosts"
    assert second.startswith("Filtering removed all hosts for the request with instance ID 'server'. Filter results:")
    assert "Picky: (start: 3, end: 0)" in second


def test_reasons_are_kept_for_the_first_hosts_only() -> None:
    states = [state(f"h{n}", alive=False) for n in range(REASONS + 5)]
    trace = trace_of(states)
    run_filters([compute_filter.FILTER], request(), states, list(range(len(states))), trace)
    assert len(trace.filters[0].reasons) == REASONS
    assert set(trace.dropped_by) == {1}


def short(trace: Trace, wanted: int, got: int) -> str:
    error = no_valid_host(trace, wanted, got)
    assert str(error) == "No valid host was found. There are not enough hosts available."
    return str(error.details["explanation"])


def test_the_short_form_of_a_failure_names_the_stage_and_everybody_hears_no_more_than_that_there_is_no_host() -> None:
    assert short(Trace(None, (), None), 1, 0).startswith("Candidates: Placement could not answer")
    assert "no host has reported itself" in short(Trace(None, (), None, shortage=FilterResult("Placement", 0, 0)), 1, 0)
    assert short(Trace(None, (), None, candidates=3), 1, 0).startswith("Host states: no compute service is known")
    filtered = trace_of(STATES)
    run_filters([refusing("Picky", "Alpha", "beta", "gamma")], request(), STATES, [0, 1, 2], filtered)
    assert short(filtered, 1, 0) == (
        "Filters: Picky left none of 3 hosts. 3 hosts: Alpha, beta, gamma is out. "
        "The nearest miss is Alpha: Alpha is out."
    )
    assert short(trace_of(STATES), 5, 2) == (
        "2 of 5 servers found a host. Claim: none of 3 hosts has room for one more."
    )
    assert "taken by somebody else" in short(trace_of(STATES), 1, 0)

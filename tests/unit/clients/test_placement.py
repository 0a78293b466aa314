"""The rules of the claim (scheduler facts, "Claim") and the reading of generations."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.clients.placement import (
    AllocationRefused,
    ConsumerConflict,
    HttpPlacement,
    ProviderConflict,
    ProviderNotFound,
    ProviderSummary,
    ProviderUsage,
)
from kilonova.clients.rest import NoAnswer, RemoteUnavailable
from kilonova.core import clock, json
from tests.unit.clients.scripted import Scripted, rest

REQUEST = {"allocations": {"rp1": {"resources": {"VCPU": 1}}}, "mappings": {"": ["rp1"]}}
RACE = {"errors": [{"code": "placement.concurrent_update", "detail": "Provider changed, try again"}]}
CONSUMER = {"errors": [{"code": "placement.concurrent_update", "detail": "consumer generation conflict - expected 1"}]}
FULL = {"errors": [{"code": "placement.undefined_code", "detail": "Unable to allocate"}]}


class Naps(clock.SystemClock):
    """A clock that notes sleeps and does not sleep."""

    def __init__(self) -> None:
        self.naps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)


@pytest.fixture
def naps() -> Any:
    ours = Naps()
    before = clock.install(ours)
    yield ours.naps
    clock.install(before)


def claim(transport: Scripted, **options: Any) -> bool:
    return HttpPlacement(rest(transport)).claim("c1", REQUEST, "p", "u", **options)


def test_a_claim_puts_the_candidate_for_a_consumer_that_must_not_exist() -> None:
    transport = Scripted((204, b""))
    assert claim(transport) is True
    assert transport.lines == ["PUT /allocations/c1"]
    assert transport.bodies == [REQUEST | {"project_id": "p", "user_id": "u", "consumer_generation": None}]
    assert transport.asked[0][2]["OpenStack-API-Version"] == "thing 1.36"


def test_a_provider_that_changed_is_tried_again_at_most_four_times(naps: list[float]) -> None:
    transport = Scripted((409, RACE), (409, RACE), (409, RACE), (204, b""))
    assert claim(transport) is True
    assert len(transport.asked) == 4
    assert naps[0] == 0
    assert all(nap <= 2 * number for number, nap in enumerate(naps))


def test_a_provider_that_keeps_changing_gives_the_host_up(naps: list[float]) -> None:
    transport = Scripted(*[(409, RACE)] * 4)
    assert claim(transport) is False
    assert len(transport.asked) == 4


def test_a_consumer_that_changed_is_an_error_and_never_tried_again() -> None:
    transport = Scripted((409, CONSUMER))
    with pytest.raises(ConsumerConflict):
        claim(transport)
    assert len(transport.asked) == 1


def test_no_room_gives_the_host_up_without_another_try(caplog: pytest.LogCaptureFixture) -> None:
    assert claim(Scripted((409, FULL))) is False
    assert "Failed to save allocation for c1. Got HTTP 409" in caplog.text


def test_an_unreachable_placement_is_not_a_full_host() -> None:
    with pytest.raises(RemoteUnavailable):
        claim(Scripted(NoAnswer))


def test_a_merged_claim_keeps_what_the_consumer_holds_with_its_generation() -> None:
    held = {"allocations": {"rp0": {"generation": 3, "resources": {"VCPU": 2}}}, "consumer_generation": 7}
    transport = Scripted((200, held), (204, b""))
    assert claim(transport, merge=True) is True
    sent = transport.bodies[1]
    assert sent["allocations"] == {"rp1": {"resources": {"VCPU": 1}}, "rp0": {"resources": {"VCPU": 2}}}
    assert sent["consumer_generation"] == 7


def test_a_merged_claim_of_a_new_consumer_is_a_plain_one() -> None:
    transport = Scripted((200, {"allocations": {}}), (204, b""))
    assert claim(transport, merge=True) is True
    assert transport.bodies[1]["consumer_generation"] is None


def test_a_refused_query_is_no_candidates_at_all() -> None:
    assert HttpPlacement(rest(Scripted((400, FULL)))).allocation_candidates("resources=X:1") is None


def test_an_answer_that_is_none_is_no_candidates_at_all() -> None:
    assert HttpPlacement(rest(Scripted((200, {"allocation_requests": 3})))).allocation_candidates("limit=1") is None


def test_candidates_come_with_usages_and_requests_as_they_stand_on_the_wire() -> None:
    usage = {"VCPU": {"capacity": 4, "used": 1}}
    summary = {"resources": usage, "traits": ["A"], "parent_provider_uuid": None, "root_provider_uuid": "rp1"}
    transport = Scripted((200, {"allocation_requests": [REQUEST], "provider_summaries": {"rp1": summary}}))
    found = HttpPlacement(rest(transport)).allocation_candidates("resources=VCPU:1&limit=5")
    assert found is not None
    assert [json.loads(bytes(row)) for row in found.allocation_requests] == [REQUEST]
    assert found.provider_summaries == {"rp1": ProviderSummary({"VCPU": ProviderUsage(4, 1)}, "rp1")}
    assert transport.lines == ["GET /allocation_candidates?resources=VCPU:1&limit=5"]


def test_a_new_provider_has_the_generation_of_the_answer() -> None:
    assert HttpPlacement(rest(Scripted((200, {"generation": 5})))).ensure_provider("u", "n") == 5


def test_an_existing_provider_is_read_for_its_generation() -> None:
    transport = Scripted((409, FULL), (200, {"generation": 9}))
    assert HttpPlacement(rest(transport)).ensure_provider("u", "n", parent="p") == 9
    assert transport.lines == ["POST /resource_providers", "GET /resource_providers/u"]


def test_a_name_that_another_provider_has_is_a_conflict() -> None:
    with pytest.raises(ProviderConflict):
        HttpPlacement(rest(Scripted((409, FULL), (404, FULL)))).ensure_provider("u", "n")


def test_writing_inventory_answers_the_new_generation_and_reports_a_stale_one() -> None:
    client = HttpPlacement(rest(Scripted((200, {"resource_provider_generation": 4}), (409, RACE), (404, FULL))))
    assert client.set_inventory("u", {"VCPU": {"total": 1}}, 3) == 4
    with pytest.raises(ProviderConflict):
        client.set_inventory("u", {}, 3)
    with pytest.raises(ProviderNotFound):
        client.set_inventory("u", {}, 3)


def test_deleting_says_whether_there_was_something() -> None:
    client = HttpPlacement(rest(Scripted((204, b""), (404, FULL), (204, b""), (404, FULL))))
    assert [client.delete_allocations("c"), client.delete_allocations("c")] == [True, False]
    assert [client.delete_provider("p"), client.delete_provider("p")] == [True, False]


def test_replacing_allocations_tells_a_changed_consumer_from_no_room() -> None:
    client = HttpPlacement(rest(Scripted((409, CONSUMER), (409, FULL))))
    with pytest.raises(ConsumerConflict):
        client.put_allocations("c", {}, "p", "u", generation=1)
    with pytest.raises(AllocationRefused):
        client.put_allocations("c", {}, "p", "u", generation=1)

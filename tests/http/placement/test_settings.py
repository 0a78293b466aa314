"""The settings of the Placement service change what it answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kilonova.conf import placement_api
from kilonova.core import ids
from kilonova.placement.app import make_app
from kilonova.placement.store.claims import Incomplete
from kilonova.placement.world import Settings, settings
from tests.http.placement.conftest import Client


def _with(client: Client, made: Settings) -> Client:
    return replace(client, app=make_app(client.app.service.world.database, made))


def test_the_options_make_the_settings() -> None:
    group = type("Group", (), {option.dest: option.default for option in placement_api.OPTS})
    assert settings(group) == Settings(breadth=False)


@pytest.mark.parametrize(("cap", "limit", "count"), [(2, "", 2), (2, "&limit=1", 1), (2, "&limit=9", 2), (-1, "", 5)])
def test_candidates_are_capped(client: Client, cap: int, limit: str, count: int) -> None:
    for n in range(5):
        client.provider(f"host{n}", VCPU=1)
    found = _with(client, Settings(max_candidates=cap))("GET", f"/allocation_candidates?resources=VCPU:1{limit}")
    assert len(found.json["allocation_requests"]) == count


def test_random_candidates_are_a_choice_of_all(client: Client) -> None:
    for n in range(20):
        client.provider(f"host{n}", VCPU=1)
    chosen = _with(client, Settings(randomize=True))
    seen = {chosen("GET", "/allocation_candidates?resources=VCPU:1&limit=3").body for _ in range(8)}
    assert len(seen) > 1


def test_an_owner_that_is_not_named_is_the_configured_one(client: Client) -> None:
    host, consumer = client.provider("host", VCPU=1), ids.new_uuid()
    other = _with(client, Settings(incomplete=Incomplete("nobody-project", "nobody-user")))
    body = {"allocations": [{"resource_provider": {"uuid": host}, "resources": {"VCPU": 1}}]}
    assert other.at("1.0")("PUT", f"/allocations/{consumer}", body).status == 204
    shown = client("GET", f"/allocations/{consumer}").json
    assert (shown["project_id"], shown["user_id"]) == ("nobody-project", "nobody-user")

"""What Placement tells of its work at /metrics and in its access line."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.core import ids
from kilonova.placement.api import candidate_query
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database
from kilonova.wiring.placement import placement_app
from tests.http.placement.conftest import Client, Reply, allocation
from tests.unit.core.test_metrics import values

Samples = dict[tuple[str, str], float]
CANDIDATES = "/allocation_candidates?resources=VCPU:1"


class Service(Client):
    """A service whose every request is its administrator's."""

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        return super().__call__(method, path, body, X_AUTH_TOKEN="admin", **headers)

    def numbers(self) -> Samples:
        """Placement's, without the start of their names."""
        found = values(self.nobody()("GET", "/metrics").body.decode())
        return {(name.removeprefix("kilonova_placement_"), what): value for (name, what), value in found.items()}


Make = Callable[..., Service]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/placement.db")
    prepare(made)
    yield made
    made.dispose()


@pytest.fixture
def make(tmp_path: Path, database: Database) -> Make:
    """Makes a service as a configuration file says."""

    def service(text: str = "") -> Service:
        path = tmp_path / "kilonova.conf"
        path.write_text("[api]\nauth_strategy = noauth2\n" + text)
        return Service(_at_root(placement_app(load([path], application="placement", warn=False), database)), who=None)

    return service


def _at_root(app: Any) -> Any:
    return lambda environ, start_response: app(environ | {"SCRIPT_NAME": ""}, start_response)


@pytest.fixture
def service(make: Make) -> Service:
    return make()


def test_metrics_need_no_token_and_the_rest_does(service: Service) -> None:
    stranger = Client(service.app, who=None)
    answer = stranger("GET", "/metrics", HTTP_ACCEPT="text/plain")
    assert (answer.status, stranger("GET", "/traits").status) == (200, 401)
    assert answer.headers["content-type"].startswith("text/plain; version=")


def test_metrics_that_are_turned_off_are_an_unknown_path(make: Make) -> None:
    assert make("[prometheus]\nenabled = false\n")("GET", "/metrics").status == 404


def test_requests_are_counted_by_route(service: Service) -> None:
    uuid = service.provider("one", VCPU=4)
    service("GET", f"/resource_providers/{uuid}")
    service("GET", f"/resource_providers/{ids.new_uuid()}")
    numbers = service.numbers()
    of = "GET /resource_providers/{uuid} placement"
    assert numbers["kilonova_http_request_seconds_count", f"{of} 2xx"] == 1
    assert numbers["kilonova_http_request_seconds_count", f"{of} 4xx"] == 1
    assert not any(uuid in what for _, what in numbers)


def short_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches end at once: the built-in bound takes a second to reach."""
    read = candidate_query.read
    monkeypatch.setattr(candidate_query, "read", lambda req, names: replace(read(req, names), steps=-1))


def test_searches_are_counted_with_what_they_found_and_whether_they_were_cut(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        root = service.provider(name)
        for child in ("x", "y"):
            service.provider(f"{name}{child}", root, VCPU=8)
    assert len(service("GET", CANDIDATES).json["allocation_requests"]) == 4
    before = service.numbers()
    assert (before["candidates_count", ""], before["candidates_sum", ""]) == (1, 4)
    assert before["candidate_search_seconds_count", ""] == 1
    assert before["candidate_searches_cut_total", ""] == 0
    short_of_work(monkeypatch)
    service("GET", CANDIDATES)
    assert service.numbers()["candidate_searches_cut_total", ""] == 1


def test_claims_and_what_they_meet_are_counted_by_kind(service: Service) -> None:
    uuid, consumer = service.provider("one", VCPU=4), ids.new_uuid()
    assert service.claim(consumer, None, **{uuid: {"VCPU": 3}}).status == 204
    assert service.claim(consumer, None, **{uuid: {"VCPU": 3}}).status == 409  # it exists by now
    assert service.claim(ids.new_uuid(), None, **{uuid: {"VCPU": 2}}).status == 409
    stale = {"inventories": {}, "resource_provider_generation": 77}
    assert service("PUT", f"/resource_providers/{uuid}/inventories", stale).status == 409
    numbers = service.numbers()
    assert numbers["claims_total", ""] == 1
    conflicts = {what: n for (name, what), n in numbers.items() if name == "write_conflicts_total"}
    conflicts.pop("race", None)  # nobody hears of those
    assert conflicts == {"consumer": 1, "no_room": 1, "provider": 1}


def test_a_claim_of_several_consumers_counts_each(service: Service) -> None:
    uuid = service.provider("one", VCPU=4)
    body = {ids.new_uuid(): allocation({uuid: {"VCPU": 1}}) for _ in range(3)}
    assert service("POST", "/allocations", body).status == 204
    assert service.numbers()["claims_total", ""] == 3


def test_the_snapshot_is_told_as_the_last_request_left_it(service: Service) -> None:
    assert service.numbers()["snapshot_providers", ""] == 0
    uuid = service.provider("one", VCPU=4)
    service.provider("two", VCPU=4)
    service.claim(ids.new_uuid(), None, **{uuid: {"VCPU": 1}})
    service("GET", CANDIDATES)
    first = service.numbers()
    service.claim(ids.new_uuid(), None, **{uuid: {"VCPU": 1}})
    service.claim(ids.new_uuid(), None, **{uuid: {"VCPU": 1}})
    service("GET", CANDIDATES)
    second = service.numbers()
    assert (first["snapshot_providers", ""], second["snapshot_providers", ""]) == (2, 2)
    assert second["snapshot_rows", ""] >= 2
    assert second["snapshot_bytes", ""] > 0
    assert second["snapshot_revisions_behind", ""] == 2
    applied = ("snapshot_refresh_seconds_count", "applied")
    assert second[applied] == first[applied] + 1
    assert second["snapshot_looked_timestamp_seconds", ""] >= first["snapshot_looked_timestamp_seconds", ""] > 1e9


def test_the_line_of_a_search_has_what_came_of_it(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = service.provider("root")
    for name in ("a", "b"):
        service.provider(name, root, VCPU=8)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="kilonova.access"):
        service("GET", CANDIDATES)
        short_of_work(monkeypatch)
        service("GET", CANDIDATES)
        service("GET", "/traits")
    whole, cut, other = (record.getMessage() for record in caplog.records if record.name == "kilonova.access")
    assert " microversion: 1.39 time: 0." in whole
    assert re.search(r" candidates: 2 cut: False revision: [1-9][0-9]*$", whole)
    assert " cut: True revision: " in cut
    assert "candidates:" not in other

"""The tracker against our Placement through the client that production uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import AgentState
from kilonova.agent.tracker import Tracker
from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import FixedToken, RestClient
from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.http.transport import WsgiTransport
from kilonova.placement.app import make_app
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database
from kilonova.virt.simulated import SimulatedDriver


class Counting:
    """The Placement application behind its authentication; counts what is written."""

    def __init__(self, app: Any) -> None:
        self._app, self.writes = app, 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.writes += environ["REQUEST_METHOD"] != "GET"
        environ["SCRIPT_NAME"] = "/placement"
        environ["kilonova.context"] = Context(
            request_id=ids.new_request_id(), overwrite=False, roles=["admin"], project_id="p", user_id="u"
        )
        return self._app(environ, start_response)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Counting]:
    database = Database(f"sqlite:///{tmp_path}/placement.db")
    prepare(database)
    yield Counting(make_app(database))
    database.dispose()


def client(app: Counting) -> HttpPlacement:
    return HttpPlacement(RestClient("placement", "http://local", WsgiTransport(app), FixedToken("token", None)))


def bring(app: Counting, directory: Path, count: int = 3, disabled: tuple[str, ...] = ()) -> SimulatedDriver:
    """One life of an agent's tracker."""
    driver = SimulatedDriver(str(directory / "guests.db"), hosts=count)
    tracker = Tracker(client(app), driver, AgentState(directory), AgentSettings())
    tracker.set_disabled(driver.hosts(), disabled)
    tracker.start(driver.hosts())
    tracker.update(driver.hosts())
    for _ in range(500):
        if tracker.idle:
            break
        clock.sleep(0.01)
    tracker.stop()
    assert tracker.idle
    return driver


def test_placement_offers_new_hosts_and_a_restart_writes_nothing(app: Counting, tmp_path: Path) -> None:
    driver = bring(app, tmp_path)
    found = client(app).allocation_candidates("resources=VCPU:8,MEMORY_MB:16384,DISK_GB:160&required=COMPUTE_NODE")
    assert found is not None
    assert set(found.provider_summaries) == {driver.facts(host).uuid for host in driver.hosts()}
    assert app.writes == 9
    bring(app, tmp_path)
    assert app.writes == 9


def test_an_agent_that_lost_its_memory_finds_its_providers_and_keeps_what_others_set(
    app: Counting, tmp_path: Path
) -> None:
    uuid = bring(app, tmp_path, 1).facts("sim-0001").uuid
    placement = client(app)
    placement.ensure_trait("CUSTOM_FAST")
    names, generation = placement.traits(uuid)
    placement.set_traits(uuid, [*names, "CUSTOM_FAST"], generation)
    for path in tmp_path.glob("agent.db*"):
        path.unlink()
    bring(app, tmp_path, 1, disabled=("sim-0001",))
    assert {"CUSTOM_FAST", "COMPUTE_STATUS_DISABLED", "OWNER_NOVA"} <= set(placement.traits(uuid)[0])
    assert placement.inventory(uuid)[0]["MEMORY_MB"]["reserved"] == 512

"""Two schedulers and eight writers over hosts that are nearly full, with Placement's own store: nothing is oversold,
and no claim is lost.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kilonova.bus.calls import SelectDestinations
from kilonova.clients.placement import HttpPlacement
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.request_spec import FlavorSpec, Selection
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.own_placement import add_host, own_placement
from tests.scheduler.world import Cloud, spec_of

CONTEXT = Context(overwrite=False)
WRITERS = 8
UNIT = FlavorSpec(id=1, flavorid="1", name="unit", memory_mb=512, vcpus=1, root_gb=0)


class Region:
    """Two schedulers over the same databases and the same Placement."""

    def __init__(self, directory: Path, client: HttpPlacement, slots: list[int], **options: float) -> None:
        self.cloud, self.client = Cloud(directory), client
        self.uuids = [
            add_host(self.cloud, client, f"h{number}", memory_mb=UNIT.memory_mb * free, vcpus=64)
            for number, free in enumerate(slots)
        ]
        made = SchedulerSettings(**options)  # type: ignore[arg-type]
        self.schedulers = [Scheduler(self.cloud, client, made) for _ in range(2)]

    def ask(self, number: int, servers: int) -> tuple[tuple[str, ...], tuple[tuple[Selection, ...], ...]]:
        """The servers of one request and where they go; nowhere when there is no room."""
        mine = tuple(ids.new_uuid() for _ in range(servers))
        call = SelectDestinations(spec_of(UNIT, num_instances=servers), mine, alternates=False)
        try:
            return mine, self.schedulers[number % 2].select_destinations(CONTEXT, call).selections
        except NoValidHost:
            return mine, ()

    def held(self) -> dict[str, str]:
        """Which server holds room on which provider, by Placement's books."""
        return {consumer: uuid for uuid in self.uuids for consumer in self.client.provider_allocations(uuid)}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    slots=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    requests=st.lists(st.integers(1, 4), min_size=4, max_size=16),
    packing=st.booleans(),
)
def test_what_two_schedulers_promise_is_what_placement_holds_and_no_more(
    tmp_path_factory, slots: list[int], requests: list[int], packing: bool  # type: ignore[no-untyped-def]
) -> None:
    directory = tmp_path_factory.mktemp("region")
    with own_placement(directory) as client:
        region = Region(directory, client, slots, ram_weight_multiplier=-1.0 if packing else 1.0)
        try:
            with ThreadPoolExecutor(WRITERS) as threads:
                answers = list(threads.map(region.ask, range(len(requests)), requests))
            promised = {
                server: row[0].provider_uuid for mine, rows in answers for server, row in zip(mine, rows, strict=False)
            }
            assert region.held() == promised
            taken = Counter(promised.values())
            assert all(taken[uuid] <= free for uuid, free in zip(region.uuids, slots, strict=True))
        finally:
            region.cloud.close()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(slots=st.lists(st.integers(1, 3), min_size=1, max_size=6), more=st.integers(-3, 6))
def test_single_servers_fill_the_last_slot_and_only_those_without_one_are_refused(
    tmp_path_factory, slots: list[int], more: int  # type: ignore[no-untyped-def]
) -> None:
    directory = tmp_path_factory.mktemp("region")
    wanted = max(1, sum(slots) + more)
    with own_placement(directory) as client:
        region = Region(directory, client, slots)
        try:
            with ThreadPoolExecutor(WRITERS) as threads:
                answers = list(threads.map(region.ask, range(wanted), [1] * wanted))
            assert sum(len(rows) for _, rows in answers) == min(wanted, sum(slots))
        finally:
            region.cloud.close()

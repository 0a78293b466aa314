"""A dry run: the pipeline as it is, over a Placement whose claims are counted in memory and reach nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kilonova.clients.placement import AllocationRefused
from kilonova.clients.placement import Candidates as Answer
from kilonova.core.errors import KilonovaError
from kilonova.scheduler import pipeline
from kilonova.scheduler.claim import PlacementClient
from kilonova.scheduler.pipeline import Moment, Pipeline
from kilonova.scheduler.request import Request
from kilonova.scheduler.trace import Trace, note_failure

VERSION = "1.36"


class DryPlacement:
    """Candidates come from a real Placement; what is claimed of them is subtracted here. answers: as they came."""

    def __init__(self, client: PlacementClient) -> None:
        self._client = client
        self._room: dict[tuple[str, str], int] = {}
        self.answers: list[Answer] = []

    def allocation_candidates(self, query: str, version: str = VERSION) -> Answer | None:
        """The real answer."""
        answer = self._client.allocation_candidates(query, version)
        if answer is not None:
            self.answers.append(answer)
            for uuid, summary in answer.provider_summaries.items():
                for name, usage in summary.resources.items():
                    self._room.setdefault((uuid, name), usage.capacity - usage.used)
        return answer

    def claim(
        self, consumer: str, allocation_request: dict[str, Any], project_id: str, user_id: str,
        *, generation: int | None = None, version: str = VERSION, merge: bool = False,
    ) -> bool:  # fmt: skip
        """Whether it would be ours; then the room of the next claim is less."""
        return self.take(amounts(allocation_request))

    def post_allocations(self, body: dict[str, Any], version: str = VERSION) -> None:
        """The same for several servers, all or none."""
        wanted: Counter[tuple[str, str]] = Counter()
        for one in body.values():
            wanted.update(amounts(one))
        if not self.take(wanted):
            raise AllocationRefused(consumer=", ".join(body), reason="there is no room for all of them")

    def allocations(self, consumer: str) -> dict[str, Any]:
        """A server that is thought of holds nothing."""
        return {"allocations": {}}

    def put_allocations(
        self, consumer: str, allocations: dict[str, Any], project_id: str, user_id: str, *, generation: int | None,
        version: str = VERSION,
    ) -> None:  # fmt: skip
        """Nothing was taken that could be restored."""

    def take(self, wanted: Mapping[tuple[str, str], int]) -> bool:
        """Subtract these amounts (by provider and class), if there is room for all of them."""
        if self.lacking(wanted):
            return False
        for key, amount in wanted.items():
            self._room[key] -= amount
        return True

    def delete_allocations(self, consumer: str) -> bool:
        """Nothing was claimed."""
        return True

    def lacking(self, wanted: Mapping[tuple[str, str], int]) -> list[str]:
        """The resource classes of which there is not enough for these amounts, the scarcest first."""
        short = [key for key, amount in wanted.items() if self._room.get(key, 0) < amount]
        return [name for _, name in sorted(short, key=lambda key: self._room.get(key, 0) / wanted[key])]


def amounts(allocation_request: dict[str, Any]) -> dict[tuple[str, str], int]:
    """(provider, resource class) to amount of an allocation request."""
    return {
        (uuid, name): amount
        for uuid, part in allocation_request["allocations"].items()
        for name, amount in part["resources"].items()
    }


def simulate(live: Pipeline, ask: Callable[[], Request], moment: Callable[[], Moment], trace: Trace) -> None:
    """Decide for the servers of the trace; what came of it is in the trace, a refusal too."""
    dry = replace(live, client=DryPlacement(live.client))
    try:
        with trace.timed("request"):
            request = ask()
        pipeline.select_destinations(dry, request, trace.servers, moment(), trace)
    except KilonovaError as error:
        note_failure(trace, error)

"""The one place where the scheduler writes: allocations in Placement, taken for a server and given back on failure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kilonova.clients.placement import Candidates as Answer
from kilonova.core import json
from kilonova.core.errors import KilonovaError
from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.candidates import VERSION, Candidates
from kilonova.scheduler.host_state import HostState

LOG = logging.getLogger(__name__)


class PlacementClient(Protocol):
    """What the scheduler needs of Placement (`clients.placement` has the real one)."""

    def allocation_candidates(self, query: str, version: str = ...) -> Answer | None: ...

    def claim(
        self,
        consumer: str,
        allocation_request: dict[str, Any],
        project_id: str,
        user_id: str,
        *,
        generation: int | None = None,
        version: str = ...,
    ) -> bool: ...

    def delete_allocations(self, consumer: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """A claim that was tried: which server on which host (index in the round's states), and whether it is ours."""

    server: str
    index: int
    host: str
    taken: bool


def claim_first(
    client: PlacementClient,
    spec: RequestSpec,
    server: str,
    order: Sequence[int],
    states: Sequence[HostState],
    candidates: Candidates,
    attempts: list[Attempt],
) -> int | None:
    """Claim for the server on the first host of `order` (indices of `states`) that is to be had; its index, or None.

    What was tried is added to `attempts`. Raises what the client raises: a conflict over the consumer is never
    answered by another host.
    """
    for index in order:
        state = states[index]
        if state.uuid not in candidates:
            LOG.debug("%s has no allocation candidate; it cannot be claimed", state.host)
            continue
        LOG.debug("Attempting to claim resources for server %s on %s", server, state.host)
        request = json.loads(candidates.request(state.uuid))
        taken = client.claim(server, request, spec.project_id, spec.user_id, version=VERSION)
        attempts.append(Attempt(server, index, state.host, taken))
        if taken:
            return index
    LOG.debug("Unable to successfully claim against any host for server %s", server)
    return None


def give_back(client: PlacementClient, servers: Iterable[str]) -> None:
    """Delete what was claimed for these servers. A failure is logged and does not keep the others."""
    servers = list(servers)
    if servers:
        LOG.debug("Cleaning up allocations for %s", servers)
    for server in servers:
        try:
            client.delete_allocations(server)
        except KilonovaError:
            LOG.exception("The allocations of server %s could not be given back", server)

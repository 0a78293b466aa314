"""The one place where the scheduler writes: allocations in Placement, taken for servers and given back on failure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kilonova.clients.placement import AllocationRefused, ConsumerConflict
from kilonova.clients.placement import Candidates as Answer
from kilonova.core import json
from kilonova.core.errors import KilonovaError
from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.candidates import VERSION

LOG = logging.getLogger(__name__)

Doc = dict[str, Any]


class PlacementClient(Protocol):
    """What the scheduler needs of Placement (`clients.placement` has the real one)."""

    def allocation_candidates(self, query: str, version: str = ...) -> Answer | None: ...

    def claim(
        self,
        consumer: str,
        allocation_request: Doc,
        project_id: str,
        user_id: str,
        *,
        generation: int | None = None,
        version: str = ...,
        merge: bool = ...,
    ) -> bool: ...

    def allocations(self, consumer: str) -> Doc: ...

    def put_allocations(
        self, consumer: str, allocations: Doc, project_id: str, user_id: str, *, generation: int | None,
        version: str = ...,
    ) -> None: ...  # fmt: skip

    def post_allocations(self, body: Doc, version: str = ...) -> None: ...

    def delete_allocations(self, consumer: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """A claim that was tried: which server on which host (index in the round's states), and whether it is ours."""

    server: str
    index: int
    host: str
    taken: bool


def release(client: PlacementClient, servers: Iterable[str]) -> None:
    """Delete what these servers hold. A failure is logged and does not keep the others."""
    for server in servers:
        try:
            client.delete_allocations(server)
        except KilonovaError:
            LOG.exception("The allocations of server %s could not be given back", server)


class Claims:
    """What one decision took, and how it is given back.

    beside: the servers may hold something already (they move), which stays beside the claim, and after it.
    """

    def __init__(self, client: PlacementClient, spec: RequestSpec, *, beside: bool = False) -> None:
        self._client, self._spec, self._beside = client, spec, beside
        self._held: dict[str, Doc] = {}
        """What each server held before, by server; an answer that got lost may have claimed as well."""

    def take(self, server: str, request: str) -> bool:
        """Claim one candidate; False when the next host is to be tried.

        ConsumerConflict when somebody else wrote the server's allocations: another host is no answer to that.
        """
        client, spec = self._client, self._spec
        before = client.allocations(server).get("allocations", {}) if self._beside else {}
        self._held[server] = before
        try:
            taken = client.claim(
                server, json.loads(request), spec.project_id, spec.user_id, version=VERSION, merge=self._beside
            )
        except ConsumerConflict:
            LOG.error("AllocationUpdateFailed: the allocations of server %s were changed by somebody else", server)
            del self._held[server]
            raise
        if not taken:
            del self._held[server]
        return taken

    def take_together(self, wanted: Mapping[str, str]) -> bool:
        """Claim a candidate for each of several new servers by one request, all or none; False for none."""
        spec = self._spec
        body = {
            server: json.loads(request)
            | {"project_id": spec.project_id, "user_id": spec.user_id, "consumer_generation": None}
            for server, request in wanted.items()
        }
        self._held.update({server: {} for server in wanted})
        try:
            self._client.post_allocations(body, VERSION)
        except (AllocationRefused, ConsumerConflict) as error:
            LOG.debug("Claiming for %d servers at once was refused, they are tried singly: %s", len(body), error)
            for server in wanted:
                del self._held[server]
            return False
        return True

    def give_back(self) -> None:
        """Undo every claim. A failure is logged and does not keep the others."""
        if self._held:
            LOG.debug("Cleaning up allocations for %s", list(self._held))
        for server, before in self._held.items():
            try:
                self._restore(server, before)
            except KilonovaError:
                LOG.exception("The allocations of server %s could not be given back", server)
        self._held = {}

    def _restore(self, server: str, before: Doc) -> None:
        if not before:
            self._client.delete_allocations(server)
            return
        now = self._client.allocations(server)
        kept = {uuid: {"resources": part["resources"]} for uuid, part in before.items()}
        self._client.put_allocations(
            server, kept, self._spec.project_id, self._spec.user_id, generation=now.get("consumer_generation"),
            version=VERSION,
        )  # fmt: skip

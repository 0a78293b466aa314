"""Placement: where capacity is found and claimed. Rules of the claim: scheduler facts, "Claim".

Only the public API is used, so a real Placement does as well. Generations are read from answers, never assumed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from kilonova.clients.rest import CONCURRENT_UPDATE, Doc, RestClient, explain, failure, query, segment
from kilonova.core import clock, ids
from kilonova.core.errors import Conflict, NotFound

LOG = logging.getLogger(__name__)

DEFAULT_VERSION = "1.36"
CLAIM_TRIES = 4


class ProviderNotFound(NotFound):
    code, message = "provider_not_found", "Resource provider {provider} could not be found."


class ProviderConflict(Conflict):
    code, message = "provider_conflict", "Resource provider {provider} was changed by somebody else: {reason}"


class ConsumerConflict(Conflict):
    code, message = "consumer_conflict", "The allocations of {consumer} were changed by somebody else: {reason}"


class AllocationRefused(Conflict):
    code, message = "allocation_refused", "Placement refused the allocations of {consumer}: {reason}"


class ProviderUsage(msgspec.Struct, frozen=True, gc=False):
    """Capacity of one class on one provider, over-commitment included, and what of it is used."""

    capacity: int
    used: int


class ProviderSummary(msgspec.Struct, frozen=True, gc=False):
    """What the scheduler reads of a provider; traits are skipped unread."""

    resources: dict[str, ProviderUsage] = {}
    root_provider_uuid: str | None = None


class Candidates(msgspec.Struct, frozen=True):
    """What `GET /allocation_candidates` answered. A request stays the JSON it came as: few of them are ever read."""

    allocation_requests: list[msgspec.Raw]
    provider_summaries: dict[str, ProviderSummary]


read_candidates = msgspec.json.Decoder(Candidates).decode
"""Candidates from the body of an answer; msgspec.MsgspecError when it is not one."""


class Placement(Protocol):
    """What the scheduler, the conductor, the agents and the API need of Placement."""

    def allocation_candidates(self, query: str, version: str = DEFAULT_VERSION) -> Candidates | None: ...

    def claim(
        self,
        consumer: str,
        allocation_request: Doc,
        project_id: str,
        user_id: str,
        *,
        generation: int | None = None,
        version: str = DEFAULT_VERSION,
        merge: bool = False,
    ) -> bool: ...

    def allocations(self, consumer: str) -> Doc: ...

    def put_allocations(
        self, consumer: str, allocations: Doc, project_id: str, user_id: str, *, generation: int | None,
        version: str = DEFAULT_VERSION,
    ) -> None: ...  # fmt: skip

    def post_allocations(self, body: Doc, version: str = DEFAULT_VERSION) -> None: ...

    def delete_allocations(self, consumer: str) -> bool: ...

    def provider_allocations(self, uuid: str) -> Doc: ...

    def usages(self, project_id: str, user_id: str | None = None) -> dict[str, int]: ...

    def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> int: ...

    def list_providers(self, **filters: Any) -> list[Doc]: ...

    def show_provider(self, uuid: str) -> Doc: ...

    def delete_provider(self, uuid: str) -> bool: ...

    def inventory(self, uuid: str) -> tuple[Doc, int]: ...

    def set_inventory(self, uuid: str, inventory: Doc, generation: int) -> int: ...

    def traits(self, uuid: str) -> tuple[list[str], int]: ...

    def set_traits(self, uuid: str, traits: Iterable[str], generation: int) -> int: ...

    def ensure_trait(self, name: str) -> None: ...

    def ensure_resource_class(self, name: str) -> None: ...

    def aggregates(self, uuid: str) -> tuple[list[str], int]: ...

    def set_aggregates(self, uuid: str, aggregates: Iterable[str], generation: int) -> int: ...


class HttpPlacement:
    """Placement over its REST API."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def allocation_candidates(self, query: str, version: str = DEFAULT_VERSION) -> Candidates | None:
        """Candidates for a ready query string (without `?`); None when Placement refuses it (logged)."""
        response = self._rest.request("GET", f"/allocation_candidates?{query}", version=version)
        if response.status != 200:
            LOG.error("Placement answered %s to the query %s: %s", response.status, query, explain(response)[1])
            return None
        try:
            return read_candidates(response.body)
        except msgspec.MsgspecError as error:
            LOG.error("Placement's answer to the query %s cannot be read: %s", query, error)
            return None

    def claim(
        self,
        consumer: str,
        allocation_request: Doc,
        project_id: str,
        user_id: str,
        *,
        generation: int | None = None,
        version: str = DEFAULT_VERSION,
        merge: bool = False,
    ) -> bool:
        """Take one candidate for a consumer: True when it is ours, False when the next host should be tried.

        `merge` reads what the consumer holds first and keeps it beside the new providers (evacuation, forced moves);
        otherwise the consumer's set becomes the candidate, compared with `generation` (None: it must not exist).
        A provider that changed under us is tried again, up to four times. ConsumerConflict when somebody else wrote
        this consumer's allocations; RemoteUnavailable when Placement does not answer.
        """
        body = _claim_body(allocation_request, project_id, user_id, generation)

        def attempt() -> tuple[int, str, str]:
            sent = self._merged(consumer, body) if merge else body
            response = self._rest.request("PUT", f"/allocations/{segment(consumer)}", json=sent, version=version)
            return (response.status, *explain(response)) if response.status != 204 else (204, "", "")

        status, kind, reason = _retried(attempt)
        if status == 204:
            return True
        if kind == CONCURRENT_UPDATE:
            if _is_consumer_conflict(reason):
                raise ConsumerConflict(consumer=consumer, reason=reason)
            LOG.error("Failed scheduler client operation claim_resources: out of retries: %s", reason)
        else:
            LOG.warning("Failed to save allocation for %s. Got HTTP %s: %s", consumer, status, reason)
        return False

    def _merged(self, consumer: str, body: Doc) -> Doc:
        current = self.allocations(consumer)
        if not current["allocations"]:
            return body
        kept = {uuid: {"resources": row["resources"]} for uuid, row in current["allocations"].items()}
        return body | {
            "allocations": body["allocations"] | kept,
            "consumer_generation": current.get("consumer_generation"),
        }

    def allocations(self, consumer: str) -> Doc:
        """`{allocations: {provider: {resources}}, project_id, user_id, consumer_generation}`; no allocations: empty."""
        found: Doc = self._rest.call("GET", f"/allocations/{segment(consumer)}", version="1.28")
        return found

    def put_allocations(
        self, consumer: str, allocations: Doc, project_id: str, user_id: str, *, generation: int | None,
        version: str = DEFAULT_VERSION,
    ) -> None:  # fmt: skip
        """Replace the consumer's whole set. ConsumerConflict on another generation, AllocationRefused on no room."""
        body = {
            "allocations": allocations,
            "project_id": project_id,
            "user_id": user_id,
            "consumer_generation": generation,
        }
        self._write("PUT", f"/allocations/{segment(consumer)}", body, version, consumer)

    def post_allocations(self, body: Doc, version: str = DEFAULT_VERSION) -> None:
        """Replace the sets of several consumers, all or none: `{consumer: body of put}`."""
        self._write("POST", "/allocations", body, version, ", ".join(body))

    def _write(self, method: str, path: str, body: Doc, version: str, consumer: str) -> None:
        def attempt() -> tuple[int, str, str]:
            response = self._rest.request(method, path, json=body, version=version)
            if response.status not in (204, 409):
                raise failure("placement", response)
            return (response.status, *explain(response))

        status, kind, reason = _retried(attempt)
        if status == 204:
            return
        if kind == CONCURRENT_UPDATE and _is_consumer_conflict(reason):
            raise ConsumerConflict(consumer=consumer, reason=reason)
        raise AllocationRefused(consumer=consumer, reason=reason)

    def delete_allocations(self, consumer: str) -> bool:
        """Give everything back whatever the generation; False when there was nothing."""

        def attempt() -> tuple[int, str, str]:
            response = self._rest.request("DELETE", f"/allocations/{segment(consumer)}")
            if response.status not in (204, 404, 409):
                raise failure("placement", response)
            return (response.status, *explain(response))

        status, _, reason = _retried(attempt)
        if status == 409:
            raise AllocationRefused(consumer=consumer, reason=reason)
        return status == 204

    def provider_allocations(self, uuid: str) -> Doc:
        """`{consumer: {resources}}` of one provider. ProviderNotFound."""
        path = f"/resource_providers/{segment(uuid)}/allocations"
        found: Doc = self._rest.call("GET", path, errors=_PROVIDER, provider=uuid)
        return dict(found["allocations"])

    def usages(self, project_id: str, user_id: str | None = None) -> dict[str, int]:
        """Sums by resource class over a project, or one user in it."""
        path = "/usages" + query({"project_id": project_id, "user_id": user_id})
        return dict(self._rest.call("GET", path, version="1.9")["usages"])

    def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> int:
        """Make the provider if it is not there; its generation. ProviderConflict when the name is another's."""
        body = {"uuid": uuid, "name": name} | ({"parent_provider_uuid": parent} if parent else {})
        response = self._rest.request("POST", "/resource_providers", json=body, version="1.20")
        if response.status == 200:
            return int(response.json()["generation"])
        if response.status != 409:
            raise failure("placement", response)
        try:
            return int(self.show_provider(uuid)["generation"])
        except ProviderNotFound:
            raise ProviderConflict(provider=name, reason=explain(response)[1]) from None

    def list_providers(self, **filters: Any) -> list[Doc]:
        """Providers; filters as query parameters (`name`, `uuid`, `in_tree`, `member_of`, `resources` …)."""
        found = self._rest.call("GET", "/resource_providers" + query(filters), version=DEFAULT_VERSION)
        return list(found["resource_providers"])

    def show_provider(self, uuid: str) -> Doc:
        """The provider's record. ProviderNotFound."""
        path = f"/resource_providers/{segment(uuid)}"
        found: Doc = self._rest.call("GET", path, version="1.20", errors=_PROVIDER, provider=uuid)
        return found

    def delete_provider(self, uuid: str) -> bool:
        """False when it was not there. ProviderConflict while it has allocations or children."""
        response = self._rest.request("DELETE", f"/resource_providers/{segment(uuid)}")
        if response.status not in (204, 404):
            raise failure("placement", response, _PROVIDER, provider=uuid)
        return response.status == 204

    def inventory(self, uuid: str) -> tuple[Doc, int]:
        """`{class: {total, reserved, …}}` and the provider's generation. ProviderNotFound."""
        body = self._get(uuid, "inventories", "1.14")
        return body["inventories"], body["resource_provider_generation"]

    def set_inventory(self, uuid: str, inventory: Doc, generation: int) -> int:
        """Replace all inventories; the new generation. ProviderConflict: another generation, or a class in use."""
        body = {"inventories": inventory, "resource_provider_generation": generation}
        return self._put(uuid, "inventories", body, "1.14")

    def traits(self, uuid: str) -> tuple[list[str], int]:
        """Trait names and the provider's generation. ProviderNotFound."""
        body = self._get(uuid, "traits", "1.6")
        return body["traits"], body["resource_provider_generation"]

    def set_traits(self, uuid: str, traits: Iterable[str], generation: int) -> int:
        """Replace the traits (custom ones must exist); the new generation."""
        body = {"traits": sorted(traits), "resource_provider_generation": generation}
        return self._put(uuid, "traits", body, "1.6")

    def ensure_trait(self, name: str) -> None:
        """Make a custom trait if it is not there."""
        self._rest.call("PUT", f"/traits/{segment(name)}", version="1.6")

    def ensure_resource_class(self, name: str) -> None:
        """Make a custom resource class if it is not there."""
        self._rest.call("PUT", f"/resource_classes/{segment(name)}", version="1.7")

    def aggregates(self, uuid: str) -> tuple[list[str], int]:
        """Aggregate uuids and the provider's generation. ProviderNotFound."""
        body = self._get(uuid, "aggregates", "1.19")
        return body["aggregates"], body["resource_provider_generation"]

    def set_aggregates(self, uuid: str, aggregates: Iterable[str], generation: int) -> int:
        """Replace the aggregates; the new generation."""
        body = {"aggregates": sorted(aggregates), "resource_provider_generation": generation}
        return self._put(uuid, "aggregates", body, "1.19")

    def _get(self, uuid: str, part: str, version: str) -> Doc:
        path = f"/resource_providers/{segment(uuid)}/{part}"
        body: Doc = self._rest.call("GET", path, version=version, errors=_PROVIDER, provider=uuid)
        return body

    def _put(self, uuid: str, part: str, body: Doc, version: str) -> int:
        path = f"/resource_providers/{segment(uuid)}/{part}"
        answer = self._rest.call("PUT", path, json=body, version=version, errors=_PROVIDER, provider=uuid)
        return int(answer["resource_provider_generation"])


_PROVIDER = {404: ProviderNotFound, 409: ProviderConflict}


def _claim_body(request: Doc, project_id: str, user_id: str, generation: int | None) -> Doc:
    return request | {"project_id": project_id, "user_id": user_id, "consumer_generation": generation}


def _is_consumer_conflict(reason: str) -> bool:
    return "consumer generation" in reason.lower()


def _retried(attempt: Callable[[], tuple[int, str, str]]) -> tuple[int, str, str]:
    """Try while a provider changes under us, at most CLAIM_TRIES times; the last (status, code, reason)."""
    for number in range(CLAIM_TRIES):
        if number:
            clock.sleep(ids.uniform(0, 2 * (number - 1)))
        status, kind, reason = attempt()
        if status != 409 or kind != CONCURRENT_UPDATE or _is_consumer_conflict(reason):
            break
    return status, kind, reason

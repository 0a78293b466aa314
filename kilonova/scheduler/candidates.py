"""Placement's answer as the scheduler reads it: which requests mention a provider, what is used on each root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.clients import placement

VERSION = "1.36"
"""The microversion asked with, kept for the claim of what was found."""


class Candidates:
    """The allocation requests by provider, and the usages by root provider, in the order of the answer."""

    def __init__(self, answer: placement.Candidates) -> None:
        self.requests: dict[str, list[dict[str, Any]]] = {}
        for request in answer.allocation_requests:
            for uuid in request["allocations"]:
                self.requests.setdefault(uuid, []).append(request)
        self.usages: Mapping[str, Mapping[str, Any]] = {
            uuid: summary["resources"]
            for uuid, summary in answer.provider_summaries.items()
            if summary.get("root_provider_uuid", uuid) == uuid
        }

    def __len__(self) -> int:
        return len(self.requests)

    def of(self, provider: str) -> dict[str, Any] | None:
        """The request that a claim on this provider's host uses: the first. None when no request takes from it."""
        found = self.requests.get(provider)
        return found[0] if found else None

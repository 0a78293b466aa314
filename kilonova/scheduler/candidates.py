"""Placement's answer as the scheduler reads it: which requests mention a provider, what is used on each root."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kilonova.clients import placement
from kilonova.clients.placement import ProviderUsage

VERSION = "1.36"
"""The microversion asked with, kept for the claim of what was found."""


class _Providers(msgspec.Struct, gc=False):
    """Of an allocation request, which providers it takes from."""

    allocations: dict[str, msgspec.Raw]


_providers = msgspec.json.Decoder(_Providers).decode


class Candidates:
    """The allocation requests by provider, and the usages by root provider, in the order of the answer."""

    def __init__(self, answer: placement.Candidates) -> None:
        self._requests: dict[str, msgspec.Raw] = {}
        for request in answer.allocation_requests:
            for uuid in _providers(request).allocations:
                self._requests.setdefault(uuid, request)
        self.usages: Mapping[str, Mapping[str, ProviderUsage]] = {
            uuid: summary.resources
            for uuid, summary in answer.provider_summaries.items()
            if summary.root_provider_uuid in (uuid, None)
        }

    def __contains__(self, provider: str) -> bool:
        """Whether a host with this root provider can be claimed: some request takes from it."""
        return provider in self._requests

    def request(self, provider: str) -> str:
        """The request that a claim on this provider's host uses, as JSON: the first. KeyError when there is none."""
        return bytes(self._requests[provider]).decode()

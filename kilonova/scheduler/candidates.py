"""Placement's answer as the scheduler reads it: which requests mention a provider, what is used on each root."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kilonova.clients import placement
from kilonova.clients.placement import ProviderUsage

VERSION = "1.36"
"""The microversion asked with, kept for the claim of what was found."""


class _Providers(msgspec.Struct, gc=False):
    """Of an allocation request, which providers it takes from, and which of them serve which group."""

    allocations: dict[str, msgspec.Raw]
    mappings: dict[str, list[str]] = {}


_providers = msgspec.json.Decoder(_Providers).decode


class Candidates:
    """The allocation requests by provider; usages of all providers and of the roots, in the order of the answer."""

    def __init__(self, answer: placement.Candidates, *, every: bool = False) -> None:
        """every: a provider's further requests matter as well, because they take other devices."""
        self._requests: dict[str, msgspec.Raw] = {}
        self._offers: dict[str, list[msgspec.Raw]] = {}
        for request in answer.allocation_requests:
            for uuid in _providers(request).allocations:
                self._requests.setdefault(uuid, request)
                if every:
                    self._offers.setdefault(uuid, []).append(request)
        self.providers = {uuid: summary.resources for uuid, summary in answer.provider_summaries.items()}
        self.usages: Mapping[str, Mapping[str, ProviderUsage]] = {
            uuid: summary.resources
            for uuid, summary in answer.provider_summaries.items()
            if summary.root_provider_uuid in (uuid, None)
        }

    def __contains__(self, provider: str) -> bool:
        """Whether a host with this root provider can be claimed: some request takes from it."""
        return provider in self._requests

    def request(self, provider: str, offer: int = 0) -> str:
        """The request that a claim on this provider's host uses, as JSON: the first, or that of an offer. KeyError."""
        return bytes(self._offers[provider][offer] if offer else self._requests[provider]).decode()

    def offers(self, provider: str) -> list[Mapping[str, list[str]]]:
        """Of each request of this provider which group is served by whom; empty unless every one matters."""
        return [_providers(request).mappings for request in self._offers.get(provider, ())]

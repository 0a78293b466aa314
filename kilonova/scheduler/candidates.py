"""Placement's answer as the scheduler reads it: which requests mention a provider, what is used on each root.

An answer may name every host there is, so of its requests only the providers' names are read.
"""

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


class _Groups(msgspec.Struct, gc=False):
    """Of an allocation request, which providers serve which group."""

    mappings: dict[str, list[str]] = {}


_providers = msgspec.json.Decoder(_Providers).decode
_groups = msgspec.json.Decoder(_Groups).decode


class Candidates:
    """The allocation requests by provider, and the roots' usages, in the order of the answer."""

    def __init__(self, answer: placement.Candidates, *, every: bool = False) -> None:
        """every: a provider's further requests matter as well, because they take other devices."""
        self._requests: dict[str, msgspec.Raw] = {
            uuid: request
            for request in reversed(answer.allocation_requests)  # so that the first of a provider stays
            for uuid in _providers(request).allocations
        }
        self._offers: dict[str, list[msgspec.Raw]] = {}
        if every:
            for request in answer.allocation_requests:
                for uuid in _providers(request).allocations:
                    self._offers.setdefault(uuid, []).append(request)
        self._summaries = answer.provider_summaries
        self.usages: Mapping[str, Mapping[str, ProviderUsage]] = {
            uuid: summary.resources
            for uuid, summary in answer.provider_summaries.items()
            if summary.root_provider_uuid in (uuid, None)
        }

    def usage(self, provider: str) -> Mapping[str, ProviderUsage]:
        """What is used of a provider, root or not, by class; empty for one that the answer does not name."""
        summary = self._summaries.get(provider)
        return {} if summary is None else summary.resources

    def __contains__(self, provider: str) -> bool:
        """Whether a host with this root provider can be claimed: some request takes from it."""
        return provider in self._requests

    def request(self, provider: str, offer: int = 0) -> str:
        """The request that a claim on this provider's host uses, as JSON: the first, or that of an offer. KeyError."""
        return bytes(self._offers[provider][offer] if offer else self._requests[provider]).decode()

    def offers(self, provider: str) -> list[Mapping[str, list[str]]]:
        """Of each request of this provider which group is served by whom; empty unless every one matters."""
        return [_groups(request).mappings for request in self._offers.get(provider, ())]

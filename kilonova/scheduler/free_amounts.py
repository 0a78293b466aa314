"""What the providers of an answer have left, while the servers of one request are chosen for and not yet claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from kilonova.clients.placement import ProviderUsage


class _Part(msgspec.Struct, gc=False):
    resources: dict[str, int]


class _Request(msgspec.Struct, gc=False):
    allocations: dict[str, _Part]


_request = msgspec.json.Decoder(_Request).decode


class FreeAmounts:
    """Free amounts by provider and class. A class that the answer does not name is not watched: the claim will tell.

    usage: of a provider, by class.
    """

    def __init__(self, usage: Callable[[str], Mapping[str, ProviderUsage]]) -> None:
        self._usage = usage
        self._taken: dict[tuple[str, str], int] = {}
        self._wants: dict[str, list[tuple[tuple[str, str], int]]] = {}

    def take(self, request: str) -> bool:
        """Whether there is room for a candidate (its JSON); then it is taken."""
        wants = self._wants.get(request)
        if wants is None:
            wants = self._wants[request] = [
                ((uuid, name), amount)
                for uuid, part in _request(request).allocations.items()
                for name, amount in part.resources.items()
            ]
        if not all(self._fits(key, amount) for key, amount in wants):
            return False
        for key, amount in wants:
            self._taken[key] = self._taken.get(key, 0) + amount
        return True

    def _fits(self, key: tuple[str, str], amount: int) -> bool:
        usage = self._usage(key[0]).get(key[1])
        return usage is None or usage.used + self._taken.get(key, 0) + amount <= usage.capacity

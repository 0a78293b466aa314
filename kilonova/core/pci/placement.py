"""PCI devices as Placement knows them: a provider for each card, a group of resources for each device asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import os_resource_classes
import os_traits

from kilonova.core import ids
from kilonova.core.errors import Invalid
from kilonova.core.pci.pools import Pools
from kilonova.core.pci.requests import PciRequest
from kilonova.core.request_spec import ResourceGroup

_NAMESPACE: Final = "d3c1a7f2-6a0e-5b57-8f0e-6e0b7b6d9a35"  # card uuids derive from it; never change it
_CLASSES: Final = frozenset(os_resource_classes.STANDARDS)
_TRAITS: Final = frozenset(os_traits.get_traits())


class AliasAmbiguous(Invalid):
    """With PCI in Placement, an alias of several alternatives cannot be asked for."""

    code = "alias_ambiguous"
    message = "PCI alias {alias} has several alternatives, which Placement cannot be asked for; define it once."


def provider_uuid(root: str, address: str) -> str:
    """The provider of the card at an address of the host with this root provider, the same for ever."""
    return ids.derived_uuid(_NAMESPACE, f"{root} {address}")


def resource_class(words: Mapping[str, str], vendor_id: str, product_id: str) -> str:
    """The class that an alias or a device spec names, else the one that vendor and product make."""
    named = words.get("resource_class")
    if not named:
        return f"CUSTOM_PCI_{vendor_id}_{product_id}".upper()
    name = _normal(named)
    return name if name in _CLASSES or name.startswith("CUSTOM_") else f"CUSTOM_{name}"


def traits(words: Mapping[str, str]) -> frozenset[str]:
    """The traits that an alias or a device spec names, as a comma list."""
    names = (_normal(part) for part in words.get("traits", "").split(",") if part.strip())
    return frozenset(name if name in _TRAITS or name.startswith("CUSTOM_") else f"CUSTOM_{name}" for name in names)


def _normal(name: str) -> str:
    return re.sub(r"[^A-Z0-9_]", "_", name.strip().upper())


def groups(requests: Sequence[PciRequest]) -> tuple[ResourceGroup, ...]:
    """A group for each device that an alias asks for; a port's device is no matter of Placement. AliasAmbiguous."""
    found = []
    for request in requests:
        if request.requester is not None:
            continue
        if len(request.specs) > 1:
            raise AliasAmbiguous(alias=request.alias)
        (spec,) = request.specs
        wanted = resource_class(spec, spec.get("vendor_id", ""), spec.get("product_id", ""))
        found += [
            ResourceGroup(f"{request.id}-{number}", {wanted: 1}, tuple(sorted(traits(spec))))
            for number in range(request.count)
        ]
    return tuple(found)


def providers_of(requests: Sequence[PciRequest], mappings: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Per request the providers that a candidate gives its devices from, by the candidate's mappings; requests that
    have no groups are left out.
    """
    found: dict[str, list[str]] = {}
    for request in requests:
        suffixes = (f"{request.id}-{number}" for number in range(request.count))
        named = [mappings[suffix][0] for suffix in suffixes if mappings.get(suffix)]
        if named:
            found[request.id] = named
    return found


def addresses_of(root: str, providers: Mapping[str, Sequence[str]], pools: Pools) -> dict[str, list[str]]:
    """The same with the cards' addresses on the host in the place of uuids; one that no pool has stays as it is."""
    cards = {provider_uuid(root, pool.provider): pool.provider for pool in pools if pool.provider}
    return {request: [cards.get(uuid, uuid) for uuid in named] for request, named in providers.items()}

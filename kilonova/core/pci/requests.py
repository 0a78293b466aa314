"""What guests ask of PCI devices: aliases (`[pci] alias`) and the requests that a flavor makes with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from kilonova.core import ids, json
from kilonova.core.errors import Invalid
from kilonova.core.pci.devices import TYPES

NumaPolicy = Literal["required", "legacy", "preferred", "socket"]
NUMA_POLICIES: Final = ("required", "legacy", "preferred", "socket")

_ALIAS_KEYS = frozenset({
    "name", "capability_type", "product_id", "vendor_id", "device_type", "numa_policy", "resource_class", "traits",
    "live_migratable",
})  # fmt: skip
_ASKED = re.compile(r"\s*([^:,]+):(\d+)\s*")
_ID = re.compile(r"[0-9a-f]{4}")


class AliasInvalid(Invalid):
    """A `[pci] alias` that cannot be read; the service does not start."""

    code, message = "alias_invalid", "[pci]alias {text} cannot be used: {why}."


class AliasUnknown(Invalid):
    """A flavor asks for devices by a name that the configuration does not have."""

    code, message = "alias_unknown", "PCI alias {alias} is not defined"


class AliasRequestInvalid(Invalid):
    """A flavor's `pci_passthrough:alias`, or the policy beside it, that cannot be read."""

    code, message = "alias_request_invalid", "{why}"


@dataclass(frozen=True, slots=True)
class Alias:
    """A name for devices: alternatives of what to match, how near to the guest's memory, groups of Placement."""

    name: str
    specs: tuple[Mapping[str, str], ...]
    numa_policy: NumaPolicy | None = None


class PciRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """`count` devices that match one of the specs. requester: the port that asks; alias: the name it was asked by."""

    id: str
    count: int
    specs: tuple[dict[str, str], ...]
    alias: str | None = None
    numa_policy: NumaPolicy | None = None
    requester: str | None = None


def parse_aliases(texts: Iterable[str]) -> dict[str, Alias]:
    """The aliases of the option, each a JSON map; equal names are alternatives. AliasInvalid."""
    found: dict[str, Alias] = {}
    for text in texts:
        name, spec, policy = _alias(text)
        known = found.get(name)
        if known is None:
            found[name] = Alias(name, (spec,), policy)
            continue
        if known.numa_policy != policy or known.specs[0].get("dev_type") != spec.get("dev_type"):
            raise AliasInvalid(text=text, why=f"another alias {name} has another device_type or numa_policy")
        found[name] = Alias(name, (*known.specs, spec), policy)
    return found


def _alias(text: str) -> tuple[str, dict[str, str], NumaPolicy | None]:
    try:
        row = json.loads(text)
    except ValueError:
        raise AliasInvalid(text=text, why="it is not JSON") from None
    if not isinstance(row, dict) or not str(row.get("name", "")).strip():
        raise AliasInvalid(text=text, why="it is no map with a name")
    unknown = sorted(row.keys() - _ALIAS_KEYS)
    if unknown:
        raise AliasInvalid(text=text, why=f"it has no {', '.join(unknown)}")
    kind, policy = row.get("device_type"), row.get("numa_policy")
    if kind is not None and kind not in TYPES:
        raise AliasInvalid(text=text, why=f"device_type is none of {', '.join(TYPES)}")
    if policy is not None and policy not in NUMA_POLICIES:
        raise AliasInvalid(text=text, why=f"numa_policy is none of {', '.join(NUMA_POLICIES)}")
    return str(row["name"]), _match(row, kind, text), policy


def _match(row: Mapping[str, Any], kind: str | None, text: str) -> dict[str, str]:
    spec: dict[str, str] = {}
    for key in ("vendor_id", "product_id"):
        if key in row:
            spec[key] = str(row[key]).lower()
            if not _ID.fullmatch(spec[key]):
                raise AliasInvalid(text=text, why=f"{key} is not four hexadecimal digits")
    if kind is not None:
        spec["dev_type"] = kind
    if "live_migratable" in row:
        spec["live_migratable"] = "true" if str(row["live_migratable"]).lower() in ("yes", "true") else "false"
    spec |= {key: str(row[key]) for key in ("resource_class", "traits") if row.get(key)}
    if not spec.keys() & {"vendor_id", "product_id", "resource_class"}:
        raise AliasInvalid(text=text, why="it needs vendor_id and product_id, or a resource_class")
    return spec


def of_flavor(
    extra_specs: Mapping[str, str], properties: Mapping[str, Any], aliases: Mapping[str, Alias]
) -> tuple[PciRequest, ...]:
    """The requests of a flavor, in the order they are written. AliasUnknown, AliasRequestInvalid."""
    text = extra_specs.get("pci_passthrough:alias")
    override = affinity_policy(extra_specs, properties)
    if not text:
        return ()
    made = []
    for part in text.split(","):
        match = _ASKED.fullmatch(part)
        if match is None:
            raise AliasRequestInvalid(why=f"pci_passthrough:alias is {text!r}; it must be name:count, …")
        name, count = match[1].strip(), int(match[2])
        if name not in aliases:
            raise AliasUnknown(alias=name)
        if count:
            alias = aliases[name]
            specs = tuple(dict(spec) for spec in alias.specs)
            made.append(PciRequest(ids.new_uuid(), count, specs, name, override or alias.numa_policy))
    return tuple(made)


def affinity_policy(extra_specs: Mapping[str, str], properties: Mapping[str, Any]) -> NumaPolicy | None:
    """How near devices must be, of flavor or image; AliasRequestInvalid when they differ or are no policy."""
    ours, theirs = extra_specs.get("hw:pci_numa_affinity_policy"), properties.get("hw_pci_numa_affinity_policy")
    if ours is not None and theirs is not None and ours != theirs:
        raise AliasRequestInvalid(
            why="The flavor's hw:pci_numa_affinity_policy and the image's hw_pci_numa_affinity_policy must be equal."
        )
    found = ours if ours is not None else theirs
    for policy in NUMA_POLICIES:
        if found == policy:
            return policy
    if found is not None:
        raise AliasRequestInvalid(why=f"hw:pci_numa_affinity_policy is {found!r}; it must be one of "
                                      f"{', '.join(NUMA_POLICIES)}.")  # fmt: skip
    return None


def to_text(requests: Sequence[PciRequest]) -> str:
    """Requests as JSON."""
    return msgspec.json.encode(requests).decode()


_decode = msgspec.json.Decoder(tuple[PciRequest, ...]).decode


def from_text(data: str) -> tuple[PciRequest, ...]:
    """The requests of a text of `to_text`."""
    return _decode(data)

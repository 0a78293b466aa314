"""The devices of a host, and which of them its operator offers to guests (`[pci] device_spec`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import msgspec

from kilonova.core import json
from kilonova.core.errors import Invalid

DeviceType = Literal["type-PCI", "type-PF", "type-VF", "type-VDPA"]
TYPES: Final = ("type-PCI", "type-PF", "type-VF", "type-VDPA")

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ID = re.compile(r"[0-9a-f]{4}|\*")
_PLACES = ("domain", "bus", "slot", "function")


class DeviceSpecInvalid(Invalid):
    """A `[pci] device_spec` that cannot be read; the service does not start."""

    code, message = "device_spec_invalid", "[pci]device_spec {text} cannot be used: {why}."


class PciDevice(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One device. parent: of a virtual function, its physical function's address. devname: a network card's name."""

    address: str
    vendor_id: str
    product_id: str
    dev_type: DeviceType = "type-PCI"
    numa_node: int | None = None
    parent: str | None = None
    devname: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """Which devices are offered, and the tags they carry. address: one pattern per part, or one for the whole."""

    vendor_id: str = "*"
    product_id: str = "*"
    address: tuple[str, ...] = ()
    regex: bool = False
    devname: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def matches(self, device: PciDevice) -> bool:
        """Whether it offers the device: by itself, or as a virtual function of a physical one that it names."""
        if self.vendor_id not in ("*", device.vendor_id) or self.product_id not in ("*", device.product_id):
            return False
        if self.devname is not None:
            return device.devname == self.devname
        return self._at(device.address) or (device.parent is not None and self._at(device.parent))

    def _at(self, address: str) -> bool:
        if not self.address:
            return True
        parts = _parts(address)
        if self.regex:
            return all(re.fullmatch(wanted, part) for wanted, part in zip(self.address, parts, strict=True))
        return all(fnmatchcase(part, wanted) for wanted, part in zip(self.address, parts, strict=True))


@dataclass(frozen=True, slots=True)
class Offered:
    """A device that guests may get, with the tags of the spec that offers it."""

    device: PciDevice
    tags: Mapping[str, str] = field(default_factory=dict)


def offered(devices: Iterable[PciDevice], specs: Sequence[DeviceSpec]) -> tuple[Offered, ...]:
    """Those of the devices that a spec names, in the order of their addresses; the first spec that fits counts."""
    found = []
    for device in sorted(devices, key=lambda device: device.address):
        spec = next((spec for spec in specs if spec.matches(device)), None)
        if spec is not None:
            found.append(Offered(device, spec.tags))
    return tuple(found)


def parse_specs(texts: Iterable[str]) -> tuple[DeviceSpec, ...]:
    """The specs of the option: each a JSON map, or a list of them. DeviceSpecInvalid."""
    return tuple(_spec(row, text) for text in texts for row in _rows(text))


def _rows(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise DeviceSpecInvalid(text=text, why="it is not JSON") from None
    return found if isinstance(found, list) else [found]


def _spec(row: Any, text: str) -> DeviceSpec:
    if not isinstance(row, dict):
        raise DeviceSpecInvalid(text=text, why="it is no map")
    tags = {key: _tag(key, value) for key, value in row.items() if key not in _OWN}
    for key in ("vendor_id", "product_id"):
        if not _ID.fullmatch(str(row.get(key, "*")).lower()):
            raise DeviceSpecInvalid(text=text, why=f"{key} is neither four hexadecimal digits nor *")
    if "address" in row and "devname" in row:
        raise DeviceSpecInvalid(text=text, why="it has an address and a devname; one of them is enough")
    if not _OWN & row.keys():
        raise DeviceSpecInvalid(text=text, why="it names no device")
    address, regex = _address(row.get("address"), text)
    return DeviceSpec(
        str(row.get("vendor_id", "*")).lower(), str(row.get("product_id", "*")).lower(), address, regex,
        row.get("devname"), tags,
    )  # fmt: skip


_OWN = frozenset({"vendor_id", "product_id", "address", "devname"})
_BOOLEANS = frozenset({"remote_managed", "trusted", "managed", "live_migratable", "one_time_use"})


def _tag(key: str, value: Any) -> str:
    text = "" if value is None else str(value)
    if key in _BOOLEANS:
        return "true" if text.strip().lower() in ("true", "yes", "1", "on", "t", "y") else "false"
    return text


def _address(value: Any, text: str) -> tuple[tuple[str, ...], bool]:
    if value is None:
        return (), False
    if isinstance(value, dict):
        parts = tuple(str(value.get(place, ".*")) for place in _PLACES)
        try:
            for part in parts:
                re.compile(part)
        except re.error:
            raise DeviceSpecInvalid(text=text, why="a part of its address is no regular expression") from None
        return parts, True
    match = re.fullmatch(r"(?:([^:.]*):)?([^:.]*):([^:.]*)(?:\.([^:.]*))?", str(value).lower())
    if match is None:
        raise DeviceSpecInvalid(text=text, why="its address is not of the form domain:bus:slot.function")
    domain, bus, slot, function = (part or "*" for part in match.groups())
    return (domain, bus, slot, function), False


def _parts(address: str) -> tuple[str, str, str, str]:
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    return domain, bus, slot, function


def is_address(text: str) -> bool:
    """Whether the text is a full PCI address."""
    return _ADDRESS.fullmatch(text) is not None

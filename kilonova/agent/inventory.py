"""What a host offers, in the words of placement and of the compute node record: pure functions of driver facts.

Rules: workflow facts 11. It asks nobody and sends nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kilonova.agent import hardware
from kilonova.agent.claims import NOTHING, Left
from kilonova.agent.hardware import cpu_sets
from kilonova.agent.settings import AgentSettings
from kilonova.bus.calls import HostReport
from kilonova.core import json
from kilonova.core.errors import Invalid
from kilonova.core.pci.devices import Offered
from kilonova.core.pci.placement import provider_uuid, resource_class
from kilonova.core.pci.placement import traits as traits_of
from kilonova.virt.driver import HostFacts, Usage

DISABLED: Final = "COMPUTE_STATUS_DISABLED"
HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"
_ALWAYS: Final = frozenset({"COMPUTE_NODE", "OWNER_NOVA"})

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class CardDivided(Invalid):
    """A card is offered as a whole and in virtual functions, which Placement cannot tell from each other."""

    code = "card_divided"
    message = "[pci]device_spec offers the card {address} of {host} and its virtual functions; offer one of them."


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as it should be. A class whose allocation_ratio is None keeps the one that placement has.

    children: the providers of PCI cards below it.
    """

    uuid: str
    name: str
    inventory: Mapping[str, Mapping[str, Any]]
    initial_ratios: Mapping[str, float]
    traits: frozenset[str]
    children: tuple[Provider, ...] = ()

    @property
    def fingerprint(self) -> bytes:
        """Equal for equal wishes, over restarts."""
        document = [self.uuid, self.name, self.inventory, self.initial_ratios, sorted(self.traits)]
        document += [child.fingerprint.hex() for child in self.children]
        return _digest(json.dumps(document))


def provider(facts: HostFacts, settings: AgentSettings, capabilities: frozenset[str], *, disabled: bool) -> Provider:
    """The provider of a host: its node's uuid and name, its resource classes, the traits the agent owns."""
    disk_reserved = -(-settings.reserved_host_disk_mb // 1024)
    shared, dedicated = cpu_sets(facts, settings)
    inventory = {
        "VCPU": _inventory(shared.bit_count(), settings.reserved_host_cpus, settings.cpu_allocation_ratio),
        "PCPU": _inventory(dedicated.bit_count(), 0, 1.0),
        "MEMORY_MB": _inventory(facts.memory_mb, settings.reserved_host_memory_mb, settings.ram_allocation_ratio),
        "DISK_GB": _inventory(facts.local_gb, disk_reserved, settings.disk_allocation_ratio),
    }
    initial = {
        "VCPU": settings.initial_cpu_allocation_ratio,
        "PCPU": 1.0,
        "MEMORY_MB": settings.initial_ram_allocation_ratio,
        "DISK_GB": settings.initial_disk_allocation_ratio,
    }
    present = {name: row for name, row in inventory.items() if row["total"] > 0}
    excluded = {f"COMPUTE_IMAGE_TYPE_{name.upper()}" for name in settings.image_type_exclude_list}
    traits = (capabilities - excluded) | _ALWAYS | ({DISABLED} if disabled else frozenset())
    if any(core.bit_count() > 1 for cell in facts.cells for core in cell.cores):
        traits |= {HYPERTHREADING}
    cards = card_providers(facts, settings) if settings.report_in_placement else ()
    return Provider(facts.uuid, facts.node, present, initial, traits, cards)


def card_providers(facts: HostFacts, settings: AgentSettings) -> tuple[Provider, ...]:
    """A provider for each PCI card of which guests may get devices, named after its address. CardDivided."""
    cards: dict[str, list[Offered]] = {}
    for one in hardware.devices(facts, settings):
        cards.setdefault(one.device.parent or one.device.address, []).append(one)
    return tuple(_card(facts, address, found) for address, found in cards.items())


def _card(facts: HostFacts, address: str, found: Sequence[Offered]) -> Provider:
    if len({one.device.dev_type for one in found}) > 1:
        raise CardDivided(host=facts.host, address=address)
    names = [resource_class(one.tags, one.device.vendor_id, one.device.product_id) for one in found]
    inventory = {name: _inventory(names.count(name), 0, 1.0) for name in names}
    traits = frozenset({"OWNER_NOVA", "COMPUTE_MANAGED_PCI_DEVICE"}).union(*(traits_of(one.tags) for one in found))
    uuid, name = provider_uuid(facts.uuid, address), f"{facts.node}_{address.upper()}"
    return Provider(uuid, name, inventory, dict.fromkeys(inventory, 1.0), traits)


def _inventory(total: int, reserved: int, ratio: float | None) -> dict[str, Any]:
    return {
        "total": total,
        "reserved": min(reserved, total),
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": ratio,
    }


def with_ratios(wanted: Provider, existing: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The inventory to send: a configured ratio, else the one that placement has, else the initial one.

    Classes that are not ours (set from outside) stay.
    """
    sent = {name: dict(row) for name, row in existing.items() if name not in wanted.initial_ratios}
    for name, row in wanted.inventory.items():
        ratio = row["allocation_ratio"]
        if ratio is None:
            ratio = existing.get(name, {}).get("allocation_ratio", wanted.initial_ratios[name])
        sent[name] = {**row, "allocation_ratio": ratio}
    return sent


def with_traits(wanted: Provider, existing: Iterable[str]) -> frozenset[str]:
    """The traits to send: ours as they should be, those set from outside as they are."""
    return wanted.traits | {name for name in existing if not _owned(name)}


def _owned(trait: str) -> bool:
    return trait.startswith("COMPUTE_") or trait in _ALWAYS or trait == HYPERTHREADING


def host_report(facts: HostFacts, usage: Usage, settings: AgentSettings, left: Left = NOTHING) -> HostReport:
    """The compute node record of a host. Usage begins at what is reserved for the host itself.

    left: what it has left of NUMA cells and devices.
    """
    disk_reserved = -(-settings.reserved_host_disk_mb // 1024)
    return HostReport(
        host=facts.host,
        node=facts.node,
        uuid=facts.uuid,
        hypervisor_type=facts.hypervisor_type,
        hypervisor_version=facts.hypervisor_version,
        vcpus=facts.vcpus,
        memory_mb=facts.memory_mb,
        local_gb=facts.local_gb,
        host_ip=facts.host_ip,
        cpu_info=dict(facts.cpu_info),
        vcpus_used=usage.vcpus + settings.reserved_host_cpus,
        memory_mb_used=usage.memory_mb + settings.reserved_host_memory_mb,
        local_gb_used=usage.disk_gb + disk_reserved,
        running_vms=usage.guests,
        supported_instances=facts.supported_instances,
        stats={"num_instances": usage.guests},
        cpu_allocation_ratio=settings.cpu_allocation_ratio or settings.initial_cpu_allocation_ratio,
        ram_allocation_ratio=settings.ram_allocation_ratio or settings.initial_ram_allocation_ratio,
        disk_allocation_ratio=settings.disk_allocation_ratio or settings.initial_disk_allocation_ratio,
        numa_topology=left.numa_topology,
        pci_stats=left.pci_stats,
    )


def report_print(report: HostReport) -> bytes:
    """Equal for equal reports, over restarts."""
    return _digest(_encode(report))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()

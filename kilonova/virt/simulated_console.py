"""What a simulated guest writes on its serial console when it boots. Knows only the guest's own description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kilonova.bus.calls import GuestSpec

_KERNEL = (
    "Linux version 6.8.0-simulated (builder@kilonova) (gcc 13.2.0) #1 SMP PREEMPT_DYNAMIC",
    "Command line: LABEL=cirros-rootfs ro console=tty1 console=ttyS0",
    "BIOS-provided physical RAM map:",
    "DMI: Kilonova Simulated Guest, BIOS 1.16 04/01/2014",
    "Hypervisor detected: simulated",
)
_DEVICES = (
    "Serial: 8250/16550 driver, 4 ports, IRQ sharing enabled",
    "00:00: ttyS0 at I/O 0x3f8 (irq = 4, base_baud = 115200) is a 16550A",
)


def boot_log(guest: GuestSpec, boots: int, started_at: str) -> str:
    """The log of the guest's last start (of `boots` in all), each line ended by a newline, then the login prompt."""
    lines = [f"[{0.000001 + 0.0413 * number:12.6f}] {text}" for number, text in enumerate(_kernel_lines(guest))]
    lines += ["", "Starting init system...", f"boot {boots} at {started_at} UTC", *_network_lines(guest)]
    lines += _user_lines(guest)
    lines += ["", f"=== {guest.name}: id {guest.uuid} ===", ""]
    return "\n".join(lines) + f"\n{guest.hostname} login: \n"


def _kernel_lines(guest: GuestSpec) -> Iterator[str]:
    yield from _KERNEL
    yield f"Memory: {guest.memory_mb * 1024 - 40960}K/{guest.memory_mb * 1024}K available"
    yield f"smpboot: Allowing {guest.vcpus} CPUs, 0 hotplug CPUs"
    yield f"smp: Brought up 1 node, {guest.vcpus} CPUs"
    yield from _DEVICES
    for number, size in enumerate(_disk_sizes(guest)):
        yield f"virtio_blk virtio{number}: [vd{chr(97 + number % 26)}] {size * 2097152} 512-byte logical blocks"
    for number, vif in enumerate(guest.vifs):
        yield f"virtio_net virtio{number} eth{number}: MAC {vif.get('mac', 'unknown')}"
    yield "EXT4-fs (vda1): mounted filesystem with ordered data mode"
    yield "Run /sbin/init as init process"


def _network_lines(guest: GuestSpec) -> Iterator[str]:
    for number, vif in enumerate(guest.vifs):
        for address in addresses(vif):
            yield f"eth{number}: lease of {address} obtained"
    if not guest.vifs:
        yield "no network interface found"


def _user_lines(guest: GuestSpec) -> Iterator[str]:
    yield f"hostname: {guest.hostname}"
    if guest.key_data:
        yield "authorized_keys: 1 key installed from instance metadata"
    if guest.user_data:
        yield "user-data: received, not run (simulated guest)"
    if guest.config_drive:
        yield "config drive: found on /dev/sr0"


def addresses(vif: dict[str, Any]) -> list[str]:
    """The fixed addresses of an interface document."""
    return [fixed["address"] for fixed in vif.get("fixed_ips") or ()]


def _disk_sizes(guest: GuestSpec) -> list[int]:
    """GiB of each disk; a guest that was given no list of disks has its root disk."""
    return [int(disk.get("size") or guest.root_gb) for disk in guest.disks] or [guest.root_gb]

"""What an agent does with a guest: one function and one row per call row. Each is a few lines over the driver.

A function answers the result of the verb's report, small and serialisable. It must not know tickets beyond host and
server, nor how reports travel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kilonova.agent.claims import Claims
from kilonova.bus import calls
from kilonova.bus.calls import Call, ConsoleOutput, ConsoleText, Guest, GuestList, Guests
from kilonova.virt.driver import Console, Driver, Inventory, Lifecycle, Storage, need

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verb:
    """build: counts against `max_concurrent_builds`. moves_usage: the host's usage must be reported afterwards."""

    row: Call[Any, Any]
    run: Callable[[Driver, Any], Result]
    build: bool = False
    moves_usage: bool = False


def spawn(claims: Claims, driver: Driver, asked: calls.Spawn) -> Result:
    """`{power_state}` of the new guest, and `{numa_topology, pci_devices}` as far as it has something for itself."""
    host = asked.ticket.host
    with claims.made(host, asked.guest, asked.limits, asked.devices_from) as guest:
        made = need(driver, Lifecycle).spawn(host, guest, paused=asked.paused)
    result: Result = {"power_state": made.power_state}
    if guest.numa_topology:
        result["numa_topology"] = guest.numa_topology
    if guest.pci_devices:
        result["pci_devices"] = list(guest.pci_devices)
    return result


def destroy(driver: Driver, asked: calls.Destroy) -> Result:
    """Nothing; volumes are detached with their guest."""
    need(driver, Lifecycle).destroy(asked.ticket.host, asked.ticket.server)
    return {}


def power(driver: Driver, asked: calls.Power) -> Result:
    """`{power_state}` that the guest has now."""
    ticket = asked.ticket
    reached = need(driver, Lifecycle).power(ticket.host, ticket.server, asked.state, asked.timeout)
    return {"power_state": reached.power_state}


def disk(driver: Driver, asked: calls.Disk) -> Result:
    """Nothing."""
    storage, ticket = need(driver, Storage), asked.ticket
    change = storage.attach_disk if asked.attach else storage.detach_disk
    change(ticket.host, ticket.server, asked.disk)
    return {}


def console_output(driver: Driver, asked: ConsoleOutput) -> ConsoleText:
    """The last lines of a guest's console. GuestNotFound, HostUnknown; NotInDriver."""
    text = need(driver, Console).console_output(asked.host, asked.server)
    if asked.length is None:
        return ConsoleText(text)
    lines = text.splitlines(keepends=True)
    return ConsoleText("".join(lines[len(lines) - asked.length :]) if 0 <= asked.length < len(lines) else text)


def list_guests(driver: Driver, asked: GuestList) -> Guests:
    """The guests of those hosts that are served here."""
    known, lifecycle = set(need(driver, Inventory).hosts()), need(driver, Lifecycle)
    return Guests(tuple(
        Guest(guest.server, host, guest.power_state)
        for host in asked.hosts if host in known for guest in lifecycle.guests(host)
    ))  # fmt: skip


def verbs(claims: Claims) -> tuple[Verb, ...]:
    """All rows. claims: what guests have for themselves."""
    return (
        Verb(calls.guest_spawn, partial(spawn, claims), build=True, moves_usage=True),
        Verb(calls.guest_destroy, destroy, moves_usage=True),
        Verb(calls.guest_power, power),
        Verb(calls.guest_disk, disk),
    )

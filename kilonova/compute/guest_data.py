"""What a guest may be told about its own server, and the one thing that it may say: its administrator's password.

Who the guest is has been found out above. What costs a request to the network service is asked for by itself.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from kilonova.compute import lookup, show
from kilonova.compute.availability import zone_of_host
from kilonova.compute.lookup import Found, ServerNotFound
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.context import service_context
from kilonova.core.errors import Conflict, Invalid, NotFound
from kilonova.core.server import BlockDevice, Server, ServerExtra
from kilonova.db.queries import servers

_SEED_BYTES: Final = 512
_CHUNK, _CHUNKS = 255, 4  # a password is kept as system metadata password_0 … password_3
PASSWORD_MOST: Final = _CHUNK * _CHUNKS
"""Bytes of a password that a guest may set."""


class AddressNotFound(NotFound):
    """No server, or more than one, has this address."""

    code, message = "address_not_found", "There is no single server with the address {address}."


class GuestPasswordSet(Conflict):
    """The guest has set it; whoever comes second may be somebody else."""

    code, message = "guest_password_set", "The password has been set already."


class GuestPasswordUnusable(Invalid):
    """What came is no password."""

    code, message = "guest_password_unusable", "The password cannot be used: {why}."


class ServerChanges(Conflict):
    """The server's row changed each time that it was to be written."""

    code, message = "server_changes", "Server {server} changes all the time; try again."


@dataclass(frozen=True, slots=True)
class GuestData:
    """A server as its guest sees it. random_seed: 512 bytes from a secure source, new each time that this is read."""

    server: Server
    cell: str
    extra: ServerExtra
    devices: tuple[BlockDevice, ...]
    zone: str | None
    random_seed: bytes

    @property
    def user_data(self) -> bytes | None:
        """What the user gave at boot, decoded; None when that was nothing."""
        text = self.extra.user_data
        return base64.b64decode(text) if text else None

    @property
    def files(self) -> list[tuple[str, bytes]]:
        """(path, content) of the files that the user gave at boot."""
        return [(file["path"], base64.b64decode(file["contents"])) for file in self.extra.personality]

    @property
    def password(self) -> str:
        """What the guest has set, or nothing."""
        return "".join(self.server.system_metadata.get(f"password_{index}") or "" for index in range(_CHUNKS))


def by_id(world: World, uuid: str) -> GuestData:
    """A server that has a cell. ServerNotFound."""
    found = lookup.find(world, service_context(overwrite=False), uuid)
    if found.cell is None:
        raise ServerNotFound(server=uuid)
    zone = zone_of_host(world, found.server.host) or found.server.availability_zone
    return GuestData(
        found.server, found.cell, lookup.extra_of(world, found), tuple(lookup.devices_of(world, found)), zone,
        ids.secret_bytes(_SEED_BYTES),
    )  # fmt: skip


def server_at(world: World, address: str) -> str:
    """The uuid of the server with a fixed address, IPv4 or IPv6.

    AddressNotFound: also when servers in several networks have the address, for it cannot be told which one asks.
    """
    try:
        wanted = str(ip_address(address))
    except ValueError:
        raise AddressNotFound(address=address) from None
    ports = world.network.list_ports(fixed_ips=f"ip_address={wanted}", fields=["device_id", "device_owner"])
    owners = {port["device_id"] for port in ports if str(port.get("device_owner")).startswith("compute:")}
    if len(owners) != 1:
        raise AddressNotFound(address=address)
    return str(owners.pop())


def subnets_of(world: World, data: GuestData) -> dict[str, dict[str, Any]]:
    """The subnets of the server's fixed addresses by id, as the network service shows them."""
    wanted = sorted({fixed["subnet_id"] for vif in data.server.network_info for fixed in vif["fixed_ips"]})
    return {subnet["id"]: subnet for subnet in world.network.list_subnets(id=wanted)} if wanted else {}


def security_groups_of(world: World, data: GuestData) -> list[str]:
    """The names of the security groups of the server's ports, each once."""
    found = Found(data.server, data.cell)
    shown = show.one(world, service_context(overwrite=False), found, show.Wants())
    return list(dict.fromkeys(shown.security_groups or ()))


def set_password(world: World, uuid: str, password: bytes) -> None:
    """Keep the password that the guest says, usually encrypted with the user's public key.

    GuestPasswordUnusable, GuestPasswordSet, ServerNotFound, ServerChanges.
    """
    if len(password) > PASSWORD_MOST:
        raise GuestPasswordUnusable(why=f"it has more than {PASSWORD_MOST} bytes")
    try:
        text = password.decode()
    except UnicodeDecodeError:
        raise GuestPasswordUnusable(why="it is not UTF-8") from None
    chunks = {f"password_{index}": text[index * _CHUNK : (index + 1) * _CHUNK] for index in range(_CHUNKS)}
    for _ in range(5):
        data = by_id(world, uuid)
        if data.password:
            raise GuestPasswordSet
        server, kept = data.server, {**data.server.system_metadata, **chunks}
        with world.cells.database(data.cell).write() as connection:
            if servers.change(connection, server.uuid, {"system_metadata": kept}, version=server.version):
                return
    raise ServerChanges(server=uuid)

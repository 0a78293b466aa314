"""Volumes of servers: listed, attached, changed, detached. The rest of attaching is workflows.volumes."""

from __future__ import annotations

import string
from typing import Any

import msgspec

from kilonova.clients.volumes import VolumeUnusable
from kilonova.compute import actions, lookup
from kilonova.compute.lookup import Found, in_cell
from kilonova.compute.waking import wake
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, Invalid, NotFound
from kilonova.core.server import BlockDevice, Server
from kilonova.db.queries import actions as records
from kilonova.db.queries import block_devices, journal, servers
from kilonova.sql.engine import Connection

_SHELVED = ("shelved", "shelved_offloaded")


class NotAttached(NotFound):
    """The server does not have the volume."""

    code, message = "not_attached", "volume_id not found: {volume}"


class AttachInvalid(Invalid):
    """The volume cannot be attached, or not like this."""

    code, message = "attach_invalid", "Volume {volume} cannot be attached: {why}"


class DetachInvalid(Invalid):
    """The volume cannot be detached."""

    code, message = "detach_invalid", "Volume {volume} cannot be detached: {why}"


class DeviceInUse(Conflict):
    """Another disk has that name."""

    code, message = "device_in_use", "The supplied device path ({device}) is in use."


class ShelvedTooEarly(Conflict):
    """Below 2.20 volumes of shelved servers are left alone."""

    code = "wrong_state"
    message = "Cannot '{action}' instance {server} while it is in vm_state {state}"


class ImmutableChanged(Invalid):
    """Only delete_on_termination can be changed (2.85)."""

    code, message = "immutable_changed", "The attribute {name} of volume attachment {volume} cannot be changed."


def of(world: World, found: Found) -> list[BlockDevice]:
    """The devices of a server that are volumes."""
    return [device for device in lookup.devices_of(world, found) if device.volume_id]


def one(world: World, found: Found, volume: str) -> BlockDevice:
    """A server's attachment of a volume. NotAttached."""
    for device in of(world, found):
        if device.volume_id == volume:
            return device
    raise NotAttached(volume=volume)


def attach(
    world: World, ctx: Context, found: Found, volume_id: str, *, device: str | None, tag: str | None,
    delete_on_termination: bool, multiattach: bool, shelved_allowed: bool,
) -> BlockDevice:  # fmt: skip
    """Begin to attach a volume, which is the server's from here on; answers the device as it will be."""
    server, cell = in_cell(found)
    _check(world, ctx, server, "attach-volume", shelved_allowed)
    volume = world.volumes.show(ctx, volume_id)
    _check_volume(volume, server, of(world, found), multiattach)
    wanted = BlockDevice(
        uuid=ids.new_uuid(), source_type="volume", destination_type="volume", volume_id=volume_id,
        volume_size=int(volume["size"]), device_name=device, tag=tag, delete_on_termination=delete_on_termination,
    )  # fmt: skip
    try:
        reserved: str = world.volumes.create_attachment(ctx, volume_id, server.uuid)["id"]
    except VolumeUnusable as error:
        raise AttachInvalid(volume=volume_id, why=error.text) from None
    try:
        wanted = msgspec.structs.replace(wanted, attachment_id=reserved)
        added, workflow = _begin_attach(world, ctx, server, cell, wanted)
    except Exception:
        world.volumes.delete_attachment(ctx, reserved)
        raise
    wake(world, cell, workflow, ctx)
    return added


def _begin_attach(
    world: World, ctx: Context, server: Server, cell: str, device: BlockDevice
) -> tuple[BlockDevice, str]:
    database, _ = world.database(cell)
    with database.write() as connection:
        known = block_devices.read(connection, server.uuid)
        if any(other.volume_id == device.volume_id for other in known):
            raise AttachInvalid(volume=device.volume_id, why="it is attached to the server already")
        added = msgspec.structs.replace(device, device_name=_device(device.device_name, known))
        _claim(connection, actions.ROWS["attach-volume"], server)
        block_devices.insert(connection, server.uuid, [added])
        return added, _begin(world, connection, ctx, server, cell, "attach_volume", added)


def _check(world: World, ctx: Context, server: Server, name: str, shelved_allowed: bool) -> None:
    actions.check(actions.ROWS[name], server, ctx)
    if server.vm_state in _SHELVED and not shelved_allowed:
        raise ShelvedTooEarly(action=name, server=server.uuid, state=server.vm_state)


def _check_volume(volume: dict[str, Any], server: Server, known: list[BlockDevice], multiattach: bool) -> None:
    volume_id = volume["id"]
    if volume.get("multiattach") and not multiattach:
        raise AttachInvalid(volume=volume_id, why="volumes with multiattach need microversion 2.60")
    usable = ("available", "in-use") if volume.get("multiattach") else ("available",)
    if volume["status"] not in usable:
        raise AttachInvalid(volume=volume_id, why=f"it is {volume['status']}, not available")
    if any(device.volume_id == volume_id for device in known):
        raise AttachInvalid(volume=volume_id, why="it is attached to the server already")


def _device(asked: str | None, known: list[BlockDevice]) -> str:
    taken = {device.device_name for device in known}
    if asked:
        if asked in taken:
            raise DeviceInUse(device=asked)
        return asked
    return next(path for letter in string.ascii_lowercase if (path := f"/dev/vd{letter}") not in taken)


def _claim(connection: Connection, row: actions.Action, server: Server) -> None:
    if not actions.claim(connection, row, server):
        raise actions.WrongState(action=row.name, server=server.uuid, what="task_state", value="changing")


def _begin(
    world: World, connection: Connection, ctx: Context, server: Server, cell: str, name: str, device: BlockDevice
) -> str:
    _, tables = world.database(cell)
    workflow = ids.new_uuid()
    records.start(connection, server.uuid, name, ctx)
    params = {
        "device": msgspec.to_builtins(device), "host": server.host, "action": name,
        "event": f"compute_{name}",
    }  # fmt: skip
    row = journal.NewWorkflow(id=workflow, name=name, subject=server.uuid, params=params, context=ctx.to_message())
    journal.insert(connection, tables, row)
    return workflow


def detach(world: World, ctx: Context, found: Found, volume_id: str, *, shelved_allowed: bool) -> None:
    """Begin to detach a volume, in the order of checks of errors.md 12."""
    server, cell = in_cell(found)
    if server.vm_state in _SHELVED and not shelved_allowed:
        raise ShelvedTooEarly(action="detach-volume", server=server.uuid, state=server.vm_state)
    world.volumes.show(ctx, volume_id)
    device = one(world, found, volume_id)
    if device.boot_index == 0:
        raise DetachInvalid(volume=volume_id, why="it is the root device of the server")
    actions.check(actions.ROWS["detach-volume"], server, ctx)
    try:
        world.volumes.begin_detaching(ctx, volume_id)
    except VolumeUnusable as error:
        raise DetachInvalid(volume=volume_id, why=error.text) from None
    workflow = _begin_detach(world, ctx, server, cell, device)
    wake(world, cell, workflow, ctx)


def _begin_detach(world: World, ctx: Context, server: Server, cell: str, device: BlockDevice) -> str:
    database, _ = world.database(cell)
    try:
        with database.write() as connection:
            _claim(connection, actions.ROWS["detach-volume"], server)
            return _begin(world, connection, ctx, server, cell, "detach_volume", device)
    except Exception:
        world.volumes.roll_detaching(ctx, device.volume_id or "")
        raise


def change(world: World, found: Found, volume_id: str, asked: dict[str, Any]) -> None:
    """Change delete_on_termination; any other attribute must be as it is (2.85)."""
    server, cell = in_cell(found)
    device = one(world, found, volume_id)
    current = {"id": volume_id, "serverId": server.uuid, "device": device.device_name, "tag": device.tag}
    for name, value in current.items():
        if name in asked and asked[name] != value:
            raise ImmutableChanged(name=name, volume=volume_id)
    flag = asked.get("delete_on_termination", device.delete_on_termination)
    with world.cells.database(cell).write() as connection:
        block_devices.change(connection, device.uuid, delete_on_termination=flag)
        mirrored = [
            {**entry, "delete_on_termination": flag} if entry["id"] == volume_id else entry
            for entry in server.attachments
        ]
        servers.change(connection, server.uuid, {"attachments": mirrored})



"""Workflows `attach_volume` and `detach_volume`, in the server's cell (workflow-facts.md 6.14).

A server that is on no host has its volumes as rows and attachments only; the next host connects them.
"""

from __future__ import annotations

import msgspec

from kilonova.bus.calls import Disk, Ticket, guest_disk
from kilonova.clients.volumes import VolumeNotFound
from kilonova.compute.world import World
from kilonova.core.server import BlockDevice
from kilonova.db.queries import block_devices, servers
from kilonova.sql.engine import Connection
from kilonova.workflows import disks
from kilonova.workflows.step import NOTHING, Done, Failure, Run, Step, Workflow, Write
from kilonova.workflows.verbs import verb


def _device(run: Run) -> BlockDevice:
    return msgspec.convert(run.params["device"], BlockDevice)


def _host(run: Run) -> str | None:
    found: str | None = run.params["host"]
    return found


def connect(world: World, run: Run) -> Done:
    """Connect the attachment that was made when the volume was reserved."""
    device = _device(run)
    server = servers.get(world.cells.database(run.database), run.subject)
    if server is None:
        raise VolumeNotFound(volume=device.volume_id)
    attachment = disks.connect(world, run.ctx, server, device.attachment_id or "", device.device_name)

    def write(connection: Connection) -> None:
        block_devices.change(
            connection, device.uuid, attachment_id=attachment["id"],
            connection_info=disks.connection_text(attachment),
        )  # fmt: skip

    return Done({"attachment": attachment["id"], "disk": disks.disk_of(device, attachment)}, write)


def disconnect(world: World, run: Run) -> None:
    """Remove the attachment; gone already is fine."""
    disks.detach(world, run.ctx, run.subject, _device(run))


def _plug(world: World, run: Run, ticket: Ticket) -> Disk:
    return Disk(ticket, run.outputs["connect"]["disk"], attach=True)


def _unplug(world: World, run: Run, ticket: Ticket) -> Disk:
    return Disk(ticket, disks.disk_of(_device(run), None), attach=False)


def _mirror(connection: Connection, uuid: str) -> None:
    """What the server shows of its volumes follows the rows."""
    shown = [
        {"id": device.volume_id, "delete_on_termination": device.delete_on_termination}
        for device in block_devices.read(connection, uuid)
        if device.volume_id and device.attachment_id
    ]
    servers.change(connection, uuid, {"attachments": shown})


def attached(world: World, run: Run) -> Write:
    """The volume is in use."""
    world.volumes.complete_attachment(run.ctx, run.outputs["connect"]["attachment"])
    return lambda connection: _mirror(connection, run.subject)


def not_attached(world: World, run: Run, failure: Failure) -> Write:
    """The server has no such device, and the volume is free again."""
    disconnect(world, run)

    def write(connection: Connection) -> None:
        block_devices.delete(connection, _device(run).uuid)
        _mirror(connection, run.subject)

    return write


def gone(world: World, run: Run) -> Write:
    """The attachment and the device are no more."""
    disconnect(world, run)
    return lambda connection: _forget(connection, run)


def _forget(connection: Connection, run: Run) -> None:
    block_devices.delete(connection, _device(run).uuid)
    _mirror(connection, run.subject)


def still_there(world: World, run: Run, failure: Failure) -> Write:
    """The guest kept the disk: the volume is in use as before."""
    world.volumes.roll_detaching(run.ctx, _device(run).volume_id or "")
    return lambda connection: _mirror(connection, run.subject)


ATTACH = Workflow(
    "attach_volume",
    (
        Step("connect", connect, disconnect, event="compute_attach_volume", tries=3),
        Step("plug", verb(guest_disk, build=_plug, host=_host, seconds=600), NOTHING),
    ),
    action="attach_volume",
    on_done=attached,
    on_failed=not_attached,
)

DETACH = Workflow(
    "detach_volume",
    (Step("unplug", verb(guest_disk, build=_unplug, host=_host, seconds=600), NOTHING, event="compute_detach_volume"),),
    action="detach_volume",
    on_done=gone,
    on_failed=still_there,
)

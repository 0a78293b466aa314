"""A server's volumes: made, attached, found again after a crash, and given back.

A volume that we make carries the device's uuid in its metadata, an attachment is found by server and volume: so a
step that is run again finds its own work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kilonova.clients.volumes import VolumeUnusable
from kilonova.compute.world import World
from kilonova.core import json
from kilonova.core.context import Context
from kilonova.core.server import BlockDevice, Server

LOG = logging.getLogger(__name__)

OUR_KEY = "kilonova_device"
"""Metadata key of a volume that was made for a block device."""


def volumes_of(devices: list[BlockDevice]) -> list[BlockDevice]:
    """The devices that are volumes."""
    return [device for device in devices if device.destination_type == "volume" and not device.no_device]


def ensure_volume(world: World, ctx: Context, server: Server, device: BlockDevice, *, look: bool) -> dict[str, Any]:
    """The volume of a device, made from its source when it has none yet; it may still be under way."""
    if device.volume_id:
        return world.volumes.show(ctx, device.volume_id)
    if look:
        found = _made_before(world, ctx, device)
        if found is not None:
            return found
    fields: dict[str, Any] = {"name": "", "metadata": {OUR_KEY: device.uuid}, "volume_type": device.volume_type}
    if device.source_type == "image":
        fields["imageRef"] = device.image_id
    elif device.source_type == "snapshot":
        fields["snapshot_id"] = device.snapshot_id
    if not world.settings.cross_az_attach:
        fields["availability_zone"] = server.availability_zone
    given = {key: value for key, value in fields.items() if value is not None}
    return world.volumes.create(ctx, size=device.volume_size or 1, **given)


def _made_before(world: World, ctx: Context, device: BlockDevice) -> dict[str, Any] | None:
    return next(iter(_made_for(world, ctx, device)), None)


def _made_for(world: World, ctx: Context, device: BlockDevice) -> list[dict[str, Any]]:
    found = world.volumes.list_volumes(ctx)
    return [volume for volume in found if (volume.get("metadata") or {}).get(OUR_KEY) == device.uuid]


def drop_twin(world: World, ctx: Context, device: BlockDevice, volume: str, wanted: Callable[[], bool]) -> None:
    """Delete a volume made for a device when there is another one for it, or nobody wants one any more."""
    made = [one["id"] for one in _made_for(world, ctx, device)]
    if volume in made and (len(made) > 1 or not wanted()):
        world.volumes.delete(ctx, volume)


def attach(
    world: World, ctx: Context, server: Server, volume: str, device: str | None, *, look: bool
) -> dict[str, Any]:
    """The attachment of a volume to a server's host as a device (/dev/vdb …), with its connection_info."""
    if look:
        for found in _attachments(world, volume, server.uuid):
            return connect(world, ctx, server, found["id"], device)
    return world.volumes.create_attachment(ctx, volume, server.uuid, connector=_connector(server, device))


def _attachments(world: World, volume: str, server: str) -> list[dict[str, Any]]:
    """Whoever asks: an administrator's project is not the volume's."""
    return world.volumes.list_attachments(None, all_tenants=True, volume_id=volume, instance_id=server)


def connect(world: World, ctx: Context, server: Server, attachment: str, device: str | None) -> dict[str, Any]:
    """A reserved attachment, now to the server's host as a device. AttachmentNotFound."""
    return world.volumes.update_attachment(ctx, attachment, _connector(server, device))


def _connector(server: Server, device: str | None) -> dict[str, Any]:
    connector = {"host": server.host, "ip": "127.0.0.1", "initiator": f"iqn.2026-11.kilonova:{server.host}"}
    return connector | {"mountpoint": device} if device else connector


def release(world: World, ctx: Context, server: str, devices: list[BlockDevice]) -> None:
    """Detach a server's volumes, for good, and delete those flagged for it. ctx: in the server's project.

    What is gone already is fine. A volume that the volume service will not delete (it has snapshots, say) stays, with
    a line in the log: it is the user's, and no reason for the server to stay (workflow-facts 6.3).
    """
    for device in volumes_of(devices):
        volume = detach(world, ctx, server, device)
        if volume is not None and device.delete_on_termination:
            try:
                world.volumes.delete(ctx, volume)
            except VolumeUnusable as error:
                LOG.warning("Volume %s of server %s was to be deleted with it, but stays: %s", volume, server, error)


def take_back(world: World, ctx: Context, server: str, devices: list[BlockDevice]) -> None:
    """Undo what a build did: detach every volume, and delete those made for it. A user's own volume stays: another
    host may need it, and a server in ERROR has it still.
    """
    for device in volumes_of(devices):
        volume = detach(world, ctx, server, device)
        if volume is not None and device.source_type != "volume":
            world.volumes.delete(ctx, volume)


def detach(world: World, ctx: Context, server: str, device: BlockDevice) -> str | None:
    """Remove the attachments of a device's volume to the server; answers the volume, None when none was made."""
    volume = device.volume_id
    if volume is None:
        found = _made_before(world, ctx, device)
        volume = found["id"] if found else None
    if volume is not None:
        for attachment in _attachments(world, volume, server):
            world.volumes.delete_attachment(ctx, attachment["id"])
    return volume


def disk_of(device: BlockDevice, attachment: dict[str, Any] | None) -> dict[str, Any]:
    """A disk as a hypervisor needs to know it. size in GiB."""
    return {
        "device": device.device_name,
        "source": device.source_type if device.destination_type == "local" else "volume",
        "volume_id": device.volume_id,
        "image_id": device.image_id,
        "size": device.volume_size,
        "boot_index": device.boot_index,
        "bus": device.disk_bus,
        "connection": (attachment or {}).get("connection_info"),
        "tag": device.tag,
    }


def connection_text(attachment: dict[str, Any]) -> str:
    """The connection_info as the table keeps it."""
    return json.dump_str(attachment.get("connection_info") or {})

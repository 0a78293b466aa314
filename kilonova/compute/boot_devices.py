"""Block devices of a server to be: both request syntaxes become one list of `BlockDevice`, checked against rules
and against the volume service. Volumes are made and attached later, by `workflows.build`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from kilonova.clients.volumes import SnapshotNotFound, VolumeNotFound, VolumeTypeNotFound
from kilonova.compute.images import check_fits
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.errors import Invalid
from kilonova.core.request_spec import FlavorSpec, ImageSpec
from kilonova.core.server import BlockDevice

_BUSES = frozenset(("virtio", "ide", "scsi", "usb", "sata", "fdc", "xen", "lxc", "uml", "nvme"))


class DeviceInvalid(Invalid):
    """A block device that cannot be made as asked."""

    code, message = "device_invalid", "Block device mapping is invalid: {why}"


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of every server of a request. is_bfv: the root disk is a volume. image: what a root volume holds."""

    devices: list[BlockDevice]
    is_bfv: bool
    image: ImageSpec | None


def from_request(
    world: World,
    ctx: Context,
    *,
    legacy: list[dict[str, Any]] | None,
    modern: list[dict[str, Any]] | None,
    image: ImageSpec | None,
    flavor: FlavorSpec,
    multiattach_allowed: bool,
    count: int,
) -> Devices:
    """The devices that a request asks for, with the root disk from the image where none is named.

    Raises DeviceInvalid for what no volume service is needed to refuse, and for volumes that cannot be used.
    """
    if legacy and modern:
        raise DeviceInvalid(why="block_device_mapping and block_device_mapping_v2 cannot be used together.")
    asked = [_from_legacy(entry) for entry in legacy or []] + [_from_modern(entry, image) for entry in modern or []]
    devices = [device for device in asked if not device.no_device]
    root = next((device for device in devices if device.boot_index == 0), None)
    if root is None and image is not None and legacy:
        root = next((device for device in devices if device.device_name in ("vda", "/dev/vda")), None)
    if root is None:
        if image is None:
            raise DeviceInvalid(why="there is no device to boot from: give an image or a device with boot_index 0.")
        root = BlockDevice(
            uuid=ids.new_uuid(), source_type="image", destination_type="local", image_id=image.id, boot_index=0,
            device_type="disk", delete_on_termination=True, device_name="/dev/vda",
        )  # fmt: skip
        devices.insert(0, root)
    _check_order(devices)
    _check_local(world, devices, flavor)
    devices = [_checked(world, ctx, device, multiattach_allowed, count) for device in _named(devices)]
    root = next(device for device in devices if device.boot_index == 0)
    is_bfv = root.destination_type == "volume"
    boot_image = _root_image(world, ctx, root) if is_bfv and image is None else image
    if boot_image is not None:
        check_fits(boot_image, flavor, root_gb=root.volume_size if is_bfv else flavor.root_gb)
    return Devices(devices, is_bfv, boot_image)


def _from_legacy(entry: dict[str, Any]) -> BlockDevice:
    volume, snapshot = entry.get("volume_id"), entry.get("snapshot_id")
    virtual = entry.get("virtual_name")
    if virtual and not (volume or snapshot):
        raise DeviceInvalid(why="virtual names are not supported; name a volume or a snapshot.")
    no_device = bool(entry.get("no_device"))
    if not (volume or snapshot or no_device):
        raise DeviceInvalid(why="a volume or a snapshot is needed.")
    device = _device_path(entry.get("device_name"))
    return BlockDevice(
        uuid=ids.new_uuid(), source_type="snapshot" if snapshot and not volume else "volume",
        destination_type="volume", device_name=device, volume_id=volume, snapshot_id=snapshot,
        volume_size=entry.get("volume_size"), delete_on_termination=bool(entry.get("delete_on_termination")),
        boot_index=0 if device == "/dev/vda" else None, no_device=no_device,
    )  # fmt: skip


def _from_modern(entry: dict[str, Any], image: ImageSpec | None) -> BlockDevice:
    source, uuid = entry.get("source_type"), entry.get("uuid")
    no_device = bool(entry.get("no_device"))
    if not source and not no_device:
        raise DeviceInvalid(why="source_type is missing.")
    if source == "blank" and uuid:
        raise DeviceInvalid(why="a blank device has no uuid.")
    if source not in (None, "blank") and not uuid:
        raise DeviceInvalid(why=f"a device from {source} needs a uuid.")
    destination = entry.get("destination_type") or ("local" if source in ("blank", "image") else "volume")
    boot_index = _boot_index(entry.get("boot_index"))
    if source == "image" and destination == "local" and not (boot_index == 0 and image is not None):
        raise DeviceInvalid(why="an image can be mapped to local only as the boot disk of the server's own image.")
    if source in ("volume", "snapshot") and destination == "local":
        raise DeviceInvalid(why=f"a {source} cannot become a local disk.")
    volume_type = entry.get("volume_type")
    if volume_type and (destination == "local" or source == "volume"):
        raise DeviceInvalid(why="volume_type is only for volumes that are created.")
    if entry.get("disk_bus") and entry["disk_bus"] not in _BUSES:
        raise DeviceInvalid(why=f"disk bus {entry['disk_bus']!r} is unknown.")
    return BlockDevice(
        uuid=ids.new_uuid(), source_type=source or "blank", destination_type=destination, boot_index=boot_index,
        volume_id=uuid if source == "volume" else None, snapshot_id=uuid if source == "snapshot" else None,
        image_id=uuid if source == "image" else None, volume_size=entry.get("volume_size"), volume_type=volume_type,
        guest_format=entry.get("guest_format"), device_type=entry.get("device_type"), disk_bus=entry.get("disk_bus"),
        delete_on_termination=bool(entry.get("delete_on_termination", destination == "local")), no_device=no_device,
        tag=entry.get("tag"), device_name=_device_path(entry.get("device_name")),
    )  # fmt: skip


def _boot_index(value: Any) -> int | None:
    try:
        number = None if value is None else int(value)
    except (TypeError, ValueError):
        raise DeviceInvalid(why=f"boot_index {value!r} is not a number.") from None
    return None if number is None or number < 0 else number


def _device_path(name: str | None) -> str | None:
    return None if not name else name if name.startswith("/dev/") else f"/dev/{name}"


def _check_order(devices: list[BlockDevice]) -> None:
    order = sorted(device.boot_index for device in devices if device.boot_index is not None)
    if order != list(range(len(order))):
        raise DeviceInvalid(why=f"boot indexes must be 0, 1, 2 … without gaps or repetitions, not {order}.")


def _check_local(world: World, devices: list[BlockDevice], flavor: FlavorSpec) -> None:
    local = [device for device in devices if device.destination_type == "local"]
    limit = world.settings.max_local_block_devices
    if 0 <= limit < len(local):
        raise DeviceInvalid(why=f"there are more than {limit} local devices.")
    blank = [device for device in local if device.source_type == "blank"]
    swap = [device for device in blank if device.guest_format == "swap"]
    if len(swap) > 1:
        raise DeviceInvalid(why="more than one swap drive was requested.")
    if sum(device.volume_size or 0 for device in swap) * 1024 > flavor.swap and swap:
        raise DeviceInvalid(why="the swap drive is larger than the flavor allows.")
    ephemeral = sum(device.volume_size or 0 for device in blank if device.guest_format != "swap")
    if ephemeral > flavor.ephemeral_gb:
        raise DeviceInvalid(why="the ephemeral devices are larger than the flavor allows.")


def _named(devices: list[BlockDevice]) -> list[BlockDevice]:
    """Every device with a path, in boot order: those named keep theirs."""
    taken = {device.device_name for device in devices if device.device_name}
    free = (path for letter in "abcdefghijklmnopqrstuvwxyz" if (path := f"/dev/vd{letter}") not in taken)
    ordered = sorted(devices, key=lambda device: (device.boot_index is None, device.boot_index or 0))
    return [
        device if device.device_name else msgspec.structs.replace(device, device_name=next(free)) for device in ordered
    ]


def _checked(world: World, ctx: Context, device: BlockDevice, multiattach: bool, count: int) -> BlockDevice:
    if device.destination_type != "volume":
        return device
    try:
        if device.volume_type:
            world.volumes.show_type(ctx, device.volume_type)
        if device.volume_id:
            return _volume(world, ctx, device, multiattach, count)
        if device.snapshot_id:
            snapshot = world.volumes.show_snapshot(ctx, device.snapshot_id)
            size = device.volume_size or int(snapshot["size"])
            return msgspec.structs.replace(device, volume_size=size)
    except VolumeNotFound:
        raise DeviceInvalid(why=f"volume {device.volume_id} could not be found.") from None
    except SnapshotNotFound:
        raise DeviceInvalid(why=f"snapshot {device.snapshot_id} could not be found.") from None
    except VolumeTypeNotFound:
        raise DeviceInvalid(why=f"volume type {device.volume_type} could not be found.") from None
    if not device.volume_size:
        raise DeviceInvalid(why=f"a volume made from {device.source_type} needs a volume_size.")
    return device


def _volume(world: World, ctx: Context, device: BlockDevice, multiattach: bool, count: int) -> BlockDevice:
    volume = world.volumes.show(ctx, device.volume_id or "")
    if volume.get("multiattach"):
        if not multiattach:
            raise DeviceInvalid(why="volumes with multiattach need microversion 2.60.")
    elif count > 1:
        raise DeviceInvalid(why="several servers cannot boot with one volume.")
    usable = ("available", "in-use") if volume.get("multiattach") else ("available",)
    if volume["status"] not in usable:
        raise DeviceInvalid(why=f"volume {volume['id']} is {volume['status']}, not available.")
    if device.boot_index == 0 and str(volume.get("bootable")).lower() != "true":
        raise DeviceInvalid(why=f"volume {volume['id']} is not bootable.")
    return msgspec.structs.replace(device, volume_size=int(volume["size"]))


def _root_image(world: World, ctx: Context, root: BlockDevice) -> ImageSpec | None:
    """What a root volume knows of the image it was made from."""
    if root.image_id:
        from kilonova.compute.images import for_boot

        return for_boot(world, ctx, root.image_id)
    if not root.volume_id:
        return None
    found: dict[str, Any] = world.volumes.show(ctx, root.volume_id).get("volume_image_metadata") or {}
    known = {"min_ram", "min_disk", "size", "disk_format", "container_format", "image_id", "image_name", "checksum"}
    return ImageSpec(
        min_ram=int(found.get("min_ram") or 0), min_disk=int(found.get("min_disk") or 0),
        disk_format=found.get("disk_format"), container_format=found.get("container_format"),
        properties={key: value for key, value in found.items() if key not in known},
    )  # fmt: skip

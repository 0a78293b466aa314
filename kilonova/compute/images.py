"""Images as servers use them: the record read once, its properties split from its fields, fitness for a flavor."""

from __future__ import annotations

from typing import Any

from kilonova.clients.images import ImageNotFound
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Forbidden, Invalid
from kilonova.core.request_spec import FlavorSpec, ImageSpec

GIB = 1024**3

_FIELDS = frozenset((
    "id", "name", "status", "visibility", "owner", "size", "virtual_size", "min_disk", "min_ram", "disk_format",
    "container_format", "checksum", "os_hash_algo", "os_hash_value", "os_hidden", "protected", "tags", "created_at",
    "updated_at", "self", "file", "schema", "direct_url", "locations", "stores",
))  # fmt: skip

NEVER_STORED = frozenset(("img_block_device_mapping", "img_mappings", "mappings", "block_device_mapping", "bdm_v2"))
"""Properties that a server does not keep (server-view 1.3)."""


class ImageUnusable(Invalid):
    """The image is not there, not active, or not the caller's."""

    code, message = "image_unusable", "Image {image} {why}."


class FlavorTooSmall(Invalid):
    """The image asks for more than the flavor has."""

    code = "flavor_too_small"
    message = "Flavor's {what} is too small for image {image}: it needs {need}, there is {has}."


def of_record(record: dict[str, Any]) -> ImageSpec:
    """What of an image service's record a server keeps."""
    return ImageSpec(
        id=record["id"], name=record.get("name"), status=record.get("status", "active"),
        size=int(record.get("size") or 0), min_ram=int(record.get("min_ram") or 0),
        min_disk=int(record.get("min_disk") or 0), disk_format=record.get("disk_format"),
        container_format=record.get("container_format"), checksum=record.get("checksum"),
        owner=record.get("owner"),
        properties={key: value for key, value in record.items() if key not in _FIELDS and value is not None},
    )  # fmt: skip


def for_boot(world: World, ctx: Context, image_id: str) -> ImageSpec:
    """The image a server is to boot from; ImageUnusable when it cannot."""
    try:
        record = world.images.as_user(ctx).show(image_id)
    except (ImageNotFound, Forbidden):
        raise ImageUnusable(image=image_id, why="could not be found") from None
    if record.get("status") != "active":
        raise ImageUnusable(image=image_id, why=f"is not active but {record.get('status')}")
    return of_record(record)


def check_fits(image: ImageSpec, flavor: FlavorSpec, *, root_gb: int | None) -> None:
    """FlavorTooSmall unless memory (MiB) and root disk (GiB, None: not checked) are enough for the image."""
    if image.min_ram > flavor.memory_mb:
        raise FlavorTooSmall(what="memory", image=image.id, need=f"{image.min_ram} MiB", has=f"{flavor.memory_mb} MiB")
    if not root_gb:  # a root disk of 0 takes the image's own size
        return
    if image.min_disk > root_gb:
        raise FlavorTooSmall(what="disk", image=image.id, need=f"{image.min_disk} GiB", has=f"{root_gb} GiB")
    if image.size > root_gb * GIB:
        raise FlavorTooSmall(what="disk", image=image.id, need=f"{image.size} bytes", has=f"{root_gb} GiB")


def system_metadata(image: ImageSpec) -> dict[str, Any]:
    """The image's properties under `image_…`, values cut to 255 characters, with the fields that rebuilds look at."""
    kept = {f"image_{key}": str(value)[:255] for key, value in image.properties.items() if key not in NEVER_STORED}
    fields = {
        "min_ram": image.min_ram, "min_disk": image.min_disk, "disk_format": image.disk_format,
        "container_format": image.container_format, "base_image_ref": image.id,
    }  # fmt: skip
    return kept | {f"image_{key}": str(value) for key, value in fields.items() if value is not None}

"""Image records: what they look like, who may see and change them, what their attributes may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.context import Context
from kilonova.core.errors import Forbidden, Invalid, NotFound
from kilonova.embedded.images.files import ImageFiles
from kilonova.embedded.images.tables import IMAGES, MEMBERS
from kilonova.embedded.store import Row
from kilonova.http.fields import Arr, Bool, Enum, Field, Int, Obj, Str
from kilonova.http.op import Request
from kilonova.sql.engine import Database

VISIBILITIES = ("public", "private", "shared", "community")
DISK_FORMATS = (None, "ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop")
CONTAINER_FORMATS = (None, "ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")

_SIZE = Int(0, 2147483647, strict=True)
ATTRIBUTES: dict[str, Any] = {
    "name": Str(max=255, null=True),
    "visibility": Enum(*VISIBILITIES),
    "protected": Bool(strict=True),
    "os_hidden": Bool(strict=True),
    "min_disk": _SIZE,
    "min_ram": _SIZE,
    "disk_format": Enum(*DISK_FORMATS),
    "container_format": Enum(*CONTAINER_FORMATS),
    "tags": Arr(Str(max=255)),
    "owner": Str(max=255, null=True),
}
"""What clients may set; beside these, any property whose value is a string."""

READ_ONLY = (
    "id", "status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "created_at", "updated_at",
    "self", "file", "schema", "direct_url", "locations", "stores",
)  # fmt: skip
CREATE = Obj(Field("id", Str(format="uuid")), *(Field(name, kind) for name, kind in ATTRIBUTES.items()), open=True)
DEFAULTS: Row = {
    "name": None, "visibility": "shared", "container_format": None, "disk_format": None, "size": None,
    "virtual_size": None, "checksum": None, "os_hash_algo": None, "os_hash_value": None, "min_disk": 0, "min_ram": 0,
    "protected": False, "os_hidden": False, "tags": [], "properties": {},
}  # fmt: skip
_SHOWN = (
    "id", "name", "status", "visibility", "owner", "size", "virtual_size", "min_disk", "min_ram", "disk_format",
    "container_format", "checksum", "os_hash_algo", "os_hash_value", "os_hidden", "protected",
)  # fmt: skip


class ImageNotFound(NotFound):
    code, message = "image_not_found", "No image found with ID {id}."


class ReadOnly(Forbidden):
    code, message = "read_only", "Attribute '{name}' is read-only."


class NotYours(Forbidden):
    code, message = "not_yours", "You are not permitted to {what} this image."


class Protected(Forbidden):
    code, message = "protected", "Image {id} is protected and cannot be deleted."


class BadProperty(Invalid):
    code, message = "bad_property", "Property {name!r} must have 1 to 255 characters and a string as its value."


@dataclass(frozen=True)
class World:
    """What every request to the image service works with."""

    database: Database
    files: ImageFiles


def is_admin(ctx: Context) -> bool:
    """Whether the caller may see and change everybody's images."""
    return "admin" in ctx.roles


def owns(ctx: Context, row: Row) -> bool:
    """Whether the caller may change the image."""
    return is_admin(ctx) or (row["owner"] is not None and row["owner"] == ctx.project_id)


def find(connection: Connection, ctx: Context, image_id: str) -> Row:
    """The record, if the caller may see it. Raises ImageNotFound."""
    row = IMAGES.get(connection, image_id)
    if row is not None and (owns(ctx, row) or row["visibility"] in ("public", "community")):
        return row
    if row is not None and row["visibility"] == "shared":
        where = {"image_id": image_id, "member_id": ctx.project_id, "status": ("pending", "accepted")}
        if ctx.project_id and MEMBERS.find(connection, where):
            return row
    raise ImageNotFound(id=image_id)


def find_own(connection: Connection, ctx: Context, image_id: str, what: str = "modify") -> Row:
    """The record, if the caller may change it. Raises ImageNotFound and NotYours."""
    row = find(connection, ctx, image_id)
    if not owns(ctx, row):
        raise NotYours(what=what)
    return row


def check_allowed(ctx: Context, changes: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    """Refuse what only administrators may set: the public, and another owner."""
    if not is_admin(ctx) and changes.get("visibility") == "public" and row.get("visibility") != "public":
        raise NotYours(what="publicize")
    if not is_admin(ctx) and "owner" in changes and changes["owner"] != row.get("owner", ctx.project_id):
        raise NotYours(what="give away")


def check_property(name: str, value: Any) -> None:
    """Refuse a free property that cannot be kept."""
    if not 0 < len(name) <= 255 or not isinstance(value, str):
        raise BadProperty(name=name)


def stamped(changes: Row) -> Row:
    """The changes with the time of the change."""
    return {**changes, "updated_at": clock.utcnow()}


def view(req: Request, row: Row) -> dict[str, Any]:
    """The flat object that clients see. Links are paths below the service's prefix, as Glance's are."""
    path = f"/v2/images/{row['id']}"
    return {
        **row["properties"],
        **{name: row[name] for name in _SHOWN},
        "tags": row["tags"],
        "created_at": clock.iso_z(row["created_at"]),
        "updated_at": clock.iso_z(row["updated_at"]),
        "self": path,
        "file": f"{path}/file",
        "schema": "/v2/schemas/image",
    }

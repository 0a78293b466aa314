"""The WSGI application of the image service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import clock, ids
from kilonova.core.errors import Conflict, NotFound
from kilonova.embedded.dialects import IMAGES as DIALECT
from kilonova.embedded.images import data, members, schemas
from kilonova.embedded.images.files import ImageFiles
from kilonova.embedded.images.listing import list_images
from kilonova.embedded.images.patch import apply
from kilonova.embedded.images.records import (
    ATTRIBUTES,
    CREATE,
    DEFAULTS,
    READ_ONLY,
    Protected,
    ReadOnly,
    World,
    check_allowed,
    check_property,
    find,
    find_own,
    stamped,
    view,
)
from kilonova.embedded.images.tables import IMAGES, MEMBERS, metadata
from kilonova.embedded.store import Row, open_tables
from kilonova.http.app import App, Service
from kilonova.http.fields import Query
from kilonova.http.op import Answer, Op, Request
from kilonova.sql.engine import Database

_VERSIONS = ("v2.7", "v2.6", "v2.5", "v2.3", "v2.2", "v2.1", "v2.0")  # hidden images and SHA-512 came with 2.7


class ChangedMeanwhile(Conflict):
    code, message = "changed_meanwhile", "Image {id} was changed by another request; read it again."


class NoSuchTag(NotFound):
    code, message = "no_such_tag", "The image has no tag {tag!r}."


def _versions(req: Request) -> dict[str, Any]:
    links = [{"rel": "self", "href": f"{req.base_url}/v2/"}]
    return {"versions": [{"id": name, "status": "CURRENT" if name == _VERSIONS[0] else "SUPPORTED", "links": links}
                         for name in _VERSIONS]}  # fmt: skip


def _show(req: Request) -> dict[str, Any]:
    with req.world.database.read() as connection:
        return view(req, find(connection, req.ctx, req.path["id"]))


def new_row(body: Row, owner: str | None) -> Row:
    """The queued record of a create body. Raises ReadOnly and BadProperty."""
    now = clock.utcnow()
    given = {name: value for name, value in body.items() if name in ATTRIBUTES}
    properties = {name: value for name, value in body.items() if name not in given and name != "id"}
    for name, value in properties.items():
        if name in READ_ONLY:
            raise ReadOnly(name=name)
        check_property(name, value)
    image_id = ids.canonical_uuid(body["id"]) if "id" in body else ids.new_uuid()
    row = {**DEFAULTS, "owner": owner, **given, "id": image_id, "status": "queued", "properties": properties,
           "created_at": now, "updated_at": now}  # fmt: skip
    return {**row, "tags": list(dict.fromkeys(row["tags"]))}


def _create(req: Request) -> Answer:
    check_allowed(req.ctx, req.body, {})
    row = new_row(req.body, req.ctx.project_id)
    with req.world.database.write() as connection:
        IMAGES.insert(connection, row)
    return Answer(view(req, row), headers=(("Location", f"{req.base_url}/v2/images/{row['id']}"),))


def _store(connection: Connection, row: Row, changes: Row) -> Row:
    """Write the changes, unless somebody else changed the record since it was read."""
    changes = stamped(changes)
    if not IMAGES.update(connection, {"id": row["id"], "updated_at": row["updated_at"]}, changes):
        raise ChangedMeanwhile(id=row["id"])
    return {**row, **changes}


def _update(req: Request) -> dict[str, Any]:
    media_type = (req.header("Content-Type") or "").partition(";")[0].strip().lower()
    with req.world.database.write() as connection:
        row = find_own(connection, req.ctx, req.path["id"])
        changes = apply(row, media_type, req.body)
        check_allowed(req.ctx, changes, row)
        return view(req, _store(connection, row, changes))


def _delete(req: Request) -> None:
    with req.world.database.write() as connection:
        row = find_own(connection, req.ctx, req.path["id"], "delete")
        if row["protected"]:
            raise Protected(id=row["id"])
        MEMBERS.delete(connection, {"image_id": row["id"]})
        IMAGES.delete(connection, row["id"])
    req.world.files.remove(row["id"])


def _tasks(req: Request) -> dict[str, Any]:
    """There are none, ever: nothing here is done in the background."""
    with req.world.database.read() as connection:
        find(connection, req.ctx, req.path["id"])
    return {"tasks": []}


def _tag(req: Request) -> None:
    with req.world.database.write() as connection:
        row = find_own(connection, req.ctx, req.path["id"])
        tags = [tag for tag in row["tags"] if tag != req.path["tag"]]
        if req.op.method == "PUT":
            tags.append(req.path["tag"])
        elif tags == row["tags"]:
            raise NoSuchTag(tag=req.path["tag"])
        _store(connection, row, {"tags": tags})


_IMAGE = "/v2/images/{id}"
OPS: tuple[Op, ...] = (
    Op("GET", "", _versions, ok=300, auth=False),
    Op("GET", "/", _versions, ok=300, auth=False),
    Op("GET", "/versions", _versions, auth=False),
    Op("GET", "/v2/images", list_images, query=Query(open=True)),
    Op("POST", "/v2/images", _create, body=CREATE, ok=201, errors=(409,)),
    Op("GET", _IMAGE, _show),
    Op("PATCH", _IMAGE, _update, errors=(409,)),
    Op("DELETE", _IMAGE, _delete, ok=204),
    Op("GET", f"{_IMAGE}/tasks", _tasks),
    Op("PUT", f"{_IMAGE}/tags/{{tag}}", _tag, ok=204, errors=(409,)),
    Op("DELETE", f"{_IMAGE}/tags/{{tag}}", _tag, ok=204, errors=(409,)),
    *data.OPS,
    *members.OPS,
    *schemas.OPS,
)

NOT_SERVED: tuple[tuple[str, str], ...] = (
    ("/v2/images/{id}/import, /stage, /v2/info/import, /v2/tasks", "bytes come by PUT …/file"),
    ("/v2/info/stores, /v2/stores", "there is one store"),
    ("/v2/images/{id}/actions/deactivate, /reactivate", "an image is deleted or hidden instead"),
    ("/v2/images/{id}/locations", "the store is not shown"),
    ("/v2/metadefs", "definitions of metadata are not kept"),
    ("/v2/cache, /v2/cached_images, /v2/queued_images", "there is no cache to steer"),
)
"""What Glance has and this service does not, and why; these paths answer 404."""


def make_world(database: Database, data_dir: Path) -> World:
    """The image service over a database and a directory, both made ready; uploads that a crash cut off are reset."""
    open_tables(database, metadata)
    world = World(database, ImageFiles(data_dir))
    world.files.sweep()
    with database.write() as connection:
        IMAGES.update(connection, {"status": "saving"}, {"status": "queued"})
    return world


def make_app(world: World, auth_uri: str = "") -> App:
    """The WSGI callable, to be mounted behind the authenticating middleware."""
    return App(Service("image", OPS, world, DIALECT, auth_uri=auth_uri))

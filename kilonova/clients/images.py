"""Images (Glance v2): records as flat dictionaries, bytes as streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, Self

from kilonova.clients.rest import Doc, Response, RestClient, failure, query, segment
from kilonova.core import json
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, NotFound


class ImageNotFound(NotFound):
    code, message = "image_not_found", "Image {image} could not be found."


class ImageNotActive(Conflict):
    code, message = "image_not_active", "Image {image} is not active."


class ImageConflict(Conflict):
    code, message = "image_conflict", "Image {image} cannot be changed now: {reason}"


class Images(Protocol):
    """What compute needs of the image service."""

    def as_user(self, ctx: Context | None) -> Self: ...

    def show(self, image: str) -> Doc: ...

    def list_images(self, **filters: Any) -> list[Doc]: ...

    def create(self, body: Doc) -> Doc: ...

    def update(self, image: str, changes: Doc, remove: Iterable[str] = ()) -> Doc: ...

    def delete(self, image: str) -> bool: ...

    def upload(self, image: str, data: bytes | Iterable[bytes]) -> None: ...

    def download(self, image: str) -> Iterator[bytes]: ...


class HttpImages:
    """The image service over its REST API; the endpoint is the service's root, without `/v2`."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def as_user(self, ctx: Context | None) -> Self:
        """The same with the user's own token, where the request has one."""
        return type(self)(self._rest.as_user(ctx))

    def show(self, image: str) -> Doc:
        """The record, properties at its top level. ImageNotFound, also for one the caller may not see."""
        found: Doc = self._rest.call("GET", f"/v2/images/{segment(image)}", errors=_IMAGE, image=image)
        return found

    def list_images(self, **filters: Any) -> list[Doc]:
        """All images the filters leave (Glance's query parameters), page after page; one page when `limit` is given."""
        path: str | None = "/v2/images" + query(filters)
        found: list[Doc] = []
        while path:
            page = self._rest.call("GET", path)
            found.extend(page["images"])
            path = None if "limit" in filters else page.get("next")
        return found

    def create(self, body: Doc) -> Doc:
        """A queued record; `id` may be chosen by the caller. ImageConflict when the id is taken."""
        errors = {409: ImageConflict}
        found: Doc = self._rest.call("POST", "/v2/images", json=body, errors=errors, image=body.get("id", ""))
        return found

    def update(self, image: str, changes: Doc, remove: Iterable[str] = ()) -> Doc:
        """Set and remove properties. ImageNotFound; RemoteForbidden for a protected one."""
        patch: list[Doc] = [{"op": "add", "path": _pointer(key), "value": changes[key]} for key in changes]
        patch += [{"op": "remove", "path": _pointer(key)} for key in remove]
        response = self._rest.request(
            "PATCH",
            f"/v2/images/{segment(image)}",
            data=json.dumps(patch),
            headers={"Content-Type": "application/openstack-images-v2.1-json-patch"},
        )
        found: Doc = self._rest.expect(response, {404: ImageNotFound, 409: ImageConflict}, image=image)
        return found

    def delete(self, image: str) -> bool:
        """False when it was not there. RemoteForbidden for a protected one, ImageConflict for one in use."""
        response = self._rest.request("DELETE", f"/v2/images/{segment(image)}")
        if response.status == 404:
            return False
        return self._rest.expect(response, {409: ImageConflict}, image=image) is None

    def upload(self, image: str, data: bytes | Iterable[bytes]) -> None:
        """Fill a queued record. ImageNotFound; ImageConflict when it is filled already."""
        path = f"/v2/images/{segment(image)}/file"
        kind = {"Content-Type": "application/octet-stream"}
        status, headers, pieces = self._rest.stream("PUT", path, data, headers=kind)
        self._rest.expect(Response(status, headers, b"".join(pieces)), _UPLOAD, image=image)

    def download(self, image: str) -> Iterator[bytes]:
        """The bytes in pieces. ImageNotFound; ImageNotActive for a record without bytes."""
        status, headers, pieces = self._rest.stream("GET", f"/v2/images/{segment(image)}/file")
        if status == 204:
            raise ImageNotActive(image=image)
        if status != 200:
            raise failure("image", Response(status, headers, b"".join(pieces)), _IMAGE, image=image)
        return pieces


_IMAGE = {404: ImageNotFound, 403: ImageNotFound}
_UPLOAD = {404: ImageNotFound, 409: ImageConflict, 410: ImageNotFound}


def _pointer(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")

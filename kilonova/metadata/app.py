"""The WSGI application. Its paths are those of two trees of files, each with its rows; there are no operations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from kilonova.compute import guest_data
from kilonova.compute.world import World
from kilonova.core.errors import KilonovaError, NotFound
from kilonova.http.dialect import REASONS, Fault, plain
from kilonova.metadata import ec2, openstack
from kilonova.metadata.finding import Finder
from kilonova.metadata.reading import LATEST, Reading, listing
from kilonova.metadata.settings import Settings
from kilonova.sql.engine import unreachable

LOG = logging.getLogger(__name__)

_TEXT = (("Content-Type", openstack.TEXT),)
_READS = ("GET", "HEAD")


class NothingHere(NotFound):
    """The guest has no such data."""

    code, message = "nothing_here", "There is nothing at this path."


class MethodUnusable(KilonovaError):
    """All but the password is only read."""

    status, code, message = 405, "method_unusable", "{method} is not used here."


class MetadataApp:
    """The WSGI callable; SCRIPT_NAME is where it is mounted."""

    def __init__(self, world: World, settings: Settings) -> None:
        self._world, self._settings = world, settings
        self._finder = Finder(world, settings)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        start_response(f"{status} {REASONS[status]}", [*headers, ("Content-Length", str(len(body)))])
        return () if environ["REQUEST_METHOD"] == "HEAD" else (body,)

    def _answer(self, environ: dict[str, Any]) -> Fault:
        segments = [part for part in environ.get("PATH_INFO", "").split("/") if part]
        try:
            return self._read(environ, segments)
        except KilonovaError as error:
            if error.status >= 500:
                LOG.error("%s failed: %s", environ.get("PATH_INFO", ""), error.text)
            return plain(error.status, error.text, environ)
        except Exception as error:
            if unreachable(error):
                raise  # the middleware knows what to answer
            LOG.exception("Unexpected exception in %s", environ.get("PATH_INFO", ""))
            return plain(500, "Something of ours went wrong; try again.", environ)

    def _read(self, environ: dict[str, Any], segments: list[str]) -> Fault:
        method = environ["REQUEST_METHOD"]
        writes = method == "POST" and segments[:1] == ["openstack"] and openstack.is_password(segments[1:])
        if method not in _READS and not writes:
            raise MethodUnusable(method=method)
        if not segments:  # which versions there are is nobody's secret
            return 200, _TEXT, listing([*ec2.VERSIONS, LATEST])
        data = self._finder.find(environ)
        if writes:
            return self._set_password(data.server.uuid, environ)
        reading = Reading(self._world, self._settings, data)
        if segments[0] == "openstack":
            found = openstack.read(reading, segments[1:])
        else:
            content = ec2.read(reading, segments)
            found = None if content is None else (content, openstack.TEXT)
        if found is None:
            raise NothingHere
        return 200, (("Content-Type", found[1]),), found[0]

    def _set_password(self, uuid: str, environ: dict[str, Any]) -> Fault:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        password = environ["wsgi.input"].read(min(length, guest_data.PASSWORD_MOST + 1)) if length else b""
        guest_data.set_password(self._world, uuid, password)
        self._finder.forget(uuid)
        return 200, _TEXT, b""

"""Whose request it is: as Neutron's proxy says and signs, or by the address that it comes from; and the cache."""

from __future__ import annotations

import hashlib
import hmac
import threading
from typing import Any, Final

from kilonova.compute import guest_data
from kilonova.compute.guest_data import GuestData
from kilonova.compute.lookup import ServerNotFound
from kilonova.compute.world import World
from kilonova.core import clock
from kilonova.core.errors import Forbidden, Invalid
from kilonova.metadata.settings import Settings

_MOST: Final = 4096  # servers in the cache


class HeaderMissing(Invalid):
    """The proxy did not say who asks."""

    code, message = "header_missing", "The header {name} is missing from the request."


class SignatureWrong(Forbidden):
    """Whoever said who asks does not have the secret."""

    code, message = "signature_wrong", "The signature of the request is not valid."


class Finder:
    """Finds guests' data and keeps them for `settings.cache` seconds; 0 keeps nothing."""

    def __init__(self, world: World, settings: Settings) -> None:
        self._world, self._settings = world, settings
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, GuestData]] = {}

    def find(self, environ: dict[str, Any]) -> GuestData:
        """The data of the guest that asks. HeaderMissing, SignatureWrong, ServerNotFound, AddressNotFound."""
        if not self._settings.proxy:
            address = str(environ.get("REMOTE_ADDR", ""))
            return self._cached(address) or self._keep(address, guest_data.server_at(self._world, address))
        server, project = self._told(environ)
        data = self._cached(server) or self._keep(server, server)
        if data.server.project_id != project:
            raise ServerNotFound(server=server)  # the proxy and we do not mean the same server
        return data

    def forget(self, uuid: str) -> None:
        """Read this server anew next time."""
        with self._lock:
            self._kept = {key: kept for key, kept in self._kept.items() if kept[1].server.uuid != uuid}

    def _told(self, environ: dict[str, Any]) -> tuple[str, str]:
        """(server, project) of the proxy's headers."""
        values = []
        for name in ("X-Instance-ID", "X-Tenant-ID", "X-Instance-ID-Signature"):
            value = environ.get("HTTP_" + name.upper().replace("-", "_"))
            if not value:
                raise HeaderMissing(name=name)
            values.append(str(value))
        server, project, signature = values
        expected = sign(self._settings.secret, server)
        if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")):
            raise SignatureWrong
        return server, project

    def _cached(self, key: str) -> GuestData | None:
        kept = self._kept.get(key)
        return kept[1] if kept is not None and kept[0] > clock.monotonic() else None

    def _keep(self, key: str, uuid: str) -> GuestData:
        data = guest_data.by_id(self._world, uuid)
        if self._settings.cache > 0:
            now = clock.monotonic()
            with self._lock:
                if len(self._kept) >= _MOST:
                    self._kept = {name: kept for name, kept in self._kept.items() if kept[0] > now}
                if len(self._kept) < _MOST:
                    self._kept[key] = (now + self._settings.cache, data)
        return data


def sign(secret: str, server: str) -> str:
    """The signature of a server's id: HMAC with SHA-256, in hex."""
    return hmac.new(secret.encode(), server.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

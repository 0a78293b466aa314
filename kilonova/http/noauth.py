"""`[api] auth_strategy = noauth2`: whoever asks is believed, for tests of clients and for measurements.

The token is `user` or `user:project`; the user `admin` has the role admin, and roles, project and scope may be given
in the headers that the identity service's answer would fill. Whoever reaches the service can therefore do anything:
it is refused to requests that come from another machine.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from kilonova.core.errors import Invalid
from kilonova.http.auth import Refusal

NOAUTH: Final = "noauth2"

_ADMIN: Final = "admin"
_WHY: Final = "believes whatever a client says of itself, so it serves loopback addresses only"


class NoAuthElsewhere(Invalid):
    """Such a service would be reachable from outside."""

    code, message = "noauth_elsewhere", f"[api] auth_strategy = {NOAUTH} {_WHY}, not {{address}}."


class NoAuth:
    """Takes the place of `http.auth.Auth`."""

    def authenticate(self, environ: dict[str, Any]) -> Refusal | None:
        """Fill the identity headers from the token. A Refusal for a caller on another machine."""
        if not _is_local(environ):
            return _refusal()
        token = environ.get("HTTP_X_AUTH_TOKEN", "")
        environ["HTTP_X_IDENTITY_STATUS"] = "Confirmed" if token else "Invalid"
        if token:
            user, _, project = token.partition(":")
            environ["HTTP_X_USER_ID"] = user
            environ.setdefault("HTTP_X_PROJECT_ID", project or user)
            environ.setdefault("HTTP_X_ROLES", _ADMIN if user == _ADMIN else "")
        return None


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _is_local(environ: dict[str, Any]) -> bool:
    """Nothing is known of the other end of a Unix socket but that it is here; a proxy speaks for somebody else."""
    address = environ.get("REMOTE_ADDR", "")
    return (not address or is_loopback(address)) and not any(
        name in environ for name in ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED")
    )


def _refusal() -> Refusal:
    text = f"The authentication strategy {NOAUTH} {_WHY}.".encode()
    headers = [("Content-Type", "text/plain; charset=UTF-8"), ("Content-Length", str(len(text)))]
    return Refusal("403 Forbidden", headers, [text])

"""Addresses with passwords in them, as they may be shown.

What is shown keeps user and host, so that an operator sees which account is meant.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "****"

_USER = re.compile(r"(://[^:/@]*):[^@]*@")
_QUERY = re.compile(r"([?&](?:password|passwd|sslpassword)=)[^&]*", re.IGNORECASE)


def masked_database(url: str) -> str:
    """A database URL without its password, wherever it stands in it."""
    return _QUERY.sub(rf"\1{MASK}", _USER.sub(rf"\1:{MASK}@", url))


def masked_transport(url: str) -> str:
    """A message broker's URL without passwords; it may name several hosts, each with an account of its own."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    end = next((place for place, letter in enumerate(rest) if letter in "/?"), len(rest))
    hosts = ",".join(_masked_host(host) for host in rest[:end].split(","))
    return scheme + separator + hosts + _QUERY.sub(rf"\1{MASK}", rest[end:])


def _masked_host(host: str) -> str:
    account, at, address = host.rpartition("@")
    user, colon, _ = account.partition(":")
    return f"{user}:{MASK}@{address}" if at and colon else host

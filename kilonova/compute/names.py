"""Names of servers and the host names made from them."""

from __future__ import annotations

import re
import unicodedata

_OTHER = re.compile(r"[^a-z0-9.-]+")


def numbered(name: str, index: int) -> str:
    """The name of the n-th server of a request for several: `web-1`, `web-2`, …"""
    return f"{name}-{index + 1}"


def hostname_of(name: str, uuid: str) -> str:
    """A host name from a display name: lower-case letters, digits, `-` and `.`, 63 characters at most.

    `Server-<uuid>` when nothing of the name is left.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    plain = _OTHER.sub("-", plain.replace("_", "-").replace(" ", "-")).strip(".-")
    return plain[:63].strip(".-") or f"Server-{uuid}"

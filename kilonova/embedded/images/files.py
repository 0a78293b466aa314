"""The bytes of images: one file each, named by the image's id, hashed on the way in, never whole in memory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kilonova.core import ids

_CHUNK = 1024 * 1024
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class Source(Protocol):
    """Where bytes come from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Stored:
    """What was written: how much, MD5 and SHA-512 in hex, and the first bytes."""

    part: Path
    head: bytes
    size: int
    md5: str
    sha512: str


class ImageFiles:
    """The directory of the bytes. Names are ids only, so no request can reach any other file."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory

    def path(self, image_id: str) -> Path:
        """Where the bytes of an image are. Raises ValueError for anything but a UUID."""
        if not _ID.fullmatch(image_id):
            raise ValueError(image_id)
        return self._directory / image_id

    def receive(self, image_id: str, source: Source) -> Stored:
        """Write what the source has into a file beside the final one; `keep` or `discard` comes next."""
        part = self.path(image_id).with_suffix(f".{ids.new_hex()}.part")
        md5, sha512, size = hashlib.md5(usedforsecurity=False), hashlib.sha512(), 0
        head = b""
        try:
            with part.open("xb") as out:
                while piece := source.read(_CHUNK):
                    md5.update(piece)
                    sha512.update(piece)
                    head = head or piece[:64]
                    size += out.write(piece)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return Stored(part, head, size, md5.hexdigest(), sha512.hexdigest())

    def keep(self, image_id: str, stored: Stored) -> None:
        """Make what was received the image's bytes, in one step."""
        stored.part.replace(self.path(image_id))

    def discard(self, stored: Stored) -> None:
        """Forget what was received."""
        stored.part.unlink(missing_ok=True)

    def remove(self, image_id: str) -> None:
        """Delete an image's bytes, if there are any."""
        self.path(image_id).unlink(missing_ok=True)

    def pieces(self, image_id: str) -> Iterator[bytes]:
        """The bytes in pieces. Opened now, so that a deletion while they are read does no harm; OSError without."""
        file = self.path(image_id).open("rb")

        def read() -> Iterator[bytes]:
            with file:
                while piece := file.read(_CHUNK):
                    yield piece

        return read()

    def sweep(self) -> None:
        """Remove what uploads of an earlier process left half-done."""
        for part in self._directory.glob("*.part"):
            part.unlink(missing_ok=True)

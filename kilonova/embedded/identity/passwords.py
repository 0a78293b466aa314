"""Passwords and other secrets as salted scrypt hashes, and a short memory of which ones were right.

Knows nothing of users. The memory is keyed by an HMAC under a key that only this process has, so it holds no secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections import OrderedDict

from kilonova.core import clock, ids

# About 10 ms and 4 MiB a hash: dear enough for a guesser, cheap enough for a suite of thousands of accounts.
_COST, _BLOCK, _PARALLEL = 4096, 8, 1
_MEMORY_SECONDS = 300.0
_MEMORY_SIZE = 4096


def hash_secret(secret: str) -> str:
    """`scrypt$n$r$p$salt$hash`, with a fresh salt."""
    salt = ids.secret_bytes(16)
    digest = _scrypt(secret, salt, _COST, _BLOCK, _PARALLEL)
    return "$".join(("scrypt", str(_COST), str(_BLOCK), str(_PARALLEL), _text(salt), _text(digest)))


class Verifier:
    """Says whether a secret is the hashed one. A right one is remembered for five minutes, a wrong one never."""

    def __init__(self) -> None:
        self._key = ids.secret_bytes(32)
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()
        self._nobody: str | None = None

    def hash(self, secret: str) -> str:
        """`hash_secret`, and remembered at once: whoever makes an account mostly logs in with it next."""
        hashed = hash_secret(secret)
        self._remember(self._mark(secret, hashed))
        return hashed

    def matches(self, secret: str, hashed: str | None) -> bool:
        """Whether `secret` is what was hashed. Without a hash the answer is no, after the usual time."""
        if hashed is None:
            _matches(secret, self._decoy())
            return False
        mark = self._mark(secret, hashed)
        with self._lock:
            if self._seen.get(mark, 0.0) > clock.monotonic():
                return True
        if not _matches(secret, hashed):
            return False
        self._remember(mark)
        return True

    def _mark(self, secret: str, hashed: str) -> bytes:
        return hmac.digest(self._key, f"{hashed}\0{secret}".encode("utf-8", "surrogatepass"), "sha256")

    def _remember(self, mark: bytes) -> None:
        with self._lock:
            self._seen[mark] = clock.monotonic() + _MEMORY_SECONDS
            self._seen.move_to_end(mark)
            while len(self._seen) > _MEMORY_SIZE:
                self._seen.popitem(last=False)

    def _decoy(self) -> str:
        if self._nobody is None:
            self._nobody = hash_secret(ids.new_password())
        return self._nobody


def _matches(secret: str, hashed: str) -> bool:
    _, cost, block, parallel, salt, digest = hashed.split("$")
    found = _scrypt(secret, base64.b64decode(salt), int(cost), int(block), int(parallel))
    return hmac.compare_digest(found, base64.b64decode(digest))


def _scrypt(secret: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    data = secret.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, n=cost, r=block, p=parallel, dklen=32, maxmem=64 * 1024 * 1024)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()

"""The nine kinds of error. A domain error is two lines beside its noun: a kind, a stable code, a message.

This module knows nothing of HTTP bodies or of databases; `http` turns a kind into a status, an Op row may override it.
"""

from __future__ import annotations

from typing import Any, ClassVar


class KilonovaError(Exception):
    """What a user or another service may be told. `message` is a format string over the keyword details.

    `code` is stable and machine-readable; `status` is the HTTP status of the kind. Details travel over the bus
    as plain data (see `bus.codec`), so they must be strings, numbers, lists or maps.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    message: ClassVar[str] = "An unexpected condition was met."

    def __init__(self, text: str | None = None, /, **details: Any) -> None:
        self.details = details
        self.text = text if text is not None else self.message.format_map(details)
        super().__init__(self.text)


class Invalid(KilonovaError):
    """The request itself is wrong, whoever sends it and whenever: 400."""

    status, code, message = 400, "invalid", "The request is not valid."


class Unauthenticated(KilonovaError):
    """Nobody known is asking: 401."""

    status, code, message = 401, "unauthenticated", "The request needs a valid token."


class Forbidden(KilonovaError):
    """The caller is known and may not do this: 403."""

    status, code, message = 403, "forbidden", "You are not allowed to do this."


class OverQuota(KilonovaError):
    """A quota stands in the way: 403. The message names the quota and what raises it."""

    status, code, message = 403, "over_quota", "The quota is exceeded."


class NotFound(KilonovaError):
    """There is no such thing, or it is not the caller's to see: 404."""

    status, code, message = 404, "not_found", "The resource could not be found."


class Conflict(KilonovaError):
    """The request is fine but the state of things is not: 409."""

    status, code, message = 409, "conflict", "The request conflicts with the state of the resource."


class Gone(KilonovaError):
    """The operation existed once: 410."""

    status, code, message = 410, "gone", "This operation has been removed."


class Unsupported(KilonovaError):
    """The driver or the deployment cannot do this: 501."""

    status, code, message = 501, "unsupported", "This deployment does not support the operation."


class Unavailable(KilonovaError):
    """Another service that is needed does not answer: 503."""

    status, code, message = 503, "unavailable", "A service that is needed does not answer."


KINDS: tuple[type[KilonovaError], ...] = (
    Invalid, Unauthenticated, Forbidden, OverQuota, NotFound, Conflict, Gone, Unsupported, Unavailable,
)  # fmt: skip


def kind_of(error: KilonovaError) -> type[KilonovaError]:
    """The kind (one of KINDS) an error belongs to; KilonovaError itself for one that belongs to none."""
    return next((kind for kind in KINDS if isinstance(error, kind)), KilonovaError)

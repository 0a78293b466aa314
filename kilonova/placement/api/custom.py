"""Names that clients may make up."""

from __future__ import annotations

import re

from kilonova.http.op import Request
from kilonova.placement.errors import BadRequest

_CUSTOM = re.compile(r"\ACUSTOM_[A-Z0-9_]+\Z")


def custom_name(req: Request, what: str) -> str:
    """The `name` of the path, when it may be created; BadRequest says what a name must look like."""
    name = req.path["name"]
    if len(name) > 255 or not _CUSTOM.match(name):
        raise BadRequest(
            f'The {what} {name} is invalid. A valid {what} must be no longer than 255 characters, start with the '
            f'prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    return name

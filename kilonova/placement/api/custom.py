"""Names in paths that clients may make up."""

from __future__ import annotations

from functools import cache

from kilonova.http.op import Request
from kilonova.http.validate import Validator
from kilonova.placement.api.answers import CUSTOM_NAME
from kilonova.placement.errors import BadRequest

TRAIT_RULE = (
    'The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "CUSTOM_" '
    'and use following characters: "A"-"Z", "0"-"9" and "_"'
)


@cache
def _validator() -> Validator:
    return Validator(CUSTOM_NAME.schema(None))


def custom_trait(req: Request) -> str:
    """The trait's name in the path, when it may be created; BadRequest says what a name must look like."""
    name = req.path["name"]
    if not _validator().fits(name):
        raise BadRequest(TRAIT_RULE)
    return name


def custom_class(req: Request) -> str:
    """The class's name in the path, when it may be created; BadRequest with the validator's report."""
    name = req.path["name"]
    if not _validator().fits(name):
        raise BadRequest(f"JSON does not validate: {_validator().why_not(name)[3]}")
    return name

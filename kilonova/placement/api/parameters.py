"""The little languages of Placement's query parameters: resources, required, member_of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kilonova.core import ids
from kilonova.placement.errors import BadRequest, ContradictingTraits
from kilonova.placement.store.names import Names

_INTEGER = re.compile(r"\A-?[0-9]{1,18}\Z")

ROOT = "root_required"
"""The parameter that has no alternatives at any version."""

Traits = tuple[tuple[frozenset[int], ...], frozenset[int]]
"""Sets of which one trait each is required, and forbidden traits."""

Aggregates = tuple[tuple[frozenset[str], ...], frozenset[str]]
"""Sets of which one membership each is required, and forbidden aggregates."""


def resources(text: str, names: Names, key: str = "resources") -> tuple[tuple[int, int], ...]:
    """(class id, amount) pairs of `VCPU:2,MEMORY_MB:512`."""
    where = _of_group(key, "resources")
    found: dict[int, int] = {}
    for part in text.split(","):
        name, colon, amount = (piece.strip() for piece in part.partition(":"))
        if not colon or not name:
            raise BadRequest(
                "Badly formed resources parameter. Expected resources query string parameter in form: "
                f"?resources=VCPU:2,MEMORY_MB:1024. Got: {part.strip() if text.strip() else 'empty string'}.{where}"
            )
        if not _INTEGER.match(amount):
            raise BadRequest(f"Requested resource {name} expected positive integer amount. Got: {amount}.{where}")
        if int(amount) < 1:
            raise BadRequest(f"Requested resource {name} requires amount >= 1. Got: {amount}.{where}")
        if name not in names.class_ids:
            raise BadRequest(f"Invalid resource class in resources parameter: No such resource class {name}.{where}")
        found[names.class_ids[name]] = int(amount)
    return tuple(found.items())


def required(values: Sequence[str], names: Names, *, forbidding: bool, any_of: bool, key: str = "required") -> Traits:
    """The traits of all values of one `required` parameter; without `any_of` the last value alone counts."""
    sets: list[frozenset[int]] = []
    forbidden: set[int] = set()
    for value in (values if any_of else values[-1:]):
        if value.startswith("in:") and not any_of and key != ROOT:
            form = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39."
            raise BadRequest(f"{form} The parameter is {key}.")
        if value.startswith("in:") and key != ROOT:
            sets.append(frozenset(_trait_ids(value.removeprefix("in:"), value, names, key, forbidding)))
            continue
        wanted, unwanted = _split(value, key, forbidding)
        sets.extend(frozenset((id_,)) for id_ in _known(wanted, names, key))
        forbidden.update(_known(unwanted, names, key))
    contradicted = [one for one in sets if one <= forbidden]
    if contradicted:
        shown = sorted(names.trait_names[id_] for one in contradicted for id_ in one)
        raise ContradictingTraits(f"Conflicting required and forbidden traits found in {key}: {', '.join(shown)}")
    return tuple(dict.fromkeys(sets)), frozenset(forbidden)


def _of_group(key: str, plain: str) -> str:
    """Which of many parameters is meant, where the words are the same for all."""
    return "" if key == plain else f" The parameter is {key}."


def _trait_ids(listed: str, value: str, names: Names, key: str, forbidding: bool) -> list[int]:
    if "!" in listed:
        raise _bad_traits(key, value, forbidding)
    wanted, _ = _split(listed, key, forbidding)
    return _known(wanted, names, key)


def _split(value: str, key: str, forbidding: bool) -> tuple[list[str], list[str]]:
    """Wanted and unwanted names of `A,!B`."""
    wanted: list[str] = []
    unwanted: list[str] = []
    for part in (piece.strip() for piece in value.split(",")):
        name = part.removeprefix("!") if forbidding else part
        if not name or "!" in name or ":" in name:
            raise _bad_traits(key, value, forbidding)
        (unwanted if name != part else wanted).append(name)
    return wanted, unwanted


def _bad_traits(key: str, value: str, forbidding: bool) -> BadRequest:
    form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if forbidding else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    return BadRequest(
        f"Invalid query string parameters: Expected '{key}' parameter value of the form: {form}. Got: {value}"
    )


def _known(wanted: Sequence[str], names: Names, key: str) -> list[int]:
    unknown = sorted(name for name in wanted if name not in names.trait_ids)
    if unknown:
        raise BadRequest(f"No such trait(s): {', '.join(unknown)}.{_of_group(key, 'required')}")
    return [names.trait_ids[name] for name in wanted]


def member_of(values: Sequence[str], *, forbidding: bool, repeats: bool, key: str = "member_of") -> Aggregates:
    """The aggregates of all values of one `member_of` parameter; several are refused without `repeats`."""
    sets: list[frozenset[str]] = []
    forbidden: set[str] = set()
    if len(values) > 1 and not repeats:
        raise BadRequest(f"Multiple {key} parameters are not supported")
    for value in (text.strip() for text in values):
        if value.startswith("!") and not forbidding:
            raise BadRequest(f"Forbidden member_of parameters are not supported in the specified microversion: {value}")
        negative = value.startswith("!")
        listed = value.removeprefix("!") if negative else value
        parts = listed.removeprefix("in:").split(",") if listed.startswith("in:") else [listed]
        if "," in parts[0]:
            raise BadRequest(
                f"Multiple values for '{key}' must be prefixed with the 'in:' or '!in:' keyword using the valid "
                f"microversion. Got: {value}"
            )
        if not all(ids.is_uuid_like(part) for part in parts):
            raise BadRequest(
                f"Invalid query string parameters: Expected '{key}' parameter to contain valid UUID(s). Got: {value}"
            )
        uuids = frozenset(ids.canonical_uuid(part) for part in parts)
        if negative:
            forbidden |= uuids
        else:
            sets.append(uuids)
    return tuple(dict.fromkeys(sets)), frozenset(forbidden)


def tree(value: str, key: str = "in_tree") -> str:
    """The UUID of `in_tree`."""
    if not ids.is_uuid_like(value.strip()):
        raise BadRequest(f"Expected '{key}' parameter to be a format of uuid. Got: {value}")
    return ids.canonical_uuid(value.strip())

"""From the query of GET /allocation_candidates to a request for the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kilonova.http.op import Request
from kilonova.placement.api import parameters
from kilonova.placement.candidates.request import Group, Query
from kilonova.placement.errors import (
    BadQueryValue,
    BadRequest,
    ContradictingTraits,
    DuplicateQueryKey,
    MissingQueryValue,
)
from kilonova.placement.store.names import Names

FLAGS = {
    "traits": "1.17",
    "forbidden_traits": "1.22",
    "repeated_aggregates": "1.24",
    "granular": "1.25",
    "all_classes": "1.27",
    "nested": "1.29",
    "forbidden_aggregates": "1.32",
    "word_suffixes": "1.33",
    "mappings": "1.34",
    "placing_groups": "1.36",
    "any_traits": "1.39",
    "in_tree": "1.31",
    "by_provider": "1.12",
}

Given = dict[str, dict[str, list[str]]]
"""Values by suffix and parameter."""

_NUMBERED = re.compile(r"\A(resources|required|member_of|in_tree)([1-9][0-9]*)\Z")
_NAMED = re.compile(r"\A(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})\Z")


def read(req: Request, names: Names) -> Query:
    """The request for the engine; BadRequest and its kin for what the rules of placement-facts §7 refuse."""
    given = _by_suffix(req)
    if req.flag("placing_groups") and not any("resources" in values for values in given.values()):
        raise MissingQueryValue("There must be at least one resources or resources[$S] parameter.")
    subtrees = _subtrees(req, given)
    _check_resources(req, given, subtrees)
    groups = [_group(req, names, suffix, values) for suffix, values in sorted(given.items())]
    suffixed = [group for group in groups if group.suffix]
    policy = req.query["group_policy"][0] if "group_policy" in req.query else None
    if len(suffixed) > 1 and policy is None:
        raise BadRequest(
            'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
        )
    root_required, root_forbidden = _root(req, names)
    limit = int(req.query["limit"][0]) if req.query.get("limit") else None
    return Query(
        tuple(groups), policy == "isolate", subtrees, root_required, root_forbidden, limit, req.flag("nested")
    )


def _by_suffix(req: Request) -> Given:
    """Values by suffix and parameter; an unknown key is refused."""
    given: Given = {}
    for key in ("resources", "required", "member_of", "in_tree"):
        if key in req.query:
            value = req.query[key]
            given.setdefault("", {})[key] = value if isinstance(value, list) else [value]
    known = req.op.query.known(req.version) if req.op.query else {}
    pattern = _NAMED if req.flag("word_suffixes") else _NUMBERED
    for key, values in req.query.items():
        if key in known:
            continue
        match = pattern.match(key) if req.flag("granular") else None
        if match is None or (match.group(1) == "in_tree" and not req.flag("in_tree")):
            raise _unknown(req, key)
        given.setdefault(match.group(2), {})[match.group(1)] = values
    return given


def _unknown(req: Request, key: str) -> BadRequest:
    start = "Invalid query string parameters: "
    if not req.flag("granular"):
        return BadRequest(f"{start}Additional properties are not allowed ('{key}' was unexpected)")
    suffix = "([a-zA-Z0-9_-]{1,64})?" if req.flag("word_suffixes") else "([1-9][0-9]*)?"
    names = ("in_tree", "member_of", "required", "resources")[0 if req.flag("in_tree") else 1 :]
    forms = ", ".join(f"'^{name}{suffix}$'" for name in names)
    return BadRequest(f"{start}'{key}' does not match any of the regexes: {forms}")


def _group(req: Request, names: Names, suffix: str, values: Mapping[str, list[str]]) -> Group:
    group = Group(suffix)
    if "resources" in values:
        group = replace(group, resources=parameters.resources(values["resources"][-1], names, "resources" + suffix))
    if "required" in values:
        required, forbidden = parameters.required(
            values["required"], names, forbidding=req.flag("forbidden_traits"), any_of=req.flag("any_traits"),
            key="required" + suffix,
        )  # fmt: skip
        group = replace(group, required=required, forbidden=forbidden)
    if "member_of" in values:
        member_of, not_member_of = parameters.member_of(
            values["member_of"], forbidding=req.flag("forbidden_aggregates"),
            repeats=req.flag("repeated_aggregates"), key="member_of" + suffix,
        )  # fmt: skip
        group = replace(group, member_of=member_of, not_member_of=not_member_of)
    if "in_tree" in values:
        group = replace(group, in_tree=parameters.tree(values["in_tree"][-1], "in_tree" + suffix))
    return group


def _subtrees(req: Request, given: Given) -> tuple[frozenset[str], ...]:
    found = []
    for value in req.query.get("same_subtree", ()):
        suffixes = [piece.strip() for piece in value.split(",")]
        if "" in suffixes:
            raise BadQueryValue(f"Empty string (unsuffixed group) can not be specified in `same_subtree` ({value}).")
        unknown = sorted(set(suffixes) - given.keys())
        if unknown:
            raise BadQueryValue(
                f"Real suffixes should be specified in `same_subtree`: {', '.join(unknown)} not found in the query."
            )
        found.append(frozenset(suffixes))
    return tuple(found)


def _check_resources(req: Request, given: Given, subtrees: tuple[frozenset[str], ...]) -> None:
    """Every group asks for something, or (from 1.36) is placed beside one that does."""
    bare = sorted(suffix for suffix, values in given.items() if "resources" not in values)
    if not req.flag("granular"):
        if bare or not given:
            raise BadRequest("Invalid query string parameters: 'resources' is a required property")
    elif not given:
        raise BadRequest("At least one request group (`resources` or `resources{$S}`) is required.")
    elif not req.flag("placing_groups") or "" in bare:
        if bare:
            raise _orphaned(given, bare)
    elif not frozenset(bare) <= frozenset[str]().union(*subtrees):
        raise BadQueryValue("Resourceless suffixed group request should be specified in `same_subtree` query param.")


def _orphaned(given: Given, bare: list[str]) -> BadRequest:
    """What says which conditions have no resources to go with."""
    for key, what in (("required", "traits"), ("member_of", "member_of")):
        keys = [key + suffix for suffix in bare if key in given[suffix]]
        if keys:
            return BadRequest(
                f"All {what} parameters must be associated with resources. "
                f"Found the following orphaned {what} keys: {', '.join(keys)}"
            )
    return BadRequest("All request groups must specify resources.")


def _root(req: Request, names: Names) -> tuple[frozenset[int], frozenset[int]]:
    values = req.query.get("root_required", ())
    if len(values) > 1:
        raise DuplicateQueryKey("Query parameter 'root_required' may be specified only once.")
    if not values:
        return frozenset(), frozenset()
    try:
        sets, forbidden = parameters.required(values, names, forbidding=True, any_of=False, key=parameters.ROOT)
    except ContradictingTraits as error:
        raise BadQueryValue(error.text) from None
    return frozenset().union(*sets) if sets else frozenset(), forbidden

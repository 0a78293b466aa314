"""From the query of GET /allocation_candidates to a request for the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kilonova.http.op import Request
from kilonova.placement.api import parameters
from kilonova.placement.candidates.request import Group, Query
from kilonova.placement.errors import BadQueryValue, BadRequest, DuplicateQueryKey, MissingQueryValue
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

_NUMBERED = re.compile(r"\A(resources|required|member_of|in_tree)([1-9][0-9]*)\Z")
_NAMED = re.compile(r"\A(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})\Z")


def read(req: Request, names: Names) -> Query:
    """The request for the engine; BadRequest and its kin for what the rules of placement-facts §7 refuse."""
    given = _by_suffix(req)
    groups = [_group(req, names, suffix, values) for suffix, values in sorted(given.items())]
    subtrees = _subtrees(req, given)
    _check_resources(req, groups, subtrees)
    suffixed = [group for group in groups if group.suffix]
    policy = req.query.get("group_policy")
    if len(suffixed) > 1 and policy is None:
        raise BadRequest(
            'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
        )
    root_required, root_forbidden = _root(req, names)
    limit = int(req.query["limit"][0]) if req.query.get("limit") else None
    return Query(
        tuple(groups), policy == "isolate", subtrees, root_required, root_forbidden, limit, req.flag("nested")
    )


def _by_suffix(req: Request) -> dict[str, dict[str, list[str]]]:
    """Values by suffix and parameter; an unknown key is refused."""
    given: dict[str, dict[str, list[str]]] = {}
    for key in ("resources", "required", "member_of", "in_tree"):
        if key in req.query:
            value = req.query[key]
            given.setdefault("", {})[key] = value if isinstance(value, list) else [value]
    known = {param.name for param in req.op.query.params} if req.op.query else set()
    pattern = _NAMED if req.flag("word_suffixes") else _NUMBERED
    for key, values in req.query.items():
        if key in known:
            continue
        match = pattern.match(key) if req.flag("granular") else None
        if match is None or (match.group(1) == "in_tree" and not req.flag("in_tree")):
            raise BadRequest(
                f"Invalid query string parameters: Additional properties are not allowed ('{key}' was unexpected)"
            )
        given.setdefault(match.group(2), {})[match.group(1)] = values
    return given


def _group(req: Request, names: Names, suffix: str, values: Mapping[str, list[str]]) -> Group:
    group = Group(suffix)
    if "resources" in values:
        group = replace(group, resources=parameters.resources(values["resources"][-1], names))
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


def _subtrees(req: Request, given: Mapping[str, Any]) -> tuple[frozenset[str], ...]:
    found = []
    for value in req.query.get("same_subtree", ()):
        suffixes = value.split(",")
        if "" in suffixes:
            raise BadQueryValue(f"Empty string (unsuffixed group) can not be specified in `same_subtree` ({value}).")
        unknown = sorted(set(suffixes) - given.keys())
        if unknown:
            raise BadQueryValue(
                f"Real suffixes should be specified in `same_subtree`: {', '.join(unknown)} not found in the query."
            )
        found.append(frozenset(suffixes))
    return tuple(found)


def _check_resources(req: Request, groups: list[Group], subtrees: tuple[frozenset[str], ...]) -> None:
    """Every group asks for something, or (from 1.36) is placed beside one that does."""
    bare = [group for group in groups if not group.resources]
    if len(bare) == len(groups):
        kind = MissingQueryValue if req.flag("placing_groups") else BadRequest
        raise kind("At least one request group (`resources` or `resources{$S}`) is required.")
    if not req.flag("granular") and any(not group.suffix for group in bare):
        raise BadRequest("Invalid query string parameters: 'resources' is a required property")
    placed = frozenset[str]().union(*subtrees)
    for group in bare:
        if group.suffix and group.suffix in placed and req.flag("placing_groups"):
            continue
        raise BadRequest(
            f"All traits, aggregates and trees must be associated with resources: the parameters with suffix "
            f"'{group.suffix}' are orphaned."
        )


def _root(req: Request, names: Names) -> tuple[frozenset[int], frozenset[int]]:
    values = req.query.get("root_required", ())
    if len(values) > 1:
        raise DuplicateQueryKey("Query parameter 'root_required' may be specified only once.")
    if not values:
        return frozenset(), frozenset()
    try:
        sets, forbidden = parameters.required(
            values, names, forbidding=True, any_of=False, key="root_required"
        )
    except BadRequest as error:
        if "Conflicting" in error.text:
            raise BadQueryValue(error.text) from None
        raise
    return frozenset().union(*sets) if sets else frozenset(), forbidden

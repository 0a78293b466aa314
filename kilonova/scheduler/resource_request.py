"""From a request spec to the question put to Placement: groups of resources and traits, then a query string.

One unnamed group (suffix "") may be served by several providers of a tree; a named one by a single provider. It must
not know hosts: which provider tree is wanted is an argument.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import os_resource_classes

from kilonova.core.request_spec import FlavorSpec, RequestSpec, ResourceGroup
from kilonova.scheduler.guest_features import needs
from kilonova.scheduler.plugins import Additions

LOG = logging.getLogger(__name__)

_KEY = re.compile(r"^(resources|trait)([A-Za-z0-9_-]{0,64}):(.+)$")
_CUSTOM = re.compile(r"^CUSTOM_[A-Z0-9_]+$")
_CLASSES = frozenset(os_resource_classes.STANDARDS)
_POLICIES = ("none", "isolate")
UNLIMITED_HINTS = ("group", "same_host", "different_host")
"""Hints for which a cut answer could leave out the only right host."""


@dataclass(slots=True)
class Group:
    """One group while it is put together."""

    resources: dict[str, int] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    member_of: list[str] = field(default_factory=list)
    in_tree: str | None = None

    def __bool__(self) -> bool:
        return bool(self.resources or self.required or self.forbidden or self.member_of or self.in_tree)


def to_query(
    spec: RequestSpec, additions: Additions, *, in_tree: str | None = None, limit: int | None = None,
    pinned: bool = True,
) -> str:  # fmt: skip
    """The query string of `GET /allocation_candidates`, URL-encoded and sorted by name and value.

    in_tree: the only provider tree that may answer. limit: at most so many answers, None for all. pinned: False asks
    for virtual CPUs where the flavor pins them (hosts that report no PCPU yet).
    """
    groups, policy = _groups(spec, pinned=pinned)
    unnamed = groups.setdefault("", Group())
    unnamed.member_of += [f"in:{','.join(sorted(uuids))}" for uuids in additions.aggregates]
    if additions.forbidden_aggregates:
        unnamed.member_of.append(f"!in:{','.join(sorted(additions.forbidden_aggregates))}")
    unnamed.in_tree = in_tree
    pairs = [pair for suffix, group in groups.items() if group for pair in _pairs(suffix, group)]
    if policy is not None:
        pairs.append(("group_policy", policy))
    if additions.required or additions.forbidden:
        pairs.append(("root_required", _traits(additions.required, additions.forbidden)))
    pairs += [("same_subtree", ",".join(sorted(suffixes))) for suffixes in _same_subtree(spec)]
    if limit is not None:
        pairs.append(("limit", str(limit)))
    return urlencode(sorted(pairs))


def requested_traits(spec: RequestSpec) -> set[str]:
    """Every trait that the flavor or the image requires, in whatever group."""
    return {trait for group in _groups(spec)[0].values() for trait in group.required}


def port_groups(entry: Mapping[str, Any]) -> list[ResourceGroup]:
    """What the port of an interface asks of a network back end: nothing, one group in the old form (its suffix is the
    port's id), or the groups that its `resource_request` names.
    """
    asked = entry.get("resource_request") or {}
    rows = asked.get("request_groups")
    if rows is None:
        rows = [{**asked, "id": entry["port"]}] if asked else []
    return [ResourceGroup(row["id"], dict(row["resources"]), tuple(row.get("required", ()))) for row in rows]


def _same_subtree(spec: RequestSpec) -> Iterable[list[str]]:
    for entry in spec.requested_networks:
        if named := (entry.get("resource_request") or {}).get("same_subtree"):
            yield named


def _groups(spec: RequestSpec, *, pinned: bool = True) -> tuple[dict[str, Group], str | None]:
    groups, policy = _from_extra_specs(spec.flavor)
    own = sum(1 for suffix in groups if suffix)
    unnamed = groups.setdefault("", Group())
    for key, value in spec.image.properties.items():
        if key.startswith("trait:") and value == "required":
            unnamed.required.add(key.removeprefix("trait:"))
    _add_requested(groups, spec)
    for need in needs(spec, pinned=pinned):
        unnamed.resources.update(need.resources)
        unnamed.required |= need.required
        unnamed.forbidden |= need.forbidden
    _add_defaults(groups, spec)
    for group in groups.values():
        group.resources = {name: amount for name, amount in group.resources.items() if amount}
    named = [suffix for suffix, group in groups.items() if suffix and group]
    if len(named) > 1 and policy is None:
        LOG.warning("%d groups of resources with names, and no group_policy in flavor %s", len(named), spec.flavor.name)
        if own <= 1:  # the user cannot know of groups that ports and devices bring
            LOG.info("group_policy is none for flavor %s, because it has not several groups itself", spec.flavor.name)
            policy = "none"
    return groups, policy


def _add_requested(groups: dict[str, Group], spec: RequestSpec) -> None:
    """Groups of ports and devices. ValueError for one without content or name, or with a name that is taken."""
    rows = [group for entry in spec.requested_networks for group in port_groups(entry)]
    for row in (*rows, *spec.requested_resources):
        if not row.requester or not (row.resources or row.required or row.forbidden):
            raise ValueError(f"The group of resources {row.requester!r} asks for nothing, or nobody asks for it.")
        if row.requester in groups:
            raise ValueError(f"Two groups of resources have the name {row.requester}.")
        groups[row.requester] = Group(dict(row.resources), set(row.required), set(row.forbidden))


def _from_extra_specs(flavor: FlavorSpec) -> tuple[dict[str, Group], str | None]:
    groups: dict[str, Group] = {}
    policy: str | None = None
    for key, value in flavor.extra_specs.items():
        if key == "group_policy":
            policy = value if value in _POLICIES else None
            if policy is None:
                LOG.warning("Ignoring group_policy=%s of flavor %s: it is none or isolate", value, flavor.name)
            continue
        match = _KEY.match(key)
        if match is None:
            continue
        kind, suffix, name = match.groups()
        group = groups.setdefault(suffix, Group())
        taken = _add_resource(group, name, value) if kind == "resources" else _add_trait(group, name, value)
        if not taken:
            LOG.warning("Ignoring the extra spec %s=%s of flavor %s: not valid", key, value, flavor.name)
    return groups, policy


def _add_resource(group: Group, name: str, value: str) -> bool:
    if (name not in _CLASSES and not _CUSTOM.match(name)) or not value.strip().isdigit():
        return False
    group.resources[name] = int(value)
    return True


def _add_trait(group: Group, name: str, value: str) -> bool:
    if value not in ("required", "forbidden"):
        return False
    (group.required if value == "required" else group.forbidden).add(name)
    return True


def _add_defaults(groups: dict[str, Group], spec: RequestSpec) -> None:
    """What the flavor's own numbers ask, unless an extra spec named the class (a zero counts as naming)."""
    named = {name for group in groups.values() for name in group.resources}
    flavor, resources = spec.flavor, groups[""].resources
    if not named & {"VCPU", "PCPU"}:
        resources["VCPU"] = flavor.vcpus
    if "MEMORY_MB" not in named:
        resources["MEMORY_MB"] = flavor.memory_mb
    if "DISK_GB" not in named:
        swap_gb = -(-flavor.swap // 1024)
        resources["DISK_GB"] = flavor.ephemeral_gb + swap_gb + (0 if spec.is_bfv else flavor.root_gb)


def _pairs(suffix: str, group: Group) -> Iterable[tuple[str, str]]:
    amounts = ",".join(f"{name}:{amount}" for name, amount in sorted(group.resources.items()))
    yield f"resources{suffix}", amounts
    if group.required or group.forbidden:
        yield f"required{suffix}", _traits(group.required, group.forbidden)
    for aggregates in group.member_of:
        yield f"member_of{suffix}", aggregates
    if group.in_tree is not None:
        yield f"in_tree{suffix}", group.in_tree


def _traits(required: Iterable[str], forbidden: Iterable[str]) -> str:
    return ",".join([*sorted(required), *(f"!{trait}" for trait in sorted(forbidden))])

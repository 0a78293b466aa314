"""What is wrong with the aggregates of a cloud: properties that nothing reads, locks that shut one way only.

A lock is two arrows: the subject (flavor, image, project) goes only to these hosts, and these hosts take only the
subject. Most plug-ins draw one of them. Functions over values: aggregates, hosts, flavors, traits and the settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kilonova.core.image_properties import PRESENT_NAMES
from kilonova.scheduler import registry
from kilonova.scheduler.settings import SchedulerSettings

DEAD, LONELY, SYNTAX, ONE_WAY = "dead-property", "host-in-no-aggregate", "wrong-key", "one-way-lock"
KINDS: Final = (DEAD, LONELY, SYNTAX, ONE_WAY)

_TENANT: Final = "filter_tenant_id"
_NECTAR: Final = "nectar:filter_tenant_id"
_TAGS: Final = "nectar:project-tags"
_TYPE: Final = "instance_type"
_ZONE: Final = "availability_zone"
_TRAIT: Final = "trait:"
_SCOPE: Final = "aggregate_instance_extra_specs:"
_NUMBERED: Final = re.compile(r"^(?P<key>.*\D)\d+$")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate."""

    name: str
    hosts: frozenset[str]
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """A cloud. flavors: by name the extra specs. traits: of each trait that an aggregate is kept for, the hosts that
    have it.
    """

    aggregates: Sequence[Aggregate]
    hosts: frozenset[str]
    settings: SchedulerSettings
    flavors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    traits: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: its kind, what it is about, and a sentence."""

    kind: str
    subject: str
    text: str


def audit(facts: Facts) -> list[Finding]:
    """Everything that is wrong, by kind."""
    checks: tuple[Callable[[Facts], Iterable[Finding]], ...] = (_dead, _lonely, _syntax, _one_way)
    return [finding for check in checks for finding in check(facts)]


def wanted_traits(aggregates: Iterable[Aggregate]) -> set[str]:
    """The traits that aggregates are kept for."""
    return {key.removeprefix(_TRAIT) for row in aggregates for key in row.metadata if key.startswith(_TRAIT)}


# -- who reads what ---------------------------------------------------------------------------------------------------


def _filters(facts: Facts) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in facts.settings.enabled_filters)


def _readers(facts: Facts, key: str) -> list[tuple[str, bool]]:
    """The plug-ins that know a key, each with whether it is on."""
    settings, on = facts.settings, _filters(facts)
    found: list[tuple[str, bool]] = []
    if key == _ZONE:
        found.append(("map_az_to_placement_aggregate", True))
    if key.startswith(_TENANT):
        found.append(("[scheduler]limit_tenants_to_placement_aggregate", settings.limit_tenants_to_placement_aggregate))
        found.append(("AggregateMultiTenancyIsolation", "AggregateMultiTenancyIsolation" in on))
    if key.startswith(_TRAIT):
        found.append(("[scheduler]enable_isolated_aggregate_filtering", settings.enable_isolated_aggregate_filtering))
    by_filter = {
        _NECTAR: "NectarAggregateMultiTenancyIsolation", _TAGS: "ProjectTagsFilter",
        _TYPE: "AggregateTypeAffinityFilter", "max_io_ops_per_host": "AggregateIoOpsFilter",
        "max_instances_per_host": "AggregateNumInstancesFilter",
    }  # fmt: skip
    if key in by_filter:
        found.append((by_filter[key], by_filter[key] in on))
    if _image_property(settings, key):
        found.append(("AggregateImagePropertiesIsolation", "AggregateImagePropertiesIsolation" in on))
    enabled = registry.enabled_weighers(settings)
    found += [(row.name, row in enabled) for row in registry.WEIGHERS.values() if row.metadata_key == key]
    if _asking(facts, key):
        found.append(("AggregateInstanceExtraSpecsFilter", "AggregateInstanceExtraSpecsFilter" in on))
    return found


def _image_property(settings: SchedulerSettings, key: str) -> bool:
    namespace = settings.aggregate_image_properties_isolation_namespace
    prefix = f"{namespace}{settings.aggregate_image_properties_isolation_separator}" if namespace else ""
    return key.startswith(prefix) and key.removeprefix(prefix) in PRESENT_NAMES


def _asking(facts: Facts, key: str) -> list[str]:
    """The flavors whose extra specs ask for an aggregate with the key."""
    return sorted(
        name
        for name, specs in facts.flavors.items()
        if f"{_SCOPE}{key}" in specs or (key in specs and ":" not in key)
    )  # fmt: skip


def _dead(facts: Facts) -> Iterator[Finding]:
    for row in facts.aggregates:
        for key in sorted(row.metadata):
            readers = _readers(facts, key)
            if any(on for _, on in readers) or _misspelt(key):
                continue
            names = " or ".join(name for name, _ in readers)
            if not names and "AggregateInstanceExtraSpecsFilter" in _filters(facts):
                text = f"no flavor asks for {key} and nothing else reads it: remove it, or give a flavor {_SCOPE}{key}."
            else:
                text = f"nothing reads {key}: " + (f"enable {names}, or remove it." if names else "remove it.")
            yield Finding(DEAD, row.name, text)


def _lonely(facts: Facts) -> Iterator[Finding]:
    grouped = {host for row in facts.aggregates for host in row.hosts}
    for host in sorted(facts.hosts - grouped):
        yield Finding(LONELY, host, "it is in no aggregate: every subject that nothing confines may land on it.")


# -- how keys are written ---------------------------------------------------------------------------------------------


def _misspelt(key: str) -> str:
    """The key that was meant, for one with a number behind it that nothing reads so; empty when it is well."""
    match = _NUMBERED.match(key)
    meant = match["key"].rstrip("_-") if match else ""
    return meant if meant in (_NECTAR, _TAGS, _TYPE, _ZONE, "max_io_ops_per_host", "max_instances_per_host") else ""


def _syntax(facts: Facts) -> Iterator[Finding]:
    for row in facts.aggregates:
        for key, value in sorted(row.metadata.items()):
            if text := _wrong(facts, key, value):
                yield Finding(SYNTAX, row.name, text)


def _wrong(facts: Facts, key: str, value: str) -> str:
    if meant := _misspelt(key):
        return f"{key} is read by nothing: put a list with commas under {meant}, without a number."
    if key.startswith(_TENANT) and "," in value and facts.settings.limit_tenants_to_placement_aggregate:
        return f"{key} holds a list, which never matches a project: use {_TENANT}1, {_TENANT}2 … with one project each."
    if key == _ZONE and "," in value:
        return f"{key} is {value!r}: a host is in one zone, and a zone's name has no comma."
    if key.startswith(_TRAIT) and value != "required":
        return f"{key} is {value!r}: only `required` keeps an aggregate for a trait."
    if key.startswith(_SCOPE):
        return f"{key} has the scope that belongs in a flavor: the aggregate's key is {key.removeprefix(_SCOPE)}."
    return ""


# -- which way a lock shuts -------------------------------------------------------------------------------------------


def _one_way(facts: Facts) -> Iterator[Finding]:
    for row in facts.aggregates:
        for lock in (_flavor_lock, _project_lock, _image_lock, _trait_lock):
            for text in lock(facts, row):
                yield Finding(ONE_WAY, row.name, text)


def _flavor_lock(facts: Facts, row: Aggregate) -> Iterator[str]:
    on = _filters(facts)
    confined: set[str] = set()
    if "AggregateInstanceExtraSpecsFilter" in on:
        confined = {name for key in row.metadata for name in _asking(facts, key)}
    admitted = _list(row.metadata.get(_TYPE, "")) if "AggregateTypeAffinityFilter" in on else set()
    if confined and not admitted:
        yield (
            f"flavors {_names(confined)} go nowhere else, but every other flavor may come too: list them under {_TYPE} "
            "and enable AggregateTypeAffinityFilter."
        )
    if free := admitted - confined:
        yield (
            f"only flavors {_names(admitted)} may come, but {_names(free)} may go elsewhere too: give them an extra "
            f"spec {_SCOPE}KEY that this aggregate answers, and enable AggregateInstanceExtraSpecsFilter."
        )


def _project_lock(facts: Facts, row: Aggregate) -> Iterator[str]:
    on, settings = _filters(facts), facts.settings
    tenants = {value for key, value in row.metadata.items() if key.startswith(_TENANT)}
    confined = tenants if settings.limit_tenants_to_placement_aggregate else set()
    listed = {part for value in tenants for part in _list(value)}
    reserved = listed if "AggregateMultiTenancyIsolation" in on else set()
    if "NectarAggregateMultiTenancyIsolation" in on:
        reserved = reserved | _list(row.metadata.get(_NECTAR, ""))
    if confined and not reserved:
        yield (
            f"projects {_names(confined)} go nowhere else, but every other project may come too: enable "
            f"NectarAggregateMultiTenancyIsolation with {_NECTAR}, or AggregateMultiTenancyIsolation."
        )
    if free := reserved - confined:
        yield (
            f"projects {_names(free)} may come, but may go elsewhere too: give each a key {_TENANT}N and set "
            "[scheduler]limit_tenants_to_placement_aggregate."
        )
    if row.metadata.get(_TAGS) and "ProjectTagsFilter" in on and not reserved:
        yield "projects with its tags go nowhere else, but every other project may come too."


def _image_lock(facts: Facts, row: Aggregate) -> Iterator[str]:
    if "AggregateImagePropertiesIsolation" not in _filters(facts):
        return
    for key in sorted(key for key in row.metadata if _image_property(facts.settings, key)):
        yield (
            f"{key} keeps out only images that say otherwise: images without it may come, and those with it may go "
            "elsewhere. Only traits lock images both ways (trait:T=required)."
        )


def _trait_lock(facts: Facts, row: Aggregate) -> Iterator[str]:
    if not facts.settings.enable_isolated_aggregate_filtering:
        return
    for key in sorted(key for key, value in row.metadata.items() if key.startswith(_TRAIT) and value == "required"):
        trait = key.removeprefix(_TRAIT)
        having = facts.traits.get(trait, frozenset())
        kept = {host for other in facts.aggregates if other.metadata.get(key) == "required" for host in other.hosts}
        if lacking := row.hosts - having:
            yield f"hosts {_names(lacking)} take nobody: they lack the trait {trait} that their aggregate is kept for."
        if loose := having - kept:
            yield f"who asks for {trait} may go to {_names(loose)} too, which are in no aggregate that is kept for it."


def _list(text: str) -> set[str]:
    return {part.strip() for part in text.split(",") if part.strip()}


def _names(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")

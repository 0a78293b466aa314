"""What the audit of aggregates finds, and what it finds nothing wrong with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kilonova.scheduler.aggregate_audit import DEAD, LONELY, ONE_WAY, SYNTAX, Aggregate, Facts, audit, wanted_traits
from kilonova.scheduler.settings import DEFAULT_FILTERS, SchedulerSettings

EXTRA_SPECS, TYPES = "AggregateInstanceExtraSpecsFilter", "AggregateTypeAffinityFilter"
NECTAR, TENANCY, IMAGES = (
    "NectarAggregateMultiTenancyIsolation", "AggregateMultiTenancyIsolation", "AggregateImagePropertiesIsolation",
)  # fmt: skip


def found(
    metadata: Mapping[str, str], *filters: str, flavors: Mapping[str, Mapping[str, str]] | None = None,
    traits: Mapping[str, frozenset[str]] | None = None, hosts: frozenset[str] = frozenset({"a"}), **options: Any,
) -> list[tuple[str, str, str]]:  # fmt: skip
    """(kind, subject, text) for one aggregate with the host a."""
    settings = SchedulerSettings(enabled_filters=(*DEFAULT_FILTERS, *filters), **options)
    facts = Facts([Aggregate("agg", frozenset({"a"}), metadata)], hosts, settings, flavors or {}, traits or {})
    return [(row.kind, row.subject, row.text) for row in audit(facts)]


def kinds(*arguments: Any, **more: Any) -> list[str]:
    return [kind for kind, _, _ in found(*arguments, **more)]


def test_a_zone_and_a_multiplier_are_read_and_hosts_in_an_aggregate_are_not_alone() -> None:
    assert found({"availability_zone": "east", "ram_weight_multiplier": "-1"}) == []


def test_a_host_in_no_aggregate_is_found() -> None:
    assert [(kind, subject) for kind, subject, _ in found({}, hosts=frozenset({"a", "b"}))] == [(LONELY, "b")]


@pytest.mark.parametrize(
    ("metadata", "filters", "options", "words"),
    [
        ({"colour": "red"}, (), {}, "nothing reads colour: remove it."),
        ({"colour": "red"}, (EXTRA_SPECS,), {}, "no flavor asks for colour"),
        ({"instance_type": "m1"}, (), {}, f"nothing reads instance_type: enable {TYPES}"),
        ({"filter_tenant_id": "p"}, (), {}, "[scheduler]limit_tenants_to_placement_aggregate or AggregateMulti"),
        ({"nectar:filter_tenant_id": "p"}, (), {}, f"enable {NECTAR}"),
        ({"trait:CUSTOM_T": "required"}, (), {}, "[scheduler]enable_isolated_aggregate_filtering"),
        ({"hw_disk_bus": "ide"}, (), {}, f"enable {IMAGES}"),
        ({"max_io_ops_per_host": "3"}, ("IoOpsFilter",), {}, "enable AggregateIoOpsFilter"),
        ({"ram_weight_multiplier": "2"}, (), {"weight_classes": ("CPUWeigher",)}, "enable RAMWeigher"),
        ({"hw_disk_bus": "ide"}, (IMAGES,), {"aggregate_image_properties_isolation_namespace": "img"}, "nothing reads"),
    ],
)
def test_a_property_that_no_enabled_plugin_reads_is_dead(
    metadata: dict[str, str], filters: tuple[str, ...], options: dict[str, Any], words: str
) -> None:
    ((kind, subject, text),) = found(metadata, *filters, **options)
    assert (kind, subject) == (DEAD, "agg")
    assert words in text


@pytest.mark.parametrize(
    ("metadata", "options", "words"),
    [
        ({"nectar:filter_tenant_id2": "p"}, {}, "put a list with commas under nectar:filter_tenant_id"),
        ({"instance_type_1": "m1"}, {}, "put a list with commas under instance_type"),
        ({"availability_zone": "east,west"}, {}, "a host is in one zone"),
        ({"trait:CUSTOM_T": "forbidden"}, {"enable_isolated_aggregate_filtering": True}, "only `required` keeps"),
    ],
)
def test_a_key_or_value_written_in_another_mechanisms_way_is_found(
    metadata: dict[str, str], options: dict[str, Any], words: str
) -> None:
    ((kind, _, text),) = found(metadata, **options)
    assert kind == SYNTAX
    assert words in text


def test_a_list_of_projects_never_matches_the_request_filter_and_is_fine_for_the_isolation_alone() -> None:
    metadata = {"filter_tenant_id": "p1,p2"}
    limited = found(metadata, TENANCY, limit_tenants_to_placement_aggregate=True)
    assert [kind for kind, _, _ in limited] == [SYNTAX, ONE_WAY]
    assert "filter_tenant_id1, filter_tenant_id2" in limited[0][2]
    assert kinds(metadata, TENANCY) == [ONE_WAY]


@pytest.mark.parametrize(
    ("metadata", "filters", "flavors", "options", "expected"),
    [
        # flavors
        ({"ssd": "1"}, (EXTRA_SPECS,), {"f": {"ssd": "1"}}, {}, "every other flavor may come too"),
        ({"instance_type": "f"}, (TYPES,), {"f": {}}, {}, "f may go elsewhere too"),
        ({"ssd": "1", "instance_type": "f"}, (EXTRA_SPECS, TYPES), {"f": {"ssd": "1"}}, {}, None),
        ({"ssd": "1", "instance_type": "f,g"}, (EXTRA_SPECS, TYPES), {"f": {"ssd": "1"}, "g": {}}, {},
         "g may go elsewhere too"),
        # projects
        ({"filter_tenant_id": "p"}, (TENANCY,), {}, {}, "projects p may come, but may go elsewhere too"),
        ({"filter_tenant_id": "p"}, (), {}, {"limit_tenants_to_placement_aggregate": True},
         "every other project may come too"),
        ({"filter_tenant_id": "p"}, (TENANCY,), {}, {"limit_tenants_to_placement_aggregate": True}, None),
        ({"nectar:filter_tenant_id": "p"}, (NECTAR,), {}, {"limit_tenants_to_placement_aggregate": True},
         "may go elsewhere too"),
        ({"nectar:filter_tenant_id": "p,q", "filter_tenant_id1": "p", "filter_tenant_id2": "q"}, (NECTAR,), {},
         {"limit_tenants_to_placement_aggregate": True}, None),
        ({"nectar:project-tags": "preemptible"}, ("ProjectTagsFilter",), {}, {}, "every other project may come too"),
        # images
        ({"hw_disk_bus": "ide"}, (IMAGES,), {}, {}, "Only traits lock images both ways"),
    ],
)  # fmt: skip
def test_a_lock_that_shuts_one_way_is_found_and_one_that_shuts_both_ways_is_not(
    metadata: dict[str, str], filters: tuple[str, ...], flavors: dict[str, dict[str, str]], options: dict[str, Any],
    expected: str | None,
) -> None:  # fmt: skip
    result = found(metadata, *filters, flavors=flavors, **options)
    if expected is None:
        assert result == []
    else:
        assert [kind for kind, _, _ in result] == [ONE_WAY]
        assert expected in result[0][2]


@pytest.mark.parametrize(
    ("having", "expected"),
    [(frozenset("a"), None), (frozenset(), "hosts a take nobody"), (frozenset("ab"), "may go to b too")],
)
def test_a_trait_locks_both_ways_when_just_the_hosts_of_its_aggregates_have_it(
    having: frozenset[str], expected: str | None
) -> None:
    metadata = {"trait:CUSTOM_T": "required"}
    assert wanted_traits([Aggregate("agg", frozenset(), metadata)]) == {"CUSTOM_T"}
    result = found(metadata, traits={"CUSTOM_T": having}, enable_isolated_aggregate_filtering=True)
    assert [text for _, _, text in result if expected and expected in text] == [text for _, _, text in result]
    assert bool(result) is (expected is not None)

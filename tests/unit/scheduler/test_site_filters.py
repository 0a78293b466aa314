"""The filters that are not on by default, as tables of what passes and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.core import json
from kilonova.core.request_spec import Destination, ImageSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.host_state import Aggregates
from kilonova.scheduler.registry import FILTERS, WEIGHERS
from kilonova.scheduler.request import Surroundings
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.states import aggregate, request, state


def passes(
    name: str, host: dict[str, Any] | None = None, metadata: tuple[dict[str, str], ...] = (), **asked: Any
) -> bool:
    """Whether a host in aggregates with this metadata passes."""
    aggregates = tuple(aggregate(str(n), "h", metadata=words) for n, words in enumerate(metadata))
    check = FILTERS[name].prepare(request(aggregates=aggregates, **asked))
    return check is None or check(state(aggregates=aggregates, **(host or {}))).passed


def test_hosts_in_other_aggregates_get_a_verdict_of_their_own() -> None:
    rows = (aggregate("1", "a", "b", metadata={"ssd": "true"}), aggregate("2", "c", metadata={"ssd": "false"}))
    by_host = Aggregates(rows).by_host
    check = FILTERS["AggregateInstanceExtraSpecsFilter"].prepare(request(extra_specs={"ssd": "true"}, aggregates=rows))
    assert check is not None
    verdicts = [check(state(host, aggregates=by_host.get(host, ()))) for host in ("a", "c", "b", "d")]
    assert [verdict.passed for verdict in verdicts] == [True, False, True, False]
    assert [verdict.numbers[1] for verdict in verdicts if not verdict.passed] == ["false", "nothing"]


def test_all_hosts_pass_the_filter_of_that_name() -> None:
    assert passes("AllHostsFilter", {"alive": False, "service_disabled": True})


@pytest.mark.parametrize(
    ("metadata", "extra_specs", "expected"),
    [
        ((), {}, True),
        ((), {"ssd": "true"}, False),
        (({"ssd": "true"},), {"ssd": "true"}, True),
        (({"ssd": "true"},), {"aggregate_instance_extra_specs:ssd": "true"}, True),
        (({"ssd": "true"},), {"aggregate_instance_extra_specs:ssd": "false"}, False),
        (({"ssd": "true"},), {"capabilities:ssd": "false"}, True),
        (({"ssd": "true"},), {}, True),  # it confines flavors and keeps none out
        (({"ssd": "a,b"}, {"ssd": "c"}), {"ssd": "s== c"}, True),
        (({"speed": "10"},), {"speed": ">= 5"}, True),
        (({"speed": "10"},), {"speed": ">= 5", "ssd": "true"}, False),
    ],
)
def test_aggregates_have_what_the_flavor_asks(
    metadata: tuple[dict[str, str], ...], extra_specs: dict[str, str], expected: bool
) -> None:
    assert passes("AggregateInstanceExtraSpecsFilter", metadata=metadata, extra_specs=extra_specs) is expected


@pytest.mark.parametrize(
    ("metadata", "image", "expected"),
    [
        ({"hw_disk_bus": "virtio, scsi"}, {"hw_disk_bus": "scsi"}, True),
        ({"hw_disk_bus": "virtio"}, {"hw_disk_bus": "ide"}, False),
        ({"hw_disk_bus": "virtio"}, {}, True),
        ({"colour": "red"}, {"colour": "blue"}, True),  # not an image property that means something
        ({"hw_architecture": "x86_64"}, {"architecture": "aarch64"}, False),
    ],
)
def test_image_properties_do_not_contradict_the_aggregates(
    metadata: dict[str, str], image: dict[str, str], expected: bool
) -> None:
    assert passes("AggregateImagePropertiesIsolation", metadata=(metadata,), image=image) is expected


def test_with_a_namespace_only_keys_that_carry_it_isolate() -> None:
    settings = SchedulerSettings(aggregate_image_properties_isolation_namespace="iso")
    image = {"hw_disk_bus": "ide"}
    name = "AggregateImagePropertiesIsolation"
    assert passes(name, metadata=({"hw_disk_bus": "virtio"},), image=image, settings=settings)
    assert not passes(name, metadata=({"iso.hw_disk_bus": "virtio"},), image=image, settings=settings)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ((), True),
        (({"other": "x"},), True),
        (({"instance_type": "m1.small"},), True),
        (({"instance_type": "m1.tiny, m1.small"},), True),
        (({"instance_type": "m1.tiny"},), False),
        (({"instance_type": "m1.tiny"}, {"instance_type": "m1.small"}), True),
    ],
)
def test_aggregates_that_list_flavors_take_only_those(metadata: tuple[dict[str, str], ...], expected: bool) -> None:
    assert passes("AggregateTypeAffinityFilter", metadata=metadata) is expected


@pytest.mark.parametrize(
    ("name", "metadata", "expected"),
    [
        ("AggregateMultiTenancyIsolation", (), True),
        ("AggregateMultiTenancyIsolation", ({"filter_tenant_id": "project"},), True),
        ("AggregateMultiTenancyIsolation", ({"filter_tenant_id": "other"},), False),
        ("AggregateMultiTenancyIsolation", ({"filter_tenant_id": "other,project"},), True),
        ("AggregateMultiTenancyIsolation", ({"filter_tenant_id": "other"}, {"filter_tenant_id7": "project"}), True),
        ("AggregateMultiTenancyIsolation", ({"nectar:filter_tenant_id": "other"},), True),
        ("NectarAggregateMultiTenancyIsolation", ({"nectar:filter_tenant_id": "other"},), False),
        ("NectarAggregateMultiTenancyIsolation", ({"nectar:filter_tenant_id": "a, project"},), True),
        ("NectarAggregateMultiTenancyIsolation", ({"filter_tenant_id": "other"},), True),
    ],
)
def test_hosts_kept_for_projects_take_only_those(
    name: str, metadata: tuple[dict[str, str], ...], expected: bool
) -> None:
    assert passes(name, metadata=metadata) is expected


@pytest.mark.parametrize(
    ("name", "host", "metadata", "expected"),
    [
        ("IoOpsFilter", {"num_io_ops": 7}, (), True),
        ("IoOpsFilter", {"num_io_ops": 8}, (), False),
        ("IoOpsFilter", {"num_io_ops": 7}, ({"max_io_ops_per_host": "2"},), True),
        ("AggregateIoOpsFilter", {"num_io_ops": 7}, ({"max_io_ops_per_host": "2"},), False),
        ("AggregateIoOpsFilter", {"num_io_ops": 9}, ({"max_io_ops_per_host": "10"},), True),
        ("AggregateIoOpsFilter", {"num_io_ops": 8}, ({"max_io_ops_per_host": "lots"},), False),
        ("NumInstancesFilter", {"num_instances": 49}, (), True),
        ("NumInstancesFilter", {"num_instances": 50}, (), False),
        ("AggregateNumInstancesFilter", {"num_instances": 5},
         ({"max_instances_per_host": "9"}, {"max_instances_per_host": "5"}), False),
        ("AggregateNumInstancesFilter", {"num_instances": 50}, (), False),
    ],
)  # fmt: skip
def test_a_host_passes_below_its_limit(
    name: str, host: dict[str, int], metadata: tuple[dict[str, str], ...], expected: bool
) -> None:
    assert passes(name, host, metadata) is expected


@pytest.mark.parametrize(
    ("images", "hosts", "restrict", "image", "expected"),
    [
        ((), (), True, "i", True),
        ((), ("h",), True, "i", False),
        ((), ("h",), False, "i", True),
        (("i",), ("h",), True, "i", True),
        (("i",), ("h",), True, "other", False),
        (("i",), ("h",), True, None, False),
        (("i",), ("g",), True, "i", False),
        (("i",), ("g",), True, "other", True),
        (("i",), ("g",), False, "i", False),
        (("i",), ("h",), False, "other", True),
    ],
)
def test_isolated_hosts_are_for_isolated_images(
    images: tuple[str, ...], hosts: tuple[str, ...], restrict: bool, image: str | None, expected: bool
) -> None:
    settings = SchedulerSettings(
        isolated_images=images, isolated_hosts=hosts, restrict_isolated_hosts_to_isolated_images=restrict
    )
    assert passes("IsolatedHostsFilter", image_spec=ImageSpec(id=image), settings=settings) is expected


@pytest.mark.parametrize(
    ("name", "hints", "expected"),
    [
        ("DifferentHostFilter", {}, True),
        ("DifferentHostFilter", {"different_host": ["on-h"]}, False),
        ("DifferentHostFilter", {"different_host": ["on-g", "on-h"]}, False),
        ("DifferentHostFilter", {"different_host": ["on-g", "unknown"]}, True),
        ("SameHostFilter", {}, True),
        ("SameHostFilter", {"same_host": ["on-h", "on-g"]}, True),
        ("SameHostFilter", {"same_host": ["on-g"]}, False),
        ("SameHostFilter", {"same_host": ["unknown"]}, False),
    ],
)
def test_hints_keep_away_from_servers_or_near_them(name: str, hints: dict[str, list[str]], expected: bool) -> None:
    assert passes(name, scheduler_hints=hints, hosts_of={"on-h": "h", "on-g": "g"}) is expected


@pytest.mark.parametrize(
    ("hints", "address", "expected"),
    [
        ({}, "192.0.2.1", True),
        ({"build_near_host_ip": ["192.0.2.200"]}, "192.0.2.1", True),
        ({"build_near_host_ip": ["192.0.2.200"], "cidr": ["/25"]}, "192.0.2.1", False),
        ({"build_near_host_ip": ["192.0.3.200"]}, "192.0.2.1", False),
        ({"build_near_host_ip": ["2001:db8::1"], "cidr": ["64"]}, "2001:db8::2", True),
        ({"build_near_host_ip": ["192.0.2.200"]}, None, False),
        ({"build_near_host_ip": ["192.0.2.200"]}, "a-name", False),
    ],
)
def test_a_hint_asks_for_hosts_in_one_network(
    hints: dict[str, list[str]], address: str | None, expected: bool
) -> None:
    assert passes("SimpleCIDRAffinityFilter", {"host_ip": address}, scheduler_hints=hints) is expected


def test_a_hint_that_names_no_network_is_said_to() -> None:
    with pytest.raises(NoValidHost, match="The hints name no network: nowhere with /24"):
        passes("SimpleCIDRAffinityFilter", scheduler_hints={"build_near_host_ip": ["nowhere"]})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ([], True),
        (["=", "$host", "h"], True),
        (["=", "$host", "g"], False),
        ([">=", "$free_ram_mb", 16384], True),
        ([">", "$free_ram_mb", 16384], False),
        (["<", "$free_ram_mb", 20000, 30000], True),
        (["<", "$free_ram_mb", 20000, 1], False),  # all must hold
        (["<=", "$free_ram_mb", "many"], False),  # a number against a text
        (["=", "$host"], False),  # nothing to compare with
        (["=", "$nosuch", "h"], False),  # what is not there drops out
        (["in", "$host", "g", "h"], True),
        (["in", "$host", "g"], False),
        (["and", ["=", "$host", "h"], [">", "$vcpus_total", 4]], True),
        (["and", ["=", "$host", "h"], [">", "$vcpus_total", 40]], False),
        (["or", ["=", "$host", "g"], [">", "$vcpus_total", 4]], True),
        (["not", ["=", "$host", "g"]], True),
        (["not", ["=", "$host", "h"], ["=", "$host", "g"]], True),  # one element of the array is true
        (["not", ["=", "$host", "h"]], False),
        (["=", "$cpu_info.topology.cores", 4], True),
        (["=", "$stats.rack", "r7"], True),
        (["and", []], True),
    ],
)
def test_a_query_is_evaluated_for_each_host(query: list[Any], expected: bool) -> None:
    hints = {"query": [json.dump_str(query)]}
    assert passes("JsonFilter", {"stats": {"rack": "r7"}}, scheduler_hints=hints) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON in a string"),
        ('{"a": 1}', "not a JSON array"),
        ('["xor", 1, 2]', "unknown operator: xor"),
        ('["and", ["=", ["bad"]]]', "unknown operator: bad"),
        ("[[1]]", "unknown operator"),
        ("[" + '"and",[' * 40 + '"or"' + "]" * 41, "nested more than"),
    ],
)
def test_a_query_that_cannot_be_read_ends_the_request(text: str, words: str) -> None:
    with pytest.raises(NoValidHost, match=words):
        passes("JsonFilter", scheduler_hints={"query": [text]})


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        (None, None),
        (Destination(cell="here"), None),
        (Destination(allow_cross_cell_move=True), None),
        (Destination(cell="here", allow_cross_cell_move=True), [1, -1]),
    ],
)
def test_a_move_that_may_leave_its_cell_prefers_to_stay(destination: Destination | None, expected: Any) -> None:
    asked = request(requested_destination=destination)
    states = [state("a", cell_uuid="here"), state("b", cell_uuid="there")]
    assert WEIGHERS["CrossCellWeigher"].weigh(asked, states) == expected


ONCE = {
    "AllHostsFilter", "ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "DifferentHostFilter",
    "SameHostFilter", "SimpleCIDRAffinityFilter", "AggregateInstanceExtraSpecsFilter", "IsolatedHostsFilter",
    "AggregateImagePropertiesIsolation", "AggregateTypeAffinityFilter", "AggregateMultiTenancyIsolation",
    "NectarAggregateMultiTenancyIsolation", "ProjectTagsFilter", "RestrictedZoneFilter",
}  # fmt: skip
ON_REBUILD = {"ImagePropertiesFilter", "AggregateImagePropertiesIsolation", "IsolatedHostsFilter"}


def test_each_filter_is_asked_as_often_as_the_facts_say() -> None:
    assert {name for name, row in FILTERS.items() if row.once} == ONCE
    assert {name for name, row in FILTERS.items() if row.on_rebuild} == ON_REBUILD


def metrics(**values: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": value, "source": "agent"} for name, value in values.items()]


@pytest.mark.parametrize(
    ("wanted", "reported", "expected"),
    [
        ((), [], True),
        ((("load", 1.0),), metrics(load=0.5), True),
        ((("load", 1.0), ("heat", 2.0)), metrics(load=0.5), False),
        ((("load", 1.0),), metrics(load="high"), False),  # no number
        ((("load", 1.0),), {"load": 3}, False),  # no list of metrics
        ((("load", 1.0),), ["load"], False),
    ],
)
def test_every_metric_that_is_weighed_is_reported(
    wanted: tuple[tuple[str, float], ...], reported: Any, expected: bool
) -> None:
    settings = SchedulerSettings(metrics_weight_setting=wanted)
    assert passes("MetricsFilter", {"metrics": reported}, settings=settings) is expected


def test_metrics_are_summed_by_their_ratios_and_a_missing_one_weighs_what_is_configured() -> None:
    wanted = (("load", -2.0), ("heat", 1.0))
    states = [state("a", metrics=metrics(load=0.5, heat=10)), state("b", metrics=metrics(load=0.5))]
    lenient = SchedulerSettings(metrics_weight_setting=wanted, metrics_required=False)
    assert WEIGHERS["MetricsWeigher"].weigh(request(settings=lenient), states) == [9.0, -10000.0]
    assert WEIGHERS["MetricsWeigher"].weigh(request(), states) is None
    strict = SchedulerSettings(metrics_weight_setting=wanted)
    with pytest.raises(NoValidHost, match="b does not report the metrics heat"):
        WEIGHERS["MetricsWeigher"].weigh(request(settings=strict), states)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),  # with the multiplier 0 nothing is counted
        ({"image_props_weight_multiplier": 1.0}, [3.0, 1.0, 0.0]),
        ({"image_props_weight_multiplier": -1.0, "image_props_weight_setting": (("os_distro", 2.0),)}, [4.0, 2.0, 0.0]),
        ({"image_props_weight_multiplier": 1.0, "image_props_weight_setting": (("os_type", 2.0),)}, None),
    ],
)
def test_servers_of_like_images_are_counted_by_property_and_value(
    settings: dict[str, Any], expected: list[float] | None
) -> None:
    alike = {
        "a": {("os_distro", "debian"): 2, ("hw_disk_bus", "scsi"): 1, ("os_distro", "fedora"): 7},
        "b": {("os_distro", "debian"): 1},
    }
    asked = request(
        image={"os_distro": "debian", "hw_disk_bus": "scsi"}, settings=SchedulerSettings(**settings),
        around=Surroundings(alike=alike),
    )  # fmt: skip
    assert WEIGHERS["ImagePropertiesWeigher"].weigh(asked, [state("a"), state("b"), state("c")]) == expected


@pytest.mark.parametrize(
    ("limits", "expected"), [(("3",), True), (("3", "2"), False), (("2.5",), True), (("x",), True)]
)
def test_a_limit_of_aggregates_is_a_whole_number_and_the_smallest_counts(
    limits: tuple[str, ...], expected: bool
) -> None:
    metadata = tuple({"max_instances_per_host": limit} for limit in limits)
    assert passes("AggregateNumInstancesFilter", {"num_instances": 2}, metadata) is expected


def test_only_properties_that_compute_knows_isolate_and_with_a_prefix_others_are_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = SchedulerSettings(aggregate_image_properties_isolation_namespace="site")
    name, image = "AggregateImagePropertiesIsolation", {"hw_disk_bus": "ide", "hw_colour": "blue"}
    assert not passes(name, None, ({"site.hw_disk_bus": "scsi"},), image=image, settings=settings)
    assert passes(name, None, ({"hw_disk_bus": "scsi"},), image=image, settings=settings)
    assert passes(name, None, ({"site.hw_colour": "red"},), image=image, settings=settings)
    assert "site.hw_colour" in caplog.text

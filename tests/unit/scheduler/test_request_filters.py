"""What each request filter adds to the question."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.core.request_spec import ImageSpec
from kilonova.core.scheduling import RequestFilterFailed
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.registry import REQUEST_FILTERS
from kilonova.scheduler.request import Surroundings
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.states import aggregate, request

ROWS = {row.name: row for row in REQUEST_FILTERS}


def added(name: str, *, settings: SchedulerSettings | None = None, **asked: Any) -> Additions | None:
    row: RequestFilter = ROWS[name]
    return row.apply(request(settings=settings, **asked))


def test_the_order_is_the_canonical_one_and_never_changes() -> None:
    assert list(ROWS) == [
        "require_tenant_aggregate", "map_az_to_placement_aggregate", "require_image_type_support",
        "compute_status_filter", "isolate_aggregates", "transform_image_metadata", "accelerators_filter",
        "packed_virtqueue_filter", "routed_networks_filter", "remote_managed_ports_filter",
        "ephemeral_encryption_filter", "virtio_sound_filter", "tpm_secret_security_filter", "owner_nova_filter",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("require_tenant_aggregate", "limit_tenants_to_placement_aggregate"),
        ("require_image_type_support", "query_placement_for_image_type_support"),
        ("isolate_aggregates", "enable_isolated_aggregate_filtering"),
        ("transform_image_metadata", "image_metadata_prefilter"),
        ("routed_networks_filter", "query_placement_for_routed_network_aggregates"),
        ("remote_managed_ports_filter", None),
        ("owner_nova_filter", None),
        ("map_az_to_placement_aggregate", None),
        ("compute_status_filter", None),
    ],
)
def test_a_filter_is_off_until_its_option_is_set_and_the_mandatory_ones_are_on(name: str, option: str | None) -> None:
    assert ROWS[name].enabled(SchedulerSettings()) is (option is None)
    if option:
        assert ROWS[name].enabled(SchedulerSettings(**{option: True}))  # type: ignore[arg-type]


def test_disabled_hosts_are_forbidden_always() -> None:
    assert added("compute_status_filter") == Additions(forbidden=frozenset({"COMPUTE_STATUS_DISABLED"}))


ZONES = (
    aggregate("1", metadata={"availability_zone": "east"}),
    aggregate("2", metadata={"availability_zone": "west"}),
    aggregate("3", metadata={"availability_zone": "east"}),
)


@pytest.mark.parametrize(
    ("zone", "aggregates"),
    [("east", (("agg-1", "agg-3"),)), ("west", (("agg-2",),)), ("nova", None), (None, None)],
)
def test_a_zone_becomes_membership_in_one_of_its_aggregates(zone: str | None, aggregates: Any) -> None:
    found = added("map_az_to_placement_aggregate", aggregates=ZONES, availability_zone=zone)
    assert (found and found.aggregates) == aggregates


def test_a_projects_aggregates_match_by_the_whole_value() -> None:
    aggregates = (
        aggregate("1", metadata={"filter_tenant_id": "project"}),
        aggregate("2", metadata={"filter_tenant_id3": "project"}),
        aggregate("3", metadata={"filter_tenant_id": "project,other"}),
        aggregate("4", metadata={"other_key": "project"}),
    )
    found = added("require_tenant_aggregate", aggregates=aggregates)
    assert found == Additions(aggregates=(("agg-1", "agg-2"),))


def test_a_project_without_an_aggregate_fails_only_where_one_is_required() -> None:
    assert added("require_tenant_aggregate") is None
    with pytest.raises(RequestFilterFailed, match="No aggregate is set up for project project"):
        added(
            "require_tenant_aggregate", settings=SchedulerSettings(placement_aggregate_required_for_tenants=True)
        )  # fmt: skip


@pytest.mark.parametrize(
    ("image", "is_bfv", "traits"),
    [
        ("qcow2", False, {"COMPUTE_IMAGE_TYPE_QCOW2"}),
        ("qcow2", True, None),
        ("papyrus", False, None),
        (None, False, None),
    ],
)
def test_the_disk_format_becomes_a_trait(image: str | None, is_bfv: bool, traits: set[str] | None) -> None:
    found = added("require_image_type_support", image_spec=ImageSpec(disk_format=image), is_bfv=is_bfv)
    assert (found and set(found.required)) == traits


def test_an_aggregate_kept_for_traits_is_forbidden_unless_all_of_them_are_asked_for() -> None:
    aggregates = (
        aggregate("1", metadata={"trait:CUSTOM_A": "required"}),
        aggregate("2", metadata={"trait:CUSTOM_A": "required", "trait:CUSTOM_B": "required"}),
        aggregate("3", metadata={"trait:CUSTOM_C": "required"}),
        aggregate("4", metadata={"trait:CUSTOM_C": "other"}),
        aggregate("5"),
    )
    found = added(
        "isolate_aggregates", aggregates=aggregates,
        extra_specs={"trait1:CUSTOM_A": "required"}, image={"trait:CUSTOM_D": "required"},
    )  # fmt: skip
    assert found == Additions(forbidden_aggregates=frozenset({"agg-2", "agg-3"}))


def test_image_properties_become_traits_all_or_none() -> None:
    good = {"hw_disk_bus": "virtio", "hw_vif_model": "e1000", "hw_architecture": "x86_64", "os_distro": "debian"}
    found = added("transform_image_metadata", image=good)
    assert found == Additions(
        required=frozenset({"COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_NET_VIF_MODEL_E1000", "HW_ARCH_X86_64"})
    )
    assert added("transform_image_metadata", image=good | {"hw_vif_model": "carrier-pigeon"}) is None
    assert added("transform_image_metadata", image={"os_distro": "debian"}) is None


@pytest.mark.parametrize(
    ("name", "extra_specs", "image", "traits"),
    [
        ("accelerators_filter", {}, {}, None),
        ("accelerators_filter", {"accel:device_profile": "fpga"}, {}, {"COMPUTE_ACCELERATORS"}),
        ("packed_virtqueue_filter", {"hw:virtio_packed_ring": "false"}, {"hw_virtio_packed_ring": "no"}, None),
        ("packed_virtqueue_filter", {"hw:virtio_packed_ring": "True"}, {}, {"COMPUTE_NET_VIRTIO_PACKED"}),
        ("packed_virtqueue_filter", {}, {"hw_virtio_packed_ring": True}, {"COMPUTE_NET_VIRTIO_PACKED"}),
        ("ephemeral_encryption_filter", {}, {}, None),
        ("ephemeral_encryption_filter", {"hw:ephemeral_encryption": "yes"}, {}, {"COMPUTE_EPHEMERAL_ENCRYPTION"}),
        ("ephemeral_encryption_filter", {"hw:ephemeral_encryption": "yes"}, {"hw_ephemeral_encryption_format": "luks"},
         {"COMPUTE_EPHEMERAL_ENCRYPTION", "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS"}),
        ("virtio_sound_filter", {"hw:sound_model": "ich9"}, {}, None),
        ("virtio_sound_filter", {}, {"hw_sound_model": "virtio"}, {"COMPUTE_SOUND_MODEL_VIRTIO"}),
        ("tpm_secret_security_filter", {"hw:tpm_secret_security": "host"}, {}, None),
        ("tpm_secret_security_filter", {"hw:tpm_version": "2.0"}, {}, {"COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER"}),
        ("tpm_secret_security_filter", {"hw:tpm_secret_security": "host"}, {"hw_tpm_version": "2.0"},
         {"COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST"}),
    ],
)  # fmt: skip
def test_a_feature_of_the_guest_becomes_root_traits(
    name: str, extra_specs: dict[str, str], image: dict[str, Any], traits: set[str] | None
) -> None:
    found = added(name, extra_specs=extra_specs, image=image)
    assert (found and set(found.required)) == traits
    assert ROWS[name].enabled(SchedulerSettings())


def test_a_keeper_of_secrets_that_does_not_exist_ends_the_request() -> None:
    with pytest.raises(RequestFilterFailed, match="none of user, host, deployment"):
        added("tpm_secret_security_filter", extra_specs={"hw:tpm_version": "2.0", "hw:tpm_secret_security": "nobody"})


def test_each_interface_of_a_routed_network_is_a_requirement_of_its_own() -> None:
    around = Surroundings(interfaces=(("seg-a", "seg-b"), (), ("seg-c",)))
    assert added("routed_networks_filter", around=around) == Additions(aggregates=(("seg-a", "seg-b"), ("seg-c",)))
    assert added("routed_networks_filter", around=Surroundings(interfaces=((), ()))) is None


def test_a_segment_without_an_aggregate_is_no_valid_host() -> None:
    with pytest.raises(RequestFilterFailed, match="Segment s1 has no aggregate"):
        added("routed_networks_filter", around=Surroundings(bad_segment="s1"))


@pytest.mark.parametrize(("vnic_type", "wanted"), [("remote-managed", True), ("normal", False), (None, False)])
def test_a_port_that_a_smartnic_manages_asks_for_its_trait(vnic_type: str | None, wanted: bool) -> None:
    network: dict[str, Any] = {"network": {"id": "n"}, "port": "p"} | ({"vnic_type": vnic_type} if vnic_type else {})
    found = added("remote_managed_ports_filter", requested_networks=(network,))
    assert found == (Additions(required=frozenset({"COMPUTE_REMOTE_MANAGED_PORTS"})) if wanted else None)


@pytest.mark.parametrize(("lowest", "wanted"), [(73, True), (74, True), (72, False), (None, False)])
def test_the_owner_is_asked_for_once_every_compute_service_says_whose_it_is(
    lowest: int | None, wanted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    found = added("owner_nova_filter", around=Surroundings(lowest_compute=lowest))
    assert found == (Additions(required=frozenset({"OWNER_NOVA"})) if wanted else None)
    assert ("needed is 73" in caplog.text) is (lowest == 72)


def test_a_flavor_and_an_image_that_contradict_each_other_over_virtqueues_find_no_host() -> None:
    with pytest.raises(RequestFilterFailed, match="is true, the image's hw_virtio_packed_ring no"):
        added(
            "packed_virtqueue_filter",
            extra_specs={"hw:virtio_packed_ring": "true"}, image={"hw_virtio_packed_ring": "no"},
        )  # fmt: skip

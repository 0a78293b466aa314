"""Who is confined to whom: subject × aggregate × mechanism, the whole way through Placement's question and the filters.

Host `a` is in the aggregate that carries the property, host `b` in none. Subjects: `match` has the property with the
aggregate's value, `other` has it with another value, `none` has it not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from kilonova.bus.calls import SelectDestinations
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.request_spec import FlavorSpec, ImageSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import DEFAULT_FILTERS, SchedulerSettings
from kilonova.scheduler.surroundings import Others
from tests.scheduler.world import Cloud

SUBJECTS = ("match", "other", "none")
MINE, THEIRS, NOBODYS = "m" * 32, "o" * 32, "n" * 32
PROJECTS = dict(zip(SUBJECTS, (MINE, THEIRS, NOBODYS), strict=True))


@dataclass(frozen=True)
class Mechanism:
    """filters, options: what is enabled. metadata: of the aggregate of host a. trait: what its provider carries."""

    name: str
    lands: str
    """Where each subject lands, in the order of SUBJECTS: `a`, `b`, `ab` or `-`."""
    metadata: dict[str, str]
    filters: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    flavor: dict[str, dict[str, str]] = field(default_factory=dict)
    image: dict[str, dict[str, str]] = field(default_factory=dict)
    trait: str = ""
    by_project: bool = False
    other_home: dict[str, str] = field(default_factory=dict)
    """Metadata of an aggregate of a third host, where the other subject belongs."""

    def __str__(self) -> str:
        return self.name


SSD = {"match": {"ssd": "fast"}, "other": {"ssd": "slow"}}
TRAITS = {"match": {"trait:CUSTOM_GOLD": "required"}, "other": {"trait:CUSTOM_LEAD": "required"}}
GOLD = {"trait:CUSTOM_GOLD": "required"}
ISOLATED = {"enable_isolated_aggregate_filtering": True}
LIMITED = {"limit_tenants_to_placement_aggregate": True}
NECTAR, TENANCY = "NectarAggregateMultiTenancyIsolation", "AggregateMultiTenancyIsolation"

BOARD = (
    Mechanism("extra specs confine the flavor", "a - ab", {"ssd": "fast"}, ("AggregateInstanceExtraSpecsFilter",),
              flavor=SSD),
    Mechanism("type affinity reserves the host", "ab b b", {"instance_type": "flavor-match"},
              ("AggregateTypeAffinityFilter",)),
    Mechanism("both flavor filters lock two ways", "a - b", {"ssd": "fast", "instance_type": "flavor-match"},
              ("AggregateInstanceExtraSpecsFilter", "AggregateTypeAffinityFilter"), flavor=SSD),
    Mechanism("image properties only conflict", "ab b ab", {"hw_disk_bus": "virtio"},
              ("AggregateImagePropertiesIsolation",),
              image={"match": {"hw_disk_bus": "virtio"}, "other": {"hw_disk_bus": "ide"}}),
    Mechanism("traits of a flavor lock two ways", "a - b", GOLD, (), ISOLATED, flavor=TRAITS, trait="CUSTOM_GOLD"),
    Mechanism("traits of an image lock two ways", "a - b", GOLD, (), ISOLATED, image=TRAITS, trait="CUSTOM_GOLD"),
    Mechanism("traits without the switch confine only", "a - ab", GOLD, image=TRAITS, trait="CUSTOM_GOLD"),
    Mechanism("the switch without the trait on the host lets nobody in", "- - b", GOLD, (), ISOLATED, image=TRAITS),
    Mechanism("an aggregate of several traits takes who asks for all", "- - b",
              {"trait:CUSTOM_GOLD": "required", "trait:CUSTOM_SILVER": "required"}, (), ISOLATED, image=TRAITS,
              trait="CUSTOM_GOLD"),
    Mechanism("the tenant request filter confines the project", "a c abc", {"filter_tenant_id1": MINE}, (), LIMITED,
              by_project=True, other_home={"filter_tenant_id": THEIRS}),
    Mechanism("the isolation filter reserves the host", "ab b b", {"filter_tenant_id": MINE}, (TENANCY,),
              by_project=True),
    Mechanism("nectar's isolation filter reserves the host", "ab b b", {"nectar:filter_tenant_id": f"x, {MINE}"},
              (NECTAR,), by_project=True),
    Mechanism("both tenant mechanisms lock two ways", "a c b", {"filter_tenant_id": MINE}, (TENANCY,), LIMITED,
              by_project=True, other_home={"filter_tenant_id": THEIRS}),
    Mechanism("nectar's pair needs both keys", "a c b",
              {"filter_tenant_id1": MINE, "nectar:filter_tenant_id": MINE}, (NECTAR,), LIMITED, by_project=True,
              other_home={"filter_tenant_id1": THEIRS, "nectar:filter_tenant_id": THEIRS}),
    Mechanism("a list of projects does not confine", "ab b b", {"filter_tenant_id": f"{MINE},x"}, (TENANCY,), LIMITED,
              by_project=True),
    Mechanism("restricted zones confine the project", "a - ab", {"availability_zone": "gold"},
              ("RestrictedZoneFilter",), {"restrict_zones": True}, by_project=True),
    Mechanism("restricted zones are off without their switch", "ab ab ab", {"availability_zone": "gold"},
              ("RestrictedZoneFilter",), by_project=True),
    Mechanism("project tags confine the project", "a - ab", {"nectar:project-tags": "preemptible, gold"},
              ("ProjectTagsFilter",), {"project_tags_allowed": ("preemptible", "lead")}, by_project=True),
)  # fmt: skip


class Projects:
    """The identity service's records: what restricts the projects of the board."""

    def project(self, project_id: str) -> dict[str, Any] | None:
        return {
            MINE: {"compute_zones": "gold, silver", "tags": ["preemptible"]},
            THEIRS: {"compute_zones": "lead", "tags": ["lead"]},
            NOBODYS: {"compute_zones": "ALL", "tags": ["gold"]},
        }.get(project_id)


def subject(mechanism: Mechanism, kind: str) -> RequestSpec:
    flavor = FlavorSpec(
        id=1, flavorid="1", name=f"flavor-{kind}", memory_mb=512, vcpus=1, root_gb=1,
        extra_specs=mechanism.flavor.get(kind, {}),
    )  # fmt: skip
    image = ImageSpec(id="i", properties=mechanism.image.get(kind, {}))
    project = PROJECTS[kind] if mechanism.by_project else MINE
    return RequestSpec(project_id=project, user_id="u" * 32, flavor=flavor, image=image)


def where(made: Scheduler, spec: RequestSpec, hosts: str) -> str:
    """The hosts on which the subject may land, each tried with the others left out."""
    found = ""
    for host in hosts:
        asked = RequestSpec(
            project_id=spec.project_id, user_id=spec.user_id, flavor=spec.flavor, image=spec.image,
            ignore_hosts=tuple(other for other in hosts if other != host),
        )  # fmt: skip
        try:
            context = Context(overwrite=False, project_id=spec.project_id)
            made.select_destinations(context, SelectDestinations(asked, (ids.new_uuid(),), alternates=False))
        except NoValidHost:
            continue
        found += host
    return found or "-"


@pytest.mark.parametrize("mechanism", BOARD, ids=str)
def test_each_mechanism_lets_each_subject_land_where_the_board_says(cloud: Cloud, mechanism: Mechanism) -> None:
    hosts = "abc" if mechanism.other_home else "ab"
    cloud.add_hosts(*hosts)
    cloud.add_aggregate("reserved", ("a",), **mechanism.metadata)
    if mechanism.other_home:
        cloud.add_aggregate("elsewhere", ("c",), **mechanism.other_home)
    if mechanism.trait:
        cloud.provider("a").traits.add(mechanism.trait)
    settings = SchedulerSettings(enabled_filters=(*DEFAULT_FILTERS, *mechanism.filters), **mechanism.options)
    made = Scheduler(cloud, cloud.placement, settings, others=Others(identity=Projects()))
    landed = [where(made, subject(mechanism, kind), hosts) for kind in SUBJECTS]
    assert " ".join(landed) == mechanism.lands


def test_a_named_zone_is_not_restricted_again(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    cloud.add_aggregate("lead", ("b",), availability_zone="lead")
    settings = SchedulerSettings(enabled_filters=("RestrictedZoneFilter",), restrict_zones=True)
    made = Scheduler(cloud, cloud.placement, settings, others=Others(identity=Projects()))
    flavor = FlavorSpec(id=1, flavorid="1", name="f", memory_mb=512, vcpus=1, root_gb=1)
    for zone, expected in ((None, None), ("lead", "b"), (None, None)):
        asked = RequestSpec(project_id=MINE, user_id="u" * 32, flavor=flavor, availability_zone=zone)
        call = SelectDestinations(asked, (ids.new_uuid(),))
        if expected is None:
            with pytest.raises(NoValidHost):
                made.select_destinations(Context(overwrite=False, project_id=MINE), call)
        else:
            found = made.select_destinations(Context(overwrite=False, project_id=MINE), call)
            assert [row.host for row in found.selections[0]] == [expected]


def test_the_project_that_counts_is_the_callers(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    settings = SchedulerSettings(enabled_filters=("RestrictedZoneFilter",), restrict_zones=True)
    made = Scheduler(cloud, cloud.placement, settings, others=Others(identity=Projects()))
    flavor = FlavorSpec(id=1, flavorid="1", name="f", memory_mb=512, vcpus=1, root_gb=1)
    asked = SelectDestinations(RequestSpec(project_id=MINE, user_id="u", flavor=flavor), (ids.new_uuid(),))
    assert made.select_destinations(Context(overwrite=False, project_id=NOBODYS), asked).selections


def test_a_project_that_identity_does_not_know_gets_no_host(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    settings = SchedulerSettings(enabled_filters=("ProjectTagsFilter",))
    made = Scheduler(cloud, cloud.placement, settings, others=Others(identity=Projects()))
    flavor = FlavorSpec(id=1, flavorid="1", name="f", memory_mb=512, vcpus=1, root_gb=1)
    asked = SelectDestinations(RequestSpec(project_id="x", user_id="u", flavor=flavor), (ids.new_uuid(),))
    with pytest.raises(NoValidHost, match="has no project x"):
        made.select_destinations(Context(overwrite=False, project_id="x"), asked)

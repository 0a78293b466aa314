"""Flavors with a device profile: devices are placed, bound, given back; killed anywhere, nothing of them is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kilonova.bus.calls import GuestSpec
from kilonova.clients.accelerators import HttpAccelerators
from kilonova.clients.auth import catalog_endpoint
from kilonova.clients.rest import EndpointNotFound, FixedToken, RemoteUnavailable, RestClient
from kilonova.compute import dry_run, flavors
from kilonova.compute.accelerators import DeviceProfileUnusable
from kilonova.compute.dry_run import Asked
from kilonova.compute.settings import ComputeSettings
from kilonova.core import ids
from kilonova.core.context import preserved
from kilonova.core.server import Server
from kilonova.db.queries import requests, servers
from kilonova.virt.simulated import SimulatedDriver
from kilonova.workflows.accelerators import NOBODYS_AFTER_S
from kilonova.workflows.build import BUILD_WITH_ACCELERATORS
from tests.workflows.census import allocations, assert_stable, living
from tests.workflows.cloud import QUOTAS, Cloud
from tests.workflows.harness import Crash, _flat, failing
from tests.workflows.stories import (
    again,
    boot,
    booted,
    remove,
    tell,
    tell_through_kills,
    tell_with_interruptions,
    tidy,
)
from tests.workflows.test_server_rivals import rob

PROFILE = {
    "name": "crypto", "uuid": "aaaaaaaa-0000-4000-8000-000000000009",
    "groups": [
        {"resources:FPGA": "2", "trait:CUSTOM_FAST": "required", "accel:bitstream_id": "b"},
        {"resources:PGPU": "1", "trait:CUSTOM_FAST": "forbidden"},
    ],
}  # fmt: skip


def equipped(cloud: Cloud) -> Cloud:
    """Every host gets two cards, a fast one with FPGAs and another with a GPU; flavor `fpga` asks for both."""
    placement = cloud.placement
    placement.ensure_trait("CUSTOM_FAST")
    for host in placement.list_providers():
        for kind, total, traits in (("FPGA", 4, ["CUSTOM_FAST"]), ("PGPU", 2, [])):
            card = ids.derived_uuid(host["uuid"], kind)
            generation = placement.ensure_provider(card, f"{host['name']}_{kind}", host["uuid"])
            generation = placement.set_inventory(card, {kind: {"total": total}}, generation)
            placement.set_traits(card, traits, generation)
    cloud.cyborg.profiles = [PROFILE]
    values = {"name": "fpga", "flavorid": "fpga", "memory_mb": 128, "vcpus": 1, "root_gb": 1}
    made = flavors.create(cloud.world, cloud.context, values)
    flavors.set_specs(cloud.world, made, {"accel:device_profile": "crypto"})
    return cloud


def accelerated(cloud: Cloud, count: int = 1, **values: Any) -> list[str]:
    return boot(cloud, count, flavor_ref="fpga", networks="none", **values)


def states(cloud: Cloud) -> list[str]:
    return sorted(arq["state"] for arq in cloud.cyborg.arqs.values())


def fault(cloud: Cloud, uuid: str) -> str:
    return str(servers.faults_of(cloud.files["cell1"], [uuid])[uuid].message)


def active_or_refused(alive: dict[str, Server]) -> None:
    assert [server.vm_state for server in alive.values()] in ([], ["active"])


# -- create ------------------------------------------------------------------------------------------------------------


def test_a_server_gets_the_devices_of_its_profile_on_its_host(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    equipped(cloud)
    given: list[GuestSpec] = []
    spawn = SimulatedDriver.spawn

    def seen(driver: Any, host: str, guest: GuestSpec, *, paused: bool) -> Any:
        given.append(guest)
        return spawn(driver, host, guest, paused=paused)

    monkeypatch.setattr(SimulatedDriver, "spawn", seen)
    (uuid,) = accelerated(cloud)
    cloud.run()
    server = assert_stable(cloud)[uuid]
    fpga, gpu = (ids.derived_uuid(str(server.compute_id), kind) for kind in ("FPGA", "PGPU"))
    assert sorted((arq["device_rp_uuid"], arq["hostname"]) for arq in cloud.cyborg.arqs.values()) == sorted(
        [(fpga, server.node), (fpga, server.node), (gpu, server.node)]
    )
    assert {one[1:] for one in allocations(cloud) if one[1] in (fpga, gpu)} == {(fpga, "FPGA", 2), (gpu, "PGPU", 1)}
    assert cloud.cyborg.projects == {server.project_id}
    assert [one["attach_handle_info"] for one in given[0].accelerators] == [{"bus": "3b"}] * 3
    tidy(cloud)
    assert cloud.cyborg.arqs == {}


def test_a_request_has_the_groups_of_the_profile_by_their_numbers(cloud: Cloud) -> None:
    (uuid,) = accelerated(equipped(cloud))
    first, second = requests.specs(cloud.world.cells.api, [uuid])[uuid].requested_resources
    assert (first.requester, first.resources, first.required) == ("device_profile_0", {"FPGA": 2}, ("CUSTOM_FAST",))
    assert (second.requester, second.resources, second.forbidden) == (
        "device_profile_1", {"PGPU": 1}, ("CUSTOM_FAST",),
    )  # fmt: skip
    assert sum("device_profiles" in call for call in cloud.calls) == 1


@pytest.mark.parametrize(
    ("profiles", "why"),
    [
        ([], "there is none of that name"),
        ([PROFILE, PROFILE], "there are 2 of that name"),
        ([PROFILE | {"groups": []}], "it asks for no devices"),
        ([PROFILE | {"groups": [{"resources:FPGA": "many"}]}], "its group 0 has resources:FPGA=many"),
        ([PROFILE | {"groups": [{"trait:CUSTOM_FAST": "perhaps"}]}], "its group 0 has trait:CUSTOM_FAST=perhaps"),
        ([PROFILE | {"groups": [{"trait:CUSTOM_FAST": "required"}]}], "its group 0 has traits and asks for no device"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused_at_the_request(
    cloud: Cloud, profiles: list[dict[str, Any]], why: str
) -> None:
    equipped(cloud).cyborg.profiles = profiles
    with pytest.raises(DeviceProfileUnusable, match=f"^Device profile crypto of the flavor cannot be used: {why}.$"):
        accelerated(cloud)
    cloud.run()
    assert assert_stable(cloud) == {}


def test_without_an_accelerator_service_in_the_catalogue_the_flavor_is_refused(cloud: Cloud) -> None:
    class Catalogue:
        def endpoint(self, types: Any, *_rest: Any) -> str:
            raise EndpointNotFound(service=types[0])

    endpoint = catalog_endpoint(Catalogue(), ("accelerator",))  # type: ignore[arg-type]
    nothing: Any = None
    client = HttpAccelerators(RestClient("accelerator", endpoint, nothing, FixedToken("token", None)))
    equipped(cloud).process.world = replace(cloud.world, accelerators=client)
    with pytest.raises(DeviceProfileUnusable, match="this cloud has no accelerator service"):
        accelerated(cloud)
    assert booted(cloud)


def test_an_accelerator_service_that_is_away_refuses_only_what_needs_it(cloud: Cloud) -> None:
    equipped(cloud).away = {"accelerator"}
    with pytest.raises(RemoteUnavailable):
        accelerated(cloud)
    assert len(booted(cloud)) == len(assert_stable(cloud)) == 1
    tidy(cloud)


def test_simulations_and_capacities_ask_for_the_devices_too(cloud: Cloud) -> None:
    equipped(cloud)
    scheduler = cloud.process.scheduler
    cloud.process.bus.serve("scheduler", {
        "simulate_request": scheduler.simulate, "measure_capacity": scheduler.capacity,
    })  # fmt: skip
    with preserved():
        cloud.context.update_store()
        most = dry_run.capacity(cloud.world, cloud.context, Asked(flavor="fpga"))
        assert most.fits == 8  # two a host
        cloud.cyborg.profiles = []
        with pytest.raises(DeviceProfileUnusable):
            dry_run.simulate(cloud.world, cloud.context, Asked(flavor="fpga"), 1)


# -- build -------------------------------------------------------------------------------------------------------------


def test_a_binding_that_fails_ends_the_build_without_another_host(cloud: Cloud) -> None:
    equipped(cloud)
    hosts = [row["uuid"] for row in cloud.placement.list_providers()]
    cloud.cyborg.refuses = {ids.derived_uuid(host, "PGPU") for host in hosts}
    (server,) = tell(cloud, accelerated).values()
    assert (server.vm_state, cloud.spawns) == ("error", [])
    assert "could not be bound" in fault(cloud, server.uuid)
    assert sum(call.startswith("accelerator POST") for call in cloud.calls) == 1


def test_a_binding_that_never_ends_is_waited_for_as_long_as_set(clouds: Callable[..., Cloud]) -> None:
    cloud = equipped(clouds(settings=ComputeSettings(quotas=QUOTAS, arq_binding_timeout=100)))
    cloud.hold_events = True
    begun = cloud.clock.seconds
    (server,) = tell(cloud, accelerated).values()
    assert server.vm_state == "error"
    assert 100 <= cloud.clock.seconds - begun < 130
    assert "were not bound within 100 seconds" in fault(cloud, server.uuid)


def test_an_event_that_is_lost_is_made_up_for_by_asking(cloud: Cloud) -> None:
    equipped(cloud).hold_events = True
    accelerated(cloud)
    cloud.work()
    assert states(cloud) == ["BindStarted"] * 3
    cloud.cyborg.resolve()
    begun = cloud.clock.seconds
    cloud.run()
    assert [server.vm_state for server in assert_stable(cloud).values()] == ["active"]
    assert cloud.clock.seconds - begun < 40


def test_a_server_that_waits_for_its_devices_holds_no_thread_and_is_deleted(cloud: Cloud) -> None:
    equipped(cloud).hold_events = True
    (uuid,) = accelerated(cloud)
    cloud.work()
    assert not cloud.process.pool.tasks
    remove(cloud, uuid)
    cloud.run()
    assert (assert_stable(cloud), cloud.cyborg.arqs) == ({}, {})


def test_the_next_host_gets_devices_of_its_own(cloud: Cloud) -> None:
    equipped(cloud).hold_events = True
    (uuid,) = accelerated(cloud)
    cloud.work()
    (first,) = {arq["hostname"] for arq in cloud.cyborg.arqs.values()}
    cloud.bad_hosts = {str(first)}
    cloud.hold_events = False
    cloud.run()
    server = assert_stable(cloud)[uuid]
    assert (server.vm_state, server.host == first) == ("active", False)
    assert {arq["hostname"] for arq in cloud.cyborg.arqs.values()} == {server.node}


def test_a_profile_that_was_changed_meanwhile_ends_the_build(cloud: Cloud) -> None:
    (uuid,) = accelerated(equipped(cloud))
    cloud.cyborg.profiles = [PROFILE | {"groups": [*PROFILE["groups"], {"resources:FPGA": "1"}]}]
    cloud.run()
    assert assert_stable(cloud)[uuid].vm_state == "error"
    assert "the device profile was changed" in fault(cloud, uuid)


def test_a_service_that_is_away_for_a_moment_is_asked_again(cloud: Cloud) -> None:
    accelerated(equipped(cloud))
    cloud.away = {"accelerator"}
    cloud.run(until=lambda: cloud.clock.seconds > 0.5)
    cloud.away = set()
    cloud.run()
    assert [server.vm_state for server in assert_stable(cloud).values()] == ["active"]


def test_a_delete_while_the_service_is_away_ends_in_error_and_is_done_when_asked_again(cloud: Cloud) -> None:
    (uuid,) = accelerated(equipped(cloud))
    cloud.run()
    cloud.away = {"accelerator"}
    remove(cloud, uuid)
    cloud.run()
    assert living(cloud)[uuid][1].vm_state == "error"
    cloud.away = set()
    remove(cloud, uuid)
    cloud.run()
    assert (assert_stable(cloud), cloud.cyborg.arqs) == ({}, {})


# -- killed anywhere ---------------------------------------------------------------------------------------------------


def test_a_build_killed_anywhere_ends_active_with_its_devices_and_no_others(cloud: Cloud) -> None:
    assert tell_through_kills(equipped(cloud), accelerated, expect=active_or_refused) > 40


def test_a_build_killed_anywhere_while_it_goes_to_an_alternate_leaves_no_devices(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> None:
        cloud.bad_hosts = {"sim-0001", "sim-0002"}
        accelerated(cloud)

    tell_through_kills(equipped(cloud), begin, expect=active_or_refused, whole=(True,), stride=3)


def test_a_delete_killed_anywhere_deletes_the_devices(cloud: Cloud) -> None:
    made: list[str] = []

    def before(cloud: Cloud) -> None:
        made[:] = accelerated(cloud)
        cloud.run()

    tell_through_kills(equipped(cloud), lambda cloud: remove(cloud, made[0]), before=before, stride=2)


def test_a_server_deleted_at_any_moment_of_its_build_leaves_no_devices(cloud: Cloud) -> None:
    def remove_all(cloud: Cloud, uuids: list[str]) -> None:
        for uuid in uuids:
            remove(cloud, uuid)

    def expect(alive: dict[str, Server]) -> None:
        assert len(alive) <= 1

    tell_with_interruptions(equipped(cloud), accelerated, remove_all, expect=expect)


def test_requests_of_which_a_killed_build_could_not_note_anything_are_removed_and_those_of_others_left(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    create = HttpAccelerators.create_requests

    def killed(accelerators: Any, profile: str) -> list[dict[str, Any]]:
        found = create(accelerators, profile)
        if not made:
            made.extend(arq["uuid"] for arq in found)
            raise Crash
        return found

    others = [arq["uuid"] for arq in equipped(cloud).accelerators.create_requests("crypto")]
    monkeypatch.setattr(HttpAccelerators, "create_requests", killed)
    accelerated(cloud)
    cloud.run()
    assert made
    assert set(others) < set(cloud.cyborg.arqs)
    assert not set(made) & set(cloud.cyborg.arqs)
    assert [cloud.accelerators.delete_request(arq) for arq in (*others, others[0])] == [True, True, True, False]
    assert [server.vm_state for server in assert_stable(cloud).values()] == ["active"]


def test_requests_that_a_conductor_makes_after_it_was_taken_over_are_taken_back(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled: list[bool] = []
    create = HttpAccelerators.create_requests

    def late(accelerators: Any, profile: str) -> list[dict[str, Any]]:
        if not stalled:
            stalled.append(True)
            rob(cloud)
        return create(accelerators, profile)

    monkeypatch.setattr(HttpAccelerators, "create_requests", late)
    begun = equipped(cloud).clock.seconds
    alive = tell(cloud, accelerated)
    assert [server.vm_state for server in alive.values()] == ["active"]
    assert cloud.clock.seconds - begun < NOBODYS_AFTER_S  # nothing was left that the other had to wait for
    tidy(cloud)


def test_requests_that_another_conductor_has_bound_in_this_moment_are_taken_as_bound(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind = HttpAccelerators.bind

    def late(accelerators: Any, bindings: Any) -> None:
        bind(accelerators, bindings)
        bind(accelerators, bindings)

    monkeypatch.setattr(HttpAccelerators, "bind", late)
    assert [server.vm_state for server in tell(equipped(cloud), accelerated).values()] == ["active"]


def test_a_conductor_that_was_taken_over_leaves_noted_requests_to_the_other(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled: list[bool] = []
    bind = HttpAccelerators.bind

    def late(accelerators: Any, bindings: Any) -> None:
        bind(accelerators, bindings)
        if not stalled:
            stalled.append(True)
            rob(cloud)

    monkeypatch.setattr(HttpAccelerators, "bind", late)
    assert [server.vm_state for server in tell(equipped(cloud), accelerated).values()] == ["active"]
    assert stalled
    assert not [call for call in cloud.calls if call.startswith("accelerator DELETE")]


STEPS = [step.name for step in _flat(BUILD_WITH_ACCELERATORS)]


@pytest.mark.parametrize("step", [None, *STEPS])
def test_every_do_and_undo_may_run_twice(clouds: Callable[..., Cloud], step: str | None) -> None:
    cloud = equipped(clouds(change=again if step is None else lambda one: failing(step, after=True)(again(one))))
    (server,) = tell(cloud, accelerated).values()
    assert server.vm_state == ("active" if step is None else "error")
    tidy(cloud)

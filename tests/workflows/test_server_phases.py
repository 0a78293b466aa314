"""A server deleted in every phase of its life, by one user or two at once; nothing of it remains."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kilonova.core.context import Context
from kilonova.core.server import Server
from kilonova.db.queries import requests
from tests.workflows.census import assert_stable, guests, living
from tests.workflows.cloud import Cloud
from tests.workflows.stories import (
    Interruption,
    boot,
    booted,
    from_volume,
    port,
    remove,
    tell,
    tell_with_interruptions,
    tidy,
    volume,
)


def nothing(alive: dict[str, Server]) -> None:
    assert alive == {}


def remove_all(cloud: Cloud, uuids: list[str]) -> None:
    for uuid in uuids:
        remove(cloud, uuid)


def one_is_left_at_most(alive: dict[str, Server]) -> None:
    """The action came, or the story was over before it could."""
    assert len(alive) <= 1


def test_a_server_deleted_at_any_moment_of_its_boot_leaves_nothing(cloud: Cloud) -> None:
    assert tell_with_interruptions(cloud, boot, remove_all, expect=one_is_left_at_most) > 10


def test_a_server_with_a_volume_deleted_at_any_moment_of_its_boot_leaves_nothing(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> list[str]:
        cloud.bad_hosts = {"sim-0001", "sim-0002"}
        return boot(cloud, devices=from_volume())

    tell_with_interruptions(cloud, begin, remove_all, expect=one_is_left_at_most)


def test_a_server_deleted_at_any_moment_of_its_wait_for_interfaces_leaves_nothing(clouds: Callable[..., Cloud]) -> None:
    tell_with_interruptions(clouds(slow_plug=True), boot, remove_all, expect=one_is_left_at_most)


def test_a_server_without_a_host_deleted_at_any_moment_leaves_nothing(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> list[str]:
        return boot(cloud, availability_zone="nova:nowhere", may_force_host=True)

    tell_with_interruptions(cloud, begin, remove_all, expect=one_is_left_at_most)


def test_some_of_a_batch_deleted_at_any_moment_do_not_disturb_the_others(cloud: Cloud) -> None:
    def expect(alive: dict[str, Server]) -> None:
        assert len(alive) in (1, 2)
        assert {server.vm_state for server in alive.values()} == {"active"}

    tell_with_interruptions(
        cloud, lambda cloud: boot(cloud, 2), lambda cloud, uuids: remove(cloud, uuids[1]), expect=expect
    )


def test_a_second_delete_at_any_moment_of_the_first_changes_nothing(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> list[str]:
        uuids = booted(cloud)
        remove(cloud, uuids[0])
        return uuids

    tell_with_interruptions(cloud, begin, remove_all, expect=nothing)


def test_two_deletes_in_one_moment_are_one(cloud: Cloud) -> None:
    (uuid,) = booted(cloud)
    remove(cloud, uuid)
    remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud) == {}


def test_a_request_cancelled_between_schedule_and_hand_over_gives_its_room_back(cloud: Cloud) -> None:
    (uuid,) = boot(cloud)
    claimed = Interruption(1, "effect", lambda: remove(cloud, uuid))
    tell(cloud, lambda _cloud: None, faults=claimed, expect=nothing)
    assert cloud.calls[-2:] == [
        f"placement PUT http://placement/allocations/{uuid}", f"placement DELETE http://placement/allocations/{uuid}",
    ]  # fmt: skip
    assert requests.mapping(cloud.world.cells.api, uuid) is None
    assert cloud.spawns == []


def test_a_server_parked_on_its_interfaces_holds_no_thread_and_is_deleted(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds(slow_plug=True)
    cloud.hold_events = True
    (uuid,) = boot(cloud)
    cloud.work()
    assert not cloud.process.pool.tasks
    assert living(cloud)[uuid][1].task_state == "spawning"
    assert {server for server, _ in guests(cloud)} == {uuid}
    remove(cloud, uuid)
    assert living(cloud)[uuid][1].task_state == "deleting"
    cloud.run()
    assert assert_stable(cloud) == {}


def test_a_server_in_error_is_deleted_and_its_owner_keeps_port_and_volume(cloud: Cloud) -> None:
    own, its_port = volume(cloud), port(cloud)
    cloud.own_volumes = frozenset((own,))
    cloud.bad_hosts = {f"sim-000{n}" for n in range(1, 5)}
    networks = [{"port": its_port}]
    devices = from_volume(False, volume_id=own, flagged=True)
    alive = tell(cloud, lambda cloud: boot(cloud, networks=networks, devices=devices))
    assert [server.vm_state for server in alive.values()] == ["error"]
    assert cloud.volumes.show(cloud.context, own)["status"] == "available"
    cloud.own_volumes = frozenset()  # flagged: it goes with the server
    for uuid in alive:
        remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud) == {}
    shown = cloud.network.show_port(its_port)
    assert (shown["device_id"], shown["binding:host_id"]) == ("", "")


def test_a_users_volume_and_port_survive_their_server(cloud: Cloud) -> None:
    own, its_port = volume(cloud), port(cloud)
    cloud.own_volumes = frozenset((own,))
    devices = from_volume(False, volume_id=own, flagged=False)
    booted(cloud, networks=[{"port": its_port}], devices=devices)
    assert_stable(cloud)
    tidy(cloud)
    assert cloud.network.show_port(its_port)["device_id"] == ""
    assert cloud.volumes.show(cloud.context, own)["status"] == "available"


def test_a_volume_that_cannot_be_deleted_does_not_keep_its_server(cloud: Cloud) -> None:
    own = volume(cloud)
    (uuid,) = booted(cloud, devices=from_volume(False, volume_id=own, flagged=True))
    cloud.volumes.create_snapshot(cloud.context, own, force=True)
    remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud, kept_volumes=frozenset((own,))) == {}


@pytest.mark.parametrize("scheduled", [False, True], ids=["before it is scheduled", "after no host was found"])
def test_a_volume_to_be_deleted_with_its_server_goes_even_if_that_never_had_a_host(
    cloud: Cloud, scheduled: bool
) -> None:
    own, kept = volume(cloud), volume(cloud)
    devices = from_volume(False, volume_id=own, flagged=True)
    devices += [from_volume(False, volume_id=kept, flagged=False)[0]]
    (uuid,) = boot(cloud, devices=devices, availability_zone="nova:nowhere", may_force_host=True)
    if scheduled:
        cloud.run()
        assert_stable(cloud, kept_volumes=frozenset((own, kept)))
    remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud, kept_volumes=frozenset((kept,))) == {}


def test_an_administrator_of_another_project_deletes_a_server_with_its_volumes(cloud: Cloud) -> None:
    (uuid,) = booted(cloud, devices=from_volume())
    admin = Context(user_id="a" * 32, project_id="e" * 32, roles=["admin"], is_admin=True, overwrite=False)
    remove(cloud, uuid, admin)
    cloud.run()
    assert assert_stable(cloud) == {}

"""The promise on real workflows: killed anywhere, servers end ACTIVE, in ERROR with a fault, or gone; nothing leaks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kilonova.core.server import Server
from tests.workflows.cloud import Cloud
from tests.workflows.stories import boot, booted, from_volume, remove, tell_through_kills


def active_or_refused(alive: dict[str, Server]) -> None:
    """Nothing failed, so a server that was accepted is ACTIVE."""
    assert [server.vm_state for server in alive.values()] in ([], ["active"])


def test_a_boot_killed_anywhere_ends_active(cloud: Cloud) -> None:
    assert tell_through_kills(cloud, boot, expect=active_or_refused) > 40


def test_a_boot_with_a_volume_killed_anywhere_ends_active(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> None:
        boot(cloud, devices=from_volume())

    tell_through_kills(cloud, begin, expect=active_or_refused)


def test_a_boot_that_waits_for_its_interface_killed_anywhere_ends_active(clouds: Callable[..., Cloud]) -> None:
    tell_through_kills(clouds(slow_plug=True), boot, expect=active_or_refused)


def test_a_boot_killed_anywhere_while_it_goes_to_an_alternate_ends_active(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> None:
        cloud.bad_hosts = {"sim-0001", "sim-0002"}
        boot(cloud, devices=from_volume())

    tell_through_kills(cloud, begin, expect=active_or_refused, whole=(True,), stride=2)


def test_a_boot_killed_anywhere_while_it_fails_for_good_leaves_nothing(clouds: Callable[..., Cloud]) -> None:
    cloud = clouds(max_attempts=2)

    def begin(cloud: Cloud) -> None:
        cloud.bad_hosts = {f"sim-000{n}" for n in range(1, 5)}
        boot(cloud, devices=from_volume())

    def expect(alive: dict[str, Server]) -> None:
        assert [server.vm_state for server in alive.values()] in ([], ["error"])

    tell_through_kills(cloud, begin, expect=expect, whole=(True,), stride=2)


def test_a_boot_without_a_host_killed_anywhere_ends_in_cell0(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> None:
        boot(cloud, 2, flavor_ref="42", hints={"same_host": ["11111111-1111-4111-8111-111111111111"]},
             availability_zone="nova:nowhere", may_force_host=True)  # fmt: skip

    def expect(alive: dict[str, Server]) -> None:
        assert [server.vm_state for server in alive.values()] in ([], ["error", "error"])

    tell_through_kills(cloud, begin, expect=expect)


@pytest.mark.parametrize("devices", [None, from_volume()], ids=["image", "volume"])
def test_a_delete_killed_anywhere_deletes(cloud: Cloud, devices: list[dict[str, object]] | None) -> None:
    made: list[str] = []

    def before(cloud: Cloud) -> None:
        made[:] = booted(cloud, devices=devices)

    def begin(cloud: Cloud) -> None:
        remove(cloud, made[0])

    def expect(alive: dict[str, Server]) -> None:
        assert [server.vm_state for server in alive.values()] in ([], ["active"])

    tell_through_kills(cloud, begin, before=before, expect=expect)


def test_a_delete_right_after_the_request_killed_anywhere_leaves_nothing(cloud: Cloud) -> None:
    def begin(cloud: Cloud) -> None:
        remove(cloud, boot(cloud)[0])

    tell_through_kills(cloud, begin)

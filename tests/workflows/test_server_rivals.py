"""Two conductors at the same boot: one had stalled, lost the workflow to another, and wakes up in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kilonova.core.request_spec import RequestSpec
from kilonova.db.queries import requests, servers
from kilonova.workflows import boot as booting
from tests.workflows.census import assert_stable, living
from tests.workflows.cloud import Cloud
from tests.workflows.stories import boot, from_volume, remove, tell, tidy

Into = Callable[..., None]


def test_a_server_that_a_rival_puts_into_the_cell_at_this_moment_goes_on(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Into = booting._into_cell
    blind: list[str] = []

    def twice(*args: Any) -> None:
        real(*args)
        with monkeypatch.context() as patch:
            patch.setattr(booting.servers, "read", not_yet)
            real(*args)

    read = servers.read

    def not_yet(connection: Any, uuid: str, *, deleted: bool = False) -> Any:
        if uuid in blind:
            return read(connection, uuid, deleted=deleted)
        blind.append(uuid)  # looked before the rival had committed
        return None

    monkeypatch.setattr(booting, "_into_cell", twice)
    alive = tell(cloud, lambda cloud: boot(cloud))
    assert blind == list(alive)
    assert {server.vm_state for server in alive.values()} == {"active"}
    tidy(cloud)


def test_a_server_that_a_rival_settles_while_it_is_buried_is_in_one_cell_at_most(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, into = booting._settle, booting._into_cell
    chosen: list[dict[str, Any]] = []

    def broken(world: Any, run: Any, selections: dict[str, Any]) -> set[str]:
        if not chosen:
            chosen.append(selections)
            raise RuntimeError("injected")
        return settle(world, run, selections)

    def late(world: Any, run: Any, cell: str, waiting: list[requests.BuildRequest], selections: dict[str, Any],
             specs: dict[str, RequestSpec], fault: dict[str, Any] | None) -> None:  # fmt: skip
        if chosen:
            settle(world, run, chosen[0])
        into(world, run, cell, waiting, selections, specs, fault)

    monkeypatch.setattr(booting, "_settle", broken)
    monkeypatch.setattr(booting, "_into_cell", late)
    (uuid,) = boot(cloud)
    cloud.run()
    assert len(chosen) == 1
    (alive,) = assert_stable(cloud).values()  # with its allocation
    assert (alive.uuid, alive.vm_state, living(cloud)[uuid][0]) == (uuid, "active", "cell1")
    tidy(cloud)


def test_a_server_that_is_deleted_before_its_spec_is_read_takes_no_other_with_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = requests.specs
    first, second = boot(cloud, 2)
    gone: list[str] = []

    def late(*args: Any) -> dict[str, RequestSpec]:
        if not gone:
            gone.append(first)
            remove(cloud, first)
        return specs(*args)

    monkeypatch.setattr(requests, "specs", late)
    cloud.run()
    assert gone
    alive = assert_stable(cloud)
    assert {uuid: server.vm_state for uuid, server in alive.items()} == {second: "active"}
    tidy(cloud)


def test_a_port_that_a_conductor_makes_after_it_was_taken_over_is_taken_back(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled: list[str] = []
    create = type(cloud.network).create_port

    def late(network: Any, body: dict[str, Any]) -> dict[str, Any]:
        if not stalled:
            stalled.append(create(network, body)["id"])  # the rival's, who had looked and found none
            rob(cloud)
        return create(network, body)

    monkeypatch.setattr(type(cloud.network), "create_port", late)
    alive = tell(cloud, boot)
    assert [port["id"] for port in cloud.network.list_ports(device_id=next(iter(alive)))] == stalled
    assert {server.vm_state for server in alive.values()} == {"active"}
    tidy(cloud)


def test_a_volume_that_a_conductor_makes_after_it_was_taken_over_is_taken_back(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled: list[str] = []
    create = type(cloud.volumes).create

    def late(volumes: Any, ctx: Any, **fields: Any) -> dict[str, Any]:
        if not stalled:
            stalled.append(create(volumes, ctx, **fields)["id"])
            rob(cloud)
        return create(volumes, ctx, **fields)

    monkeypatch.setattr(type(cloud.volumes), "create", late)
    alive = tell(cloud, lambda cloud: boot(cloud, devices=from_volume()))
    assert {server.vm_state for server in alive.values()} == {"active"}
    assert [one["id"] for one in cloud.volumes.list_volumes(cloud.context)] == stalled
    tidy(cloud)


def rob(cloud: Cloud) -> None:
    """Another conductor adopted what this one has in hand, and lets it go again."""
    for database, tables in cloud.databases():
        with database.write() as connection:
            connection.execute(
                tables.workflows.update().where(tables.workflows.c.state == "running")
                .values(owner=None, epoch=tables.workflows.c.epoch + 1)
            )  # fmt: skip

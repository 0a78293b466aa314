"""What users do to a cloud in these tests, and how a story is told again with a kill at each of its points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from kilonova.compute.create import NewServers, create
from kilonova.compute.delete import delete
from kilonova.compute.lookup import ServerNotFound, find
from kilonova.core.context import Context, preserved
from kilonova.core.errors import KilonovaError
from kilonova.core.server import Server
from kilonova.workflows.step import NOTHING, Done, Step
from tests.workflows.census import assert_stable, volumes
from tests.workflows.cloud import Cloud
from tests.workflows.harness import Crash, Faults, When

Begin = Callable[[Cloud], object]
Expect = Callable[[dict[str, Server]], object]

NANO, XLARGE = "42", "5"


def boot(cloud: Cloud, count: int = 1, **values: Any) -> list[str]:
    """Ask for servers; their uuids."""
    with preserved():
        cloud.context.update_store()
        image = values.pop("image_ref", None)
        if image is None:
            image = cloud.images.list_images()[0]["id"]
        new = NewServers(**{
            "name": "s", "flavor_ref": NANO, "image_ref": image, "min_count": count, "max_count": count, **values,
        })  # fmt: skip
        return [server.uuid for server in create(cloud.world, cloud.context, new).servers]


def remove(cloud: Cloud, uuid: str, context: Context | None = None) -> None:
    """Ask for a server's deletion, as its owner or somebody else; it may be gone already."""
    with preserved():
        ctx = context or cloud.context
        ctx.update_store()
        try:
            delete(cloud.world, ctx, find(cloud.world, ctx, uuid))
        except ServerNotFound:
            return


def booted(cloud: Cloud, count: int = 1, **values: Any) -> list[str]:
    """Servers that are ACTIVE."""
    uuids = boot(cloud, count, **values)
    cloud.run()
    return uuids


def volume(cloud: Cloud, *, bootable: bool = False, size: int = 1) -> str:
    """A volume of the user's own, available."""
    fields = {"imageRef": cloud.images.list_images()[0]["id"]} if bootable else {}
    return str(cloud.volumes.create(cloud.context, size=size, **fields)["id"])


def port(cloud: Cloud) -> str:
    """A port of the user's own, on the private network."""
    (private,) = (net for net in cloud.network.list_networks() if net["name"] == "private")
    return str(cloud.network.create_port({"network_id": private["id"], "tenant_id": cloud.context.project_id})["id"])


def from_volume(made: bool = True, *, flagged: bool = True, volume_id: str = "") -> list[dict[str, Any]]:
    """A device list with an empty volume that is to be made beside the image, or with a user's volume."""
    if made:
        return [{"source_type": "blank", "destination_type": "volume", "volume_size": 1, "boot_index": -1,
                 "delete_on_termination": flagged}]  # fmt: skip
    return [{"source_type": "volume", "destination_type": "volume", "uuid": volume_id, "boot_index": -1,
             "delete_on_termination": flagged}]  # fmt: skip


def tell(
    cloud: Cloud, begin: Begin, *, faults: Faults | None = None, whole: bool = True, expect: Expect | None = None,
    kept: frozenset[str] = frozenset(),
) -> dict[str, Server]:  # fmt: skip
    """One story to its end, through the kill; what survives is checked."""
    cloud.faults = faults or Faults()
    cloud.faults.armed = True
    try:
        begin(cloud)
    except Crash:
        cloud.kill(whole=whole)
    except KilonovaError:
        if not cloud.faults.fired:
            raise
    cloud.run(whole=whole)
    cloud.faults.armed = False
    kept |= frozenset(key for key in volumes(cloud) if key in cloud.own_volumes)
    alive = assert_stable(cloud, kept_volumes=kept)
    if expect is not None:
        expect(alive)
    return alive


def tidy(cloud: Cloud) -> None:
    """Delete every server; nothing may remain."""
    cloud.faults = Faults()
    for uuid in assert_stable(cloud, kept_volumes=cloud.own_volumes):
        remove(cloud, uuid)
    cloud.run()
    assert assert_stable(cloud, kept_volumes=cloud.own_volumes) == {}


def tell_through_kills(
    cloud: Cloud, begin: Begin, *, before: Begin | None = None, expect: Expect | None = None,
    whole: Sequence[bool] = (True, False), stride: int = 1,
) -> int:  # fmt: skip
    """Tell a story once without a kill, then once for each point with a kill there; how many those were.

    before: what comes first, without kills. whole: kill the process, or the conductor alone. stride: every so many-th
    point only.
    """

    def one(faults: Faults, whole: bool) -> None:
        cloud.faults = Faults()
        if before is not None:
            before(cloud)
        tell(cloud, begin, faults=faults, whole=whole, expect=expect)
        tidy(cloud)

    plain = Faults()
    one(plain, True)
    points: list[tuple[When, int]] = [("before", at) for at in range(1, plain.commits + 1)]
    points += [("effect", at) for at in range(1, plain.effects + 1)]
    points += [("after", at) for at in range(1, plain.commits + 1)]
    told = 0
    for when, at in points[::stride]:
        for every in whole:
            if when == "after" and not every:  # what a new conductor finds then, it finds after the next "before" too
                continue
            faults, who = Faults(at, when), "all" if every else "conductor"
            where = f"killed {when} {'effect' if when == 'effect' else 'commit'} {at}, {who}"
            try:
                one(faults, every)
            except Exception as error:
                raise AssertionError(f"{where}: {error!r}") from error
            told += faults.fired
    return told


class _Adopted:
    """A run as its step sees it when it is called again: at a higher epoch."""

    def __init__(self, run: Any) -> None:
        self._run, self.epoch = run, run.epoch + 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)


def again(step: Step) -> Step:
    """Make do and undo run a second time when they are done, as after a crash before the commit."""

    def repeat(function: Any) -> Any:
        def repeated(world: Any, run: Any) -> Any:
            outcome = function(world, run)
            return function(world, _Adopted(run)) if outcome is None or isinstance(outcome, Done) else outcome

        return repeated

    undo = step.undo if step.undo is NOTHING else repeat(step.undo)
    return dataclasses.replace(step, do=repeat(step.do), undo=undo)


class Interruption(Faults):
    """At the chosen point something happens in the middle of what goes on, instead of a kill."""

    def __init__(self, at: int, when: When, action: Callable[[], object]) -> None:
        super().__init__(at, when)
        self._action = action

    def fire(self) -> None:
        if self.armed and not self.fired:
            self.fired = True
            self._action()


def tell_with_interruptions(
    cloud: Cloud, begin: Callable[[Cloud], list[str]], action: Callable[[Cloud, list[str]], object],
    *, expect: Expect | None = None, before: Begin | None = None,
) -> int:  # fmt: skip
    """Tell a story once for each commit and effect after its request, with `action` between that and the next thing.

    The points behind the end of a transaction and behind a remote success are those at which others can come in.
    """
    told = 0
    for when in ("after", "effect"):
        at = 0
        while True:
            at += 1
            cloud.faults = Faults()
            if before is not None:
                before(cloud)
            uuids = begin(cloud)
            faults = Interruption(at, when, lambda: action(cloud, uuids))  # type: ignore[arg-type]  # noqa: B023
            try:
                tell(cloud, lambda _cloud: None, faults=faults, expect=expect)
                tidy(cloud)
            except Exception as error:
                raise AssertionError(f"interrupted after {when} {at}: {error!r}") from error
            if not faults.fired:
                break
            told += 1
    return told

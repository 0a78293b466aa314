"""The step `accelerators` of a build: ARQs made and bound to the providers of the claim, and taken away again.

Bound ARQs are found again by their server. Until then the accelerator service does not know whose they are: what was
unbound before is noted before new ones are made, and the new ones' ids after. A kill between the two leaves ARQs that
nobody has noted; whoever adopts the build removes those that appeared since then and that nobody binds for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from kilonova.clients.accelerators import BOUND, FAILED, INITIAL, Binding
from kilonova.clients.rest import Doc, EndpointNotFound, RemoteInvalid
from kilonova.compute.accelerators import requester
from kilonova.compute.world import World
from kilonova.core import json
from kilonova.core.errors import KilonovaError
from kilonova.workflows.step import Done, Outcome, Parked, Run

EVENT: Final = "accelerator-request-bound"
ASK_EACH_S: Final = 30.0
"""So long may a lost event hold up a server."""
ASK_SOON_S: Final = 1.0
NOBODYS_AFTER_S: Final = 30.0
"""Who makes ARQs binds them at once: those that are unbound for so long were made by somebody who was killed."""

_MADE, _BEFORE, _STRAY = "arqs", "arqs_before", "arqs_stray"  # notes


class AcceleratorsNotBound(KilonovaError):
    """The accelerator service could not give the devices, or did not say so in time."""

    status, code, message = 500, "accelerators_not_bound", "Build failed: accelerator requests {arqs} {why}."


def bind(world: World, run: Run) -> Outcome:
    """Have devices of the profile bound to the server, and wait until all are."""
    found = world.accelerators.list_requests(run.subject)
    if not found:
        made = run.notes.get(_MADE)
        if made is None:
            pause = _strays_removed(world, run)
            if pause is not None:
                return pause
            made = _make(world, run)
        found = _bound_to(world, run, made)
    return _resolved(world, run, found)


def release(world: World, run: Run) -> Outcome:
    """Delete the server's ARQs, bound or not."""
    world.accelerators.delete_of(run.subject)
    for arq in run.notes.get(_MADE) or ():
        world.accelerators.delete_request(arq["uuid"])
    pause = None if _MADE in run.notes else _strays_removed(world, run)
    if pause is None and (_MADE in run.notes or _BEFORE in run.notes):
        run.note(_BEFORE, None)
        run.note(_MADE, None)
    return pause


def drop(world: World, server: str) -> None:
    """Delete what is bound to a server that is being deleted. A cloud without such a service has none."""
    try:
        world.accelerators.delete_of(server)
    except EndpointNotFound:
        return


def _make(world: World, run: Run) -> list[Doc]:
    profile = run.params["device_profile"]
    run.note(_BEFORE, sorted(_unbound(world, profile)))
    mine: list[str] = []
    run.if_lost(partial(_drop_each, world, mine))
    made = world.accelerators.create_requests(profile)
    mine += [arq["uuid"] for arq in made]
    kept = [{"uuid": arq["uuid"], "group": arq["device_profile_group_id"]} for arq in made]
    run.note(_MADE, kept)
    mine.clear()  # whoever adopts the build from here on knows them
    return kept


def _drop_each(world: World, arqs: list[str]) -> None:
    for arq in arqs:
        world.accelerators.delete_request(arq)


def _unbound(world: World, profile: str) -> set[str]:
    """Those of a profile that are nobody's yet."""
    return {
        arq["uuid"] for arq in world.accelerators.list_requests()
        if arq["device_profile_name"] == profile and arq["state"] == INITIAL and not arq.get("instance_uuid")
    }  # fmt: skip


def _strays_removed(world: World, run: Run) -> Parked | None:
    """Remove what an earlier call made and could not note, after a pause in which anybody else would bind his own."""
    if _BEFORE not in run.notes:
        return None
    there = _unbound(world, run.params["device_profile"])
    suspected = run.notes.get(_STRAY)
    if suspected is None:
        suspected = sorted(there - set(run.notes[_BEFORE]))
        if not suspected:
            return None
        run.note(_STRAY, suspected)
        return Parked((), NOBODYS_AFTER_S)
    if not run.expired:
        return Parked((), NOBODYS_AFTER_S)
    _drop_each(world, [arq for arq in suspected if arq in there])
    run.note(_BEFORE, None)
    run.note(_STRAY, None)
    return None


def _bound_to(world: World, run: Run, made: Iterable[Doc]) -> list[Doc]:
    """Begin to bind; answers the server's ARQs as they are then."""
    chosen = run.params["selections"][run.attempt - 1]
    mappings = json.loads(chosen["allocation_request"])["mappings"]
    unplaced = [arq["uuid"] for arq in made if not mappings.get(requester(arq["group"]))]
    if unplaced:
        raise AcceleratorsNotBound(arqs=", ".join(unplaced), why="have no provider: the device profile was changed")
    project = run.params["project_id"]
    bindings = [
        Binding(arq["uuid"], chosen["node"], mappings[requester(arq["group"])][0], run.subject, project) for arq in made
    ]
    try:
        world.accelerators.bind(bindings)
    except RemoteInvalid:
        found = world.accelerators.list_requests(run.subject)
        if not found:
            raise
        return found  # another conductor, who had stalled, has bound them in this moment
    return world.accelerators.list_requests(run.subject)


def _resolved(world: World, run: Run, found: Sequence[Doc]) -> Outcome:
    """Done when all are bound; parked while some may still be. AcceleratorsNotBound."""
    failed = [arq["uuid"] for arq in found if arq["state"] in FAILED or _told(run, arq["uuid"]) == "failed"]
    if failed:
        raise AcceleratorsNotBound(arqs=", ".join(failed), why="could not be bound")
    pending = [arq["uuid"] for arq in found if arq["state"] != BOUND]
    if found and not pending:
        return Done({"arqs": [_kept(arq) for arq in sorted(found, key=lambda arq: str(arq["uuid"]))]})
    left = world.settings.arq_binding_timeout - run.elapsed
    if left <= 0:
        why = f"were not bound within {world.settings.arq_binding_timeout} seconds"
        raise AcceleratorsNotBound(arqs=", ".join(pending), why=why)
    untold = [arq for arq in pending if _told(run, arq) is None]
    patience = ASK_EACH_S if untold == pending and pending else ASK_SOON_S
    return Parked([(EVENT, arq) for arq in untold], min(left, patience))


def _told(run: Run, arq: str) -> str | None:
    event = run.event(EVENT, arq)
    return None if event is None else str(event.payload.get("status"))


def _kept(arq: Doc) -> dict[str, Any]:
    """What a hypervisor must know of a bound ARQ."""
    return {
        key: arq.get(key)
        for key in ("uuid", "device_profile_group_id", "device_rp_uuid", "attach_handle_type", "attach_handle_info")
    }  # fmt: skip

"""Asking the scheduler what it would do: the request is put together as for a new server, and nothing is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kilonova.bus.calls import MeasureCapacity, Simulate, measure_capacity, simulate_request
from kilonova.clients.images import ImageNotFound
from kilonova.compute import accelerators, flavors, guest_rules, images, zones
from kilonova.compute.flavors import FlavorFilter, FlavorUnusable
from kilonova.compute.groups import group_of_hint
from kilonova.compute.images import ImageUnusable
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.capacity import Capacity
from kilonova.core.context import Context
from kilonova.core.decision import Decision
from kilonova.core.errors import Forbidden, Invalid
from kilonova.core.request_spec import FlavorSpec, ImageSpec, RequestSpec
from kilonova.db.queries import requests


class NothingAsked(Invalid):
    """Neither a flavor nor a request."""

    code = "nothing_asked"
    message = "Say what is to be scheduled: a flavor, the spec of a request, or a server whose request is to be taken."


class SpecUnreadable(Invalid):
    """The given request spec is none."""

    code, message = "spec_unreadable", "The request spec cannot be read: {reason}."


class RequestNotKept(Invalid):
    """The server's request is not stored."""

    code, message = "request_not_kept", "The request of server {server} is not kept: it was deleted, or never was."


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be scheduled. flavor and image: id or name. spec or server: a request as it was, in which what else is
    given here replaces what it says. project_id: for whom; the caller's own without it.
    """

    flavor: str | None = None
    image: str | None = None
    availability_zone: str | None = None
    hints: dict[str, list[str]] = field(default_factory=dict)
    project_id: str | None = None
    spec: dict[str, Any] | None = None
    server: str | None = None


def simulate(world: World, ctx: Context, asked: Asked, count: int) -> Decision:
    """What the scheduler would decide now for so many servers."""
    spec = msgspec.structs.replace(_spec(world, ctx, asked), num_instances=count)
    return world.bus.call(simulate_request, Simulate(spec, count), ctx=ctx).decision


def capacity(world: World, ctx: Context, asked: Asked) -> Capacity:
    """How many more of these servers fit."""
    return world.bus.call(measure_capacity, MeasureCapacity(_spec(world, ctx, asked)), ctx=ctx)


def _spec(world: World, ctx: Context, asked: Asked) -> RequestSpec:
    spec = _base(world, ctx, asked)
    changes: dict[str, Any] = {}
    if asked.flavor is not None:
        changes["flavor"] = flavor = _flavor(world, ctx, asked.flavor)
        others = accelerators.without_profile(spec.requested_resources)
        changes["requested_resources"] = (*others, *accelerators.groups_of(world, ctx, flavor))
    if asked.image is not None:
        changes["image"] = _image(world, ctx, asked.image)
    fresh = asked.spec is None and asked.server is None
    if fresh or asked.availability_zone is not None:
        placed = zones.resolve(world, asked.availability_zone, None, None, may_force=True)
        changes |= {
            "availability_zone": placed.zone, "force_hosts": placed.force_hosts, "force_nodes": placed.force_nodes,
            "requested_destination": placed.destination,
        }  # fmt: skip
    if asked.hints:
        changes |= {"scheduler_hints": asked.hints, "group": group_of_hint(world, ctx, asked.hints.get("group"))}
    if asked.project_id is not None:
        changes["project_id"] = asked.project_id
    spec = msgspec.structs.replace(spec, **changes)
    if asked.flavor is None and asked.image is None:
        return spec
    devices = guest_rules.check(spec.flavor, spec.image, world.settings.pci_aliases)
    return msgspec.structs.replace(spec, pci_requests=devices)


def _base(world: World, ctx: Context, asked: Asked) -> RequestSpec:
    if asked.spec is not None:
        try:
            return msgspec.convert(asked.spec, RequestSpec)
        except msgspec.ValidationError as error:
            raise SpecUnreadable(reason=str(error).replace("`", "")) from None
    if asked.server is not None:
        server = ids.canonical_uuid(asked.server)
        found = requests.specs(world.cells.api, [server])
        if server not in found:
            raise RequestNotKept(server=server)
        return found[server]
    if asked.flavor is None:
        raise NothingAsked
    placeholder = FlavorSpec(id=0, flavorid="", name="", memory_mb=0, vcpus=0, root_gb=0)  # replaced by the caller
    return RequestSpec(project_id=ctx.project_id, user_id=ctx.user_id, flavor=placeholder)


def _flavor(world: World, ctx: Context, reference: str) -> FlavorSpec:
    """By id, else by name."""
    try:
        return flavors.for_boot(world, ctx, reference)
    except FlavorUnusable:
        named = FlavorFilter(public=None, name=f"^{re.escape(reference)}$")
        found = [row for row in flavors.page(world, ctx, named, 2, None) if row.name == reference]
        if not found:
            raise
        return flavors.for_boot(world, ctx, found[0].flavorid)


def _image(world: World, ctx: Context, reference: str) -> ImageSpec:
    """By id, else the only one of that name."""
    try:
        record = world.images.as_user(ctx).show(reference) if ids.is_uuid_like(reference) else None
    except (ImageNotFound, Forbidden):
        record = None
    if record is not None:
        return images.of_record(record)
    found = world.images.as_user(ctx).list_images(name=reference)
    if len(found) != 1:
        why = f"is the name of {len(found)} images" if found else "could not be found"
        raise ImageUnusable(image=reference, why=why)
    return images.of_record(found[0])

"""Flavors with a device profile: what its groups ask of Placement, in the words of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kilonova.clients.rest import EndpointNotFound
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Invalid
from kilonova.core.request_spec import FlavorSpec, ResourceGroup

PROFILE: Final = "accel:device_profile"
"""The extra spec that names the profile."""
_REQUESTER: Final = "device_profile_"


class DeviceProfileUnusable(Invalid):
    """The flavor's device profile cannot be asked for."""

    code = "device_profile_unusable"
    message = "Device profile {profile} of the flavor cannot be used: {why}."


def profile_of(extra_specs: Mapping[str, Any]) -> str | None:
    """The name of the device profile that these extra specs ask for."""
    return extra_specs.get(PROFILE) or None


def requester(group: int) -> str:
    """What the group of this number in a profile is called in requests and allocations."""
    return f"{_REQUESTER}{group}"


def groups_of(world: World, ctx: Context, flavor: FlavorSpec) -> tuple[ResourceGroup, ...]:
    """The groups of resources that the flavor's device profile asks for, as the accelerator service has it now.

    DeviceProfileUnusable; RemoteUnavailable when the service does not answer.
    """
    profile = profile_of(flavor.extra_specs)
    if profile is None:
        return ()
    try:
        found = world.accelerators.as_user(ctx).device_profiles(profile)
    except EndpointNotFound:
        raise DeviceProfileUnusable(profile=profile, why="this cloud has no accelerator service") from None
    if len(found) != 1:
        why = f"there are {len(found)} of that name" if found else "there is none of that name"
        raise DeviceProfileUnusable(profile=profile, why=why)
    groups = [_group(profile, number, row) for number, row in enumerate(found[0]["groups"])]
    wanted = tuple(group for group in groups if group.resources)
    if not wanted:
        raise DeviceProfileUnusable(profile=profile, why="it asks for no devices")
    return wanted


def without_profile(groups: Iterable[ResourceGroup]) -> tuple[ResourceGroup, ...]:
    """Those of the groups that no device profile has asked for."""
    return tuple(group for group in groups if not group.requester.startswith(_REQUESTER))


def _group(profile: str, number: int, row: Mapping[str, Any]) -> ResourceGroup:
    """A group of the profile. Keys of other kinds (`accel:…`) are for the accelerator service itself."""
    resources: dict[str, int] = {}
    traits: dict[str, list[str]] = {"required": [], "forbidden": []}
    for key, value in row.items():
        kind, _, name = key.partition(":")
        if kind == "resources" and str(value).isdigit():
            resources[name] = int(value)
        elif kind == "trait" and value in traits:
            traits[value].append(name)
        elif kind in ("resources", "trait"):
            raise DeviceProfileUnusable(profile=profile, why=f"its group {number} has {key}={value}")
    resources = {name: amount for name, amount in resources.items() if amount}
    if not resources and any(traits.values()):
        raise DeviceProfileUnusable(profile=profile, why=f"its group {number} has traits and asks for no device")
    return ResourceGroup(
        requester(number), resources, tuple(sorted(traits["required"])), tuple(sorted(traits["forbidden"]))
    )

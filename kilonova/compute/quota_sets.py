"""Quotas as administrators set them and users see them: limits, usage, defaults, classes.

Counting against them while something is created is in `quotas`. Keys are the API's names of resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kilonova.compute import quotas
from kilonova.compute.settings import QUOTA_RESOURCES
from kilonova.compute.world import World
from kilonova.core.errors import Invalid
from kilonova.db.queries import quotas as rows
from kilonova.db.queries import server_groups
from kilonova.sql.engine import Connection

NETWORK_RESOURCES: Final = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")
"""Limits that mean nothing any more, because the network service has its own; they can be read and set till 2.35."""

_STORED: Final = {"injected_file_path_bytes": "injected_file_path_length"}
_SHOWN: Final = {stored: shown for shown, stored in _STORED.items()}
_MAX_CLASS_NAME: Final = 255

Limits = dict[str, int]


class ProjectUnknown(Invalid):
    """The identity service has no such project."""

    code, message = "project_unknown", "Project ID {project} is not a valid project."


class LimitBelowUse(Invalid):
    """More than that is in use already."""

    code = "limit_below_use"
    message = (
        "Quota limit {limit} for {resource} must be greater than or equal to already used and reserved {used}."
    )


class LimitAboveProject(Invalid):
    """A user cannot be given more than the project has."""

    code = "limit_above_project"
    message = "Quota limit {limit} for {resource} must be less than or equal to {most}, the limit of the project."


class ClassNameInvalid(Invalid):
    """A class name is stored in 255 characters."""

    code, message = "class_name_invalid", "The name of a quota class has 1 to 255 characters."


@dataclass(frozen=True, slots=True)
class Usage:
    """One resource: limit (-1 is none), and how much is in use."""

    limit: int
    in_use: int


def limits(world: World, project: str, user: str | None = None) -> Limits:
    """What a project may have, or one user of it. ProjectUnknown."""
    _check_project(world, project)
    with world.cells.api.read() as connection:
        return _limits(world, connection, project, user)


def usage(world: World, project: str, user: str | None = None) -> dict[str, Usage]:
    """Limits with what is in use of them. ProjectUnknown."""
    _check_project(world, project)
    with world.cells.api.read() as connection:
        used = _used(connection, project, user)
        found = _limits(world, connection, project, user)
    return {name: Usage(limit, used.get(name, 0)) for name, limit in found.items()}


def own_usage(world: World, project: str) -> dict[str, Usage]:
    """The same of a project that is known to be there."""
    with world.cells.api.read() as connection:
        used = _used(connection, project, None)
        return {name: Usage(limit, used.get(name, 0)) for name, limit in _limits(world, connection, project).items()}


def defaults(world: World, project: str) -> Limits:
    """What a project has that was given nothing of its own. ProjectUnknown."""
    _check_project(world, project)
    return class_limits(world, "default")


def class_limits(world: World, name: str) -> Limits:
    """The limits of a class, the configured ones where it has none."""
    with world.cells.api.read() as connection:
        return _shown(_configured(world) | rows.class_limits(connection, name))


def set_limits(
    world: World, project: str, user: str | None, wanted: Mapping[str, int], *, force: bool
) -> Limits:
    """Change limits of a project or of a user; answers all. ProjectUnknown, LimitBelowUse, LimitAboveProject.

    force: also below what is in use.
    """
    _check_project(world, project)
    with world.cells.api.write() as connection:
        rows.lock(connection, project)
        if user is not None:
            _within(_limits(world, connection, project), wanted)
        if not force:
            _above_use(_used(connection, project, user), wanted)
        stored = {_STORED.get(name, name): limit for name, limit in wanted.items()}
        if user is None:
            rows.set_limits(connection, project, stored)
        else:
            rows.set_user_limits(connection, project, user, stored)
        return _limits(world, connection, project, user)


def drop(world: World, project: str, user: str | None) -> None:
    """Let the defaults hold again: for a project and its users, or for one user."""
    with world.cells.api.write() as connection:
        if user is None:
            rows.drop_limits(connection, project)
        else:
            rows.drop_user_limits(connection, project, user)


def set_class_limits(world: World, name: str, wanted: Mapping[str, int]) -> Limits:
    """Change limits of a class; answers all. ClassNameInvalid."""
    if not 1 <= len(name) <= _MAX_CLASS_NAME:
        raise ClassNameInvalid
    with world.cells.api.write() as connection:
        rows.lock(connection, name)
        rows.set_class_limits(connection, name, {_STORED.get(key, key): limit for key, limit in wanted.items()})
    return class_limits(world, name)


def _check_project(world: World, project: str) -> None:
    if not world.identity.project_exists(project):
        raise ProjectUnknown(project=project)


def _configured(world: World) -> Limits:
    return {name: world.settings.quotas[name] for name in QUOTA_RESOURCES} | dict.fromkeys(NETWORK_RESOURCES, -1)


def _limits(world: World, connection: Connection, project: str, user: str | None = None) -> Limits:
    found = _configured(world) | quotas.limits_of(connection, world.settings, project)
    if user is not None:
        found |= rows.user_limits(connection, project, user)
    return _shown(found)


def _shown(found: Limits) -> Limits:
    return {_SHOWN.get(name, name): limit for name, limit in found.items()}


def _used(connection: Connection, project: str, user: str | None) -> Limits:
    used = rows.used(connection, project, user)
    groups = server_groups.count_of(connection, project)
    return {"instances": used.instances, "cores": used.cores, "ram": used.ram, "server_groups": groups}


def _within(most: Limits, wanted: Mapping[str, int]) -> None:
    for name, limit in wanted.items():
        if most[name] >= 0 and not 0 <= limit <= most[name]:
            raise LimitAboveProject(limit=limit, resource=name, most=most[name])


def _above_use(used: Limits, wanted: Mapping[str, int]) -> None:
    for name, limit in wanted.items():
        if 0 <= limit < used.get(name, 0):
            raise LimitBelowUse(limit=limit, resource=name, used=used[name])

"""Listing servers over all cells: who may filter by what, what a value means, order and pages (errors.md 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cmp_to_key
from typing import Any

from kilonova.compute.lookup import Found
from kilonova.compute.world import World
from kilonova.core import states
from kilonova.core.context import Context
from kilonova.core.errors import Forbidden, Invalid
from kilonova.core.regex import holds, is_regex, matcher
from kilonova.core.server import Server
from kilonova.db.queries import flavors, requests, server_lists, servers
from kilonova.db.queries.server_lists import Order, ServerFilter


class FilterInvalid(Invalid):
    """A filter's value cannot be read."""

    code, message = "filter_invalid", "Invalid filter {name}: {why}"


class MarkerUnknown(Invalid):
    """The marker is no server."""

    code, message = "marker_not_found", "Marker {marker} could not be found."


class SortForbidden(Forbidden):
    """Order by host or node is the administrator's."""

    code, message = "sort_forbidden", "Only an administrator may sort by {key}."


class DeletedForbidden(Forbidden):
    """Deleted servers are listed for administrators."""

    code, message = "deleted_forbidden", "Only an administrator may list deleted servers."


@dataclass(frozen=True, slots=True)
class Asked:
    """A list as asked for. filters: name → values as sent, only those the caller may use. all_tenants: decided.

    status_strict: a status that maps to nothing is refused instead of giving an empty list (2.38).
    """

    filters: Mapping[str, list[str]]
    all_tenants: bool = False
    sort_keys: Sequence[str] = ()
    sort_dirs: Sequence[str] = ()
    limit: int = 1000
    marker: str | None = None
    status_strict: bool = True


# filter name → column, and how its value is matched
_EXACT = {
    "host": "host", "node": "node", "uuid": "uuid", "project_id": "project_id", "tenant_id": "project_id",
    "image": "image_ref", "image_ref": "image_ref", "user_id": "user_id", "vm_state": "vm_state",
    "task_state": "task_state",
}  # fmt: skip
_REGEX = {
    "name": "display_name", "display_name": "display_name", "reservation_id": "reservation_id",
    "availability_zone": "availability_zone", "key_name": "key_name", "hostname": "hostname",
    "kernel_id": "kernel_id", "ramdisk_id": "ramdisk_id", "launch_index": "launch_index", "locked_by": "locked_by",
    "root_device_name": "root_device_name", "access_ip_v4": "access_ip_v4", "access_ip_v6": "access_ip_v6",
    "description": "display_description", "display_description": "display_description",
    "created_at": "created_at", "launched_at": "launched_at", "terminated_at": "terminated_at",
    "power_state": "power_state", "progress": "progress", "auto_disk_config": "auto_disk_config",
    "config_drive": "config_drive",
}  # fmt: skip

TRUE_WORDS = frozenset(("1", "t", "true", "on", "y", "yes", ""))
FALSE_WORDS = frozenset(("0", "f", "false", "off", "n", "no"))


def boolean(name: str, text: str) -> bool:
    """A truth value in the words of the query; empty is true. FilterInvalid for anything else."""
    word = text.strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise FilterInvalid(name=name, why=f"{text!r} is no truth value.")
    return word in TRUE_WORDS


def moment(name: str, text: str) -> datetime:
    """A time in ISO 8601, in UTC and naive. FilterInvalid otherwise."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise FilterInvalid(name=name, why=f"{text!r} is no time in ISO 8601 form.") from None
    return (found - (found.utcoffset() or found - found)).replace(tzinfo=None)


def page(world: World, ctx: Context, asked: Asked) -> list[Found]:
    """One page of servers: those without a cell first, then the cells' merged in order."""
    wanted = _filter(world, ctx, asked)
    if wanted is None or asked.limit == 0:
        return []
    order = _order(ctx, asked)
    ip = _address_filter(asked.filters)
    found: list[Found] = []
    marker, in_requests = _marker(world, asked.marker)
    if not ip and (marker is None or in_requests):
        found = _pending(world, ctx, asked, wanted, asked.marker if in_requests else None)[: asked.limit]
    room = asked.limit - len(found)
    if room <= 0:
        return found
    after = None if in_requests else marker
    merged = _from_cells(world, wanted, order, room, after, ip)
    seen = {item.server.uuid for item in found}
    return found + [item for item in merged if item.server.uuid not in seen][:room]


def _from_cells(
    world: World, wanted: ServerFilter, order: Order, room: int, after: Server | None,
    ip: Callable[[Server], bool] | None,
) -> list[Found]:  # fmt: skip
    merged: list[Found] = []
    with_some = 0
    for cell in world.cells.every():
        got = server_lists.page(cell.database, wanted, order, room if ip is None else 100_000, after)
        merged += [Found(server, cell.uuid) for server in got if ip is None or ip(server)]
        with_some += bool(got)
    if with_some > 1:
        merged.sort(key=cmp_to_key(lambda a, b: _compare(order, a.server, b.server)))
    return merged


def _compare(order: Order, left: Server, right: Server) -> int:
    for name, descending in (*order.keys, ("uuid", False)):
        one, other = getattr(left, name), getattr(right, name)
        if one == other:
            continue
        less = other is not None and (one is None or one < other)
        return (1 if less else -1) if descending else (-1 if less else 1)
    return 0


def _marker(world: World, marker: str | None) -> tuple[Server | None, bool]:
    if marker is None:
        return None, False
    mapping = requests.mapping(world.cells.api, marker)
    if mapping is not None and mapping.cell_uuid is not None:
        found = servers.get(world.cells.database(mapping.cell_uuid), marker, deleted=True)
        if found is not None:
            return found, False
    request = requests.get(world.cells.api, marker) if mapping is not None else None
    if request is None:
        raise MarkerUnknown(marker=marker)
    return request.server, True


def _pending(
    world: World, ctx: Context, asked: Asked, wanted: ServerFilter, marker: str | None
) -> list[Found]:
    project = None if asked.all_tenants else ctx.project_id
    found = [
        Found(request.server, None, request)
        for request in requests.pending(world.cells.api, project)
        if _matches(request.server, request.tags, wanted)
    ]
    if marker is not None:
        places = [index for index, item in enumerate(found) if item.server.uuid == marker]
        found = found[places[0] + 1 :] if places else []
    return found


def _matches(server: Server, tags: Sequence[str], wanted: ServerFilter) -> bool:
    if any(getattr(server, name) not in values for name, values in wanted.exact.items()):
        return False
    if any(not holds(text, str(getattr(server, name) or "")) for name, text in wanted.regex.items()):
        return False
    if wanted.deleted or wanted.locked:
        return False
    if wanted.changed_since and server.created_at < wanted.changed_since:
        return False
    if wanted.changed_before and server.created_at > wanted.changed_before:
        return False
    have = set(tags)
    return (
        set(wanted.tags) <= have
        and (not wanted.tags_any or bool(have & set(wanted.tags_any)))
        and not (wanted.not_tags and set(wanted.not_tags) <= have)
        and not have & set(wanted.not_tags_any)
    )


def _order(ctx: Context, asked: Asked) -> Order:
    if not asked.sort_keys:
        descending = (asked.sort_dirs[0] if asked.sort_dirs else "desc") == "desc"
        return Order((("created_at", descending), ("id", descending)))
    if len(asked.sort_dirs) > len(asked.sort_keys):
        raise FilterInvalid(name="sort_dir", why="there are more directions than keys.")
    default = asked.sort_dirs[0] if asked.sort_dirs else "desc"
    keys = []
    for index, key in enumerate(asked.sort_keys):
        if key in ("host", "node") and not ctx.is_admin:
            raise SortForbidden(key=key)
        direction = asked.sort_dirs[index] if index < len(asked.sort_dirs) else default
        keys.append(("locked_by" if key == "locked" else key, direction == "desc"))
    return Order(tuple(keys))


def _address_filter(filters: Mapping[str, list[str]]) -> Callable[[Server], bool] | None:
    patterns = []
    for name, version in (("ip", 4), ("ip6", 6)):
        if name in filters:
            patterns.append((version, matcher(_pattern(name, filters[name][-1]))))
    if not patterns:
        return None

    def check(server: Server) -> bool:
        fixed = [address for vif in server.network_info for address in vif["fixed_ips"]]
        return all(
            any(address["version"] == version and matches(address["address"]) for address in fixed)
            for version, matches in patterns
        )

    return check


def _pattern(name: str, text: str) -> str:
    if not text:
        raise FilterInvalid(name=name, why="it is empty.")
    if not is_regex(text):
        raise FilterInvalid(name=name, why=f"{text!r} is no regular expression.")
    return text


def _filter(world: World, ctx: Context, asked: Asked) -> ServerFilter | None:
    """The filter in columns; None when nothing can match."""
    filters = asked.filters
    exact: dict[str, Sequence[Any]] = {}
    regex: dict[str, str] = {}
    for name, values in filters.items():
        if name in _EXACT:
            exact[_EXACT[name]] = [values[-1]]
        elif name in _REGEX:
            regex[_REGEX[name]] = _pattern(name, values[-1])
    if not asked.all_tenants:
        exact["project_id"] = [ctx.project_id]
    since = moment("changes-since", filters["changes-since"][-1]) if "changes-since" in filters else None
    before = moment("changes-before", filters["changes-before"][-1]) if "changes-before" in filters else None
    if since and before and since > before:
        raise FilterInvalid(name="changes-since", why="it is later than changes-before.")
    deleted = _deleted(filters, since, before)
    if "flavor" in filters:
        flavor = flavors.get(world.cells.api, filters["flavor"][-1])
        if flavor is None:
            return None
        exact["instance_type_id"] = [flavor.id]
    if "status" in filters:
        mapped = _statuses(ctx, asked, filters["status"])
        if mapped is None:
            return None
        exact |= mapped[0]
        deleted = True if mapped[1] else deleted
    return ServerFilter(
        exact=exact, regex=regex, changed_since=since, changed_before=before, deleted=deleted,
        soft_deleted=_truthy(filters, "soft_deleted"),
        locked=boolean("locked", filters["locked"][-1]) if "locked" in filters else None,
        tags=_tags(filters, "tags"), tags_any=_tags(filters, "tags-any"), not_tags=_tags(filters, "not-tags"),
        not_tags_any=_tags(filters, "not-tags-any"),
    )  # fmt: skip


def _truthy(filters: Mapping[str, list[str]], name: str) -> bool:
    return name in filters and filters[name][-1].strip().lower() in TRUE_WORDS - {""}


def _deleted(filters: Mapping[str, list[str]], since: datetime | None, before: datetime | None) -> bool | None:
    if "deleted" in filters:
        return _truthy(filters, "deleted")
    return None if since or before else False


def _tags(filters: Mapping[str, list[str]], name: str) -> list[str]:
    return [tag for text in filters.get(name, ()) for tag in text.split(",") if tag]


def _statuses(ctx: Context, asked: Asked, names: list[str]) -> tuple[dict[str, Sequence[Any]], bool] | None:
    """(conditions, whether deleted ones are meant) of a union of statuses; None for none."""
    vm_states: set[str] = set()
    tasks: set[str] | None = set()
    for name in names:
        found, only_tasks = states.states_of(name.upper())
        if name.upper() == "DELETED" and not ctx.is_admin:
            raise DeletedForbidden
        vm_states |= set(found)
        tasks = None if tasks is None or (found and only_tasks is None) else tasks | set(only_tasks or ())
    if not vm_states:
        if asked.status_strict:
            raise FilterInvalid(name="status", why=f"{', '.join(names)} is no status of a server.")
        return None
    conditions: dict[str, Sequence[Any]] = {"vm_state": sorted(vm_states)}
    if tasks:
        conditions["task_state"] = sorted(tasks)
    return conditions, vm_states == {states.DELETED}

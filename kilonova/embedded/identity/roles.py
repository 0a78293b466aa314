"""Roles, who has them where, and the list of all that was given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.core.errors import NotFound
from kilonova.embedded.identity import grants
from kilonova.embedded.identity.nouns import (
    ANY_QUERY,
    Noun,
    NounNotFound,
    find,
    list_op,
    listed,
    merged,
    show_op,
    split,
    view,
)
from kilonova.embedded.identity.tables import CREDENTIALS, DOMAINS, GRANTS, PROJECTS, ROLES, TOKENS, USERS
from kilonova.embedded.identity.world import Revocation
from kilonova.embedded.store import Row, page
from kilonova.http.fields import Field, Obj, Str, wrap
from kilonova.http.op import Op, Request

ROLE = Noun("role", "roles", ROLES, ("id", "name", "description"), {"domain_id": None, "options": {}})
_DESCRIPTION = Field("description", Str(null=True))
_CREATE = wrap("role", Obj(Field("name", Str(1, 255), required=True), _DESCRIPTION, open=True))
_UPDATE = wrap("role", Obj(Field("name", Str(1, 255)), _DESCRIPTION, open=True))
_TARGETS = {"project": PROJECTS, "domain": DOMAINS}


class GrantNotFound(NotFound):
    code, message = "grant_not_found", "Could not find role assignment with role: {role}, user: {user}."


def _create(req: Request) -> dict[str, Any]:
    row = {"id": ids.new_hex(), "description": "", **split(ROLE, req.body["role"])}
    with req.world.database.write() as connection:
        ROLES.insert(connection, row)
    return {"role": view(req, ROLE, row)}


def _update(req: Request) -> dict[str, Any]:
    row = find(req, ROLE, req.path["id"])
    changes = merged(ROLE, row, req.body["role"])
    with req.world.database.write() as connection:
        ROLES.update(connection, row["id"], changes)
    req.world.revoked(Revocation())  # what a role implies goes by its name
    return {"role": view(req, ROLE, {**row, **changes})}


def _delete(req: Request) -> None:
    row = find(req, ROLE, req.path["id"])
    with req.world.database.write() as connection:
        GRANTS.delete(connection, {"role_id": row["id"]})
        ROLES.delete(connection, row["id"])
    req.world.revoked(Revocation())


# -- grants: the kind of target is the first segment of the path ---------------------------------------------------


def _grant(req: Request, connection: Connection) -> Row:
    """The grant that the path names; everything in it must exist."""
    path = req.path
    kind = req.path_info.split("/")[2].removesuffix("s") if "target_id" in path else "system"
    target_id = path.get("target_id", grants.SYSTEM)
    rows = _TARGETS.get(kind)
    if rows is not None and rows.get(connection, target_id) is None:
        raise NounNotFound(noun=kind, id=target_id)
    if USERS.get(connection, path["user_id"]) is None:
        raise NounNotFound(noun="user", id=path["user_id"])
    if "role_id" in path and ROLES.get(connection, path["role_id"]) is None:
        raise NounNotFound(noun="role", id=path["role_id"])
    return grants.key(path["user_id"], kind, target_id, path.get("role_id", ""))


def _add(req: Request) -> None:
    with req.world.database.write() as connection:
        grant = _grant(req, connection)
        if not GRANTS.find(connection, grant):
            GRANTS.insert(connection, grant)
        living = TOKENS.find(connection, {"user_id": grant["user_id"]})
    if living:  # their roles grow at once
        req.world.revoked(Revocation(user_id=grant["user_id"]))


def _check(req: Request) -> None:
    with req.world.database.read() as connection:
        grant = _grant(req, connection)
        if not GRANTS.find(connection, grant):
            raise GrantNotFound(role=grant["role_id"], user=grant["user_id"])


def _take(req: Request) -> None:
    with req.world.database.write() as connection:
        grant = _grant(req, connection)
        if not GRANTS.delete(connection, grant):
            raise GrantNotFound(role=grant["role_id"], user=grant["user_id"])
        if grant["target_kind"] == "project":  # a credential may not outlive a role that it was made with
            CREDENTIALS.delete(connection, {"user_id": grant["user_id"], "project_id": grant["target_id"]})
    req.world.revoked(Revocation(user_id=grant["user_id"]))


def _list(req: Request) -> dict[str, Any]:
    with req.world.database.read() as connection:
        grant = _grant(req, connection)
        del grant["role_id"]
        role_ids = [row["role_id"] for row in GRANTS.find(connection, grant)]
        rows = page(ROLES.find(connection, {"id": role_ids}), sort=(("id", "asc"),))[0]
    return listed(req, "roles", [view(req, ROLE, row) for row in rows])


def _grant_ops(path: str) -> Iterable[Op]:
    one = f"{path}/{{role_id}}"
    yield Op("GET", path, _list, policy="read")
    yield Op("PUT", one, _add, policy="admin_required", ok=204, errors=(409,))
    yield Op("HEAD", one, _check, policy="read", ok=204)
    yield Op("GET", one, _check, policy="read", ok=204)
    yield Op("DELETE", one, _take, policy="admin_required", ok=204)


# -- all assignments ----------------------------------------------------------------------------------------------


def _asked(query: dict[str, list[str]]) -> Row:
    """The condition on grants that the query's dotted names ask for."""
    where: Row = {}
    for name, column in (("user.id", "user_id"), ("role.id", "role_id")):
        if name in query:
            where[column] = query[name]
    if "group.id" in query:  # there are no groups, so nothing was given to one
        where["user_id"] = []
    for kind, name in (("project", "scope.project.id"), ("domain", "scope.domain.id"), ("system", "scope.system")):
        if name in query:
            where |= {"target_kind": kind, "target_id": query[name]}
    return where


def _true(query: dict[str, list[str]], name: str) -> bool:
    """A flag of the query: there, and not `0` or `false`."""
    return name in query and query[name][-1].lower() not in ("0", "false")


def _assignments(req: Request) -> dict[str, Any]:
    where = _asked(req.query)
    wanted_roles = where.pop("role_id", None)
    effective = _true(req.query, "effective")
    with req.world.database.read() as connection:
        found = GRANTS.find(connection, where)
        roles = ROLES.find(connection)
        names = _names(connection, roles) if _true(req.query, "include_names") else None
    if effective:
        found = _effective(found, roles)
    found = sorted((row for row in found if wanted_roles is None or row["role_id"] in wanted_roles),
                   key=lambda row: tuple(row.values()))  # fmt: skip
    return listed(req, "role_assignments", [_assignment(req, row, names) for row in found])


def _effective(found: list[Row], roles: list[Row]) -> list[Row]:
    return list({
        (row["user_id"], row["target_kind"], row["target_id"], role["id"]): {**row, "role_id": role["id"]}
        for row in found
        for role in grants.with_implied([row["role_id"]], roles)
    }.values())  # fmt: skip


def _names(connection: Connection, roles: list[Row]) -> dict[str, Row]:
    """What `include_names` adds, by the id of user, role, project or domain."""
    domains = {row["id"]: {"id": row["id"], "name": row["name"]} for row in DOMAINS.find(connection)}
    named: dict[str, Row] = {row["id"]: {"name": row["name"]} for row in roles}
    named |= {key: {"name": row["name"]} for key, row in domains.items()}
    for row in (*USERS.find(connection), *PROJECTS.find(connection)):
        named[row["id"]] = {"name": row["name"], "domain": domains.get(row["domain_id"], {})}
    return named


def _assignment(req: Request, row: Row, names: dict[str, Row] | None) -> dict[str, Any]:
    def reference(key: str) -> dict[str, Any]:
        return {"id": key, **(names.get(key, {}) if names is not None else {})}

    kind, target = row["target_kind"], row["target_id"]
    scope = {"system": {"all": True}} if kind == "system" else {kind: reference(target)}
    place = "system" if kind == "system" else f"{kind}s/{target}"
    link = f"{req.base_url}/v3/{place}/users/{row['user_id']}/roles/{row['role_id']}"
    return {
        "role": reference(row["role_id"]), "user": reference(row["user_id"]), "scope": scope,
        "links": {"assignment": link},
    }  # fmt: skip


OPS = (
    list_op(ROLE, "read"),
    show_op(ROLE, "read"),
    Op("POST", "/v3/roles", _create, policy="admin_required", body=_CREATE, ok=201, errors=(409,)),
    Op("PATCH", "/v3/roles/{id}", _update, policy="admin_required", body=_UPDATE, errors=(409,)),
    Op("DELETE", "/v3/roles/{id}", _delete, policy="admin_required", ok=204),
    *_grant_ops("/v3/projects/{target_id}/users/{user_id}/roles"),
    *_grant_ops("/v3/domains/{target_id}/users/{user_id}/roles"),
    *_grant_ops("/v3/system/users/{user_id}/roles"),
    Op("GET", "/v3/role_assignments", _assignments, policy="read", query=ANY_QUERY),
)

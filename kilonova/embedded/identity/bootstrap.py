"""The accounts and the catalogue that a new deployment starts with; run at every start, it adds what is missing.

What an operator has changed since is left, except the addresses in the catalogue and the service password, which
follow the deployment.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.embedded.identity import grants
from kilonova.embedded.identity.tables import DOMAINS, ENDPOINTS, GRANTS, PROJECTS, REGIONS, ROLES, SERVICES, USERS
from kilonova.embedded.identity.tokens import revoke_all
from kilonova.embedded.identity.world import Identity, Revocation
from kilonova.embedded.store import Row, Rows

DOMAIN = "default"
ROLE_NAMES = ("admin", "manager", "member", "reader", "service")
PROJECT_NAMES = ("admin", "demo", "alt_demo", "service")
SERVICE_USERS = ("nova", "placement", "glance", "neutron", "cinder")

# (user, role, kind of target, target)
GIVEN = (
    ("admin", "admin", "project", "admin"),
    ("admin", "admin", "domain", DOMAIN),
    ("admin", "admin", "system", grants.SYSTEM),
    ("demo", "member", "project", "demo"),
    ("alt_demo", "member", "project", "alt_demo"),
    *((user, "service", "project", "service") for user in SERVICE_USERS),
    # Compute acts on other projects' ports, volumes and images; the others only check tokens and send events.
    ("nova", "admin", "project", "service"),
)

# (type, name, path of the endpoint below the deployment's address)
CATALOGUE = (
    ("identity", "keystone", "/identity"),
    ("compute", "nova", "/compute/v2.1"),
    ("image", "glance", "/image"),
    ("network", "neutron", "/networking"),
    ("volumev3", "cinderv3", "/volume/v3"),
    ("block-storage", "cinder", "/volume/v3"),
    ("placement", "placement", "/placement"),
    ("scheduler", "scheduler", "/scheduler"),
)
INTERFACES = ("public", "internal", "admin")


def bootstrap(
    identity: Identity, *, admin_password: str, service_password: str, base_url: str,
    demo_password: str | None = None, alt_demo_password: str | None = None, reset_admin: bool = False,
    region: str = "RegionOne", urls: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Make sure that everything above exists.

    Passwords of people (demo's are admin's where not given) hold for those who are new, and for admin with
    `reset_admin`; the service password always. base_url: `scheme://host:port` of the deployment. urls: endpoints by
    service type that are elsewhere.
    """
    passwords = {"admin": admin_password, "demo": demo_password or admin_password,
                 "alt_demo": alt_demo_password or admin_password,
                 **dict.fromkeys(SERVICE_USERS, service_password)}  # fmt: skip
    follow = {*SERVICE_USERS, *(("admin",) if reset_admin else ())}
    with identity.database.read() as connection:
        stale = [name for name in passwords if _stale(identity, connection, name, passwords[name], name in follow)]
    # Hashed before the transaction, one salt for those who share a password anyway.
    hashes = {password: identity.verifier.hash(password) for password in {passwords[name] for name in stale}}
    with identity.database.write() as connection:
        _ensure(connection, DOMAINS, {"id": DOMAIN}, {"name": "Default", "description": "The default domain"})
        for name in ROLE_NAMES:
            _ensure(connection, ROLES, {"name": name}, {"id": ids.new_hex()})
        for name in PROJECT_NAMES:
            where = {"name": name, "domain_id": DOMAIN}
            _ensure(connection, PROJECTS, where, {"id": ids.new_hex(), "parent_id": DOMAIN})
        for name in stale:
            user = _ensure(connection, USERS, {"name": name, "domain_id": DOMAIN}, {"id": ids.new_hex()})
            USERS.update(connection, user["id"], {"password_hash": hashes[passwords[name]]})
            revoke_all(connection, user_id=user["id"])
        for given in GIVEN:
            _give(connection, *given)
        _catalogue(connection, base_url.rstrip("/"), region, urls or {})
    identity.revoked(Revocation())


def _stale(identity: Identity, connection: Connection, name: str, password: str, follows: bool) -> bool:
    """Whether the user is missing, or has another password and should not."""
    found = USERS.find(connection, {"domain_id": DOMAIN, "name": name})
    return not found or (follows and not identity.verifier.matches(password, found[0]["password_hash"]))


def _ensure(connection: Connection, rows: Rows, where: Row, values: Row) -> Row:
    found = rows.find(connection, where)
    if not found:
        rows.insert(connection, {**where, **values})
        found = rows.find(connection, where)
    return found[0]


def _give(connection: Connection, user: str, role: str, kind: str, target: str) -> None:
    user_id = USERS.find(connection, {"name": user, "domain_id": DOMAIN})[0]["id"]
    role_id = ROLES.find(connection, {"name": role})[0]["id"]
    if kind == "project":
        target = PROJECTS.find(connection, {"name": target, "domain_id": DOMAIN})[0]["id"]
    _ensure(connection, GRANTS, grants.key(user_id, kind, target, role_id), {})


def _catalogue(connection: Connection, base_url: str, region: str, urls: Mapping[str, str]) -> None:
    _ensure(connection, REGIONS, {"id": region}, {})
    for kind, name, path in CATALOGUE:
        service = _ensure(connection, SERVICES, {"type": kind}, {"id": ids.new_hex(), "name": name})
        url = urls.get(kind, base_url + path)
        for interface in INTERFACES:
            where = {"service_id": service["id"], "interface": interface, "region_id": region}
            endpoint = _ensure(connection, ENDPOINTS, where, {"id": ids.new_hex(), "url": url})
            if endpoint["url"] != url:
                ENDPOINTS.update(connection, endpoint["id"], {"url": url})

"""Accounts and catalogue of an identity service (Keystone v3), made as an administrator, each only where it is missing.

What is there is left as it is, but for what was asked for: passwords of the service users and addresses of endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kilonova.clients.rest import Doc, query, segment
from kilonova.core.errors import Forbidden, Invalid, Unavailable

INTERFACES: Final = ("public", "internal", "admin")
ROLES: Final = ("admin", "member", "reader", "service")
PROJECT: Final = "service"


@dataclass(frozen=True)
class Service:
    """A service: its row in the catalogue, and the roles of its user, of the same name, on the project `service`."""

    type: str
    name: str
    description: str
    roles: tuple[str, ...]


SERVICES: Final = (
    # Compute acts on other projects' ports, volumes and images; Placement only checks tokens.
    Service("compute", "nova", "Compute", ("service", "admin")),
    Service("placement", "placement", "Placement", ("service",)),
)


OTHERS: Final = (
    # Entries that their own installation makes; ours to make where `kilonova embedded` serves them beside a Keystone.
    Service("image", "glance", "Images", ()),
    Service("network", "neutron", "Network", ()),
    Service("block-storage", "cinder", "Volumes", ()),
)


@dataclass(frozen=True)
class Done:
    """What became of one thing: `made`, `changed` or `there`."""

    what: str
    name: str
    how: str


class IdentityUnreachable(Unavailable):
    code, message = "identity_unreachable", "The identity service at {url} does not answer: {reason}."


class IdentityRefuses(Invalid):
    code, message = "identity_refuses", "The identity service refuses {what}: {reason} ({status})."


class CredentialsRefused(Forbidden):
    code, message = "credentials_refused", "The identity service at {url} does not accept these credentials: {reason}."


class NotAdministrator(Forbidden):
    code = "not_administrator"
    message = "The identity service forbids {what}: the user needs the role admin ({reason})."


class NoPassword(Invalid):
    code = "no_service_password"
    message = (
        "The user {user} is to be made and needs a password: "
        "give --service-password, or set KILONOVA_SERVICE_PASSWORD."
    )


class Accounts:
    """The identity service, as the user that a keystoneauth session has. auth_url may or may not end in `/v3`."""

    def __init__(self, session: Any, auth_url: str, region: str, domain: str = "default") -> None:
        self._session, self._auth_url, self._region = session, auth_url, region
        url = auth_url.rstrip("/")
        self._url = url if url.endswith("/v3") else f"{url}/v3"
        self._domain = domain

    def check(self) -> None:
        """Get a token. IdentityUnreachable, CredentialsRefused."""
        from keystoneauth1 import exceptions

        try:
            self._session.get_token()
        except exceptions.Unauthorized as error:
            raise CredentialsRefused(url=self._auth_url, reason=_short(error)) from error
        except exceptions.ClientException as error:
            raise IdentityUnreachable(url=self._auth_url, reason=_short(error)) from error

    def ensure(self, password: str | None, urls: Mapping[str, Mapping[str, str]]) -> Iterator[Done]:
        """Make what is missing. urls: addresses by service type and interface. Raises the errors above."""
        domain = self._domain_id()
        where = {"domain_id": domain}
        users = {service.name: self._find("users", {"name": service.name, **where}) for service in SERVICES}
        for name, user in users.items():
            if user is None and not password:
                raise NoPassword(user=name)
        roles: dict[str, str] = {}
        for name in ROLES:
            role, done = self._ensure("roles", {"name": name}, {})
            roles[name] = role["id"]
            yield done
        project, done = self._ensure("projects", {"name": PROJECT, **where}, {"description": "Services"})
        yield done
        for service in SERVICES:
            yield from self._user(service, users[service.name], domain, password, project["id"], roles)
        yield self._region_there()
        for service in SERVICES:
            yield from self._entry(service, urls.get(service.type, {}))
        for service in OTHERS:
            if urls.get(service.type):
                yield from self._entry(service, urls[service.type])

    def _domain_id(self) -> str:
        found = self._send("GET", f"/domains/{segment(self._domain)}", what="showing domains", missing=True)
        if found is None:
            by_name = self._find("domains", {"name": self._domain})
            if by_name is None:
                raise IdentityRefuses(what=f"the domain {self._domain}", reason="there is none", status=404)
            return str(by_name["id"])
        return str(found["domain"]["id"])

    def _user(
        self, service: Service, user: Doc | None, domain: str, password: str | None, project: str,
        roles: Mapping[str, str],
    ) -> Iterator[Done]:  # fmt: skip
        if user is None:
            body = {"name": service.name, "domain_id": domain, "password": password, "enabled": True}
            user = self._make("users", body)
            yield Done("user", service.name, "made")
        elif password and not self._knows(user["id"], password):
            what = f"setting the password of {service.name}"
            self._send("PATCH", f"/users/{user['id']}", {"user": {"password": password}}, what=what)
            yield Done("user", service.name, "changed")
        else:
            yield Done("user", service.name, "there")
        for role in service.roles:
            path = f"/projects/{project}/users/{user['id']}/roles/{roles[role]}"
            given = self._send("HEAD", path, what=f"looking for the role {role}", missing=True) is not None
            if not given:
                self._send("PUT", path, what=f"giving the role {role} to {service.name}")
            yield Done("role", f"{role} of {service.name} in {PROJECT}", "there" if given else "made")

    def _knows(self, user: str, password: str) -> bool:
        """Whether the user has this password."""
        who = {"methods": ["password"], "password": {"user": {"id": user, "password": password}}}
        answer = self._request("POST", "/auth/tokens", {"auth": {"identity": who}}, authenticated=False)
        return bool(answer.status_code == 201)

    def _region_there(self) -> Done:
        path = f"/regions/{segment(self._region)}"
        if self._send("GET", path, what="showing regions", missing=True) is not None:
            return Done("region", self._region, "there")
        self._make("regions", {"id": self._region})
        return Done("region", self._region, "made")

    def _entry(self, service: Service, urls: Mapping[str, str]) -> Iterator[Done]:
        found = self._all("services", {"type": service.type})
        entry = next((one for one in found if one.get("name") == service.name), found[0] if found else None)
        if entry is None:
            body = {"type": service.type, "name": service.name, "description": service.description, "enabled": True}
            entry = self._make("services", body)
        yield Done("service", f"{service.name} ({service.type})", "there" if found else "made")
        for interface in INTERFACES:
            if interface in urls:
                yield self._endpoint(service, entry["id"], interface, urls[interface])

    def _endpoint(self, service: Service, service_id: str, interface: str, url: str) -> Done:
        where = {"service_id": service_id, "interface": interface, "region_id": self._region}
        name = f"{service.type} {interface} {url}"
        found = self._all("endpoints", where)
        if any(endpoint["url"] == url for endpoint in found):
            return Done("endpoint", name, "there")
        if not found:
            self._make("endpoints", {**where, "url": url, "enabled": True})
            return Done("endpoint", name, "made")
        what = f"changing the endpoint {found[0]['id']}"
        self._send("PATCH", f"/endpoints/{found[0]['id']}", {"endpoint": {"url": url}}, what=what)
        return Done("endpoint", name, "changed")

    def _ensure(self, nouns: str, where: Mapping[str, str], more: Mapping[str, Any]) -> tuple[Doc, Done]:
        found = self._find(nouns, where)
        done = Done(nouns[:-1], where["name"], "made" if found is None else "there")
        return found or self._make(nouns, {**where, **more}), done

    def _find(self, nouns: str, where: Mapping[str, str]) -> Doc | None:
        return next(iter(self._all(nouns, where)), None)

    def _all(self, nouns: str, where: Mapping[str, str]) -> list[Doc]:
        """The rows that match, also where the service does not know one of the filters."""
        answer = self._send("GET", f"/{nouns}{query(dict(where))}", what=f"listing {nouns}") or {}
        return [row for row in answer[nouns] if all(row.get(name) == value for name, value in where.items())]

    def _make(self, nouns: str, body: Mapping[str, Any]) -> Doc:
        noun = nouns[:-1]
        name = body.get("name") or body.get("url") or body.get("id")
        answer = self._send("POST", f"/{nouns}", {noun: body}, what=f"making the {noun} {name}") or {}
        return dict(answer[noun])

    def _send(
        self, method: str, path: str, body: Any = None, *, what: str, missing: bool = False
    ) -> Doc | None:
        """The answer's document, `{}` when it has none; None for a 404 when something may be missing."""
        answer = self._request(method, path, body)
        if answer.status_code < 400:
            return dict(answer.json()) if answer.content else {}
        if answer.status_code == 404 and missing:
            return None
        if answer.status_code in (401, 403):
            raise NotAdministrator(what=what, reason=_said(answer))
        raise IdentityRefuses(what=what, reason=_said(answer), status=answer.status_code)

    def _request(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        from keystoneauth1 import exceptions

        try:
            return self._session.request(f"{self._url}{path}", method, json=body, raise_exc=False, **options)
        except exceptions.Unauthorized as error:
            raise CredentialsRefused(url=self._auth_url, reason=_short(error)) from error
        except exceptions.ClientException as error:
            raise IdentityUnreachable(url=self._auth_url, reason=_short(error)) from error


def _said(answer: Any) -> str:
    try:
        return str(answer.json()["error"]["message"]).split("\n")[0].rstrip(".")
    except (ValueError, KeyError, TypeError):
        return str(answer.reason).lower()


def _short(error: Exception) -> str:
    """A keystoneauth error in few words: what the system said, where it did, is in the middle of many."""
    text = " ".join(str(error).split())
    system = _SYSTEM.search(text)
    return (system[1] if system else _REQUEST.sub("", text)).rstrip(". ") or type(error).__name__


_SYSTEM = re.compile(r"\[Errno -?\d+\] ([^\"')]+)")
_REQUEST = re.compile(r" \(Request-ID: [^)]*\)")

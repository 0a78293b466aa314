"""An identity service of one service user and the tokens a test gives it; counts how often it is asked for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from kilonova.core import json

URL = "http://identity.test/identity"
CREDENTIALS = {
    "auth_type": "password", "auth_url": URL, "username": "nova", "password": "secret", "project_name": "service",
    "user_domain_id": "default", "project_domain_id": "default", "www_authenticate_uri": URL,
}  # fmt: skip


class Keystone:
    """A WSGI application. `tokens`: the token bodies by id. `validations`: ids in the order they were looked up."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, Any]] = {"service": token("service", roles=("service",))}
        self.validations: list[str] = []
        self.logins = 0
        self.broken = False
        self.while_validating: Callable[[], None] = lambda: None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        status, headers, document = self._answer(environ)
        start_response(f"{status} X", [("Content-Type", "application/json"), *headers])
        return [json.dumps(document)]

    def _answer(self, environ: dict[str, Any]) -> tuple[int, list[tuple[str, str]], Any]:
        path = environ["PATH_INFO"]
        if self.broken:
            return 503, [], {}
        if path in ("/identity", "/identity/", "/identity/v3"):
            version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": URL + "/v3"}]}
            many = {"versions": {"values": [version]}}
            return (200, [], {"version": version}) if path.endswith("v3") else (300, [], many)
        if environ["REQUEST_METHOD"] == "POST":
            self.logins += 1
            body = {**self.tokens["service"], "catalog": CATALOG}
            return 201, [("X-Subject-Token", f"service-{self.logins}")], {"token": body}
        subject = environ["HTTP_X_SUBJECT_TOKEN"]
        self.validations.append(subject)
        found = self.tokens.get(subject)
        self.while_validating()
        if found is None:
            return 404, [], {"error": {"code": 404, "title": "Not Found", "message": "no"}}
        return 200, [], {"token": found}


CATALOG = [
    {
        "type": kind, "name": name, "id": kind,
        "endpoints": [
            {"id": f"{kind}-{face}", "interface": face, "region": region, "region_id": region, "url": f"{url}{region}"}
            for region in ("One", "Two")
            for face in ("public", "internal")
        ],
    }
    for kind, name, url in (("placement", "placement", "http://placement.test/"), ("image", "glance", "http://image.test/"))
] + [
    {
        "type": "identity", "name": "keystone", "id": "identity",
        "endpoints": [{"id": "i", "interface": "internal", "region": "One", "region_id": "One", "url": URL}],
    },
    {
        "type": "volumev3", "name": "cinderv3", "id": "v",
        "endpoints": [{"id": "v", "interface": "public", "region": "One", "region_id": "One", "url": "http://v.test/v3/abc"}],
    },
]  # fmt: skip


def token(
    user: str | None, *, roles: tuple[str, ...] = ("member",), seconds: float = 3600, **more: Any
) -> dict[str, Any]:
    """A project-scoped token body that ends in so many seconds."""
    now = datetime.now(UTC)
    return {
        "methods": ["password"],
        "user": {"id": user, "name": user, "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p1", "name": "demo", "domain": {"id": "default", "name": "Default"}},
        "roles": [{"id": role, "name": role} for role in roles],
        "issued_at": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "expires_at": (now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "audit_ids": ["a"],
        **more,
    }

"""Logging in, what tokens say, and when they end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.core import clock
from kilonova.embedded.identity.tables import TOKENS
from kilonova.embedded.identity.world import Identity, Revocation
from tests.http.identity.account import PASSWORD, Client, id_of, login, password_login

TOKENS_PATH = "/v3/auth/tokens"


class ShiftedClock(clock.SystemClock):
    """The machine's clock, `ahead` of itself."""

    ahead = timedelta(0)

    def utcnow(self) -> datetime:
        return super().utcnow() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


@pytest.fixture
def shifted() -> Iterator[ShiftedClock]:
    shifted = ShiftedClock()
    before = clock.install(shifted)
    yield shifted
    clock.install(before)


def validate(asking: Client, token: str | None, query: str = "") -> Any:
    return asking.ask("GET", TOKENS_PATH + query, X_Subject_Token=token or "")


def subject(client: Client) -> dict[str, Any]:
    """What a client's own token says."""
    answer = validate(client, client.token)
    assert answer.status == 200
    token: dict[str, Any] = answer.body["token"]
    return token


def test_a_project_token_names_user_project_roles_and_catalogue(nobody: Client) -> None:
    answer = nobody.ask("POST", TOKENS_PATH, password_login("admin", scope="admin"))
    token = answer.body["token"]
    assert answer.status == 201
    assert token["methods"] == ["password"]
    assert token["user"]["name"] == "admin"
    assert token["user"]["domain"] == {"id": "default", "name": "Default"}
    assert token["project"]["name"] == "admin"
    assert len(token["user"]["id"]) == len(token["project"]["id"]) == 32
    assert [role["name"] for role in token["roles"]] == ["admin", "manager", "member", "reader"]
    issued, expires = (datetime.fromisoformat(token[name]) for name in ("issued_at", "expires_at"))
    assert expires - issued == timedelta(hours=1)
    types = {service["type"] for service in token["catalog"]}
    assert types == {"identity", "compute", "image", "network", "volumev3", "block-storage", "placement", "scheduler"}
    compute = next(service for service in token["catalog"] if service["type"] == "compute")
    assert {place["interface"] for place in compute["endpoints"]} == {"public", "internal", "admin"}
    assert {place["url"] for place in compute["endpoints"]} == {"http://cloud:8774/compute/v2.1"}
    assert {place["region"] == place["region_id"] == "RegionOne" for place in compute["endpoints"]} == {True}


def test_nocatalog_leaves_the_catalogue_out(nobody: Client) -> None:
    answer = nobody.ask("POST", f"{TOKENS_PATH}?nocatalog", password_login("admin", scope="admin"))
    assert answer.status == 201
    assert "catalog" not in answer.body["token"]
    assert "roles" in answer.body["token"]


@pytest.mark.parametrize(("scope", "key"), [({"system": {"all": True}}, "system"),
                                            ({"domain": {"name": "Default"}}, "domain")])
def test_system_and_domain_scopes_need_a_grant_there(nobody: Client, scope: Any, key: str) -> None:
    token = subject(login(nobody, "admin", scope=scope))
    assert key in token
    assert "project" not in token
    assert nobody.ask("POST", TOKENS_PATH, password_login("demo", scope=scope)).status == 401


@pytest.mark.parametrize("scope", [None, "unscoped", {"unscoped": {}}])
def test_without_a_scope_a_token_has_neither_roles_nor_catalogue(nobody: Client, scope: Any) -> None:
    token = subject(login(nobody, "demo", scope=scope))
    assert not {"project", "domain", "system", "roles", "catalog"} & token.keys()


def test_without_a_scope_the_default_project_is_taken(admin: Client, nobody: Client) -> None:
    project = id_of(admin, "projects", "demo")
    user = id_of(admin, "users", "demo")
    admin.ask("PATCH", f"/v3/users/{user}", {"user": {"default_project_id": project}})
    assert subject(login(nobody, "demo"))["project"]["id"] == project
    assert "project" not in subject(login(nobody, "demo", scope="unscoped"))


WRONG = [
    password_login("demo", "wrong", "demo"),
    password_login("nobody", PASSWORD, "demo"),
    password_login("demo", PASSWORD, "admin"),
    password_login("demo", PASSWORD, "no-such-project"),
    password_login("demo", PASSWORD, {"project": {"id": "no-such-id"}}),
    password_login("demo", PASSWORD, {"project": {"name": "demo", "domain": {"name": "Elsewhere"}}}),
    {"auth": {"identity": {"methods": ["totp"], "totp": {}}}},
    {"auth": {"identity": {"methods": ["token"], "token": {"id": "unknown"}}}},
]


@pytest.mark.parametrize("body", WRONG)
def test_whatever_is_wrong_with_a_login_the_answer_is_the_same(nobody: Client, body: Any) -> None:
    answer = nobody.ask("POST", TOKENS_PATH, body)
    assert answer.status == 401
    assert answer.body == {"error": {
        "code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}


INCOMPLETE: list[Any] = [
    {},
    {"auth": {}},
    {"auth": {"identity": {"methods": []}}},
    {"auth": {"identity": {"methods": ["password"]}}},
    {"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "demo", "password": "x"}}}}},
    password_login("demo", PASSWORD, {"project": {"name": "demo"}}),
    password_login("demo", PASSWORD, {"project": {"id": "a"}, "system": {"all": True}}),
    password_login("demo", PASSWORD, {"system": {"all": False}}),
    password_login("demo", PASSWORD, ["demo"]),
]


@pytest.mark.parametrize("body", INCOMPLETE)
def test_a_login_that_says_too_little_is_refused_as_invalid(nobody: Client, body: Any) -> None:
    assert nobody.ask("POST", TOKENS_PATH, body).status == 400


def test_a_token_buys_a_token_of_another_scope_that_ends_no_later(nobody: Client) -> None:
    first = login(nobody, "admin", scope="admin")
    body = {"auth": {"identity": {"methods": ["token"], "token": {"id": first.token}},
                     "scope": {"system": {"all": True}}}}
    answer = nobody.ask("POST", TOKENS_PATH, body)
    assert answer.status == 201
    assert answer.body["token"]["expires_at"] == subject(first)["expires_at"]
    assert set(answer.body["token"]["methods"]) == {"token", "password"}
    assert answer.body["token"]["system"] == {"all": True}


def test_a_service_validates_any_token_and_a_user_only_their_own(service: Client, demo: Client, admin: Client) -> None:
    answer = validate(service, demo.token)
    assert answer.status == 200
    assert answer.headers["X-Subject-Token"] == demo.token
    assert service.ask("HEAD", TOKENS_PATH, X_Subject_Token=str(demo.token)).status == 200
    assert validate(demo, demo.token).status == 200
    assert validate(demo, admin.token).status == 403
    assert validate(service, "unknown").status == 404
    assert validate(service, None).status == 404


def test_asking_without_a_good_token_is_401(nobody: Client, demo: Client) -> None:
    assert validate(nobody, demo.token).status == 401
    assert validate(nobody.with_token("forged"), demo.token).status == 401


def test_a_revoked_token_is_refused_at_once(service: Client, demo: Client) -> None:
    assert demo.ask("DELETE", TOKENS_PATH, X_Subject_Token=str(demo.token)).status == 204
    assert validate(service, demo.token).status == 404
    assert demo.ask("GET", "/v3/auth/projects").status == 401


def test_a_user_cannot_revoke_anothers_token(demo: Client, admin: Client) -> None:
    assert demo.ask("DELETE", TOKENS_PATH, X_Subject_Token=str(admin.token)).status == 403
    assert admin.ask("DELETE", TOKENS_PATH, X_Subject_Token=str(demo.token)).status == 204
    assert demo.ask("GET", "/v3/auth/projects").status == 401


CHANGES: list[tuple[str, str, Any]] = [
    ("DELETE", "/v3/users/{user}", None),
    ("PATCH", "/v3/users/{user}", {"user": {"enabled": False}}),
    ("PATCH", "/v3/users/{user}", {"user": {"password": "another"}}),
    ("DELETE", "/v3/projects/{project}", None),
    ("PATCH", "/v3/projects/{project}", {"project": {"enabled": False}}),
    ("PATCH", "/v3/domains/default", {"domain": {"enabled": False}}),
    ("DELETE", "/v3/projects/{project}/users/{user}/roles/{role}", None),
    ("DELETE", "/v3/roles/{role}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_token_ends_with_what_it_was_given_for(
    admin: Client, demo: Client, identity: Identity, method: str, path: str, body: Any
) -> None:
    told: list[Revocation] = []
    identity.on_revoke(told.append)
    assert demo.ask("GET", "/v3/auth/projects").status == 200
    ids = {"user": id_of(admin, "users", "demo"), "project": id_of(admin, "projects", "demo"),
           "role": id_of(admin, "roles", "member")}
    assert admin.ask(method, path.format(**ids), body).status in (200, 204)
    assert demo.ask("GET", "/v3/auth/projects").status == 401
    assert told


def test_switching_a_user_on_again_does_not_bring_old_tokens_back(admin: Client, demo: Client) -> None:
    path = f"/v3/users/{id_of(admin, 'users', 'demo')}"
    for enabled in (False, True):
        assert admin.ask("PATCH", path, {"user": {"enabled": enabled}}).status == 200
    assert demo.ask("GET", "/v3/auth/projects").status == 401
    assert login(demo, "demo", scope="demo").ask("GET", "/v3/auth/projects").status == 200


def test_a_new_grant_shows_in_living_tokens_at_once(admin: Client, demo: Client) -> None:
    path = "/v3/projects/{}/users/{}/roles/{}".format(
        id_of(admin, "projects", "demo"), id_of(admin, "users", "demo"), id_of(admin, "roles", "manager"))
    assert "manager" not in [role["name"] for role in subject(demo)["roles"]]
    assert admin.ask("PUT", path).status == 204
    assert [role["name"] for role in subject(demo)["roles"]] == ["manager", "member", "reader"]


def test_an_expired_token_is_refused_but_a_service_may_still_look_it_up(
    nobody: Client, demo: Client, shifted: ShiftedClock
) -> None:
    shifted.ahead = timedelta(hours=1, seconds=1)
    assert demo.ask("GET", "/v3/auth/projects").status == 401
    now = login(nobody, "admin", scope="admin")
    assert validate(now, demo.token).status == 404
    assert validate(now, demo.token, "?allow_expired=1").status == 200
    shifted.ahead = timedelta(hours=50)
    assert validate(login(nobody, "admin", scope="admin"), demo.token, "?allow_expired=1").status == 404


def test_tokens_that_nobody_can_use_any_more_leave_the_database(
    nobody: Client, demo: Client, identity: Identity, shifted: ShiftedClock
) -> None:
    shifted.ahead = timedelta(hours=50)
    login(nobody, "admin", scope="admin")
    with identity.database.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(TOKENS.table)) == 1


def test_the_database_does_not_hold_a_token_that_works(demo: Client, identity: Identity) -> None:
    with identity.database.read() as connection:
        rows = TOKENS.find(connection)
    assert rows
    assert str(demo.token) not in str(rows)
    assert demo.with_token(rows[0]["id"]).ask("GET", "/v3/auth/projects").status == 401


def test_auth_lists_say_where_the_caller_may_go(admin: Client, demo: Client) -> None:
    assert [row["name"] for row in demo.get("/v3/auth/projects")["projects"]] == ["demo"]
    assert demo.get("/v3/auth/domains")["domains"] == []
    assert demo.get("/v3/auth/system")["system"] == []
    assert [row["id"] for row in admin.get("/v3/auth/domains")["domains"]] == ["default"]
    assert admin.get("/v3/auth/system")["system"] == [{"all": True}]
    assert len(demo.get("/v3/auth/catalog")["catalog"]) == 8


def test_an_unscoped_token_has_no_catalogue(nobody: Client) -> None:
    assert login(nobody, "demo", scope="unscoped").ask("GET", "/v3/auth/catalog").status == 403

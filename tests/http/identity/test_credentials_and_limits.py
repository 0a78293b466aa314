"""Application credentials and unified limits."""

from __future__ import annotations

from typing import Any

from kilonova.core import clock
from tests.http.identity.account import Client, id_of, login


def make(client: Client, admin: Client, **values: Any) -> tuple[str, Any]:
    """(path of the collection, answer) of making a credential for demo."""
    path = f"/v3/users/{id_of(admin, 'users', 'demo')}/application_credentials"
    return path, client.ask("POST", path, {"application_credential": {"name": "mine", **values}})


def use(nobody: Client, **how: Any) -> Any:
    body = {"auth": {"identity": {"methods": ["application_credential"], "application_credential": how}}}
    return nobody.ask("POST", "/v3/auth/tokens", body)


def test_a_credential_logs_in_to_its_project_with_its_roles(admin: Client, demo: Client, nobody: Client) -> None:
    _, answer = make(demo, admin, roles=[{"name": "reader"}])
    assert answer.status == 201
    made = answer.body["application_credential"]
    token = use(nobody, id=made["id"], secret=made["secret"])
    assert token.status == 201
    assert [role["name"] for role in token.body["token"]["roles"]] == ["reader"]
    assert token.body["token"]["project"]["name"] == "demo"
    assert token.body["token"]["application_credential"]["restricted"] is True
    named = use(nobody, name="mine", secret=made["secret"], user={"name": "demo", "domain": {"id": "default"}})
    assert named.status == 201
    assert use(nobody, id=made["id"], secret="wrong").status == 401
    assert use(nobody, id="none", secret=made["secret"]).status == 401
    assert use(nobody, secret="x").status == 400


def test_the_secret_is_shown_once(admin: Client, demo: Client) -> None:
    path, answer = make(demo, admin, secret="chosen")
    made = answer.body["application_credential"]
    assert made.pop("secret") == "chosen"
    assert demo.get(f"{path}/{made['id']}")["application_credential"] == made
    assert demo.get(path)["application_credentials"] == [made]
    assert demo.get(f"{path}?name=other")["application_credentials"] == []
    assert make(demo, admin)[1].status == 409


def test_a_credential_cannot_have_more_than_its_maker(admin: Client, demo: Client) -> None:
    assert make(demo, admin, roles=[{"name": "admin"}])[1].status == 400
    assert make(admin, admin)[1].status == 403
    unscoped = login(demo, "demo", scope="unscoped")
    assert make(unscoped, admin)[1].status == 400
    assert make(demo, admin, expires_at="2001-01-01T00:00:00Z")[1].status == 400
    assert make(demo, admin, expires_at="soon")[1].status == 400
    assert make(demo, admin, access_rules=[{"path": "/"}])[1].status == 501


def test_a_restricted_credential_makes_no_others_and_cannot_be_rescoped(
    admin: Client, demo: Client, nobody: Client
) -> None:
    path, answer = make(demo, admin)
    made = answer.body["application_credential"]
    token = use(nobody, id=made["id"], secret=made["secret"]).headers["X-Subject-Token"]
    assert make(nobody.with_token(token), admin, name="second")[1].status == 403
    assert nobody.with_token(token).ask("DELETE", f"{path}/{made['id']}").status == 403
    body = {"auth": {"identity": {"methods": ["token"], "token": {"id": token}}, "scope": "unscoped"}}
    assert nobody.ask("POST", "/v3/auth/tokens", body).status == 401


def test_tokens_of_a_credential_end_with_it(admin: Client, demo: Client, nobody: Client) -> None:
    expires = clock.raw(clock.after(60))
    path, answer = make(demo, admin, expires_at=expires)
    made = answer.body["application_credential"]
    token = use(nobody, id=made["id"], secret=made["secret"])
    assert token.body["token"]["expires_at"] == f"{expires}Z"
    used = nobody.with_token(token.headers["X-Subject-Token"])
    assert used.ask("GET", "/v3/auth/projects").status == 200
    assert demo.ask("DELETE", f"{path}/{made['id']}").status == 204
    assert used.ask("GET", "/v3/auth/projects").status == 401
    assert use(nobody, id=made["id"], secret=made["secret"]).status == 401
    assert demo.ask("GET", f"{path}/{made['id']}").status == 404


def test_limits_stand_on_registered_ones(admin: Client, demo: Client) -> None:
    service, project = id_of(admin, "services", "nova"), id_of(admin, "projects", "demo")
    place = {"service_id": service, "region_id": "RegionOne", "resource_name": "servers"}
    limit = {"limits": [{**place, "project_id": project, "resource_limit": 5}]}
    assert admin.ask("POST", "/v3/limits", limit).status == 403
    registered = {"registered_limits": [{**place, "default_limit": 10}]}
    made = admin.ask("POST", "/v3/registered_limits", registered)
    assert made.status == 201
    assert admin.ask("POST", "/v3/registered_limits", registered).status == 409
    answer = admin.ask("POST", "/v3/limits", limit)
    assert answer.status == 201
    key = answer.body["limits"][0]["id"]
    assert admin.ask("PATCH", f"/v3/limits/{key}", {"limit": {"resource_limit": 7}}).status == 200
    assert [row["resource_limit"] for row in demo.get("/v3/limits?resource_name=servers")["limits"]] == [7]
    assert demo.get("/v3/registered_limits")["registered_limits"] == made.body["registered_limits"]
    assert demo.ask("POST", "/v3/limits", limit).status == 403
    path = f"/v3/registered_limits/{made.body['registered_limits'][0]['id']}"
    assert admin.ask("DELETE", path).status == 409
    assert admin.ask("DELETE", f"/v3/limits/{key}").status == 204
    assert admin.ask("DELETE", path).status == 204
    assert admin.get("/v3/limits/model")["model"]["name"] == "flat"


def test_a_limit_of_something_unknown_is_refused_whole(admin: Client) -> None:
    service = id_of(admin, "services", "nova")
    rows = [{"service_id": service, "resource_name": "a", "default_limit": 1},
            {"service_id": "none", "resource_name": "b", "default_limit": 1}]
    assert admin.ask("POST", "/v3/registered_limits", {"registered_limits": rows}).status == 400
    assert admin.get("/v3/registered_limits")["registered_limits"] == []

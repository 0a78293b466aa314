"""Domains, projects, users, roles and grants: who may do what, and what they look like."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.embedded.identity.app import NOT_SERVED
from kilonova.embedded.identity.bootstrap import bootstrap
from kilonova.embedded.identity.tables import USERS
from kilonova.embedded.identity.world import Identity
from tests.http.identity.account import BASE, PASSWORD, SERVICE_PASSWORD, Client, id_of, login, password_login


@pytest.mark.parametrize(("path", "status"), [("", 300), ("/", 300), ("/v3", 200), ("/v3/", 200)])
def test_versions_are_told_to_everybody(nobody: Client, path: str, status: int) -> None:
    answer = nobody.ask("GET", path)
    assert answer.status == status
    version = answer.body["version"] if status == 200 else answer.body["versions"]["values"][0]
    assert version["id"].startswith("v3.")
    assert version["status"] == "stable"
    assert version["links"] == [{"rel": "self", "href": f"{BASE}/identity/v3/"}]


def test_a_new_deployment_has_its_accounts(admin: Client) -> None:
    assert {row["name"] for row in admin.get("/v3/projects")["projects"]} == {"admin", "demo", "alt_demo", "service"}
    assert {row["name"] for row in admin.get("/v3/users")["users"]} == {
        "admin", "demo", "alt_demo", "nova", "placement", "glance", "neutron", "cinder"}
    assert {row["name"] for row in admin.get("/v3/roles")["roles"]} == {
        "admin", "manager", "member", "reader", "service"}
    assert admin.get("/v3/domains?name=Default")["domains"][0]["id"] == "default"
    assert [row["id"] for row in admin.get("/v3/regions")["regions"]] == ["RegionOne"]
    assert {row["type"] for row in admin.get("/v3/services?type=compute")["services"]} == {"compute"}
    service = id_of(admin, "services", "nova")
    assert len(admin.get(f"/v3/endpoints?service_id={service}&interface=public")["endpoints"]) == 1


def test_starting_again_changes_nothing_but_the_addresses(identity: Identity, admin: Client) -> None:
    def state() -> list[Any]:
        return [admin.get(f"/v3/{noun}")[noun] for noun in ("users", "projects", "roles", "services",
                                                           "role_assignments", "domains")]

    before, places = state(), admin.get("/v3/endpoints")["endpoints"]
    bootstrap(identity, admin_password="ignored", service_password=SERVICE_PASSWORD, base_url="https://other:1",
              urls={"image": "https://images/v2"})
    assert state() == before
    after = admin.get("/v3/endpoints")["endpoints"]
    assert [row["id"] for row in after] == [row["id"] for row in places]
    image = id_of(admin, "services", "glance")
    assert {row["url"] for row in after if row["service_id"] == image} == {"https://images/v2"}
    assert all(row["url"].startswith("https://other:1/") for row in after if row["service_id"] != image)


def test_a_start_sets_the_service_password_always_and_admins_when_told(identity: Identity, nobody: Client) -> None:
    bootstrap(identity, admin_password="new", service_password="changed", base_url=BASE, reset_admin=True)
    login(nobody, "nova", "changed", scope="service")
    login(nobody, "admin", "new", scope="admin")
    login(nobody, "demo", PASSWORD, scope="demo")
    assert nobody.ask("POST", "/v3/auth/tokens", password_login("nova", SERVICE_PASSWORD)).status == 401


def test_a_user_is_created_shown_changed_and_deleted(admin: Client, nobody: Client) -> None:
    user = admin.make("user", name="bob", password="pw", domain_id="default", email="bob@example.org")
    assert len(user["id"]) == 32
    assert (user["name"], user["domain_id"], user["enabled"], user["email"]) == ("bob", "default", True,
                                                                                  "bob@example.org")
    assert "password" not in str(user).replace("password_expires_at", "")
    assert admin.get(f"/v3/users/{user['id']}")["user"] == user
    changed = admin.ask("PATCH", f"/v3/users/{user['id']}", {"user": {"description": "x", "name": "rob"}})
    assert changed.status == 200
    assert changed.body["user"] == {**user, "description": "x", "name": "rob"}
    assert admin.get(f"/v3/users/{user['id']}")["user"] == changed.body["user"]
    assert login(nobody, "rob", "pw").get(f"/v3/users/{user['id']}")["user"]["name"] == "rob"
    assert admin.ask("DELETE", f"/v3/users/{user['id']}").status == 204
    assert admin.ask("GET", f"/v3/users/{user['id']}").status == 404
    assert admin.ask("DELETE", f"/v3/users/{user['id']}").status == 404


def test_a_project_is_created_shown_changed_and_deleted(admin: Client) -> None:
    project = admin.make("project", name="p", description=None, enabled=True)
    assert (project["domain_id"], project["parent_id"], project["description"]) == ("default", "default", "")
    changed = admin.ask("PATCH", f"/v3/projects/{project['id']}", {"project": {"description": "d", "colour": "red"}})
    assert changed.body["project"] == {**project, "description": "d", "colour": "red"}
    assert admin.get("/v3/projects?name=p")["projects"] == [changed.body["project"]]
    assert admin.get("/v3/projects?name=p&domain_id=other")["projects"] == []
    assert admin.ask("DELETE", f"/v3/projects/{project['id']}").status == 204
    assert admin.ask("GET", f"/v3/projects/{project['id']}").status == 404


def test_projects_are_found_by_all_of_some_tags(admin: Client) -> None:
    admin.make("project", name="p", tags=["a", "b"])
    for query, names in (("tags=a", ["p"]), ("tags=a,b", ["p"]), ("tags=a,c", []), ("enabled=true&tags=b", ["p"])):
        assert [row["name"] for row in admin.get(f"/v3/projects?{query}")["projects"]] == names
    assert admin.ask("GET", "/v3/projects?enabled=perhaps").status == 400


@pytest.mark.parametrize("noun", ["project", "user", "role", "domain"])
def test_a_name_is_no_id_and_is_taken_only_once(admin: Client, noun: str) -> None:
    admin.make(noun, name="twice")
    assert admin.ask("GET", f"/v3/{noun}s/twice").status == 404
    answer = admin.ask("POST", f"/v3/{noun}s", {noun: {"name": "twice"}})
    assert answer.status == 409
    assert answer.body["error"]["code"] == 409


@pytest.mark.parametrize("noun", ["project", "user"])
def test_a_name_may_be_taken_in_each_domain(admin: Client, noun: str) -> None:
    domain = admin.make("domain", name="elsewhere")
    admin.make(noun, name="same", domain_id=domain["id"])
    admin.make(noun, name="same", domain_id="default")
    assert admin.ask("POST", f"/v3/{noun}s", {noun: {"name": "x", "domain_id": "none"}}).status == 404


BAD = [
    ("projects", {"project": {}}), ("projects", {"project": {"name": ""}}),
    ("projects", {"project": {"name": "x" * 65}}),
    ("projects", {"project": {"name": "x", "enabled": "yes"}}), ("users", {"user": {"name": 5}}),
    ("users", {"user": {"name": "x", "password": ""}}), ("users", {"name": "x"}), ("roles", {"role": {"name": None}}),
    ("users", []),
]  # fmt: skip


@pytest.mark.parametrize(("plural", "body"), BAD)
def test_a_malformed_body_is_400_and_makes_nothing(admin: Client, plural: str, body: Any) -> None:
    before = admin.get(f"/v3/{plural}")[plural]
    assert admin.ask("POST", f"/v3/{plural}", body).status == 400
    assert admin.get(f"/v3/{plural}")[plural] == before


def test_a_domain_must_be_off_before_it_goes_and_takes_all_with_it(admin: Client) -> None:
    domain = admin.make("domain", name="d")
    user = admin.make("user", name="u", domain_id=domain["id"])
    project = admin.make("project", name="p", domain_id=domain["id"])
    assert admin.ask("DELETE", f"/v3/domains/{domain['id']}").status == 403
    assert admin.ask("PATCH", f"/v3/domains/{domain['id']}", {"domain": {"enabled": False}}).status == 200
    assert admin.ask("DELETE", f"/v3/domains/{domain['id']}").status == 204
    for path in (f"domains/{domain['id']}", f"users/{user['id']}", f"projects/{project['id']}"):
        assert admin.ask("GET", f"/v3/{path}").status == 404


def test_users_see_themselves_and_nothing_else(admin: Client, demo: Client) -> None:
    own, other = id_of(admin, "users", "demo"), id_of(admin, "users", "alt_demo")
    assert demo.get(f"/v3/users/{own}")["user"]["name"] == "demo"
    assert [row["name"] for row in demo.get(f"/v3/users/{own}/projects")["projects"]] == ["demo"]
    assert demo.get(f"/v3/projects/{id_of(admin, 'projects', 'demo')}")["project"]["name"] == "demo"
    assert demo.get("/v3/domains/default")["domain"]["name"] == "Default"
    for path in ("users", "projects", "roles", "domains", "role_assignments", "services", "endpoints",
                 f"users/{other}", f"users/{other}/projects", f"projects/{id_of(admin, 'projects', 'admin')}",
                 "users/none", "projects/none", "domains/none"):
        assert demo.ask("GET", f"/v3/{path}").status == 403, path


def test_only_administrators_change_anything(admin: Client, demo: Client) -> None:
    user, project, role = (id_of(admin, f"{noun}s", name) for noun, name in (
        ("user", "demo"), ("project", "demo"), ("role", "admin")))
    for method, path, body in (
        ("POST", "users", {"user": {"name": "x"}}), ("PATCH", f"users/{user}", {"user": {"enabled": True}}),
        ("DELETE", f"users/{user}", None), ("POST", "projects", {"project": {"name": "x"}}),
        ("DELETE", f"projects/{project}", None), ("POST", "roles", {"role": {"name": "x"}}),
        ("DELETE", f"roles/{role}", None), ("POST", "domains", {"domain": {"name": "x"}}),
        ("PUT", f"projects/{project}/users/{user}/roles/{role}", None),
        ("PUT", f"system/users/{user}/roles/{role}", None),
        ("PUT", f"domains/default/users/{user}/roles/{role}", None),
    ):
        assert demo.ask(method, f"/v3/{path}", body).status == 403, path


def test_a_system_reader_looks_at_everything_and_changes_nothing(admin: Client, nobody: Client) -> None:
    user = admin.make("user", name="auditor", password="pw")
    admin.ask("PUT", f"/v3/system/users/{user['id']}/roles/{id_of(admin, 'roles', 'reader')}")
    auditor = login(nobody, "auditor", "pw", scope={"system": {"all": True}})
    assert len(auditor.get("/v3/users")["users"]) == 9
    assert auditor.ask("DELETE", f"/v3/users/{user['id']}").status == 403


@pytest.mark.parametrize("target", ["projects/{project}", "domains/default", "system"])
def test_a_grant_is_given_once_checked_listed_and_taken(admin: Client, target: str) -> None:
    user, role = id_of(admin, "users", "demo"), id_of(admin, "roles", "reader")
    roles = f"/v3/{target.format(project=id_of(admin, 'projects', 'admin'))}/users/{user}/roles"
    assert admin.ask("HEAD", f"{roles}/{role}").status == 404
    assert [admin.ask("PUT", f"{roles}/{role}").status for _ in range(2)] == [204, 204]
    assert admin.ask("HEAD", f"{roles}/{role}").status == 204
    assert [row["name"] for row in admin.get(roles)["roles"]] == ["reader"]
    assert admin.ask("DELETE", f"{roles}/{role}").status == 204
    assert admin.ask("DELETE", f"{roles}/{role}").status == 404


@pytest.mark.parametrize("path", [
    "projects/none/users/{user}/roles/{role}", "projects/{project}/users/none/roles/{role}",
    "projects/{project}/users/{user}/roles/none", "system/users/none/roles/{role}",
])
def test_a_grant_needs_everything_it_names(admin: Client, path: str) -> None:
    ids = {"user": id_of(admin, "users", "demo"), "role": id_of(admin, "roles", "reader"),
           "project": id_of(admin, "projects", "demo")}
    assert admin.ask("PUT", f"/v3/{path.format(**ids)}").status == 404


def test_assignments_are_filtered_expanded_and_named(admin: Client) -> None:
    user, project = id_of(admin, "users", "demo"), id_of(admin, "projects", "demo")
    path = f"/v3/role_assignments?user.id={user}&scope.project.id={project}"
    plain = admin.get(path)["role_assignments"]
    assert [(row["user"], row["scope"]) for row in plain] == [({"id": user}, {"project": {"id": project}})]
    effective = admin.get(f"{path}&effective&include_names=true")["role_assignments"]
    assert {row["role"]["name"] for row in effective} == {"member", "reader"}
    assert effective[0]["user"] == {"id": user, "name": "demo", "domain": {"id": "default", "name": "Default"}}
    reader = id_of(admin, "roles", "reader")
    assert len(admin.get(f"{path}&effective&role.id={reader}")["role_assignments"]) == 1
    assert admin.get(f"{path}&role.id={reader}")["role_assignments"] == []
    assert admin.get("/v3/role_assignments?group.id=x")["role_assignments"] == []
    assert admin.get("/v3/role_assignments?scope.system=all")["role_assignments"][0]["scope"] == {
        "system": {"all": True}}


def test_changing_ones_password_needs_the_old_one_and_ends_the_tokens(admin: Client, demo: Client) -> None:
    path = f"/v3/users/{id_of(admin, 'users', 'demo')}/password"
    body = {"user": {"password": "fresh", "original_password": "wrong"}}
    assert demo.ask("POST", path, body).status == 401
    body["user"]["original_password"] = PASSWORD
    assert admin.ask("POST", path, body).status == 403
    assert demo.ask("POST", path, body).status == 204
    assert demo.ask("GET", "/v3/auth/projects").status == 401
    login(demo, "demo", "fresh", scope="demo")


def test_passwords_are_kept_as_hashes_and_shown_to_nobody(admin: Client, identity: Identity) -> None:
    with identity.database.read() as connection:
        hashes = [row["password_hash"] for row in USERS.find(connection)]
    assert all(value.startswith("scrypt$") for value in hashes)
    assert admin.get("/v3/users?password_hash=x")["users"] == admin.get("/v3/users")["users"]
    assert not any(value in str(admin.get("/v3/users")) for value in hashes)


@pytest.mark.parametrize("path", [path for row, _ in NOT_SERVED if " " not in row for path in [row]])
def test_what_is_not_served_is_a_clear_404(admin: Client, path: str) -> None:
    answer = admin.ask("GET", path.replace("{id}", "x"))
    assert answer.status == 404
    assert "not a path that this embedded service serves" in answer.body["error"]["message"]

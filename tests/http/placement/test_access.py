"""Who may do what, by configuration: new and old defaults, a policy file, noauth2, CORS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database
from kilonova.wiring.placement import placement_app
from tests.http.placement.conftest import Client

Make = Callable[..., Client]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Make]:
    """Makes a service that believes its clients, with the text of a configuration file."""
    database = Database(f"sqlite:///{tmp_path}/placement.db")
    prepare(database)

    def make(text: str = "", **headers: str) -> Client:
        path = tmp_path / "kilonova.conf"
        path.write_text("[api]\nauth_strategy = noauth2\n" + text)
        return _Headed(placement_app(load([path], application="placement", warn=False), database), headers)

    yield make
    database.dispose()


class _Headed(Client):
    """A client whose every request has some headers, and no identity but theirs."""

    def __init__(self, app: Any, headers: dict[str, str]) -> None:
        super().__init__(app, who=None)
        self._headers = headers

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return super().__call__(method, path, body, **(self._headers | headers))


ADMIN = {"X_AUTH_TOKEN": "admin"}
RESHAPE = {"inventories": {}, "allocations": {}}


def test_the_token_says_who_asks_and_admin_is_the_administrator(service: Make) -> None:
    assert service(**ADMIN)("GET", "/traits").status == 200
    assert service(X_AUTH_TOKEN="somebody")("GET", "/traits").status == 403
    assert service()("GET", "/traits").status == 401


def test_the_part_behind_the_colon_is_the_project(service: Make) -> None:
    reader = service(X_AUTH_TOKEN="somebody:ours", X_ROLES="reader")
    assert reader("GET", "/usages?project_id=ours").status == 200
    assert reader("GET", "/usages?project_id=theirs").status == 403
    assert reader("GET", "/usages?project_id=theirs", X_PROJECT_ID="theirs").status == 200


def test_roles_in_a_header_stand_for_those_of_a_token(service: Make) -> None:
    assert service(X_AUTH_TOKEN="somebody", X_ROLES="member,service")("GET", "/traits").status == 200
    assert service(X_AUTH_TOKEN="admin", X_ROLES="member")("GET", "/traits").status == 403


@pytest.mark.parametrize("headers", [
    {"REMOTE_ADDR": "192.0.2.7"},
    {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "192.0.2.7"},
    {"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=192.0.2.7"},
])  # fmt: skip
def test_whoever_comes_from_another_machine_is_not_believed(service: Make, headers: dict[str, str]) -> None:
    app = service(**ADMIN).app
    outside = Client(lambda environ, start: app(environ | headers, start), who=None)("GET", "/", X_AUTH_TOKEN="admin")
    assert outside.status == 403
    assert b"loopback" in outside.body


def test_an_administrator_may_not_reshape_unless_the_old_defaults_hold(service: Make) -> None:
    assert service(**ADMIN)("POST", "/reshaper", RESHAPE).status == 403
    old = "[oslo_policy]\nenforce_new_defaults = false\n"
    assert service(old, **ADMIN)("POST", "/reshaper", RESHAPE).status == 400
    assert service(old, X_AUTH_TOKEN="somebody", X_ROLES="reader")("GET", "/usages?project_id=somebody").status == 200


def test_a_token_of_the_system_is_refused_by_its_scope(service: Make) -> None:
    system = service(X_AUTH_TOKEN="somebody", X_ROLES="admin", OPENSTACK_SYSTEM_SCOPE="all")
    assert system("GET", "/traits").status == 403


def test_a_policy_file_is_obeyed(service: Make, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text('"placement:traits:list": "@"\n"placement:traits:show": "role:member"\n')
    somebody = service(f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n", X_AUTH_TOKEN="somebody")
    assert somebody("GET", "/traits").status == 200
    assert somebody("GET", "/traits/HW_CPU_X86_VMX").status == 403
    assert somebody("GET", "/traits/HW_CPU_X86_VMX", X_ROLES="member").status == 204
    assert somebody("GET", "/resource_classes").status == 403


def test_pages_of_allowed_origins_may_call(service: Make) -> None:
    client = service("[cors]\nallowed_origin = https://dashboard.example.com\n", **ADMIN)
    allowed = client("GET", "/traits", ORIGIN="https://dashboard.example.com")
    assert allowed.headers["access-control-allow-origin"] == "https://dashboard.example.com"
    other = client("GET", "/traits", ORIGIN="https://elsewhere.example.com")
    assert "access-control-allow-origin" not in other.headers
    asking = {"ACCESS_CONTROL_REQUEST_METHOD": "PUT", "ACCESS_CONTROL_REQUEST_HEADERS": "openstack-api-version"}
    asked = client("OPTIONS", "/traits", ORIGIN="https://dashboard.example.com", **asking)
    assert asked.status == 200
    assert asked.headers["access-control-allow-methods"] == "PUT"

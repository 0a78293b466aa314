"""Tokens that do not hold, or hold for others, at every service."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from kilonova.core import clock
from tests.http.bad_input.services import TARGETS, Target
from tests.http.bad_input.test_requests import LISTS, ask, by_service
from tests.http.compute.cloud import BASE, PASSWORD, Client, boot, login


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


def path_for_demo(target: Target) -> str:
    """Something of the service that a member may read."""
    return "/v3/auth/projects" if target.name == "identity" else LISTS[target.name]


def statuses(client: Client) -> dict[str, int]:
    """What each service answers this token: 403 counts as known."""
    return {target.name: ask(client, target, "GET", path_for_demo(target))[0] for target in TARGETS}


def all_of(status: int) -> dict[str, int]:
    return {target.name: status for target in TARGETS}


def known(client: Client) -> bool:
    return all(status in (200, 403) for status in statuses(client).values())


FORGED = (
    "", " ", "x", "0" * 64, "z" * 10_000, "' OR '1'='1", "../../token", "gAAAAABnope", "\u00ff\u00fe", "a b", "null",
)  # fmt: skip


@by_service
@pytest.mark.parametrize("token", FORGED, ids=lambda token: token[:12] or "empty")
def test_a_forged_token_is_refused(target: Target, token: str, demo: Client) -> None:
    status, document, headers = ask(demo, target, "GET", path_for_demo(target), token="-", X_Auth_Token=token)
    assert status == 401
    assert headers["www-authenticate"].startswith("Keystone uri=")
    assert document["error"]["code"] == 401


@by_service
@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: t + "0", lambda t: t[::-1], lambda t: t + " x"])
def test_a_token_with_one_thing_changed_is_refused(target: Target, change: Any, demo: Client) -> None:
    assert ask(demo, target, "GET", path_for_demo(target), token=change(demo.token))[0] == 401


def test_headers_that_the_middleware_sets_cannot_be_sent(demo: Client) -> None:
    spoofed = {
        "X_Identity_Status": "Confirmed", "X_User_Id": "root", "X_Project_Id": demo.project, "X_Roles": "admin",
        "X_Is_Admin_Project": "True", "X_Service_Roles": "service",
    }  # fmt: skip
    for target in TARGETS:
        path = f"{target.prefix}{path_for_demo(target)}"
        sent = {name.replace("_", "-"): value for name, value in spoofed.items()}
        status, _, _ = demo.transport.send("GET", BASE + path, sent, None)
        assert status == 401
    demo.refused(403, "GET", "/os-services", **spoofed)


def test_an_expired_token_is_refused_by_every_service(demo: Client, shifted: ShiftedClock) -> None:
    mine = login(demo.transport, "demo", "demo")
    assert known(mine)
    shifted.ahead = timedelta(hours=25)
    assert statuses(mine) == all_of(401)


def test_a_revoked_token_is_refused_by_every_service_at_once(demo: Client) -> None:
    mine = login(demo.transport, "demo", "demo")
    assert known(mine)
    mine.ok("DELETE", "/v3/auth/tokens", service="/identity", status=204, X_Subject_Token=mine.token)
    assert statuses(mine) == all_of(401)


def member(admin: Client, name: str) -> tuple[str, str]:
    """(user, project) of a new member of a new project, both of this name."""
    values = {"name": name, "domain_id": "default"}
    user = admin.ok("POST", "/v3/users", {"user": values | {"password": PASSWORD}}, service="/identity")["user"]["id"]
    project = admin.ok("POST", "/v3/projects", {"project": values}, service="/identity")["project"]["id"]
    role = admin.get("/v3/roles?name=member", service="/identity")["roles"][0]["id"]
    admin.ok("PUT", f"/v3/projects/{project}/users/{user}/roles/{role}", service="/identity")
    return user, project


GONE = {
    "project deleted": ("DELETE", "/v3/projects/{project}", None),
    "project disabled": ("PATCH", "/v3/projects/{project}", {"project": {"enabled": False}}),
    "user deleted": ("DELETE", "/v3/users/{user}", None),
    "user disabled": ("PATCH", "/v3/users/{user}", {"user": {"enabled": False}}),
    "password changed": ("PATCH", "/v3/users/{user}", {"user": {"password": "another-one"}}),
}


@pytest.mark.parametrize("how", GONE)
def test_the_token_of_an_account_that_ended_is_refused_by_every_service(how: str, admin: Client) -> None:
    name = how.replace(" ", "-")
    user, project = member(admin, name)
    theirs = login(admin.transport, name, name)
    assert known(theirs)
    method, path, body = GONE[how]
    admin.ok(method, path.format(user=user, project=project), body, service="/identity")
    assert statuses(theirs) == all_of(401)


def test_a_role_that_is_taken_away_takes_the_token_with_it(admin: Client) -> None:
    user, project = member(admin, "unassigned")
    theirs = login(admin.transport, "unassigned", "unassigned")
    assert known(theirs)
    role = admin.get("/v3/roles?name=member", service="/identity")["roles"][0]["id"]
    admin.ok("DELETE", f"/v3/projects/{project}/users/{user}/roles/{role}", service="/identity")
    assert statuses(theirs) == all_of(401)


def test_another_projects_things_do_not_exist(demo: Client, alt: Client) -> None:
    server = boot(demo)["id"]
    volume = demo.ok("POST", "/v3/volumes", {"volume": {"size": 1}}, service="/volume")["volume"]["id"]
    network = demo.ok("POST", "/v2.0/networks", {"network": {"name": "n"}}, service="/networking")["network"]["id"]
    image = demo.ok("POST", "/v2/images", {"name": "i", "visibility": "private"}, service="/image")["id"]
    for method in ("GET", "DELETE"):
        alt.refused(404, method, f"/servers/{server}")
        for service, path in (
            ("/volume", f"/v3/volumes/{volume}"), ("/networking", f"/v2.0/networks/{network}"),
            ("/image", f"/v2/images/{image}"),
        ):  # fmt: skip
            assert alt.status(method, path, service=service) == 404, (method, path)
    for path in ("ips", "metadata", "os-instance-actions", "os-volume_attachments"):
        alt.refused(404, "GET", f"/servers/{server}/{path}")
    actions: list[dict[str, Any]] = [{"os-stop": None}, {"reboot": {"type": "HARD"}}, {"os-getConsoleOutput": {}}]
    for action in actions:
        alt.refused(404, "POST", f"/servers/{server}/action", action)
    alt.refused(404, "PUT", f"/servers/{server}", {"server": {"name": "mine"}})
    assert demo.get(f"/servers/{server}")["server"]["status"] == "ACTIVE"
    assert demo.get("/servers")["servers"][0]["name"] == "s"
    demo.ok("DELETE", f"/servers/{server}", status=204)

"""The memo in front of keystonemiddleware: what it may remember, what it must forget, what never gets through."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.core import clock
from kilonova.core.context import Context, current
from kilonova.http.auth import IDENTITY_HEADERS, MEMO_SECONDS, Auth, TokenCache
from kilonova.http.transport import WsgiTransport
from tests.unit.http.keystone import CREDENTIALS, Keystone, token


def ask(auth: Auth, method: str = "GET", /, **headers: str) -> dict[str, Any]:
    """The identity headers of a request after authentication; `refused` when there was a refusal."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method, "PATH_INFO": "/", "SCRIPT_NAME": "", "QUERY_STRING": "", "SERVER_NAME": "x",
        "SERVER_PORT": "80", "wsgi.url_scheme": "http", "SERVER_PROTOCOL": "HTTP/1.1",
        **{f"HTTP_{name.upper()}": value for name, value in headers.items()},
    }  # fmt: skip
    refusal = auth.authenticate(environ)
    found = {name: environ[name] for name in IDENTITY_HEADERS if name in environ}
    return {"refused": refusal.status} if refusal else found


class Later(clock.SystemClock):
    """The machine's clock, moved forward by hand."""

    offset = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.offset


@pytest.fixture
def later() -> Any:
    moved = Later()
    before = clock.install(moved)
    yield moved
    clock.install(before)


def test_a_good_token_gives_the_identity_headers(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1", roles=("member", "reader"))
    found = ask(auth, x_auth_token="t")
    assert found["HTTP_X_IDENTITY_STATUS"] == "Confirmed"
    assert (found["HTTP_X_USER_ID"], found["HTTP_X_PROJECT_ID"], found["HTTP_X_ROLES"]) == ("u1", "p1", "member,reader")


def test_the_second_request_with_a_token_asks_nobody_and_has_the_same_headers(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1")
    assert ask(auth, x_auth_token="t") == ask(auth, x_auth_token="t")
    assert keystone.validations == ["t"]


def test_identity_headers_of_the_client_are_never_believed(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1")
    evil = {name.removeprefix("HTTP_").lower(): "evil" for name in IDENTITY_HEADERS}
    assert ask(auth, **evil) == {}
    first = ask(auth, x_auth_token="t", **evil)
    assert "evil" not in first.values()
    assert ask(auth, x_auth_token="t", **evil) == first


def test_a_bad_token_proves_nothing_and_is_not_remembered(auth: Auth, keystone: Keystone) -> None:
    assert ask(auth, x_auth_token="t") == {}
    keystone.tokens["t"] = token("u1")
    assert ask(auth, x_auth_token="t")["HTTP_X_USER_ID"] == "u1"


def test_an_expired_token_proves_nothing(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1", seconds=-1)
    assert ask(auth, x_auth_token="t") == {}


def test_a_token_is_checked_again_after_a_minute(auth: Auth, keystone: Keystone, later: Later) -> None:
    keystone.tokens["t"] = token("u1")
    ask(auth, x_auth_token="t")
    later.offset = MEMO_SECONDS - 1
    ask(auth, x_auth_token="t")
    assert keystone.validations == ["t"]
    later.offset = MEMO_SECONDS + 1
    ask(auth, x_auth_token="t")
    assert keystone.validations == ["t", "t"]


def test_a_token_is_not_remembered_beyond_its_end(auth: Auth, keystone: Keystone, later: Later) -> None:
    keystone.tokens["t"] = token("u1", seconds=20)
    ask(auth, x_auth_token="t")
    keystone.tokens["t"] = token("u1", seconds=-1)
    auth._tokens.clear()
    later.offset = 21
    assert ask(auth, x_auth_token="t") == {}


def test_a_revoked_token_is_refused_at_once_and_others_stay(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens |= {"t": token("u1"), "o": token("u2")}
    ask(auth, x_auth_token="t")
    ask(auth, x_auth_token="o")
    del keystone.tokens["t"]
    auth.forget("t")
    assert ask(auth, x_auth_token="t") == {}
    assert ask(auth, x_auth_token="o")["HTTP_X_USER_ID"] == "u2"
    assert keystone.validations == ["t", "o", "t"]


def test_after_a_change_of_grants_every_token_is_checked_again(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1", roles=("admin",))
    ask(auth, x_auth_token="t")
    keystone.tokens["t"] = token("u1", roles=("reader",))
    auth.forget_all()
    assert ask(auth, x_auth_token="t")["HTTP_X_ROLES"] == "reader"


def test_an_answer_from_before_a_revocation_is_not_remembered_after_it(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1")
    keystone.while_validating = lambda: auth.forget("t")
    assert ask(auth, x_auth_token="t")["HTTP_X_USER_ID"] == "u1"
    keystone.while_validating = lambda: None
    del keystone.tokens["t"]
    assert ask(auth, x_auth_token="t") == {}


def test_a_token_bound_to_something_is_never_remembered(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1", bind={"x509": "somebody"})
    assert ask(auth, x_auth_token="t")["HTTP_X_USER_ID"] == "u1"
    assert len(auth._memo) == 0


def test_a_token_with_access_rules_is_judged_at_every_request(keystone: Keystone) -> None:
    auth = Auth(load(warn=False), WsgiTransport(keystone), {**CREDENTIALS, "service_type": "compute"})
    rule = {"service": "compute", "method": "GET", "path": "/"}
    credential = {"id": "a", "access_rules": [rule]}
    keystone.tokens["t"] = token("u1", application_credential=credential, catalog=[{"type": "compute"}])
    assert ask(auth, x_auth_token="t")["HTTP_X_USER_ID"] == "u1"
    assert ask(auth, "DELETE", x_auth_token="t") == {}


def test_a_service_token_is_part_of_what_is_remembered(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens |= {"t": token("u1"), "s": token("neutron", roles=("service",))}
    alone = ask(auth, x_auth_token="t")
    with_service = ask(auth, x_auth_token="t", x_service_token="s")
    assert "HTTP_X_SERVICE_ROLES" not in alone
    assert with_service["HTTP_X_SERVICE_ROLES"] == "service"
    assert ask(auth, x_auth_token="t") == alone


def test_a_service_token_without_the_service_role_refuses_the_request(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens |= {"t": token("u1"), "s": token("other", roles=("member",))}
    assert ask(auth, x_auth_token="t", x_service_token="s") == {}


def test_a_silent_identity_service_is_503_not_401(auth: Auth, keystone: Keystone) -> None:
    keystone.broken = True
    assert ask(auth, x_auth_token="t")["refused"].startswith("503")


def test_an_identity_service_without_the_endpoint_that_is_asked_for_is_503_and_said_in_the_log(
    keystone: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    keystone.tokens["t"] = token("u1")
    auth = Auth(load(), WsgiTransport(keystone), CREDENTIALS | {"interface": "admin"})
    assert ask(auth, x_auth_token="t")["refused"].startswith("503")
    assert "see [keystone_authtoken]: admin endpoint for identity service not found" in caplog.text


def test_the_thread_has_its_context_back_afterwards(auth: Auth, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1")
    mine = Context(user_id="me")
    ask(auth, x_auth_token="t")
    assert current() is mine


def test_the_cache_is_bounded_and_drops_what_was_used_least() -> None:
    cache = TokenCache(size=2)
    for key in ("a", "b"):
        cache.set(key, key)
    cache.get("a")
    cache.set("c", "c")
    assert [cache.get(key) for key in ("a", "b", "c")] == ["a", None, "c"]

"""What stands around every application: order, ids, sizes, who asks."""

from __future__ import annotations

import io
import logging
from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.core import ids, json
from kilonova.core.context import Context, current
from kilonova.http.auth import Auth
from kilonova.http.middleware import Settings, pipeline, settings
from kilonova.http.transport import WsgiTransport
from tests.unit.http.conftest import Echo
from tests.unit.http.keystone import Keystone, token

INBOUND = "req-12345678-1234-1234-1234-123456789abc"


def call(
    app: Any, path: str = "/v2.1/servers", method: str = "GET", **environ: Any
) -> tuple[int, dict[str, str], bytes]:
    """Call as an HTTP server would; environ entries as they are."""
    started: list[Any] = []
    complete = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "SCRIPT_NAME": "/compute", "QUERY_STRING": "",
        "SERVER_NAME": "x", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(b""), "HTTP_HOST": "x", **environ,
    }  # fmt: skip
    body = b"".join(app(complete, lambda status, headers, exc_info=None: started.extend((status, headers))))
    return int(started[0][:3]), {name.lower(): value for name, value in started[1]}, body


@pytest.fixture
def app(echo: Echo, auth: Auth) -> Any:
    return pipeline(echo, service="compute", settings=Settings(), auth=auth)


def test_a_valid_token_becomes_the_context(app: Any, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1")
    status, _, body = call(app, HTTP_X_AUTH_TOKEN="t")
    caller = json.loads(body)["caller"]
    assert status == 200
    assert (caller["user_id"], caller["project_id"], caller["roles"]) == ("u1", "p1", ["member"])


@pytest.mark.parametrize("headers", [{}, {"HTTP_X_AUTH_TOKEN": "bad"}, {"HTTP_X_USER_ID": "u1"}])
def test_no_valid_token_is_no_context(app: Any, headers: dict[str, str]) -> None:
    assert json.loads(call(app, **headers)[2])["caller"] is None


def test_a_token_without_a_user_is_a_plain_401(app: Any, keystone: Keystone) -> None:
    keystone.tokens["t"] = token(None)
    assert call(app, HTTP_X_AUTH_TOKEN="t")[0] == 401


def test_a_silent_identity_service_answers_503_before_the_application(app: Any, keystone: Keystone, echo: Echo) -> None:
    keystone.broken = True
    assert call(app, HTTP_X_AUTH_TOKEN="t")[0] == 503
    assert echo.environ == {}


class Admins:
    def is_admin(self, ctx: Context) -> bool:
        return "admin" in ctx.roles


@pytest.mark.parametrize(("role", "expected"), [("admin", True), ("member", False)])
def test_the_policy_says_who_is_an_administrator(
    echo: Echo, auth: Auth, keystone: Keystone, role: str, expected: bool
) -> None:
    keystone.tokens["t"] = token("u1", roles=(role,))
    app = pipeline(echo, service="compute", settings=Settings(), auth=auth, policy=Admins())
    assert json.loads(call(app, HTTP_X_AUTH_TOKEN="t")[2])["caller"]["is_admin"] is expected


@pytest.mark.parametrize("path", ["/servers", "", "/", "/v2.1/"])
def test_every_compute_answer_has_both_request_ids(app: Any, path: str) -> None:
    headers = call(app, path)[1]
    assert headers["x-compute-request-id"] == headers["x-openstack-request-id"]
    assert ids.is_request_id(headers["x-compute-request-id"])


def test_other_services_have_the_common_request_id_only(echo: Echo) -> None:
    headers = call(pipeline(echo, service="placement", settings=Settings()), "/")[1]
    assert "x-openstack-request-id" in headers
    assert "x-compute-request-id" not in headers


@pytest.mark.parametrize(("sent", "kept"), [(INBOUND, INBOUND), ("req-1", None), ("x" * 500, None)])
def test_a_well_formed_inbound_id_is_the_global_one_and_never_echoed(
    app: Any, keystone: Keystone, sent: str, kept: str | None
) -> None:
    keystone.tokens["t"] = token("u1")
    _, headers, body = call(app, HTTP_X_AUTH_TOKEN="t", HTTP_X_OPENSTACK_REQUEST_ID=sent)
    assert json.loads(body)["caller"]["global_request_id"] == kept
    assert sent not in headers.values()


def test_the_request_id_of_the_answer_is_that_of_the_context(app: Any, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1")
    _, headers, body = call(app, HTTP_X_AUTH_TOKEN="t")
    assert json.loads(body)["caller"]["request_id"] == headers["x-compute-request-id"]


def test_a_worker_thread_is_left_without_the_requests_context(app: Any, keystone: Keystone) -> None:
    keystone.tokens["t"] = token("u1")
    mine = Context(user_id="me")
    call(app, HTTP_X_AUTH_TOKEN="t")
    assert current() is mine


def test_too_large_a_body_is_413_before_the_token_is_looked_at(app: Any, keystone: Keystone, echo: Echo) -> None:
    status, headers, body = call(
        app, method="POST", CONTENT_LENGTH="114689", HTTP_X_AUTH_TOKEN="t", HTTP_ACCEPT="application/json"
    )
    assert status == 413
    assert json.loads(body)["code"].startswith("413")
    assert "x-compute-request-id" in headers
    assert keystone.validations == []
    assert echo.environ == {}


def test_the_largest_allowed_body_passes(app: Any) -> None:
    data = b"x" * 114688
    status, _, body = call(app, method="POST", CONTENT_LENGTH="114688", **{"wsgi.input": io.BytesIO(data)})
    assert status == 200
    assert len(json.loads(body)["body"]) == 114688


@pytest.mark.parametrize(("size", "status"), [(114688, 200), (114689, 413), (1_000_000, 413)])
def test_a_chunked_body_is_counted_while_it_is_read(app: Any, size: int, status: int) -> None:
    stream = io.BytesIO(b"x" * size)
    answer = call(app, method="POST", HTTP_TRANSFER_ENCODING="chunked", **{"wsgi.input": stream})
    assert answer[0] == status
    assert stream.tell() <= 114689


def test_a_service_of_streams_has_no_limit(echo: Echo) -> None:
    app = pipeline(echo, service="image", settings=Settings(max_body=None))
    assert call(app, method="PUT", CONTENT_LENGTH="9", **{"wsgi.input": io.BytesIO(b"123456789")})[0] == 200
    assert call(app, method="PUT", CONTENT_LENGTH=str(1 << 40))[0] == 200


@pytest.mark.parametrize("length", ["5", "0"])
def test_two_statements_of_the_length_are_refused(app: Any, length: str) -> None:
    assert call(app, method="POST", CONTENT_LENGTH=length, HTTP_TRANSFER_ENCODING="chunked")[0] == 400


@pytest.mark.parametrize("length", ["-1", "abc", "1 2", "\u0663"])
def test_a_length_that_is_no_number_is_refused(app: Any, length: str) -> None:
    assert call(app, method="POST", CONTENT_LENGTH=length)[0] == 400


def test_one_access_line_a_request_says_what_happened(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kilonova.access"):
        call(app, QUERY_STRING="limit=1", REMOTE_ADDR="192.0.2.9")
    lines = [record.getMessage() for record in caplog.records if record.name == "kilonova.access"]
    assert len(lines) == 1
    assert lines[0].startswith('192.0.2.9 "GET /compute/v2.1/servers?limit=1" status: 200 len: ')


def test_a_line_feed_in_a_path_cannot_forge_a_log_line(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kilonova.access"):
        call(app, "/v2.1/a\nb")
    assert "\n" not in caplog.records[-1].getMessage()


def test_cross_origin_pages_are_answered_only_where_configured(echo: Echo) -> None:
    conf = load(overrides={"cors.allowed_origin": ["https://horizon.test"]}, warn=False)
    app = pipeline(echo, service="compute", settings=settings(conf))
    allowed = call(app, HTTP_ORIGIN="https://horizon.test")[1]
    assert allowed["access-control-allow-origin"] == "https://horizon.test"
    assert "access-control-allow-origin" not in call(app, HTTP_ORIGIN="https://evil.test")[1]
    plain = pipeline(echo, service="compute", settings=settings(load(warn=False)))
    assert "access-control-allow-origin" not in call(plain, HTTP_ORIGIN="https://horizon.test")[1]


@pytest.mark.parametrize(("enabled", "scheme"), [(True, "https"), (False, "http")])
def test_proxy_headers_are_believed_only_where_configured(echo: Echo, enabled: bool, scheme: str) -> None:
    conf = load(overrides={"oslo_middleware.enable_proxy_headers_parsing": enabled}, warn=False)
    app = pipeline(echo, service="compute", settings=settings(conf))
    call(app, HTTP_X_FORWARDED_PROTO="https", HTTP_X_FORWARDED_HOST="cloud.test")
    assert echo.environ["wsgi.url_scheme"] == scheme
    assert (echo.environ["HTTP_HOST"] == "cloud.test") is enabled


def test_a_pipeline_within_a_pipeline_gives_each_request_its_own_id(echo: Echo, keystone: Keystone, auth: Auth) -> None:
    inner = WsgiTransport(pipeline(echo, service="placement", settings=Settings()))
    seen: list[Any] = []

    def outer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        _, headers, _ = inner.send("GET", "http://placement.test/x", {}, None)
        here = current()
        seen.extend((environ["kilonova.context"], here, headers["x-openstack-request-id"]))
        start_response("200 OK", [])
        return []

    keystone.tokens["t"] = token("u1")
    call(pipeline(outer, service="compute", settings=Settings(), auth=auth), HTTP_X_AUTH_TOKEN="t")
    mine, after, inner_id = seen
    assert after is mine
    assert inner_id != mine.request_id

"""What every client shares: headers, tokens, one renewal, errors."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kilonova.clients.rest import (
    FixedToken,
    NoAnswer,
    RemoteConflict,
    RemoteForbidden,
    RemoteInvalid,
    RemoteNotFound,
    RemoteUnavailable,
    Response,
    explain,
    query,
    segment,
)
from kilonova.core.context import Context
from kilonova.core.errors import NotFound
from tests.unit.clients.scripted import Scripted, rest


class Renewing:
    """Tokens old, new, newer …: one more at each renewal."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    def headers(self) -> Mapping[str, str]:
        return {"X-Auth-Token": self.tokens[0]}

    def renew(self, stale: Mapping[str, str]) -> bool:
        self.tokens.pop(0)
        return True


def test_a_request_carries_token_version_and_the_request_id_of_the_thread() -> None:
    transport = Scripted((200, {}))
    ctx = Context(user_id="u")
    rest(transport, microversion="volume").call("GET", "/x", version="3.44")
    headers = transport.asked[0][2]
    assert headers["X-Auth-Token"] == "tok"
    assert headers["OpenStack-API-Version"] == "volume 3.44"
    assert headers["X-OpenStack-Request-ID"] == ctx.request_id


def test_a_global_request_id_goes_on_in_the_place_of_the_own_one() -> None:
    transport = Scripted((200, {}))
    Context(global_request_id="req-11111111-1111-1111-1111-111111111111")
    rest(transport).call("GET", "/x")
    assert transport.asked[0][2]["X-OpenStack-Request-ID"] == "req-11111111-1111-1111-1111-111111111111"


def test_a_refused_token_is_renewed_once_and_the_request_sent_again() -> None:
    transport = Scripted((401, {}), (200, {"a": 1}))
    assert rest(transport, Renewing("old", "new")).call("POST", "/x", json={"b": 2}) == {"a": 1}
    assert [headers["X-Auth-Token"] for _, _, headers, _ in transport.asked] == ["old", "new"]
    assert transport.bodies == [{"b": 2}, {"b": 2}]


def test_a_second_refusal_is_not_tried_again() -> None:
    transport = Scripted((401, {}), (401, {}))
    assert rest(transport, Renewing("old", "new", "newer")).request("GET", "/x").status == 401
    assert len(transport.asked) == 2


def test_a_users_own_token_is_never_renewed() -> None:
    transport = Scripted((401, {}))
    client = rest(transport, Renewing("service", "other")).as_user(Context(auth_token="own"))
    assert client.request("GET", "/x").status == 401
    assert [headers["X-Auth-Token"] for _, _, headers, _ in transport.asked] == ["own"]


def test_the_service_token_goes_beside_the_users_where_it_is_asked_for() -> None:
    transport = Scripted((200, {}))
    rest(transport, FixedToken("service"), send_service_token=True).as_user(Context(auth_token="own")).call("GET", "/x")
    headers = transport.asked[0][2]
    assert (headers["X-Auth-Token"], headers["X-Service-Token"]) == ("own", "service")


def test_work_without_a_users_token_goes_on_with_the_services() -> None:
    client = rest(Scripted())
    assert client.as_user(Context(user_id="u")) is client
    assert client.as_user(None) is client


def test_no_answer_is_unavailable_and_names_the_service() -> None:
    with pytest.raises(RemoteUnavailable, match="thing service does not answer: connection refused"):
        rest(Scripted(NoAnswer)).request("GET", "/x")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RemoteInvalid), (403, RemoteForbidden), (404, RemoteNotFound), (409, RemoteConflict),
        (500, RemoteUnavailable), (503, RemoteUnavailable), (418, RemoteUnavailable), (401, RemoteUnavailable),
    ],
)  # fmt: skip
def test_a_status_without_a_row_of_its_own_becomes_a_remote_error(status: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="why"):
        rest(Scripted((status, {"x": {"message": "why"}}))).call("GET", "/x")


class Domain(NotFound):
    code, message = "domain", "{noun}: {reason}"


def test_the_type_in_the_body_decides_before_the_status() -> None:
    errors = {(409, "OverQuota"): Domain, 409: RemoteConflict}
    body = {"NeutronError": {"type": "OverQuota", "message": "too many", "detail": ""}}
    with pytest.raises(Domain, match="port: too many"):
        rest(Scripted((409, body))).call("POST", "/x", errors=errors, noun="port")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"NeutronError": {"type": "T", "message": "m", "detail": "d"}}', ("T", "m")),
        (b'{"itemNotFound": {"code": 404, "message": "m"}}', ("404", "m")),
        (b'{"errors": [{"code": "placement.x", "detail": "d", "title": "t"}]}', ("placement.x", "d")),
        (b'{"error": {"code": 401, "title": "t", "message": "m"}}', ("401", "m")),
        (b'{"message": "m", "code": "404 Not Found"}', ("", "m")),
        (b"404 Not Found", ("", "404 Not Found")),
        (b"<html>no</html>", ("", "")),
        (b"", ("", "")),
        (b'["odd"]', ("", '["odd"]')),
        (b'{"errors": []}', ("", "")),
    ],
)
def test_every_services_error_format_is_understood(body: bytes, expected: tuple[str, str]) -> None:
    assert explain(Response(400, {}, body)) == expected


@pytest.mark.parametrize("bad", ["", ".", "..", "..."])
def test_an_id_that_could_mean_another_path_is_not_found(bad: str) -> None:
    with pytest.raises(NotFound):
        segment(bad)


def test_an_id_stays_one_segment_whatever_is_in_it() -> None:
    assert segment("a/../b?c#d") == "a%2F..%2Fb%3Fc%23d"


def test_queries_repeat_lists_leave_out_none_and_write_booleans_small() -> None:
    assert query({"id": ["a", "b"], "shared": True, "none": None, "n": 1}) == "?id=a&id=b&shared=true&n=1"
    assert query({}) == ""

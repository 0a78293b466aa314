"""Of two things wrong with a request, the earlier check of errors.md 2 decides; and what each refusal looks like."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from kilonova.core.errors import Conflict, Forbidden, NotFound, Unavailable, Unsupported
from kilonova.http.fields import Field, Int, Obj, Param, Query, Str
from kilonova.http.op import Answer, Op, Request
from kilonova.http.versions import Since
from tests.unit.http.ask import NOBODY, Allow, app, ask

BODY = Obj(Field("name", Str(1, 5), required=True), Field("size", Int(0)))


class Missing(NotFound):
    code, message = "missing", "Thing {id} could not be found."


def thing(req: Request) -> Any:
    if req.path["id"] == "none":
        raise Missing(id="none")
    return {"project_id": "abc0"}


def change(req: Request) -> dict[str, Any]:
    if req.body["name"] == "busy":
        raise Conflict("It is busy.")
    return {"name": req.body["name"]}


ROWS = (
    Op(
        "PUT", "/things/{id}", change, policy="change", target=thing, body=BODY, since="2.2", errors=(404, 409),
        query=Query((Param("limit", Int(0)),), strict="2.10"),
    ),
    Op("POST", "/things/{id}/action", lambda req: None, action="stop", policy="stop", target=thing, ok=202),
    Op("POST", "/things/{id}/action", lambda req: None, action="old", until="2.1", ok=202),
    Op("GET", "/open", lambda req: {"who": req.ctx is None}, auth=False),
)  # fmt: skip
GOOD = b'{"name": "x"}'
STEPS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("no token", 401, {"context": False}),
    ("no route", 404, {"path": "/nothing"}),
    ("malformed version", 400, {"version": "2.01"}),
    ("media type", 415, {"Content_Type": "application/xml"}),
    ("broken JSON", 400, {"body": b"{"}),
    ("other project", 400, {"path": "/fff0/things/none"}),
    ("not at this version", 404, {"version": "2.1"}),
    ("bad query", 400, {"path": "/things/none?limit=x"}),
    ("bad body", 400, {"body": b'{"name": 1}'}),
    ("not found", 404, {"path": "/things/none"}),
    ("policy", 403, {"policy": NOBODY}),
    ("state", 409, {"body": b'{"name": "busy"}'}),
)
"""Name, status, and what makes a request fail there, in the order of the checks."""


BODY_LAST = (
    "no token", "no route", "malformed version", "other project", "not at this version", "media type", "policy",
    "bad query", "not found", "broken JSON", "bad body", "state",
)  # fmt: skip
"""The same names in the order of a service that looks at the body last, for a row with its policy first."""


def put(*, body_last: bool = False, **wrong: Any) -> Any:
    rows = tuple(replace(row, policy_first=body_last) for row in ROWS)
    service = app(*rows, policy=wrong.pop("policy", Allow("change", "stop")), body_last=body_last)
    request: dict[str, Any] = {"path": "/things/1", "body": GOOD, "version": "2.10", "Content_Type": "application/json"}
    request |= wrong
    return ask(service, "PUT", request.pop("path"), request.pop("body"), **request)


def test_a_request_with_nothing_wrong_succeeds() -> None:
    answer = put()
    assert (answer.status, answer.body) == (200, {"name": "x"})


@pytest.mark.parametrize("first", range(len(STEPS)), ids=[name for name, _, _ in STEPS])
def test_the_first_wrong_thing_decides(first: int) -> None:
    decides(STEPS[first:], body_last=False)


@pytest.mark.parametrize("first", BODY_LAST)
def test_the_first_wrong_thing_decides_where_the_body_is_last(first: str) -> None:
    known = {step[0]: step for step in STEPS}
    assert set(BODY_LAST) == set(known)
    decides(tuple(known[name] for name in BODY_LAST[BODY_LAST.index(first) :]), body_last=True)


def decides(steps: tuple[tuple[str, int, dict[str, Any]], ...], *, body_last: bool) -> None:
    name, status, wrong = steps[0]
    alone = put(body_last=body_last, **wrong)
    assert alone.status == status
    for other, _, later in steps[1:]:
        if set(wrong) & set(later):
            continue
        both = put(body_last=body_last, **(later | wrong))
        assert (both.status, both.data) == (alone.status, alone.data), f"{name} comes before {other}"


def test_where_the_body_is_last_it_has_to_say_what_it_is() -> None:
    assert put(body_last=True, Content_Type="").status == 400
    assert put(body_last=True, Content_Type="", body=b"").status == 415
    assert put(Content_Type="").status == 200


def test_an_unmatched_path_answers_without_version_headers() -> None:
    answer = put(path="/nothing")
    assert answer.header("OpenStack-API-Version") == []
    assert answer.header("Vary") == []


@pytest.mark.parametrize(("accept", "media", "begin"), [
    ("", "text/plain; charset=UTF-8", b"404 Not Found"),
    ("*/*", "text/html; charset=UTF-8", b"<html>"),
    ("text/html", "text/html; charset=UTF-8", b"<html>"),
    ("application/json", "application/json", b'{"message":'),
])  # fmt: skip
def test_an_unmatched_path_answers_as_accept_asks(accept: str, media: str, begin: bytes) -> None:
    answer = put(path="/<nothing>", Accept=accept)
    assert (answer.status, answer.header("Content-Type")) == (404, [media])
    assert answer.data.startswith(begin)
    assert b"<nothing>" not in answer.data


@pytest.mark.parametrize(("status", "name", "wrong"), [
    (400, "badRequest", {"body": b"{}"}),
    (403, "forbidden", {"policy": NOBODY}),
    (404, "itemNotFound", {"path": "/things/none"}),
    (406, "computeFault", {"version": "2.11"}),
    (409, "conflictingRequest", {"body": b'{"name": "busy"}'}),
    (415, "badMediaType", {"Content_Type": "application/xml"}),
])  # fmt: skip
def test_a_fault_has_its_name_code_and_message(status: int, name: str, wrong: dict[str, Any]) -> None:
    answer = put(**wrong)
    assert answer.status == status
    ((found, fault),) = answer.body.items()
    assert (found, fault["code"]) == (name, status)
    assert fault["message"]
    assert answer.header("Content-Type") == ["application/json; charset=UTF-8"]


def test_errors_echo_the_version_except_a_malformed_one() -> None:
    assert put(body=b"{}").header("OpenStack-API-Version") == ["compute 2.10"]
    assert put(version="2.11").header("OpenStack-API-Version") == ["compute 2.11"]
    assert put(version="2.x").header("OpenStack-API-Version") == []


def test_a_missing_token_is_a_401_that_says_where_tokens_are() -> None:
    answer = ask(app(*ROWS, auth_uri="http://identity"), "PUT", "/things/1", GOOD, context=False)
    assert answer.header("WWW-Authenticate") == ['Keystone uri="http://identity"']
    assert answer.body["error"]["code"] == 401


def test_an_open_row_needs_no_token() -> None:
    assert ask(app(*ROWS), "GET", "/open", context=False).body == {"who": True}


@pytest.mark.parametrize(("body", "version", "status"), [
    (b'{"stop": null}', "2.10", 202),
    (b'{"stop": null, "old": null}', "2.10", 400),
    (b"{}", "2.10", 400),
    (b"[]", "2.10", 400),
    (b'"stop"', "2.10", 400),
    (b"", "2.10", 400),
    (b'{"never": null}', "2.10", 400),
    (b'{"old": null}', "2.1", 202),
    (b'{"old": null}', "2.2", 404),
])  # fmt: skip
def test_an_action_is_an_object_with_one_known_name(body: bytes, version: str, status: int) -> None:
    answer = ask(app(*ROWS, policy=Allow("stop")), "POST", "/things/1/action", body, version=version)
    assert answer.status == status


@pytest.mark.parametrize(("levels", "status"), [(40, 200), (51, 400), (900, 400), (20_000, 400)])
@pytest.mark.parametrize("pair", ["[]", '{"a":}'], ids=["list", "object"])
def test_a_body_has_an_end(levels: int, status: int, pair: str) -> None:
    begin, end = pair[:-1], pair[-1]
    body = (begin * (levels - 1) + '"x"' + end * (levels - 1)).join(('{"any": ', "}")).encode()
    rows = Op("PUT", "/x", lambda req: {}, body=Obj(open=True))
    assert ask(app(rows), "PUT", "/x", body).status == status


def test_a_wide_body_is_not_a_deep_one() -> None:
    rows = Op("PUT", "/x", lambda req: {}, body=Obj(open=True))
    assert ask(app(rows), "PUT", "/x", b'{"a": [' + b"[]," * 1000 + b"{}]}").status == 200


@pytest.mark.parametrize("media", [
    "", "application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "text/plain",
    "application/vnd.openstack.compute+json",
])  # fmt: skip
def test_these_media_types_are_json(media: str) -> None:
    assert put(Content_Type=media).status == 200


def test_the_owns_project_may_stand_in_the_path() -> None:
    assert put(path="/abc0/things/1").status == 200
    assert put(path="/other project/things/1").status == 404, "a project is hexadecimal and hyphens"


def test_a_null_character_in_a_path_names_nothing_and_in_a_query_is_refused() -> None:
    assert put(path="/things/a\0b").status == 404
    assert put(path="/things/1?limit=%00").status == 400


def test_unknown_parameters_are_dropped_before_the_row_is_strict() -> None:
    assert put(path="/things/1?x=1", version="2.2").status == 200
    assert put(path="/things/1?x=1", version="2.10").status == 400


# -- what goes wrong inside ------------------------------------------------------------------------------------------


def failing(error: Exception, **row: Any) -> Any:
    def handler(req: Request) -> None:
        raise error

    return ask(app(Op("GET", "/x", handler, **row)), "GET", "/x")


def test_a_status_that_a_row_does_not_declare_is_a_defect_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    answer = failing(Conflict("It is busy."))
    assert answer.status == 500
    assert "busy" not in answer.body["computeFault"]["message"]
    assert "which its row does not declare" in caplog.text
    assert failing(Conflict("It is busy."), errors=(409,)).status == 409


def test_a_row_may_give_an_error_another_status() -> None:
    assert failing(Missing(id=1), faults={Missing: 400}).status == 400
    assert failing(Forbidden("no"), faults={Missing: 400}).status == 403


def test_an_unexpected_exception_hides_what_it_says_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    answer = failing(RuntimeError("secret"))
    assert answer.status == 500
    message = answer.body["computeFault"]["message"]
    assert "secret" not in message
    assert message.splitlines()[1] == "<class 'RuntimeError'>"
    assert "secret" in caplog.text


def test_what_a_deployment_cannot_do_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert failing(Unsupported()).status == 501
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_service_that_is_away_is_a_500_where_the_row_knows_no_503() -> None:
    assert failing(Unavailable("Images do not answer.")).status == 500
    assert failing(Unavailable("Images do not answer."), errors=(503,)).status == 503


# -- answers ---------------------------------------------------------------------------------------------------------


def test_success_codes_follow_the_version() -> None:
    service = app(Op("GET", "/x", lambda req: {}, ok=Since(200, ("2.2", 201))))
    assert [ask(service, "GET", "/x", version=version).status for version in ("2.1", "2.2")] == [200, 201]


def test_an_answer_brings_its_own_status_headers_and_bytes() -> None:
    made = Answer(b"abc", 203, (("Location", "/y"),), "text/csv")
    answer = ask(app(Op("GET", "/x", lambda req: made)), "GET", "/x")
    assert (answer.status, answer.data) == (203, b"abc")
    assert (answer.header("Location"), answer.header("Content-Type")) == (["/y"], ["text/csv"])


def test_an_empty_202_or_204_has_no_bytes() -> None:
    for ok in (202, 204):
        answer = ask(app(Op("GET", "/x", lambda req: None, ok=ok)), "GET", "/x")
        assert (answer.status, answer.data, answer.header("Content-Length")) == (ok, b"", ["0"])

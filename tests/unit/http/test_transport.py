"""Calls in the process and over sockets look the same to a client."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from kilonova.clients.rest import NoAnswer, Transport
from kilonova.core import json
from kilonova.core.context import Context, current
from kilonova.http.transport import RoutedTransport, SocketTransport, WsgiTransport
from kilonova.sql.engine import Database


class Application:
    """Says what it was asked; `/stream` in three pieces, `/broken` not at all, `/redirect` elsewhere."""

    def __init__(self) -> None:
        self.closed = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/broken":
            raise RuntimeError("no")
        Context(user_id="somebody else")
        if path == "/stream":
            start_response("200 OK", [])
            return self._pieces()
        if path == "/redirect":
            start_response("302 Found", [("Location", "/elsewhere")])
            return [b""]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        told = {
            "method": environ["REQUEST_METHOD"], "path": path, "query": environ.get("QUERY_STRING", ""),
            "body": environ["wsgi.input"].read(length).decode(), "type": environ.get("CONTENT_TYPE"),
            "token": environ.get("HTTP_X_AUTH_TOKEN"), "host": environ["HTTP_HOST"],
        }  # fmt: skip
        start_response("201 Created", [("X-One", "1"), ("Vary", "a"), ("Vary", "b")])
        return [json.dumps(told)]

    def _pieces(self) -> Iterator[bytes]:
        try:
            yield from (b"a", b"b", b"c")
        finally:
            self.closed += 1


@pytest.fixture
def application() -> Application:
    return Application()


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """No lines on the terminal."""


@pytest.fixture(params=["wsgi", "socket"])
def service(request: pytest.FixtureRequest, application: Application) -> Iterator[tuple[Transport, str]]:
    if request.param == "wsgi":
        yield WsgiTransport(application), "http://svc.test:81"
        return
    server = make_server("127.0.0.1", 0, application, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield SocketTransport(timeout=5), f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_everything_of_a_request_arrives_and_of_the_answer_comes_back(service: tuple[Transport, str]) -> None:
    transport, base = service
    headers = {"X-Auth-Token": "t", "Content-Type": "application/json"}
    status, answered, body = transport.send("PUT", f"{base}/a%20b/c?x=1&y=%2F", headers, b'{"k": 1}')
    told = json.loads(body)
    assert status == 201
    assert answered["x-one"] == "1"
    assert answered["vary"] == "a, b"
    assert told == {
        "method": "PUT", "path": "/a b/c", "query": "x=1&y=%2F", "body": '{"k": 1}', "type": "application/json",
        "token": "t", "host": base.removeprefix("http://"),
    }  # fmt: skip


def test_a_request_without_a_body_has_none(service: tuple[Transport, str]) -> None:
    transport, base = service
    assert json.loads(transport.send("GET", f"{base}/x", {}, None)[2])["body"] == ""


def test_an_answer_in_pieces_comes_in_pieces_and_whole(
    service: tuple[Transport, str], application: Application
) -> None:
    transport, base = service
    assert transport.send("GET", f"{base}/stream", {}, None)[2] == b"abc"
    status, _, pieces = transport.open("GET", f"{base}/stream", {}, None)
    assert (status, b"".join(pieces)) == (200, b"abc")
    assert application.closed == 2


def test_a_redirect_is_an_answer(service: tuple[Transport, str]) -> None:
    transport, base = service
    status, headers, _ = transport.send("GET", f"{base}/redirect", {}, None)
    assert (status, headers["location"]) == (302, "/elsewhere")


def test_no_call_is_made_inside_a_transaction(service: tuple[Transport, str], tmp_path: Any) -> None:
    transport, base = service
    database = Database(f"sqlite:///{tmp_path}/x.db")
    with database.write(), pytest.raises(RuntimeError, match="transaction"):
        transport.send("GET", f"{base}/x", {}, None)
    with database.write(), pytest.raises(RuntimeError, match="transaction"):
        transport.open("GET", f"{base}/x", {}, None)
    with database.read():
        assert transport.send("GET", f"{base}/x", {}, None)[0] == 201
    database.dispose()


def test_the_caller_keeps_its_context_when_the_service_sets_another(service: tuple[Transport, str]) -> None:
    transport, base = service
    mine = Context(user_id="me")
    transport.send("GET", f"{base}/x", {}, None)
    assert current() is mine


def test_a_body_in_pieces_has_a_length_in_the_process(application: Application) -> None:
    body = WsgiTransport(application).send("PUT", "http://x/y", {}, (piece for piece in (b"ab", b"cd")))[2]
    assert json.loads(body)["body"] == "abcd"


def test_an_application_that_breaks_is_no_answer(application: Application) -> None:
    with pytest.raises(NoAnswer, match="RuntimeError"):
        WsgiTransport(application).send("GET", "http://x/broken", {}, None)


def test_a_closed_port_is_no_answer() -> None:
    with make_server("127.0.0.1", 0, lambda *_: []) as server:
        port = server.server_port
    with pytest.raises(NoAnswer):
        SocketTransport(timeout=1, connect_retries=0).send("GET", f"http://127.0.0.1:{port}/", {}, None)


def test_the_longest_prefix_decides_and_only_at_a_segments_end() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def send(self, *_: Any) -> Any:
            return 200, {}, self.name.encode()

        open = send

    routed = RoutedTransport({"http://a:1": Named("short"), "http://a:1/x/": Named("long")}, Named("out"))
    urls = ("http://a:1/y", "http://a:1/x/z", "http://a:1/x", "http://a:1/xy", "http://a:12/y", "http://b/")
    names = [routed.send("GET", url, {}, None)[2].decode() for url in urls]
    assert names == ["short", "long", "long", "short", "out", "out"]


def test_a_process_that_calls_nobody_says_so() -> None:
    with pytest.raises(NoAnswer):
        RoutedTransport({}, None).send("GET", "http://a/", {}, None)

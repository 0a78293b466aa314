from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from kilonova.core import clock
from kilonova.http.server import HttpServer, _listeners


class App:
    """Answers `/` at once, and `/slow` when it is told to."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/slow":
            self.begun.set()
            assert self.go_on.wait(5)
        start_response("200 OK", [("Content-Length", "4")])
        return [b"done"]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def server(app: App, port: int) -> Iterator[HttpServer]:
    made = HttpServer(app, "127.0.0.1", port, threads=2)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def connection(server: HttpServer, port: int) -> Iterator[http.client.HTTPConnection]:
    made = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    yield made
    made.close()


def test_a_connection_that_a_client_keeps_open_does_not_hold_up_the_end(
    server: HttpServer, connection: http.client.HTTPConnection
) -> None:
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"done"
    began = clock.monotonic()
    server.stop()
    assert clock.monotonic() - began < 2


def test_a_request_that_runs_gets_its_answer_before_the_end(
    server: HttpServer, app: App, connection: http.client.HTTPConnection
) -> None:
    connection.request("GET", "/slow")
    assert app.begun.wait(5)
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    app.go_on.set()
    assert connection.getresponse().read() == b"done"
    stopping.join(3)
    assert not stopping.is_alive()


def test_the_address_is_free_afterwards(server: HttpServer, app: App, port: int) -> None:
    server.stop()
    again = HttpServer(app, "127.0.0.1", port)
    again.start()
    again.stop()


def test_a_name_with_several_addresses_is_served_at_each_and_stops_as_quickly(
    app: App, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", port)) for last in (1, 2)]
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", lambda *_: addresses)
        server = HttpServer(app, "twice", port)
        server.start()
    for last in (1, 2):
        connection = http.client.HTTPConnection(f"127.0.0.{last}", port, timeout=5)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"done"
    began = clock.monotonic()
    server.stop()
    assert clock.monotonic() - began < 2
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=1)


def test_a_thread_that_is_awake_when_it_is_to_stop_closes_nothing_too_early(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = _listeners(server._sockets)[0].trigger
    pull = type(trigger)._physical_pull

    def late(self: Any) -> None:
        """Something else wakes the thread first, and it has time to do what waits for it."""
        pull(self)
        thread = server._thread
        assert thread is not None
        thread.join(0.2)
        pull(self)

    monkeypatch.setattr(type(trigger), "_physical_pull", late)
    server.stop()
    assert not server._sockets

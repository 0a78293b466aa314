"""How a request reaches a service: by a call of the WSGI application in this process, by a socket, or by address.

The client rooms know the protocol (`clients.rest.Transport`) only; `wiring` chooses. Nothing here knows what is sent.
"""

from __future__ import annotations

import io
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from kilonova.clients.rest import Body, NoAnswer, Transport
from kilonova.core.context import preserved
from kilonova.sql.engine import transaction_open

LOG = logging.getLogger(__name__)

WsgiApp = Any  # (environ, start_response) -> Iterable[bytes]
Answer = tuple[int, dict[str, str], bytes]
StreamedAnswer = tuple[int, dict[str, str], Iterator[bytes]]

_SPOOL = 1 << 20  # bytes of an upload kept in memory, as an HTTP server would
_NO_INPUT = b""


def _no_transaction() -> None:
    if transaction_open():
        raise RuntimeError("A remote call inside a database transaction would hold its locks for the call's time.")


class WsgiTransport:
    """Calls the application directly, as if a request had come in from 127.0.0.1.

    The caller's request context is put back afterwards. An exception that leaves the application is `NoAnswer`, as a
    broken connection would be. Only the path and query of the URL decide where it goes; the host is passed on.
    """

    def __init__(self, app: WsgiApp) -> None:
        self.app = app

    def send(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> Answer:
        status, answered, pieces = self.open(method, url, headers, body)
        return status, answered, b"".join(pieces)

    def open(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> StreamedAnswer:
        _no_transaction()
        environ = _environ(method, url, headers, body)
        started: list[Any] = []
        written: list[bytes] = []

        def start_response(status: str, fields: list[tuple[str, str]], exc_info: Any = None) -> Any:
            started[:] = (status, fields)
            return written.append

        with preserved():
            try:
                result = self.app(environ, start_response)
                pieces = _pieces(result, written, started)
            except Exception as error:
                LOG.exception("The application broke on %s %s", method, url)
                raise NoAnswer(f"{type(error).__name__} in the application") from error
        status, fields = started
        return int(status[:3]), _lowered(fields), pieces


def _pieces(result: Iterable[bytes], written: list[bytes], started: list[Any]) -> Iterator[bytes]:
    """The body; short ones are collected here, so that the application is closed inside the caller's frame."""
    if started and isinstance(result, (list, tuple)):
        return iter([*written, *result])
    iterator = iter(result)
    first = next(iterator, b"")
    if not started:
        raise RuntimeError("The application did not start a response.")
    return _drained(result, iterator, [*written, first])


def _drained(result: Any, iterator: Iterator[bytes], before: list[bytes]) -> Iterator[bytes]:
    try:
        yield from before
        yield from iterator
    finally:
        close = getattr(result, "close", None)
        if close is not None:
            close()


def _lowered(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in fields:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def _environ(method: str, url: str, headers: Mapping[str, str], body: Body) -> dict[str, Any]:
    parts = urlsplit(url)
    path = parts.path or "/"
    scheme = parts.scheme or "http"
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1") if "%" in path else path,
        "QUERY_STRING": parts.query,
        "REQUEST_URI": f"{path}?{parts.query}" if parts.query else path,
        "SERVER_NAME": parts.hostname or "localhost",
        "SERVER_PORT": str(parts.port or (443 if scheme == "https" else 80)),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": parts.netloc,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.errors": _ERRORS,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in headers.items():
        environ["HTTP_" + name.upper().replace("-", "_")] = value
    content_type = environ.pop("HTTP_CONTENT_TYPE", None)
    environ.pop("HTTP_CONTENT_LENGTH", None)
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    if content_type is not None:
        environ["CONTENT_TYPE"] = content_type
    length, environ["wsgi.input"] = _input(body)
    if length is not None:
        environ["CONTENT_LENGTH"] = str(length)
    return environ


class _LogErrors:
    """`wsgi.errors`: what an application prints there becomes a log line."""

    def write(self, text: str) -> int:
        if text.strip():
            LOG.error("%s", text.rstrip())
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is kept back."""


_ERRORS = _LogErrors()


def _input(body: Body) -> tuple[int | None, Any]:
    if body is None:
        return None, io.BytesIO(_NO_INPUT)
    if isinstance(body, (bytes, bytearray)):
        return len(body), io.BytesIO(body)
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL)  # noqa: SIM115  the application reads it after this frame
    length = 0
    for piece in body:
        length += len(piece)
        spool.write(piece)
    spool.seek(0)
    return length, spool


class SocketTransport:
    """HTTP over pooled connections (urllib3). Redirects are answers like others.

    Connecting is tried again; so is, once, a GET whose connection broke, as a kept one may at any time. Other methods
    are not: what they did is not known.

    timeout: seconds for connecting and for each read. cafile, certfile, keyfile, insecure: as in the options of
    the same name of every client group.
    """

    def __init__(
        self,
        *,
        timeout: float = 60.0,
        connect_retries: int = 2,
        pool_size: int = 16,
        cafile: str | None = None,
        certfile: str | None = None,
        keyfile: str | None = None,
        insecure: bool = False,
    ) -> None:
        import urllib3  # imported here: an all-in-one process never opens a socket to itself

        self._failures: tuple[type[Exception], ...] = (urllib3.exceptions.HTTPError, OSError)
        self._pool = urllib3.PoolManager(
            num_pools=16,
            maxsize=pool_size,
            timeout=urllib3.Timeout(connect=min(timeout, 10.0), read=timeout),
            retries=urllib3.Retry(
                total=None, connect=connect_retries, read=1, redirect=0, status=0, other=0, backoff_factor=0.2,
                allowed_methods=("GET", "HEAD"), raise_on_redirect=False, raise_on_status=False,
            ),
            cert_reqs="CERT_NONE" if insecure else "CERT_REQUIRED",
            ca_certs=cafile,
            cert_file=certfile,
            key_file=keyfile,
        )  # fmt: skip

    def send(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> Answer:
        _no_transaction()
        try:
            response = self._pool.request(method, url, body=body, headers=headers, redirect=False)
            return response.status, _lowered(response.headers.iteritems()), response.data
        except self._failures as error:
            raise NoAnswer(str(error)) from error

    def open(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> StreamedAnswer:
        _no_transaction()
        try:
            response = self._pool.request(
                method, url, body=body, headers=headers, redirect=False, preload_content=False
            )
        except self._failures as error:
            raise NoAnswer(str(error)) from error
        return response.status, _lowered(response.headers.iteritems()), self._read(response)

    def _read(self, response: Any) -> Iterator[bytes]:
        try:
            yield from response.stream(1 << 16)
        except self._failures as error:
            raise NoAnswer(str(error)) from error
        finally:
            response.release_conn()


def socket_transport(options: Any) -> SocketTransport:
    """A socket transport with the timeout and TLS options of a client's group (`conf.neutron` …)."""
    return SocketTransport(
        timeout=options.timeout or 60.0,
        cafile=options.cafile,
        certfile=options.certfile,
        keyfile=options.keyfile,
        insecure=options.insecure,
    )


class RoutedTransport:
    """By address: URLs that begin with one of the local prefixes stay in the process, the others go out."""

    def __init__(self, local: Mapping[str, Transport], remote: Transport | None) -> None:
        self._local = tuple(sorted(((key.rstrip("/"), value) for key, value in local.items()), key=_longest))
        self._remote = remote

    def _choose(self, url: str) -> Transport:
        for prefix, transport in self._local:
            if url.startswith(prefix) and url[len(prefix) : len(prefix) + 1] in ("", "/", "?"):
                return transport
        if self._remote is None:
            raise NoAnswer("the address is not one of this process, and it is set up to call no other")
        return self._remote

    def send(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> Answer:
        return self._choose(url).send(method, url, headers, body)

    def open(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> StreamedAnswer:
        return self._choose(url).open(method, url, headers, body)


def _longest(row: tuple[str, Transport]) -> tuple[int, str]:
    return (-len(row[0]), row[0])

"""A service's WSGI application: the rows compiled, and one request through the checks in their fixed order.

Order (errors.md 2; size and token were checked by the middleware): authentication present, route, version,
content type, action name, JSON, project in the URL, operation at this version, query, body, look-up, policy, handler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl

from kilonova.core import json
from kilonova.core.context import Context
from kilonova.core.errors import Invalid, KilonovaError, NotFound, Unavailable
from kilonova.http import busy
from kilonova.http import versions as v
from kilonova.http.dialect import REASONS, Dialect, Fault, unauthorized
from kilonova.http.op import OPERATION, Answer, Op, Request
from kilonova.http.router import Place, Router
from kilonova.http.validate import Body, QueryReader

LOG = logging.getLogger(__name__)

IMPLICIT = frozenset((400, 401, 403, 404, 406, 413, 415, 501))
"""Statuses that every row may answer without saying so."""

StartResponse = Callable[..., Any]


class Policy(Protocol):
    """What the kit asks of a policy engine (`http.policy` has the real one)."""

    def allowed(self, rule: str, ctx: Context, target: dict[str, Any]) -> bool:
        """Whether the rule lets the caller act on the target."""
        ...

    def authorize(self, rule: str, ctx: Context, target: dict[str, Any]) -> None:
        """Forbidden, naming the rule, when it does not."""
        ...


class MalformedJson(Invalid):
    """The body is no JSON."""

    code, message = "malformed_json", "The request body is not valid JSON."


class NestedTooDeeply(Invalid):
    """The body has more levels than anything that is served."""

    code, message = "nested_too_deeply", "The request body is nested more than {most} levels deep."


class NullInQuery(Invalid):
    """A query parameter holds a null character."""

    code, message = "null_in_query", "The query parameter {name!r} may not hold a null character."


class NotTextInQuery(Invalid):
    """A query parameter holds bytes that are no text."""

    code, message = "not_text_in_query", "The query parameter {name!r} may hold only text in UTF-8, percent-encoded."


class MalformedAction(Invalid):
    """The body of an action is not an object with exactly one key."""

    code, message = "malformed_action", "The body of an action must be a JSON object with exactly one member."


class NoSuchAction(Invalid):
    """The action was never there."""

    code, message = "no_such_action", "There is no such action: {action}"


class WrongProject(Invalid):
    """The project in the URL is not the token's."""

    code, message = "wrong_project", "Malformed request URL: URL's project_id {url!r} doesn't match the token's."


class WrongMediaType(KilonovaError):
    """The body comes as something that is not read."""

    status, code, message = 415, "wrong_media_type", "The content type {given!r} is not supported."


class NoContentType(Invalid):
    """There is a body and nothing says what it is."""

    code, message = "no_content_type", "A content-type header required with a body."


class NotAtThisVersion(NotFound):
    """The operation exists, at other versions."""

    code, message = "not_at_this_version", "The resource could not be found."


class ServerFault(KilonovaError):
    """Something of ours is broken; told in a form that hides what."""

    status, code = 500, "internal"
    message = (
        "Unexpected API Error. Please report this with the request id to the administrator of the cloud."
        "\n<class '{name}'>"
    )


@dataclass(frozen=True, slots=True)
class Service:
    """A service as the kit sees it.

    project_in_path: `/{project_id}/…` may stand before every path. relaxed: legacy `/v2`, unknown keys are dropped.
    auth_uri: where tokens come from, for the 401. body_last: the body has to say what it is, and is looked at after
    everything else where the row has one: operation at this version, content type, policy, query, look-up, body.
    """

    name: str
    ops: tuple[Op, ...]
    world: Any
    dialect: Dialect
    versions: v.Versions | None = None
    policy: Policy | None = None
    project_in_path: bool = False
    relaxed: bool = False
    auth_uri: str = ""
    body_last: bool = False
    answer_headers: Callable[[Request, Any], tuple[tuple[str, str], ...]] | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A row at one version."""

    op: Op
    ok: int
    statuses: frozenset[int]
    body: Body | None
    query: QueryReader | None


@dataclass(slots=True)
class _Outcome:
    status: int
    headers: list[tuple[str, str]]
    body: bytes | Iterable[bytes]
    version_headers: tuple[tuple[str, str], ...] = field(default=())


class App:
    """The WSGI callable. SCRIPT_NAME is where it is mounted, `environ["kilonova.context"]` who asks."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.router = Router(service.ops)
        self._negotiator = v.Negotiator(service.versions) if service.versions else None
        self._ready: dict[tuple[int, v.Version | None], _Ready] = {}

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        outcome = self._answer(environ)
        headers = [*outcome.headers, *outcome.version_headers]
        if isinstance(outcome.body, bytes):
            headers.append(("Content-Length", str(len(outcome.body))))
            body: Iterable[bytes] = (outcome.body,) if environ["REQUEST_METHOD"] != "HEAD" else ()
        else:
            body = outcome.body
        start_response(f"{outcome.status} {REASONS.get(outcome.status, '')}", headers)
        return body

    # -- the checks in order ----------------------------------------------------------------------------------

    def _answer(self, environ: dict[str, Any]) -> _Outcome:
        request = Request(self, environ, environ.get("kilonova.context"))
        place, rows = self._route(request)
        if environ.get("kilonova.context") is None and all(op.auth for op in rows):
            return _outcome(unauthorized(environ, self.service.auth_uri))
        if place is None or not rows:
            allow = tuple(sorted(place.methods)) if place else ()
            return _outcome(self.service.dialect.unmatched(environ, allow))
        version_headers: tuple[tuple[str, str], ...] = ()
        try:
            if self._negotiator is not None and self.service.relaxed:
                request.version = self._negotiator.lowest  # legacy: version headers are neither read nor answered
            elif self._negotiator is not None:
                negotiated = self._negotiator.negotiate(environ)
                version_headers = negotiated.headers
                if negotiated.error is not None:
                    raise negotiated.error
                request.version = negotiated.version
            ready = self._choose(request, place, rows)
            outcome = self._run(request, ready)
        except KilonovaError as error:
            outcome = self._fault(request, error)
        except Exception as error:
            outcome = self._broken(request, error)
        outcome.version_headers = version_headers
        return outcome

    def _route(self, request: Request) -> tuple[Place | None, list[Op]]:
        environ = request.environ
        path = _decoded(environ.get("PATH_INFO", ""))
        if "\0" in path:
            return None, []  # no name has one, and PostgreSQL refuses to look for it
        segments = path.split("/")[1:]
        found = self.router.find(segments)
        if found is None and self.service.project_in_path and len(segments) > 1 and _project_like(segments[0]):
            found = self.router.find(segments[1:])
            request.project_in_url = segments[0] if found else ""
        if found is None:
            return None, []
        place, values = found
        rows = place.methods.get(environ["REQUEST_METHOD"], [])
        if rows:
            request.path = dict(zip(place.names[id(rows[0])], values, strict=True))
            request.op = rows[0]
            environ[OPERATION] = f"{rows[0].method} {rows[0].path or '/'}"
        return place, rows

    def _choose(self, request: Request, place: Place, rows: list[Op]) -> _Ready:
        late = self.service.body_last
        if late:
            _says_what_it_is(request.environ)
        document = _NOTHING if late else self._document(request, rows[0])
        if rows[0].action is not None:
            rows = _by_action(rows, document)
            request.environ[OPERATION] += f" {rows[0].action}"
        url_project = request.project_in_url
        if url_project and environ_has_context(request) and url_project != request.ctx.project_id:
            raise WrongProject(url=url_project)
        op = next((row for row in rows if request.version is None or request.version in row.range), None)
        if op is None:
            raise NotAtThisVersion
        request.op = op
        ready = self._at(op, request.version)
        if late:
            if ready.body is not None:
                self._check_content_type(request.environ)
            _authorize(request)
        _read_query(request, ready)
        if late:
            _look_up(request)
            document = self._document(request, op) if ready.body is not None else _NOTHING
        if ready.body is not None:
            plain: Any = None if document is _NOTHING else document
            request.body = ready.body.read(plain[op.action] if op.action is not None else plain)
        elif document is not _NOTHING:
            request.body = document[op.action] if op.action is not None else document
        return ready

    def _document(self, request: Request, op: Op) -> Any:
        if op.stream:
            return _NOTHING
        environ = request.environ
        length = environ.get("CONTENT_LENGTH")
        data: bytes = environ["wsgi.input"].read(int(length)) if length else b""
        if data and environ.get("CONTENT_TYPE") and not self.service.body_last:
            self._check_content_type(environ)
        return _parse(data) if data or op.action is not None else _NOTHING

    def _check_content_type(self, environ: dict[str, Any]) -> None:
        given = environ.get("CONTENT_TYPE") or None
        if (given or "").partition(";")[0].strip().lower() not in self.service.dialect.media_types:
            raise WrongMediaType(given=given)

    def _at(self, op: Op, version: v.Version | None) -> _Ready:
        ready = self._ready.get((id(op), version))
        if ready is None:
            kind = v.at(op.body, version)
            errors: frozenset[int] = frozenset(_statuses(op, version))
            ok = v.at(op.ok, version)
            ready = _Ready(
                op, ok, errors | IMPLICIT | {ok} | frozenset(op.faults.values()),
                Body(kind, version, relaxed=self.service.relaxed) if kind is not None else None,
                QueryReader(op.query, version) if op.query is not None else None,
            )  # fmt: skip
            self._ready[id(op), version] = ready
        return ready

    def _run(self, request: Request, ready: _Ready) -> _Outcome:
        op = ready.op
        if not self.service.body_last:
            _authorize(request)
            _look_up(request)
        result = op.handler(request)
        answer = result if isinstance(result, Answer) else Answer(result)
        status = answer.status or ready.ok
        headers = list(answer.headers)
        if self.service.answer_headers is not None:
            headers.extend(self.service.answer_headers(request, answer))
        return _Outcome(status, headers, _encode(answer, status, headers))

    # -- what goes wrong ----------------------------------------------------------------------------------------

    def _fault(self, request: Request, error: KilonovaError) -> _Outcome:
        op = request.op
        status = next((code for kind, code in op.faults.items() if isinstance(error, kind)), error.status)
        text = error.text
        if isinstance(error, Unavailable) and status not in self._allowed_statuses(request):
            status = 500  # a service behind us is away: the contract knows no 503, the words still say what is wrong
            LOG.error("%s %s failed: %s", op.method, op.path, text)
            return _outcome(self.service.dialect.fault(status, text, request.environ, error))
        if status not in self._allowed_statuses(request) and not isinstance(error, v.VersionUnsupported):
            LOG.error("%s %s answered %s, which its row does not declare: %s", op.method, op.path, status, text,
                      exc_info=error)  # fmt: skip
            return _outcome(self._server_fault(request, error))
        if status >= 500 and status != 501:  # 501 is an answer: a driver or a release does not do this
            LOG.error("%s %s failed: %s", op.method, op.path, text)
        return _outcome(self.service.dialect.fault(status, text, request.environ, error))

    def _allowed_statuses(self, request: Request) -> frozenset[int]:
        try:
            return self._at(request.op, request.version).statuses
        except Exception:
            return IMPLICIT

    def _broken(self, request: Request, error: Exception) -> _Outcome:
        away = busy.database_busy(error, f"{request.op.method} {request.op.path}")
        if away is not None:
            status, headers, body = self.service.dialect.fault(away.status, away.text, request.environ, away)
            return _outcome((status, (*headers, *busy.RETRY_AFTER), body))
        LOG.exception("Unexpected exception in %s %s", request.op.method, request.op.path)
        return _outcome(self._server_fault(request, error))

    def _server_fault(self, request: Request, error: Exception) -> Fault:
        fault = ServerFault(name=type(error).__name__)
        return self.service.dialect.fault(500, fault.text, request.environ, fault)


_NOTHING: Any = object()


def _outcome(fault: Fault) -> _Outcome:
    status, headers, body = fault
    return _Outcome(status, list(headers), body)


def _says_what_it_is(environ: dict[str, Any]) -> None:
    if environ.get("CONTENT_LENGTH", "0") not in ("", "0") and not environ.get("CONTENT_TYPE"):
        raise NoContentType


def _read_query(request: Request, ready: _Ready) -> None:
    text = request.environ.get("QUERY_STRING", "")
    if "%00" in text or "\0" in text:
        raise NullInQuery(name=_holder("\0", text))
    if ready.query is not None:
        values: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise NotTextInQuery(name=_holder("\ufffd", text)) from None
        for name, value in pairs:
            values.setdefault(name, []).append(value)
        request.query = ready.query.read(values)


def _holder(char: str, query: str) -> str:
    """The name of the parameter with this character in it."""
    return next((name for name, value in parse_qsl(query, keep_blank_values=True) if char in name + value), "")


def _authorize(request: Request) -> None:
    """Where the rule does not depend on what is looked up."""
    op = request.op
    if op.policy and (op.policy_first or op.target is None):
        request.authorize(op.policy)


def _look_up(request: Request) -> None:
    op = request.op
    if op.target is not None:
        request.target = op.target(request)
        if op.policy and not op.policy_first:
            request.authorize(op.policy, request.target)


def environ_has_context(request: Request) -> bool:
    """Whether somebody known is asking (rows with auth=False are open to nobody in particular)."""
    return request.environ.get("kilonova.context") is not None


def _statuses(op: Op, version: v.Version | None) -> tuple[int, ...]:
    return op.errors.at(version) if isinstance(op.errors, v.Since) else op.errors


def _decoded(path: str) -> str:
    """The path as text: WSGI hands its UTF-8 bytes over as Latin-1 (PEP 3333)."""
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")


def _project_like(segment: str) -> bool:
    return bool(segment) and all(char in "0123456789abcdef-" for char in segment)


_DEEPEST = 50  # levels of a body; no operation needs ten, and walking very deep ones would end the stack


def _parse(data: bytes) -> Any:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise MalformedJson from None
    if data.count(b"[") + data.count(b"{") > _DEEPEST and _is_deep(document):
        raise NestedTooDeeply(most=_DEEPEST)
    return document


def _is_deep(document: Any) -> bool:
    level = [document]
    for _ in range(_DEEPEST):
        inner = [value.values() if isinstance(value, dict) else value for value in level
                 if isinstance(value, dict | list)]  # fmt: skip
        level = [value for values in inner for value in values]
    return bool(level)


def _by_action(rows: list[Op], document: Any) -> list[Op]:
    if not isinstance(document, dict) or len(document) != 1:
        raise MalformedAction
    action = next(iter(document))
    found = [row for row in rows if row.action == action]
    if not found:
        raise NoSuchAction(action=action)
    return found


def _encode(answer: Answer, status: int, headers: list[tuple[str, str]]) -> bytes | Iterable[bytes]:
    body = answer.body
    if body is None:
        if answer.content_type:
            headers.append(("Content-Type", answer.content_type))
        elif answer.content_type is None and status not in (204, 304):
            headers.append(("Content-Type", "application/json"))
        return b""
    if isinstance(body, bytes) or not isinstance(body, dict | list):
        headers.append(("Content-Type", answer.content_type or "application/json"))
        return body
    headers.append(("Content-Type", answer.content_type or "application/json"))
    return json.dumps(body)


def mount(apps: dict[str, Callable[..., Iterable[bytes]]], fallback: Callable[..., Iterable[bytes]]) -> Any:
    """A WSGI callable that hands `/<name>/…` to `apps[name]`, with the prefix moved to SCRIPT_NAME."""

    def dispatch(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        name, _, rest = path[1:].partition("/")
        app = apps.get(name)
        if app is None:
            return fallback(environ, start_response)
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + "/" + name
        environ["PATH_INFO"] = "/" + rest if len(path) > len(name) + 1 else ""
        return app(environ, start_response)

    return dispatch

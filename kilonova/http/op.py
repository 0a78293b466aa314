"""The operation row, and what a handler is given and gives back.

From the rows derive routing, validation, policy check, microversion range, headers, OpenAPI, reference pages and the
contract test. A row holds literals, function names and `Since`; a row that wants an `if` becomes a named function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kilonova.core.context import Context
from kilonova.core.errors import KilonovaError
from kilonova.http.fields import Query, Type
from kilonova.http.versions import ALWAYS, Since, Span, Version, between, span

if TYPE_CHECKING:
    from kilonova.http.app import App

Headers = tuple[tuple[str, str], ...]

OPERATION, SAID = "kilonova.operation", "kilonova.said"
"""Where the environment has the operation's method and path, and what handlers say for the access line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler answers when a plain document is not enough.

    body: a document, bytes, an iterator of bytes, or None. status: in place of the row's. content_type: an empty
    string for an answer without a body that has none.
    """

    body: Any = None
    status: int | None = None
    headers: Headers = ()
    content_type: str | None = None


Handler = Callable[["Request"], Any]


@dataclass(frozen=True, slots=True)
class Op:
    """One operation.

    policy: the rule that is checked before the handler runs, with the looked-up `target`'s project (or the caller's
    own without one). also: further rules the handler or view may ask. target: finds what the operation acts on;
    raises a domain error. policy_first: check the policy before the look-up. errors: the statuses it may answer
    besides the implicit ones. faults: a status for an error class that is not the kind's own. flags: named
    behaviours with the range in which they hold. auth=False: open to everybody. stream: the body is not read.
    """

    method: str
    path: str
    handler: Handler
    policy: str | None = None
    also: tuple[str, ...] = ()
    target: Handler | None = None
    policy_first: bool = False
    body: Type | Since[Type | None] | None = None
    query: Query | None = None
    ok: int | Since[int] = 200
    errors: tuple[int, ...] | Since[tuple[int, ...]] = ()
    since: str | None = None
    until: str | None = None
    when: str | None = None
    action: str | None = None
    faults: Mapping[type[KilonovaError], int] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    auth: bool = True
    stream: bool = False
    summary: str = ""

    @property
    def range(self) -> Span:
        """The versions that know the operation."""
        if self.when:
            return span(self.when)
        return ALWAYS if self.since is None and self.until is None else between(self.since, self.until)


class Request:
    """A request on its way through an operation."""

    __slots__ = (
        "_answers", "_base_url", "app", "body", "ctx", "environ", "op", "path", "project_in_url", "query", "relaxed",
        "target", "version",
    )  # fmt: skip

    def __init__(self, app: App, environ: dict[str, Any], ctx: Context | None) -> None:
        self.app = app
        self.environ = environ
        self.ctx: Context = ctx  # type: ignore[assignment]  # None only where the row has auth=False
        self.op: Op = None  # type: ignore[assignment]  # set before any handler runs
        self.path: dict[str, str] = {}
        self.query: dict[str, Any] = {}
        self.body: Any = None
        self.version: Version | None = None
        self.target: Any = None
        self.project_in_url = ""
        self.relaxed = app.service.relaxed
        self._base_url = ""
        self._answers: dict[tuple[str, Any, Any], bool] = {}

    @property
    def world(self) -> Any:
        """What the application was built with: use cases, databases, clients."""
        return self.app.service.world

    def flag(self, name: str) -> bool:
        """Whether a named behaviour of the row holds at this version."""
        return self.version is None or self.version in span(self.op.flags[name])

    def header(self, name: str) -> str | None:
        """A request header."""
        key = name.upper().replace("-", "_")
        found: str | None = self.environ.get(key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + key)
        return found

    def say(self, **fields: object) -> None:
        """Put further fields into the request's access line."""
        self.environ.setdefault(SAID, {}).update(fields)

    @property
    def stream(self) -> Any:
        """The body as a file, for rows with stream=True."""
        return self.environ["wsgi.input"]

    def allowed(self, rule: str, target: Any = None) -> bool:
        """Whether the policy lets the caller do this; the caller's own project is the target when none is given."""
        policy = self.app.service.policy
        if policy is None:
            return True
        fields = self.policy_target(target)
        asked = (rule, fields["project_id"], fields["user_id"])
        known = self._answers.get(asked)  # a list asks the same of each of its objects
        if known is None:
            known = self._answers[asked] = bool(policy.allowed(rule, self.ctx, fields))
        return known

    def authorize(self, rule: str, target: Any = None) -> None:
        """Raise Forbidden, naming the rule, unless the policy lets the caller do this."""
        policy = self.app.service.policy
        if policy is not None:
            policy.authorize(rule, self.ctx, self.policy_target(target))

    def policy_target(self, target: Any) -> dict[str, Any]:
        """The fields of a target that rules look at."""
        if target is None:
            return {"project_id": self.ctx.project_id, "user_id": self.ctx.user_id}
        if isinstance(target, Mapping):
            return {"project_id": target.get("project_id"), "user_id": target.get("user_id")}
        return {"project_id": getattr(target, "project_id", None), "user_id": getattr(target, "user_id", None)}

    # -- addresses ------------------------------------------------------------------------------------------

    @property
    def host_url(self) -> str:
        """`scheme://host[:port]`."""
        environ = self.environ
        return f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST') or environ['SERVER_NAME']}"

    @property
    def base_url(self) -> str:
        """`scheme://host/prefix` of the application, without a slash at the end."""
        if not self._base_url:
            self._base_url = self.host_url + str(self.environ.get("SCRIPT_NAME", ""))
        return self._base_url

    @property
    def path_info(self) -> str:
        """The path below `base_url`."""
        return str(self.environ.get("PATH_INFO", ""))

    @property
    def collection_url(self) -> str:
        """`base_url` with the project's segment where the request had one."""
        return self.base_url + (f"/{self.project_in_url}" if self.project_in_url else "")


def all_rules(ops: Iterable[Op]) -> set[str]:
    """Every policy rule that some rows name."""
    return {rule for op in ops for rule in (op.policy, *op.also) if rule}

"""Who may do what: oslo.policy's rules and files, its checks compiled to closures.

oslo.policy parses the defaults and the operator's files and says what a rule is; enforcing through it costs a hundred
times what the check itself does. So its check trees are compiled once, and again when a file changes. The scope check
is kept. Check classes that are not known here are called as oslo.policy calls them. It must not know any resource.
"""

from __future__ import annotations

import ast
import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oslo_policy import _checks, policy

from kilonova.core import clock, json
from kilonova.core.context import Context
from kilonova.core.errors import Forbidden

LOG = logging.getLogger(__name__)

RELOAD_SECONDS = 5.0

Target = Mapping[str, Any]
Compiled = Callable[[Context, Target], bool]

_REASON = "The default now tells readers, members, managers and administrators of a project apart."


class PolicyForbids(Forbidden):
    code, message = "policy_forbids", "Policy doesn't allow {rule} to be performed."


class RuleNotRegistered(LookupError):
    """A rule that no row declares was asked for: a mistake in the program."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as its default stands. deprecated: the (name, default, since) it had before."""

    name: str
    default: str
    scopes: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    deprecated: tuple[str, str, str] | None = None
    deprecated_for_removal: bool = False


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a JSON file of rows with the fields of Rule."""
    return tuple(
        Rule(
            row["name"],
            row["default"],
            tuple(row.get("scopes", ())),
            tuple(row.get("operations", ())),
            tuple(row["deprecated"]) if "deprecated" in row else None,
            row.get("deprecated_for_removal", False),
        )
        for row in json.loads(path.read_bytes())
    )


def compute_rules() -> tuple[Rule, ...]:
    """The 214 rules of Compute."""
    return read_rules(Path(__file__).with_name("compute_policies.json"))


class Policy:
    """The rules of one application. Threads may share it.

    `conf` has `[oslo_policy]`; `policy_file` is used in the place of its option of that name. administrators: the rule
    that says who is one. Raises ValueError when a policy file cannot be read at start; a file that breaks later is
    logged and the rules stay as they were.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        conf: Any,
        *,
        policy_file: str | None = None,
        administrators: str = "context_is_admin",
    ) -> None:
        self._administrators = administrators
        self.enforcer = policy.Enforcer(conf, policy_file=policy_file)
        self.enforcer.suppress_default_change_warnings = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.enforcer.register_defaults([_default(rule) for rule in rules])
        self._lock = threading.Lock()
        self._compiled: dict[str, Compiled] = {}
        self._seen: Any = None
        self._next_check = 0.0
        self._load()

    def allowed(self, rule: str, ctx: Context, target: Target | None = None) -> bool:
        """Whether the rule lets `ctx` do it to `target` (default: the caller's own project and user)."""
        check = self._compiled.get(rule)
        if check is None:
            raise RuleNotRegistered(rule)
        if target is None:
            target = {"project_id": ctx.project_id, "user_id": ctx.user_id}
        return check(ctx, target)

    def authorize(self, rule: str, ctx: Context, target: Target | None = None) -> None:
        """PolicyForbids, naming the rule, unless it is allowed."""
        if not self.allowed(rule, ctx, target):
            raise PolicyForbids(rule=rule)

    def is_admin(self, ctx: Context) -> bool:
        """Whether the caller is an administrator; called once a request, so here changed files are looked for."""
        if clock.monotonic() >= self._next_check:
            self.refresh()
        return self.allowed(self._administrators, ctx)

    def refresh(self) -> None:
        """Read policy files that have changed."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._next_check = clock.monotonic() + RELOAD_SECONDS
            self._load()
        except Exception:
            LOG.exception("The policy files could not be read; the rules stay as they were")
        finally:
            self._lock.release()

    def _load(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.enforcer.load_rules()
        snapshot = {name: str(check) for name, check in self.enforcer.rules.items()}
        if snapshot != self._seen:
            self._compiled = _Compiler(self.enforcer).compile_all()
            self._seen = snapshot
        self._next_check = clock.monotonic() + RELOAD_SECONDS


def _default(rule: Rule) -> policy.RuleDefault:
    deprecated = None
    if rule.deprecated is not None:
        name, check, since = rule.deprecated
        deprecated = policy.DeprecatedRule(name, check, deprecated_reason=_REASON, deprecated_since=since)
    return policy.RuleDefault(
        rule.name,
        rule.default,
        description=", ".join(rule.operations) or f"Base rule {rule.name}",
        deprecated_rule=deprecated,
        scope_types=list(rule.scopes) or None,
        **(
            {"deprecated_for_removal": True, "deprecated_reason": _REASON, "deprecated_since": "21.0.0"}
            if rule.deprecated_for_removal
            else {}
        ),
    )


def _yes(ctx: Context, target: Target) -> bool:
    return True


def _no(ctx: Context, target: Target) -> bool:
    return False


# What a check may name of the caller, and the context attribute that holds it.
_CREDENTIALS = {
    "user_id": "user_id", "user_domain_id": "user_domain_id", "system_scope": "system_scope", "domain_id": "domain_id",
    "project_id": "project_id", "project_domain_id": "project_domain_id", "is_admin_project": "is_admin_project",
    "is_admin": "is_admin", "service_user_id": "service_user_id", "service_user_domain_id": "service_user_domain_id",
    "service_project_id": "service_project_id", "service_project_domain_id": "service_project_domain_id",
}  # fmt: skip


def credentials(ctx: Context) -> dict[str, Any]:
    """The caller as oslo.policy's own checks want it."""
    values = {name: getattr(ctx, attribute) for name, attribute in _CREDENTIALS.items()}
    values["roles"] = ctx.roles
    values["service_roles"] = ctx.service_roles
    if ctx.system_scope:
        values["system"] = ctx.system_scope
    return values


class _Compiler:
    """Turns the check trees of an enforcer into closures over (context, target)."""

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self._enforcer = enforcer
        self._rules = enforcer.rules
        self._done: dict[str, Compiled] = {}
        self._open: set[str] = set()

    def compile_all(self) -> dict[str, Compiled]:
        """Every registered rule and every rule of the files, with its scope check."""
        return {name: self._scoped(name, self._named(name)) for name in [*self._rules]}

    def _scoped(self, name: str, check: Compiled) -> Compiled:
        registered = self._enforcer.registered_rules.get(name)
        options = self._enforcer.conf.oslo_policy
        if registered is None or not registered.scope_types or not getattr(options, "enforce_scope", True):
            return check
        scopes = frozenset(registered.scope_types)

        def scoped(ctx: Context, target: Target) -> bool:
            scope = "system" if ctx.system_scope else "domain" if ctx.domain_id else "project"
            return scope in scopes and check(ctx, target)

        return scoped

    def _named(self, name: str) -> Compiled:
        if name in self._done:
            return self._done[name]
        if name in self._open:
            LOG.error("The policy rule %s refers to itself; it allows nobody", name)
            return _no
        self._open.add(name)
        compiled: Compiled = _no  # a rule that nobody defined allows nobody
        try:
            compiled = self._compile(self._rules[name], name)
        except KeyError:
            LOG.warning("The policy rule %s is referred to and not defined", name)
        self._open.discard(name)
        self._done[name] = compiled
        return compiled

    def _compile(self, check: Any, name: str) -> Compiled:
        kind = type(check)
        maker = _MAKERS.get(kind)
        if maker is not None:
            return maker(self, check, name)
        return self._original(check, name)

    def _original(self, check: Any, name: str) -> Compiled:
        enforcer = self._enforcer
        return lambda ctx, target: bool(_checks._check(check, target, credentials(ctx), enforcer, name))

    def _and(self, check: Any, name: str) -> Compiled:
        return _all([self._compile(inner, name) for inner in check.rules])

    def _or(self, check: Any, name: str) -> Compiled:
        return _any([self._compile(inner, name) for inner in check.rules])

    def _not(self, check: Any, name: str) -> Compiled:
        inner = self._compile(check.rule, name)
        return lambda ctx, target: not inner(ctx, target)

    def _rule(self, check: Any, name: str) -> Compiled:
        return self._named(check.match)

    def _role(self, check: Any, name: str) -> Compiled:
        if "%" in check.match:
            return self._original(check, name)
        wanted = check.match.lower()

        def has_role(ctx: Context, target: Target) -> bool:
            roles = ctx.roles
            return wanted in roles or any(wanted == role.lower() for role in roles)

        return has_role

    def _generic(self, check: Any, name: str) -> Compiled:
        attribute = _CREDENTIALS.get(check.kind)
        if attribute is None:
            return _constant(check) or self._original(check, name)
        match = check.match
        if "%" not in match:
            return lambda ctx, target: match == str(getattr(ctx, attribute))
        key = match[2:-2]
        if match != f"%({key})s" or "%" in key:
            return self._original(check, name)

        def equal(ctx: Context, target: Target) -> bool:
            try:
                return str(target[key]) == str(getattr(ctx, attribute))
            except KeyError:
                return False

        return equal


def _constant(check: Any) -> Compiled | None:
    """A comparison of a literal with the target, such as `True:%(shared)s`; None where it is none."""
    try:
        literal = str(ast.literal_eval(check.kind))
    except (ValueError, SyntaxError):
        return None

    def compare(ctx: Context, target: Target) -> bool:
        try:
            return bool(check.match % target == literal)
        except KeyError:
            return False

    return compare


def _all(checks: list[Compiled]) -> Compiled:
    if len(checks) == 2:
        first, second = checks
        return lambda ctx, target: first(ctx, target) and second(ctx, target)
    return lambda ctx, target: all(check(ctx, target) for check in checks)


def _any(checks: list[Compiled]) -> Compiled:
    if len(checks) == 2:
        first, second = checks
        return lambda ctx, target: first(ctx, target) or second(ctx, target)
    return lambda ctx, target: any(check(ctx, target) for check in checks)


_MAKERS: dict[type, Callable[[_Compiler, Any, str], Compiled]] = {
    _checks.TrueCheck: lambda compiler, check, name: _yes,
    _checks.FalseCheck: lambda compiler, check, name: _no,
    _checks.AndCheck: _Compiler._and,
    _checks.OrCheck: _Compiler._or,
    _checks.NotCheck: _Compiler._not,
    _checks.RuleCheck: _Compiler._rule,
    _checks.RoleCheck: _Compiler._role,
    _checks.GenericCheck: _Compiler._generic,
}

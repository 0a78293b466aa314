"""Compiled rules answer what oslo.policy answers, follow the operator's files, and name themselves when they forbid."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.core import clock
from kilonova.core.context import Context
from kilonova.http.policy import (
    RELOAD_SECONDS,
    Policy,
    PolicyForbids,
    Rule,
    RuleNotRegistered,
    compute_rules,
    credentials,
)

SCOPES: dict[str, dict[str, Any]] = {
    "project": {"project_id": "p1"},
    "system": {"system_scope": "all"},
    "domain": {"domain_id": "d1"},
}
PERSONAS: tuple[tuple[str, ...], ...] = (
    (), ("reader",), ("member", "reader"), ("Manager", "member", "reader"), ("admin", "manager", "member", "reader"),
    ("service",),
)  # fmt: skip
TARGETS: tuple[dict[str, Any], ...] = (
    {"project_id": "p1", "user_id": "u1"}, {"project_id": "p2", "user_id": "u2"}, {"project_id": None}, {},
)  # fmt: skip


def contexts() -> list[Context]:
    """Every persona in every scope, and each as an administrator by flag."""
    return [
        Context(user_id="u1", roles=list(roles), is_admin=flag, overwrite=False, **scope)
        for roles, scope, flag in itertools.product(PERSONAS, SCOPES.values(), (False, True))
    ]


def policy_of(tmp_path: Path, text: str = "", rules: tuple[Rule, ...] | None = None, **options: Any) -> Policy:
    """A policy whose file has this text."""
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    conf = load(warn=False)
    policy = Policy((), conf)  # registers [oslo_policy]
    for name, value in options.items():
        conf.set_override(name, value, "oslo_policy")
    del policy
    return Policy(compute_rules() if rules is None else rules, conf, policy_file=str(path))


def assert_equal_to_oslo(policy: Policy, names: list[str]) -> set[bool]:
    """Compare on every caller and target; the answers that occurred."""
    occurred = set()
    policy.enforcer.load_rules = lambda force_reload=False: None
    for ctx in contexts():
        for target in TARGETS:
            for name in names:
                expected = bool(policy.enforcer.enforce(name, target, credentials(ctx)))
                assert policy.allowed(name, ctx, target) is expected, (name, ctx.to_message(), target)
                occurred.add(expected)
    return occurred


def one_of_each_kind() -> list[str]:
    """A rule for each different pair of default and deprecated default: the others are the same trees."""
    return list({(rule.default, rule.deprecated and rule.deprecated[1], rule.scopes): rule.name
                 for rule in compute_rules()}.values())  # fmt: skip


def test_there_are_all_rules_of_the_contract() -> None:
    rules = compute_rules()
    assert len(rules) == len({rule.name for rule in rules}) == 214


def test_every_rule_answers_as_oslo_policy_does_for_every_caller(tmp_path: Path) -> None:
    assert assert_equal_to_oslo(policy_of(tmp_path), [rule.name for rule in compute_rules()]) == {True, False}


def test_old_defaults_answer_as_oslo_policy_does_where_they_are_still_allowed(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, enforce_new_defaults=False)
    assert assert_equal_to_oslo(policy, one_of_each_kind()) == {True, False}


ODD = """
"a": "not role:reader"
"b": "role:%(wanted)s"
"c": "project_id:p1"
"d": "'p1':%(project_id)s"
"e": "True:%(project_id)s"
"f": "rule:nowhere"
"g": "role:reader and (role:member or not user_id:%(user_id)s)"
"h": "user.nested:x"
"i": "roles:member"
"j": "project_id:prefix-%(project_id)s"
"k": "role:MEMBER and role:reader and project_id:%(project_id)s"
"l": "@"
"m": "!"
"n": ""
"o": "domain_id:%(domain_id)s or system_scope:all or role:service"
"p": "None:%(project_id)s"
"q": "is_admin:True"
"r": "project_id:%(target.project.id)s"
"s": "project_id:%%(project_id)s"
"""


def test_compiled_rules_of_every_shape_answer_as_oslo_policy_does(tmp_path: Path) -> None:
    rules = tuple(Rule(name, "!") for name in "abcdefghijklmnopqrs")
    policy = policy_of(tmp_path, ODD, rules)
    assert assert_equal_to_oslo(policy, list("abcdefghijklmnopqrs")) == {True, False}


def test_a_rule_that_refers_to_itself_allows_nobody(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, '"x": "rule:y"\n"y": "rule:x"\n', (Rule("x", "@"),))
    assert policy.allowed("x", contexts()[0], {}) is False


def test_a_default_target_is_the_callers_own_project(tmp_path: Path) -> None:
    member = Context(user_id="u", project_id="p", roles=["member"], overwrite=False)
    policy = policy_of(tmp_path)
    assert policy.allowed("os_compute_api:servers:create", member) is True
    assert policy.allowed("os_compute_api:servers:create", member, {"project_id": "other"}) is False


def test_the_refusal_names_the_rule(tmp_path: Path) -> None:
    nobody = Context(user_id="u", project_id="p", overwrite=False)
    with pytest.raises(PolicyForbids, match=r"^Policy doesn't allow os_compute_api:servers:create to be performed\.$"):
        policy_of(tmp_path).authorize("os_compute_api:servers:create", nobody)


def test_a_rule_nobody_declared_is_a_mistake_not_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(RuleNotRegistered):
        policy_of(tmp_path).allowed("os_compute_api:no-such-thing", contexts()[0])


def test_an_administrator_is_who_the_rule_says(tmp_path: Path) -> None:
    admin, boss = (Context(user_id="u", project_id="p", roles=[role], overwrite=False) for role in ("admin", "boss"))
    assert [policy_of(tmp_path).is_admin(ctx) for ctx in (admin, boss)] == [True, False]
    changed = policy_of(tmp_path, '"context_is_admin": "role:boss"\n')
    assert [changed.is_admin(ctx) for ctx in (admin, boss)] == [False, True]


class Later(clock.SystemClock):
    offset = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.offset


@pytest.fixture
def later() -> Any:
    moved = Later()
    before = clock.install(moved)
    yield moved
    clock.install(before)


def rewrite(path: Path, text: str) -> None:
    """Write with a time of change that is seen however coarse the file system's clock is."""
    path.write_text(text)
    changed = path.stat().st_mtime + 10
    os.utime(path, (changed, changed))


def test_a_changed_file_counts_after_five_seconds(tmp_path: Path, later: Later) -> None:
    policy = policy_of(tmp_path, '"os_compute_api:servers:create": "@"\n')
    nobody = Context(user_id="u", project_id="p", overwrite=False)
    assert policy.allowed("os_compute_api:servers:create", nobody) is True
    rewrite(tmp_path / "policy.yaml", '"os_compute_api:servers:create": "!"\n')
    policy.is_admin(nobody)
    assert policy.allowed("os_compute_api:servers:create", nobody) is True
    later.offset = RELOAD_SECONDS + 1
    policy.is_admin(nobody)
    assert policy.allowed("os_compute_api:servers:create", nobody) is False


def test_a_file_that_breaks_leaves_the_rules_as_they_were(tmp_path: Path, later: Later) -> None:
    policy = policy_of(tmp_path, '"os_compute_api:servers:create": "!"\n')
    rewrite(tmp_path / "policy.yaml", '"os_compute_api: [unfinished\n')
    later.offset = RELOAD_SECONDS + 1
    admin = Context(user_id="u", project_id="p", roles=["admin"], overwrite=False)
    assert policy.is_admin(admin) is True
    assert policy.allowed("os_compute_api:servers:create", admin) is False


def test_a_file_that_is_broken_at_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        policy_of(tmp_path, '"os_compute_api: [unfinished\n')

"""Who may do what: a rule per operation, for the roles admin and service (placement-facts §11).

The names stand in the rows of operations. With the old defaults (`[oslo_policy]enforce_new_defaults` off) whoever the
rule `admin_api` admits may do everything as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kilonova.http.op import Op
from kilonova.http.policy import Policy, Rule

USAGES = "placement:usages"
RESHAPE = "placement:reshaper:reshape"
ADMINISTRATORS = "admin_api"

_ANYBODY = "rule:admin_or_service_api"
_DEFAULTS = {USAGES: "rule:admin_or_project_reader_or_service_api", RESHAPE: "rule:service_api"}
_PROJECT = ("project",)
_BEFORE = (f"rule:{ADMINISTRATORS}", "role:admin", "5.0.0")

_SHARED = (
    Rule(ADMINISTRATORS, "role:admin", _PROJECT),
    Rule("service_api", "role:service", _PROJECT, deprecated=_BEFORE),
    Rule("admin_or_service_api", "role:admin or role:service", _PROJECT, deprecated=_BEFORE),
    Rule("project_reader_api", "role:reader and project_id:%(project_id)s", deprecated=_BEFORE),
    Rule(
        "admin_or_project_reader_or_service_api", "role:admin or rule:project_reader_api or role:service", _PROJECT,
        deprecated=_BEFORE,
    ),
)  # fmt: skip


def rules(ops: Iterable[Op]) -> tuple[Rule, ...]:
    """The rules of these operations, and those they share."""
    named: dict[str, list[str]] = {}
    for op in ops:
        if op.policy:
            named.setdefault(op.policy, []).append(f"{op.method} {op.path}")
    return _SHARED + tuple(
        Rule(name, _DEFAULTS.get(name, _ANYBODY), _PROJECT, tuple(dict.fromkeys(operations)))
        for name, operations in sorted(named.items())
    )


def make_policy(ops: Iterable[Op], conf: Any) -> Policy:
    """The policy of a service that has these operations. conf: of the application `placement`."""
    return Policy(rules(ops), conf, administrators=ADMINISTRATORS)

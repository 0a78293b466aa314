"""Who may ask the scheduler: administrators, by a rule per operation.

The rules may stand in the same policy file as Compute's: their names begin with `scheduler:`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kilonova.http.op import Op
from kilonova.http.policy import Policy, Rule

LIST: Final = "scheduler:decisions:index"
SHOW: Final = "scheduler:decisions:show"
SIMULATE: Final = "scheduler:simulate"
CAPACITY: Final = "scheduler:capacity"
RECORD: Final = "scheduler:recording"

_ADMIN: Final = "rule:context_is_admin"
_SHARED: Final = (Rule("context_is_admin", "role:admin"),)


def rules(ops: Iterable[Op]) -> tuple[Rule, ...]:
    """The rules of these operations, and the one they share."""
    return _SHARED + tuple(
        Rule(op.policy, _ADMIN, ("project",), (f"{op.method} {op.path}",)) for op in ops if op.policy
    )


def make_policy(ops: Iterable[Op], conf: Any) -> Policy:
    """The policy of a service that has these operations."""
    return Policy(rules(ops), conf)

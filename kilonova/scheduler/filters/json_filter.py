"""JsonFilter: a small language in the hint `query`, e.g. `["and", [">=", "$free_ram_mb", 1024], ["=", "$host", "a"]]`.

`$name.key` is what the host has under that path; what it has not, and empty strings, drop out of the arguments. The
comparisons hold of the first argument against each other one, and never of fewer than two. An empty array is true; an
array as the result is true when one element is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from kilonova.core import json
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.attributes import MISSING, value_at
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, fail

Arguments = Sequence[Any]
_MAX_DEPTH = 32


def _compare(test: Callable[[Any, Any], bool]) -> Callable[[Arguments], bool]:
    def holds(arguments: Arguments) -> bool:
        if len(arguments) < 2:
            return False
        try:
            return all(test(arguments[0], other) for other in arguments[1:])
        except TypeError:  # a number against a text
            return False

    return holds


_OPERATORS: dict[str, Callable[[Arguments], Any]] = {
    "=": _compare(operator.eq),
    "<": _compare(operator.lt),
    ">": _compare(operator.gt),
    "<=": _compare(operator.le),
    ">=": _compare(operator.ge),
    "in": lambda arguments: len(arguments) > 1 and arguments[0] in arguments[1:],
    "not": lambda arguments: [not argument for argument in arguments],
    "or": any,
    "and": all,
}


def _prepare(request: Request) -> Check | None:
    text = (request.spec.scheduler_hints.get("query") or [""])[0]
    if not text:
        return None
    try:
        query = json.loads(text)
    except ValueError:
        raise NoValidHost(reason="The hint query is not JSON in a string.") from None
    if not isinstance(query, list):
        raise NoValidHost(reason="The hint query is not a JSON array.")
    _check_operators(query, 0)
    verdict = fail("it does not satisfy the hint query")
    return lambda state: PASS if _true(_evaluate(query, state)) else verdict


def _check_operators(query: list[Any], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise NoValidHost(reason=f"The hint query is nested more than {_MAX_DEPTH} deep.")
    if query and (not isinstance(query[0], str) or query[0] not in _OPERATORS):
        raise NoValidHost(reason=f"The hint query has an unknown operator: {query[0]}.")
    for part in query[1:]:
        if isinstance(part, list):
            _check_operators(part, depth + 1)


def _evaluate(query: list[Any], state: HostState) -> Any:
    if not query:
        return True
    arguments = [_argument(part, state) for part in query[1:]]
    return _OPERATORS[query[0]]([value for value in arguments if value is not MISSING and value != ""])


def _argument(part: Any, state: HostState) -> Any:
    if isinstance(part, list):
        return _evaluate(part, state)
    if isinstance(part, str) and part.startswith("$"):
        value = value_at(state, part[1:].split("."))
        return MISSING if value is None else value
    return part


def _true(result: Any) -> bool:
    return any(result) if isinstance(result, list) else bool(result)


FILTER = Filter("JsonFilter", _prepare, once=False)

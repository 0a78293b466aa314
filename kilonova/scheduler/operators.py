"""The operators of extra specs: does a host's value satisfy a requirement? (scheduler facts, extra-spec operators)

The first word is the operator when it is a known one. A missing value never satisfies; a known operator without an
operand never does; only `<all-in>` and `<or>` read more than one operand.
"""

from __future__ import annotations

from collections.abc import Callable

Test = Callable[[str], bool]


def _number(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    def test(value: str, operand: str) -> bool:
        try:
            return compare(float(value), float(operand))
        except ValueError:
            return False

    return test


_COMPARE: dict[str, Callable[[str, str], bool]] = {
    "=": _number(lambda value, operand: value >= operand),  # a legacy spelling of "at least"
    "==": _number(lambda value, operand: value == operand),
    "!=": _number(lambda value, operand: value != operand),
    ">=": _number(lambda value, operand: value >= operand),
    "<=": _number(lambda value, operand: value <= operand),
    "s==": lambda value, operand: value == operand,
    "s!=": lambda value, operand: value != operand,
    "s<": lambda value, operand: value < operand,
    "s<=": lambda value, operand: value <= operand,
    "s>": lambda value, operand: value > operand,
    "s>=": lambda value, operand: value >= operand,
    "<in>": lambda value, operand: operand in value,
}


def compile_requirement(requirement: str) -> Test:
    """The test that a host's value, as text, has to pass."""
    words = requirement.split()
    operator = words[0] if words else ""
    operands = words[1:]
    if operator == "<or>":
        wanted = frozenset(operands[0::2])
        return lambda value: value in wanted
    if operator == "<all-in>":
        return lambda value: bool(operands) and all(word in value for word in operands)
    compare = _COMPARE.get(operator)
    if compare is None:
        return lambda value: value == requirement
    if not operands:
        return lambda value: False
    return lambda value: compare(value, operands[0])


def satisfies(value: str | None, requirement: str) -> bool:
    """Whether `value` satisfies `requirement`; None never does."""
    return value is not None and compile_requirement(requirement)(value)

"""Extra-spec operators: every row of the table of operators, at and beside its edge."""

from __future__ import annotations

import pytest

from kilonova.scheduler.operators import satisfies


@pytest.mark.parametrize(
    ("value", "requirement", "expected"),
    [
        ("x86", "x86", True),
        ("x86", "x8", False),
        ("two words", "two words", True),
        ("123", "= 123", True),
        ("124", "= 123", True),  # a single = is "at least"
        ("122", "= 123", False),
        ("123.0", "== 123", True),
        ("124", "== 123", False),
        ("124", "!= 123", True),
        ("123", "!= 123", False),
        ("123", ">= 123", True),
        ("122.9", ">= 123", False),
        ("123", "<= 123", True),
        ("123.1", "<= 123", False),
        ("many", ">= 123", False),
        ("5", ">= many", False),
        ("b", "s== b", True),
        ("b", "s!= b", False),
        ("a", "s< b", True),
        ("b", "s< b", False),
        ("b", "s<= b", True),
        ("c", "s> b", True),
        ("b", "s>= b", True),
        ("9", "s> 10", True),  # as text
        ("avx2 aes", "<in> aes", True),
        ("avx2", "<in> aes", False),
        ("avx2 aes sse", "<all-in> aes sse", True),
        ("avx2 aes", "<all-in> aes sse", False),
        ("b", "<or> a <or> b", True),
        ("ab", "<or> a <or> b", False),
        ("5", ">= 3 100", True),  # only the first operand counts
        ("5", ">=", False),
        ("5", "<in>", False),
        ("5", "<all-in>", False),
        ("", "<or>", False),
        (None, "x86", False),
        (None, "!= 3", False),
        (None, "s!= b", False),
        ("> 3", "> 3", True),  # there is no numeric > operator: the whole text is compared
        ("4", "> 3", False),
    ],
)
def test_a_value_satisfies_a_requirement(value: str | None, requirement: str, expected: bool) -> None:
    assert satisfies(value, requirement) is expected

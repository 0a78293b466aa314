"""Verdicts in groups: counts, and numbers from least to most."""

from __future__ import annotations

import pytest

from kilonova.core.decision import Reason
from kilonova.scheduler.grouping import GROUPS, LONGEST, grouped, nearest
from kilonova.scheduler.verdict import Verdict, fail


def needs(wanted: int, free: int) -> Verdict:
    return fail("needs {} MB, {} are free", wanted, free)


def test_hosts_with_one_reason_are_counted_and_their_numbers_are_a_range() -> None:
    verdicts = [needs(16384, free) for free in (512, 8192, 4096)] + [fail("its service is down")]
    assert grouped(verdicts) == (
        Reason(3, "needs 16384 MB, 512 to 8192 are free"),
        Reason(1, "its service is down"),
    )


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["a"], "a"),
        (["a", "b", "a"], "a, b"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
        ([True, False], "True, False"),  # no numbers
        ([True, 1], "True, 1"),
        ([3, "3"], "3, 3"),
        ([1, 2.5], "1 to 2.5"),
        ([None, 3], "None, 3"),
    ],
)
def test_values_are_told_at_once_as_far_as_they_are_few(values: list[object], shown: str) -> None:
    assert grouped([fail("is {}", value) for value in values]) == (Reason(len(values), f"is {shown}"),)


def test_groups_after_the_first_are_counted_together() -> None:
    found = grouped([fail(f"reason {number}") for number in range(GROUPS + 5)])
    assert len(found) == GROUPS + 1
    assert found[-1] == Reason(5, "other reasons")


def test_what_operators_wrote_is_cut() -> None:
    (only,) = grouped([fail("disabled ({})", "x" * 10_000)])
    assert len(only.text) == LONGEST


def test_the_nearest_miss_is_the_one_whose_two_numbers_are_closest_in_proportion() -> None:
    refused = [("a", needs(100, 10)), ("b", needs(16384, 16000)), ("c", fail("is off")), ("d", needs(2, 1))]
    assert nearest(refused) == ("b", "needs 16384 MB, 16000 are free")
    assert nearest([("c", fail("is off")), ("e", fail("is off"))]) == ("c", "is off")
    assert nearest([]) is None

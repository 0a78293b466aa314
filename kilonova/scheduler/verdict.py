"""What a filter says of a host: pass, or a reason with numbers. Formatting waits until somebody reads it."""

from __future__ import annotations

from typing import Any

import msgspec


class Verdict(msgspec.Struct, frozen=True):
    """passed, or a format string over the numbers that decided."""

    passed: bool
    reason: str = ""
    numbers: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return self.reason.format(*self.numbers) if self.reason else "passes"


PASS = Verdict(True)


def fail(reason: str, *numbers: Any) -> Verdict:
    """Refuse a host. reason: a sentence with `{}` for each number."""
    return Verdict(False, reason, numbers)

"""Sets of CPUs as bit masks (bit n is CPU n), and the text that operators write for them: `0-3,^1,8`.

A mask is 32 bytes where a set of 64 numbers is four thousand; a scheduler holds them for every host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kilonova.core.errors import Invalid

MOST: Final = 4096
"""CPUs beyond this are a mistake; without a bound `0-999999999` would fill the memory."""

_PART = re.compile(r"\s*(\^?)\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")


class CpuSetInvalid(Invalid):
    """A text that is no set of CPUs."""

    code, message = "cpu_set_invalid", "{text!r} is not a set of CPUs: {why}."


def of(numbers: Iterable[int]) -> int:
    """The mask of these CPUs."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def members(mask: int) -> list[int]:
    """The CPUs of a mask, ascending."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


def parse(text: str, *, every: int = 0) -> int:
    """The mask that a text names. A part with `^` is left out; with such parts alone, the others of `every` are meant.

    CpuSetInvalid.
    """
    named = excluded = 0
    only_exclusions = True
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise CpuSetInvalid(text=text, why=f"{part.strip()!r} is neither a number nor a range")
        first, last = int(match[2]), int(match[3] or match[2])
        if first > last:
            raise CpuSetInvalid(text=text, why=f"{part.strip()!r} ends before it begins")
        if last >= MOST:
            raise CpuSetInvalid(text=text, why=f"{last} is above {MOST - 1}")
        mask = ((1 << (last - first + 1)) - 1) << first
        if match[1]:
            excluded |= mask
        else:
            named, only_exclusions = named | mask, False
    return (every if only_exclusions else named) & ~excluded


def text(mask: int) -> str:
    """The shortest text of a mask: `0-3,8`; empty for none."""
    parts: list[str] = []
    numbers = members(mask)
    start = 0
    for place, number in enumerate(numbers):
        if place + 1 < len(numbers) and numbers[place + 1] == number + 1:
            continue
        first = numbers[start]
        parts.append(str(first) if first == number else f"{first}-{number}")
        start = place + 1
    return ",".join(parts)

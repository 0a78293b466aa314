"""Regular expressions that users write, matched in time linear in the text: none of them can hold up the process.

The engine is the one inside our JSON schema validator. What needs backtracking (look-around, back references, inline
flags) is no expression here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_LARGEST = 1 << 20  # bytes of a compiled expression; repetitions of repetitions grow beyond any


@lru_cache(256)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text holds a match, anywhere in it. ValueError when the pattern is none."""
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=_LARGEST)
    try:
        return jsonschema_rs.Draft4Validator({"type": "string", "pattern": pattern}, pattern_options=options).is_valid
    except (ValueError, jsonschema_rs.ValidationError):
        raise ValueError(f"{pattern!r} is no regular expression.") from None


def is_regex(text: str) -> bool:
    """Whether a text that is not empty is an expression."""
    try:
        matcher(text)
    except ValueError:
        return False
    return bool(text)


def holds(pattern: str, text: str | None) -> bool:
    """The function REGEXP of a database that has none; False for NULL and for what is no expression."""
    try:
        return text is not None and matcher(pattern)(text)
    except ValueError:
        return False

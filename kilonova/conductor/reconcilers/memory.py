"""What a reconciler remembers from one round to the next in this process; losing it only makes repair later."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kilonova.core import clock


@dataclass(frozen=True, slots=True)
class Memory:
    """facts: whatever. pause(seconds) waits, so that others get their turn; True says that the process is stopping."""

    pause: Callable[[float], bool] = lambda _seconds: False
    facts: dict[str, Any] = field(default_factory=dict)


def ripe(memory: Memory, keys: Iterable[str], grace: float) -> list[str]:
    """Those of the keys that were among the keys of every round for at least `grace` seconds."""
    now, known = clock.monotonic(), memory.facts.get("since", {})
    since = {key: known.get(key, now) for key in keys}
    memory.facts["since"] = since
    return [key for key, first in since.items() if now - first >= grace]

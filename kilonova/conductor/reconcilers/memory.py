"""What a reconciler remembers from one round to the next in this process; losing it only makes repair later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kilonova.core import clock

Memory = dict[str, Any]


def ripe(memory: Memory, keys: Iterable[str], grace: float) -> list[str]:
    """Those of the keys that were among the keys of every round for at least `grace` seconds."""
    now, known = clock.monotonic(), memory.get("since", {})
    since = {key: known.get(key, now) for key in keys}
    memory["since"] = since
    return [key for key, first in since.items() if now - first >= grace]

"""Which root a provider has by its parents."""

from __future__ import annotations

from collections.abc import Mapping


def roots(parents: Mapping[int, int | None]) -> dict[int, int]:
    """The top of the chain of parents of each; those that are their own ancestors are left out."""
    found: dict[int, int] = {}
    for start in parents:
        chain: list[int] = []
        at, seen = start, set()
        while at not in found and at not in seen:
            seen.add(at)
            chain.append(at)
            above = parents.get(at)
            if above is None or above not in parents:
                found[at] = at
                break
            at = above
        if at in found:
            found.update(dict.fromkeys(chain, found[at]))
    return found

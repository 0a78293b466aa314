"""Routes as a tree of path segments. A segment in braces matches anything but the empty string.

Literal segments win over variables. The names of variables belong to the rows, so rows may name one place
differently. A trailing slash is a path of its own, and matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kilonova.http.op import Op


@dataclass(slots=True)
class Place:
    """A path that has operations: per method, the rows in the order declared."""

    methods: dict[str, list[Op]] = field(default_factory=dict)
    names: dict[int, tuple[str, ...]] = field(default_factory=dict)  # id of a row → names of its variables


@dataclass(slots=True)
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    place: Place | None = None


class Router:
    """Finds the place of a path."""

    def __init__(self, ops: Iterable[Op]) -> None:
        self._root = _Node()
        for op in ops:
            self._add(op)

    def _add(self, op: Op) -> None:
        node, names = self._root, []
        for segment in op.path.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.variable = node = node.variable or _Node()
            else:
                node = node.literals.setdefault(segment, _Node())
        node.place = node.place or Place()
        node.place.methods.setdefault(op.method, []).append(op)
        node.place.names[id(op)] = tuple(names)

    def find(self, segments: list[str]) -> tuple[Place, list[str]] | None:
        """(place, values of its variables) of a path's segments, or None."""
        return _walk(self._root, segments, 0)

    def starts(self, segment: str) -> bool:
        """Whether some route's first segment is this literal."""
        return segment in self._root.literals


def _walk(node: _Node, segments: list[str], depth: int) -> tuple[Place, list[str]] | None:
    if depth == len(segments):
        return (node.place, []) if node.place else None
    segment = segments[depth]
    literal = node.literals.get(segment)
    if literal is not None:
        found = _walk(literal, segments, depth + 1)
        if found:
            return found
    if node.variable is not None and segment:
        found = _walk(node.variable, segments, depth + 1)
        if found:
            found[1].insert(0, segment)
            return found
    return None

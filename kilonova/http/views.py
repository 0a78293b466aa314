"""Responses as trees of ranged rows: per version and shape a view is compiled once into a list of getters.

A getter takes the object and the request and answers a plain value, or ABSENT to leave the key out. A gate is a
policy rule; its answer is asked once per list or once per object, never once per key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, Final

from kilonova.http.fields import Schema, Type
from kilonova.http.versions import Span, Version, between, span

ABSENT: Final = object()
Getter = Callable[[Any, Any], Any]


def attr(name: str) -> Getter:
    """The attribute `name` (dots allowed) of the object."""
    get = attrgetter(name)
    return lambda obj, req: get(obj)


def item(name: str) -> Getter:
    """The item `name` of the object."""
    get = itemgetter(name)
    return lambda obj, req: get(obj)


@dataclass(frozen=True, slots=True)
class Out:
    """One key of a response.

    `at` gives each shape (show, detail, update, …) a range of its own and leaves the key out of the other shapes;
    without it `since`/`until`/`when` hold for every shape. `type` is for the generated documents only.
    """

    key: str
    get: Getter
    since: str | None = None
    until: str | None = None
    when: str | None = None
    at: Mapping[str, str] | None = None
    gate: str | None = None
    type: Type | None = None

    def range(self, shape: str) -> Span | None:
        """The versions in which a shape has the key; None for never."""
        if self.at is not None:
            return span(self.at[shape]) if shape in self.at else None
        return span(self.when) if self.when else between(self.since, self.until)


Plan = tuple[tuple[str, Getter, str | None], ...]


class View:
    """The rows of one resource's representation, and its compiled plans."""

    def __init__(self, name: str, *rows: Out) -> None:
        self.name, self.rows = name, rows
        self._plans: dict[tuple[Version | None, str], Plan] = {}

    def plan(self, version: Version | None, shape: str) -> Plan:
        """(key, getter, gate) of a version and shape."""
        found = self._plans.get((version, shape))
        if found is None:
            found = tuple(
                (row.key, row.get, row.gate)
                for row in self.rows
                if (range_ := row.range(shape)) is not None and (version is None or version in range_)
            )
            self._plans[version, shape] = found
        return found

    def one(self, obj: Any, req: Any, shape: str = "show", target: Any = None) -> dict[str, Any]:
        """The representation of one object; gates are asked with `target`."""
        return _render(self._open(req, shape, target), obj, req)

    def many(self, objects: Iterable[Any], req: Any, shape: str = "detail") -> list[dict[str, Any]]:
        """The representations of a list; gates are asked once, with the caller's own project."""
        plan = self._open(req, shape, None)
        return [_render(plan, obj, req) for obj in objects]

    def _open(self, req: Any, shape: str, target: Any) -> list[tuple[str, Getter]]:
        gates: dict[str, bool] = {}
        keys = []
        for key, get, gate in self.plan(req.version, shape):
            if gate is not None:
                if gate not in gates:
                    gates[gate] = req.allowed(gate, target)
                if not gates[gate]:
                    continue
            keys.append((key, get))
        return keys

    def schema(self, version: Version | None, shape: str) -> Schema:
        """A JSON schema of the representation, for the generated documents."""
        rows = {row.key: row for row in self.rows}
        plan = self.plan(version, shape)
        types = {key: rows[key].type for key, _, _ in plan}
        return {
            "type": "object",
            "properties": {key: kind.schema(version) if kind else {} for key, kind in types.items()},
        }


def _render(plan: list[tuple[str, Getter]], obj: Any, req: Any) -> dict[str, Any]:
    document = {}
    for key, get in plan:
        value = get(obj, req)
        if value is not ABSENT:
            document[key] = value
    return document

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from kilonova.bus.calls import GuestSpec, Spawn, Ticket
from kilonova.core import ids
from kilonova.core.errors import Conflict, Unavailable


class Inline:
    """An executor that runs at once, so that a cast is done when it returns."""

    def submit(self, function: Any, *arguments: Any) -> None:
        function(*arguments)

    def close(self, seconds: float = 5.0) -> None: ...


class Placement:
    """Placement as far as the tracker knows it, with generations that are really compared."""

    def __init__(self) -> None:
        self.providers: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[str, str]] = []
        self.lists = 0
        self.down = False
        self.meddle: Any = None
        self.lock = threading.Lock()

    def _up(self) -> None:
        if self.down:
            raise Unavailable("placement is down")

    def ensure_provider(self, uuid: str, name: str, parent: str | None = None) -> int:
        with self.lock:
            self._up()
            if any(row["name"] == name for key, row in self.providers.items() if key != uuid):
                raise Conflict(f"{name} is taken")
            if uuid not in self.providers:
                self.writes.append(("provider", name))
                row = {"uuid": uuid, "name": name, "generation": 0, "inventory": {}, "traits": [], "parent": parent}
                self.providers[uuid] = row
            return int(self.providers[uuid]["generation"])

    def list_providers(self, **filters: Any) -> list[dict[str, Any]]:
        self._up()
        self.lists += 1
        rows = [row for row in self.providers.values() if filters.get("uuid") in (None, row["uuid"])]
        return [row for row in rows if filters.get("in_tree") in (None, row["uuid"], row["parent"])]

    def delete_provider(self, uuid: str) -> bool:
        self._up()
        return self.providers.pop(uuid, None) is not None

    def ensure_resource_class(self, name: str) -> None:
        self.writes.append(("class", name))

    def ensure_trait(self, name: str) -> None:
        self.writes.append(("trait", name))

    def inventory(self, uuid: str) -> tuple[dict[str, Any], int]:
        return self.providers[uuid]["inventory"], self.providers[uuid]["generation"]

    def traits(self, uuid: str) -> tuple[list[str], int]:
        return self.providers[uuid]["traits"], self.providers[uuid]["generation"]

    def set_inventory(self, uuid: str, inventory: dict[str, Any], generation: int) -> int:
        return self._set(uuid, "inventory", inventory, generation)

    def set_traits(self, uuid: str, traits: Iterable[str], generation: int) -> int:
        return self._set(uuid, "traits", sorted(traits), generation)

    def _set(self, uuid: str, part: str, value: Any, generation: int) -> int:
        self._up()
        row = self.providers[uuid]
        if self.meddle:
            self.meddle(row)
        if row["generation"] != generation:
            raise Conflict("generation")
        row[part] = value
        row["generation"] += 1
        self.writes.append((part, row["name"]))
        return int(row["generation"])

    def named(self, name: str) -> dict[str, Any]:
        return next(row for row in self.providers.values() if row["name"] == name)


def ticket(server: str = "s1", *, workflow: str = "w1", step: str = "spawn", attempt: int = 1, epoch: int = 1,
           host: str = "sim-0001") -> Ticket:  # fmt: skip
    return Ticket("cell", workflow, step, attempt, epoch, server, host)


def spawn(server: str | None = None, **changes: Any) -> Spawn:
    server = server or ids.new_uuid()
    spec = GuestSpec(server, "instance-1", "web", "p", "u", 1, 512, 1)
    return Spawn(ticket(server, **changes), spec)

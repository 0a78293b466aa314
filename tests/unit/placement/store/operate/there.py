"""A database shaped as OpenStack's Placement shapes it, in an SQLite file; tests/deploy has the real one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kilonova.core import ids

MOMENT = datetime(2024, 5, 6, 7, 8, 9)
KEYS = ("resource_provider_traits", "resource_provider_aggregates")

_int, _text = sa.Integer, sa.String(255)
_COLUMNS: dict[str, dict[str, Any]] = {
    "resource_providers": {
        "uuid": _text, "name": _text, "generation": _int, "root_provider_id": _int, "parent_provider_id": _int,
    },
    "resource_classes": {"name": _text},
    "traits": {"name": _text},
    "consumer_types": {"name": _text},
    "projects": {"external_id": _text},
    "users": {"external_id": _text},
    "inventories": {
        "resource_provider_id": _int, "resource_class_id": _int, "total": _int, "reserved": _int, "min_unit": _int,
        "max_unit": _int, "step_size": _int, "allocation_ratio": sa.Float(),
    },
    "resource_provider_traits": {"resource_provider_id": _int, "trait_id": _int},
    "placement_aggregates": {"uuid": _text},
    "resource_provider_aggregates": {"resource_provider_id": _int, "aggregate_id": _int},
    "consumers": {
        "uuid": _text, "project_id": _int, "user_id": _int, "generation": _int, "consumer_type_id": _int,
    },
    "allocations": {"resource_provider_id": _int, "consumer_id": _text, "resource_class_id": _int, "used": _int},
}  # fmt: skip


class There:
    """The source of an import."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self._engine = sa.create_engine(self.url)
        metadata = sa.MetaData()
        self.tables = {
            name: sa.Table(
                name, metadata, *([] if name in KEYS else [sa.Column("id", sa.Integer, primary_key=True)]),
                *(sa.Column(column, kind) for column, kind in columns.items()),
                sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime),
            )
            for name, columns in _COLUMNS.items()
        }  # fmt: skip
        metadata.create_all(self._engine)
        self.named: dict[tuple[str, str], int] = {}

    def insert(self, table: str, **values: Any) -> int:
        """One row; its id."""
        with self._engine.begin() as connection:
            stamps = {"created_at": MOMENT, "updated_at": MOMENT + timedelta(hours=1)}
            done = connection.execute(sa.insert(self.tables[table]), {**stamps, **values})
            return 0 if table in KEYS else int(done.inserted_primary_key[0])  # type: ignore[index]

    def do(self, text: str, **values: Any) -> None:
        """Any statement."""
        with self._engine.begin() as connection:
            connection.execute(sa.text(text), values)

    def id(self, table: str, name: str, column: str = "name") -> int:
        """The id of something with a name, made if need be."""
        if (table, name) not in self.named:
            self.named[table, name] = self.insert(table, **{column: name})
        return self.named[table, name]

    def provider(self, name: str, parent: int | None = None, generation: int = 3, **stock: int) -> int:
        """A provider with inventories of the classes named; its id."""
        made = self.insert("resource_providers", uuid=ids.new_uuid(), name=name, generation=generation)
        root = made
        if parent is not None:
            with self._engine.connect() as connection:
                of = self.tables["resource_providers"]
                root = connection.execute(sa.select(of.c.root_provider_id).where(of.c.id == parent)).scalar_one()
        self.do(
            "UPDATE resource_providers SET root_provider_id = :r, parent_provider_id = :p WHERE id = :i",
            r=root, p=parent, i=made,
        )  # fmt: skip
        for class_name, total in stock.items():
            self.insert(
                "inventories", resource_provider_id=made, resource_class_id=self.id("resource_classes", class_name),
                total=total, reserved=1, min_unit=1, max_unit=total, step_size=1, allocation_ratio=1.5,
            )  # fmt: skip
        return made

    def claim(
        self, amounts: Mapping[int, Mapping[str, int]], kind: str | None = "INSTANCE", *, record: bool = True
    ) -> str:
        """A consumer that holds this, by provider id and class; its uuid."""
        uuid = ids.new_uuid()
        if record:
            self.insert(
                "consumers", uuid=uuid, generation=2, project_id=self.id("projects", "p1", "external_id"),
                user_id=self.id("users", "u1", "external_id"),
                consumer_type_id=None if kind is None else self.id("consumer_types", kind),
            )  # fmt: skip
        for provider, held in amounts.items():
            for class_name, used in held.items():
                self.allocate(uuid, provider, class_name, used)
        return uuid

    def allocate(self, consumer: str, provider: int, class_name: str, used: int) -> None:
        """One row."""
        class_id = self.id("resource_classes", class_name)
        self.insert(
            "allocations", resource_provider_id=provider, consumer_id=consumer, resource_class_id=class_id, used=used
        )

    def trait(self, provider: int, name: str) -> None:
        """Give a provider a trait."""
        self.insert("resource_provider_traits", resource_provider_id=provider, trait_id=self.id("traits", name))

    def aggregate(self, provider: int, uuid: str) -> None:
        """Put a provider into an aggregate."""
        aggregate = self.id("placement_aggregates", uuid, "uuid")
        self.insert("resource_provider_aggregates", resource_provider_id=provider, aggregate_id=aggregate)

    def release(self, consumer: str) -> None:
        """Take away all that a consumer holds, and its record."""
        self.do("DELETE FROM allocations WHERE consumer_id = :c", c=consumer)
        self.do("DELETE FROM consumers WHERE uuid = :c", c=consumer)

    def remove(self, provider: int) -> None:
        """Take away a provider with all it has."""
        for table in ("inventories", "resource_provider_traits", "resource_provider_aggregates"):
            self.do(f"DELETE FROM {table} WHERE resource_provider_id = :p", p=provider)
        self.do("DELETE FROM resource_providers WHERE id = :p", p=provider)

    def dispose(self) -> None:
        """Close it."""
        self._engine.dispose()

"""What the handlers work with: the store's two ends and the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kilonova.core.metrics import OFF, Meters
from kilonova.placement.store.claims import Incomplete
from kilonova.placement.store.keeper import Keeper
from kilonova.placement.store.transactions import Writer
from kilonova.sql.engine import Database


@dataclass(frozen=True, slots=True)
class Settings:
    """`[placement]` of the Placement service. max_candidates: -1 for the built-in bound of work only.
    breadth: a limited answer covers many provider trees rather than all of one."""

    incomplete: Incomplete = field(default_factory=Incomplete)
    max_candidates: int = -1
    randomize: bool = False
    retries: int = 10
    breadth: bool = True


def settings(group: Any) -> Settings:
    """The settings from the group `[placement]` of the Placement service's own configuration."""
    return Settings(
        Incomplete(group.incomplete_consumer_project_id, group.incomplete_consumer_user_id),
        group.max_allocation_candidates,
        group.randomize_allocation_candidates,
        max(1, group.allocation_conflict_retry_count),
        group.allocation_candidates_generation_strategy == "breadth-first",
    )


@dataclass(frozen=True, slots=True)
class World:
    """One Placement service in one process."""

    database: Database
    writer: Writer
    keeper: Keeper
    settings: Settings
    meters: Meters = OFF


def make_world(database: Database, settings: Settings, meters: Meters = OFF) -> World:
    """A world on a database that `store.prepare.prepare` has seen."""
    writer = Writer(database, retries=settings.retries, meters=meters)
    return World(database, writer, Keeper(writer), settings, meters)

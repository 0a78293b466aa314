"""Columns that many tables have."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.sql.types import Timestamp


def stamps() -> tuple[sa.Column[Any], sa.Column[Any]]:
    """created_at and updated_at; the second stays null until the first change."""
    return (
        sa.Column("created_at", Timestamp, nullable=False, default=clock.utcnow),
        sa.Column("updated_at", Timestamp, onupdate=clock.utcnow),
    )
